/* carrel rm. */
#include "cli/cli.h"
#include "cli/several.h"

struct rm_options {
	struct remote_options remote;
	bool no_archive;
};
#define FIELD(name) offsetof(struct rm_options, name)
static const struct arg_option table[] = {
	{ 0, "no-archive", ARG_FLAG, FIELD(no_archive), NULL,
		"keep no archive (this version never keeps one)", NULL, 0, 0 },
	REMOTE_ROWS(FIELD),
};
#undef FIELD
static const struct arg_spec spec = {
	.command = "rm",
	.usage = "carrel rm NAME... [options]",
	.about = "Removes workspaces: ends their commands and deletes their files.",
	.options = table,
	.option_count = sizeof table / sizeof *table,
	.examples = "  carrel rm demo\n"
		    "  carrel rm -- $(carrel ls -q --label team=search)\n",
};

static const char *path_of(struct remote *remote, const char *name)
{
	return remote_workspace_path(remote, name, "");
}

int cli_rm(int argc, char **argv)
{
	struct rm_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	text_list names = { 0 };
	struct error err;
	int code;
	if (!remote_parse(&remote, &spec, argc, argv, &options, &options.remote, 1, SIZE_MAX,
		    &names, &code))
		return code;
	if (remote_open(&remote, &options.remote, &err))
		return cli_fail(&err, remote.json);
	return several_call(
		&remote, &names, "DELETE", path_of, NULL, &(struct several){ .done = "removed" });
}
