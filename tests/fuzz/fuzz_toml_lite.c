/* uv.toml: whatever is in it, entries with texts or an error with a line, and an end. */
#include <string.h>
#include "format/text/toml_lite.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct error err = { 0 };
	toml_list list = { 0 };
	int line = 1;

	arena_init(&arena);
	if (toml_parse((struct str){ (const char *)data, size }, &arena, &list, &err) < 0) {
		check(list.count == 0 && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
		return 0;
	}
	for (size_t i = 0; i < list.count; i++) {
		const struct toml_entry *e = &list.items[i];

		check(e->table && e->key && e->text && strlen(e->text) <= size);
		check(e->line >= line);
		line = e->line;
	}
	return 0;
}
