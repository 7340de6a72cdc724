/* pip.conf: entries with texts of their own, or an error of one line. */
#include <string.h>
#include "format/text/ini.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct error err = { 0 };
	ini_list list = { 0 };
	size_t total = 0;

	arena_init(&arena);
	if (ini_parse((struct str){ (const char *)data, size }, &arena, &list, &err) < 0) {
		check(list.count == 0 && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
		return 0;
	}
	for (size_t i = 0; i < list.count; i++) {
		const struct ini_entry *e = &list.items[i];

		check(e->section[0] && e->key[0]);
		check(ini_find(&list, e->section, e->key) != NULL);
		total += strlen(e->key) + strlen(e->value);
	}
	check(total <= size);
	return 0;
}
