/* pylock.toml: what is taken prints to a text that is taken and prints the same. */
#include <string.h>
#include "format/packages/pylock.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	auto_buf struct buf first, second;
	struct error err = { 0 };
	pylock_list list = { 0 };

	arena_init(&arena);
	buf_init(&first, BUF_MAX_DEFAULT);
	buf_init(&second, BUF_MAX_DEFAULT);
	if (pylock_parse((struct str){ (const char *)data, size }, &arena, &list, &err) < 0) {
		check(list.count == 0 && (err.code == ERR_CORRUPT || err.code == ERR_LIMIT));
		return 0;
	}
	pylock_print(&list, &first);
	check(pylock_parse((struct str){ first.data, first.len }, &arena, &list, &err) == 0);
	pylock_print(&list, &second);
	check(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	return 0;
}
