/* carrel rm. */
#include <string.h>
#include <unistd.h>
#include "base/str.h"
#include "cli/cli.h"
#include "cli/remote.h"

struct rm_options {
	struct remote_options remote;
	bool no_archive;
};
#define FIELD(name) offsetof(struct rm_options, name)
static const struct arg_option table[] = {
	{ 0, "no-archive", ARG_FLAG, FIELD(no_archive), NULL,
		"keep no archive of it; this version keeps none either way", NULL, 0, 0 },
	REMOTE_ROWS(FIELD),
};
#undef FIELD
static const struct arg_spec spec = {
	.command = "rm",
	.usage = "carrel rm NAME... [options]",
	.about = "Removes workspaces: ends what runs in them, and deletes all of their files.",
	.options = table,
	.option_count = sizeof table / sizeof *table,
	.examples = "  carrel rm demo\n"
		    "  carrel rm $(carrel ls -q --label team=search)\n",
};

struct removal {
	const char *name;
	bool has_failed;
	struct error err;
};

static void print_json(const struct removal *all, size_t count, struct buf *out)
{
	struct json j;
	bool has_failed = false;
	json_init(&j, out, false);
	json_object(&j, NULL);
	json_array(&j, "removed");
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

/* One that can't go keeps none of the others. */
static int print_removals(const struct removal *all, size_t count, bool json)
{
	auto_buf struct buf out;
	int failures = 0;
	buf_init(&out, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < count; i++) {
		failures += all[i].has_failed;
		if (!json && !all[i].has_failed)
			buf_printf(&out, "removed %s\n", all[i].name);
	}
	if (failures && count == 1)
		return cli_fail(&all[0].err, json);
	if (json)
		print_json(all, count, &out);
	int code = remote_print(&out);
	for (size_t i = 0; !json && i < count; i++)
		if (all[i].has_failed)
			cli_fail(&all[i].err, false);
	return code ? code : failures ? 125 : 0;
}

int cli_rm(int argc, char **argv)
{
	struct rm_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	arg_list names = { 0 };
	struct error err;
	int code;
	if (!remote_parse(&remote, &spec, argc, argv, &options, &options.remote, 1, SIZE_MAX,
		    &names, &code))
		return code;
	if (remote_open(&remote, &options.remote, &err))
		return cli_fail(&err, remote.json);
	struct removal *all = arena_array(&remote.arena, names.count, sizeof *all);
	for (size_t i = 0; i < names.count; i++) {
		all[i].name = names.items[i];
		all[i].has_failed = remote_call(&remote, "DELETE",
					    remote_workspace_path(&remote, all[i].name, ""), NULL,
					    NULL, &all[i].err) != 0;
	}
	return print_removals(all, names.count, remote.json);
}
