/* RECORD: entries lie in the text one after the other, and only blank lines are in none. */
#include <string.h>
#include "format/packages/wheel_record.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct error err = { 0 };
	wheel_record_list list = { 0 };
	const char *at = (const char *)data;

	arena_init(&arena);
	if (wheel_record_parse((struct str){ (const char *)data, size }, &arena, &list, &err) < 0) {
		check(list.count == 0 && (err.code == ERR_CORRUPT || err.code == ERR_LIMIT));
		return 0;
	}
	for (size_t i = 0; i < list.count; i++) {
		const struct wheel_record *entry = &list.items[i];

		check(entry->path[0] && strlen(entry->path) < entry->line.len);
		check(entry->line.data >= at);
		for (; at < entry->line.data; at++)
			check(*at == '\n' || *at == '\r');
		at += entry->line.len;
		check(at <= (const char *)data + size);
	}
	return 0;
}
