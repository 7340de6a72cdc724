/* Any pyproject.toml: an error, or a text that reads as before but for the one dependency. */
#include <string.h>
#include "format/packages/pyproject.h"
#include "format/packages/pyproject_edit.h"
#include "fuzz.h"

static size_t count(const struct pyproject *found, const char *text)
{
	size_t count = 0;
	for (size_t i = 0; i < found->dependencies.count; i++)
		count += !strcmp(found->dependencies.items[i].text, text);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	auto_arena struct arena arena;
	auto_buf struct buf added = buf_empty(BUF_MAX_DEFAULT);
	auto_buf struct buf removed = buf_empty(BUF_MAX_DEFAULT);
	struct error err = { 0 };
	struct pyproject before = { 0 }, after = { 0 };
	text_list none = { 0 }, wanted = { 0 }, names = { 0 };

	arena_init(&arena);
	vec_push(&arena, &wanted, "zzz-fuzz==1");
	vec_push(&arena, &names, "zzz-fuzz");
	if (pyproject_add(text, &wanted, "3.11", &arena, &added, &err)) {
		check(added.len == 0 && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
		return 0;
	}
	struct str now = { added.data, added.len };
	if (!pyproject_read(text, &none, &none, &arena, &before, &err)) {
		check(!pyproject_read(now, &none, &none, &arena, &after, &err));
		check(count(&after, "zzz-fuzz==1") >= 1);
		check(after.dependencies.count >= before.dependencies.count);
	}
	if (!pyproject_remove(now, &names, &arena, &removed, &err)) {
		struct pyproject last = { 0 };
		struct str left = { removed.data ? removed.data : "", removed.len };
		if (!pyproject_read(left, &none, &none, &arena, &last, &err))
			check(count(&last, "zzz-fuzz==1") == 0);
	}
	return 0;
}
