/* Any package.json: an error, or a text that reads as before but for the one dependency. Any lock:
 * an error, or some text. */
#include <string.h>
#include "format/packages/package_edit.h"
#include "format/text/json_read.h"
#include "fuzz.h"

static const char *range_of(struct str text, struct arena *arena)
{
	struct json_value *root;
	struct error err;
	check(!json_read(text, arena, &root, &err));
	const char *found = NULL;
	for (const struct json_value *m = root->first; m; m = m->next)
		if (strstr(m->key.data, "ependencies") && json_member_text(m, "zzz-fuzz"))
			found = json_member_text(m, "zzz-fuzz");
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	auto_arena struct arena arena;
	auto_buf struct buf added = buf_empty(BUF_MAX_DEFAULT);
	auto_buf struct buf removed = buf_empty(BUF_MAX_DEFAULT);
	auto_buf struct buf lock = buf_empty(BUF_MAX_DEFAULT);
	struct error err = { 0 };
	node_specs specs = { 0 };
	text_list names = { 0 };

	arena_init(&arena);
	vec_push(&arena, &specs, (struct node_spec){ "zzz-fuzz", "^1" });
	vec_push(&arena, &names, "zzz-fuzz");
	node_lock_set_ranges(text, &specs, &arena, &lock, &err);
	if (package_json_add(text, &specs, &arena, &added, &err)) {
		check(added.len == 0 && err.code != 0);
		return 0;
	}
	struct str now = { added.data, added.len };
	const char *range = range_of(now, &arena);
	check(range && !strcmp(range, "^1"));
	check(!package_json_remove(now, &names, &arena, &removed, &err));
	range_of((struct str){ removed.data, removed.len }, &arena);
	return 0;
}
