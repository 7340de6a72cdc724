/* carrel token: access tokens, with which other principals than your uid use the daemon. */
#include "cli/plain.h"
#include "model/nouns/token.h"

/* ---- create ---- */

static const struct arg_option create_table[] = {
	{ 0, "scope", ARG_CHOICE, AT(scope), "admin|user|reviewer",
		"what its bearer may do: everything, look at workspaces and use them (default), or "
		"look at them and answer approvals",
		"admin|user|reviewer" },
	{ 0, "workspace", ARG_TEXT, AT(workspace), "NAME",
		"the only workspace that it reaches (default: all)", NULL, 1 },
	{ 0, "ttl", ARG_DURATION, AT(ttl_ms), "TIME",
		"it expires after this time, such as 30d (default: never)", NULL, 1000 },
	{ 0, "name", ARG_TEXT, AT(name), "TEXT", "a name for lists", NULL, 1 },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec create_spec = {
	.command = "token create",
	.summary = "make an access token",
	.about = "Makes an access token and prints it. It is shown this once: the daemon keeps "
		 "only a hash of it. Its bearer sets CARREL_TOKEN, or uses --token-file, or sends "
		 "`Authorization: Bearer`.",
	ARG_TABLE(create_table),
	.examples = "  carrel token create --scope reviewer --ttl 30d --name alice\n"
		    "  carrel token create --workspace demo > demo.token\n",
	.run = plain_run,
	.prints = "text",
};

/* ---- ls, rm ---- */

static const struct arg_spec ls_spec = {
	.command = "token ls",
	.summary = "list access tokens",
	.about = "Lists the access tokens, newest first, without their texts.",
	ARG_TABLE(plain_ids_table),
	.run = plain_list,
	.record = &token_record,
	.key = "id",
};

static const struct arg_spec rm_spec = {
	.command = "token rm",
	.summary = "remove access tokens",
	.usage = "TOKEN... [options]",
	.about = "Removes access tokens, by their ids. They are refused at once, and streams of "
		 "events that their bearers have open end.",
	REMOTE_OPTIONS,
	.run = plain_remove,
};

static const struct arg_spec *const commands[] = { &create_spec, &ls_spec, &rm_spec, NULL };
const struct arg_spec cli_token = {
	.command = "token",
	.summary = "create, list and remove access tokens",
	.group = GROUP_DAEMON,
	.about = "Access tokens, with which others than you, or less than you, use the daemon.",
	.commands = commands,
};
