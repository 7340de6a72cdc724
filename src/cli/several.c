#include "cli/several.h"

#include "base/arena.h"
#include "cli/cli.h"

static void print_json(
	const struct several_one *all, size_t count, const struct several *several, struct buf *out)
{
	struct json j;
	bool has_failed = false;
	json_init(&j, out, false);
	json_object(&j, NULL);
	if (several->key)
		json_u64(&j, several->key, several->value);
	json_array(&j, several->done);
	for (size_t i = 0; i < count; i++) {
		has_failed |= all[i].has_failed;
		if (!all[i].has_failed)
			json_text(&j, NULL, all[i].name);
	}
	json_end(&j);
	if (has_failed)
		json_array(&j, "failed");
	for (size_t i = 0; i < count; i++)
		if (all[i].has_failed) {
			json_object(&j, NULL);
			json_text(&j, "name", all[i].name);
			cli_print_error(&j, "error", &all[i].err);
			json_end(&j);
		}
	if (has_failed)
		json_end(&j);
	json_end(&j);
	buf_char(out, '\n');
}

static int print(
	const struct several_one *all, size_t count, const struct several *several, bool json)
{
	auto_buf struct buf out;
	int failures = 0;
	buf_init(&out, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < count; i++) {
		failures += all[i].has_failed;
		if (!json && !all[i].has_failed && !several->is_quiet)
			buf_printf(&out, "%s %s\n", several->done, all[i].name);
	}
	if (failures && count == 1)
		return cli_fail(&all[0].err, json);
	if (json)
		print_json(all, count, several, &out);
	int code = remote_print(&out);
	for (size_t i = 0; !json && i < count; i++)
		if (all[i].has_failed)
			cli_fail(&all[i].err, false);
	return code ? code : failures ? 125 : 0;
}

int several_call(struct remote *remote, const text_list *names, const char *method,
	const char *(*path)(struct remote *remote, const char *name), const struct buf *body,
	const struct several *several)
{
	struct several_one *all = arena_array(&remote->arena, names->count, sizeof *all);
	for (size_t i = 0; i < names->count; i++) {
		all[i].name = names->items[i];
		all[i].has_failed = remote_call(remote, method, path(remote, all[i].name), body,
					    NULL, &all[i].err) != 0;
	}
	return print(all, names->count, several, remote->json);
}
