/* carrel install, uninstall. */
#include <unistd.h>
#include "cli/plain.h"
#include "cli/environments/build_watch.h"

static const struct arg_option table[] = {
	{ 0, "node", ARG_FLAG, AT(node_packages), NULL, "packages of Node, not of Python" },
	{ 0, "no-persist", ARG_FLAG, AT(no_persist), NULL,
		"leave pyproject.toml, or package.json, as it is" },
	{ ARG_FROM(remote_rows) },
};

static void print_versions(
	struct buf *out, const struct json_value *answer, const char *key, char sign)
{
	const struct json_value *item = json_member_first(answer, key);
	for (; item; item = item->next) {
		const char *name = json_member_text(item, "name");
		const char *version = json_member_text(item, "version");
		buf_printf(out, "%c %s %s\n", sign, name ? name : "", version ? version : "");
	}
}

static int print_more(const void *ctx, struct json *j, struct error *err)
{
	const struct options *options = ctx;
	if (options->node_packages)
		json_text(j, "kind", "node");
	if (options->no_persist)
		json_bool(j, "persist", false);
	return 0;
}

static int run_change(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	struct build_watch watch;
	enum progress_kind kind = command->json ? PROGRESS_NONE : progress_kind_for(STDERR_FILENO);
	if (remote_open(&command->remote, err))
		return -1;
	command->remote.interrupted_hint = arena_printf(&command->arena,
		"carrel info %s shows its environment", command->operands.items[0]);
	/* Often nothing has to be built: a bar disappears, a line would stay. */
	build_watch_begin(&watch, &command->remote, kind, kind == PROGRESS_BAR ? "resolving" : NULL,
		command->operands.items[0]);
	int failed = plain_ask_with(command, print_more, &command->options, &answer, err);
	build_watch_end(&watch);
	if (failed)
		return -1;
	if (command->json)
		return plain_show(command, &answer);
	print_versions(&command->out, answer.value, "removed", '-');
	print_versions(&command->out, answer.value, "installed", '+');
	if (!command->out.len)
		cli_say("nothing to change");
	return 0;
}

const struct arg_spec cli_install = {
	.command = "install",
	.summary = "install packages into a workspace",
	.group = GROUP_EVERYDAY,
	.usage = "NAME PACKAGE... [options]",
	.about = "Installs packages into a workspace, also while commands run in it, and adds them "
		 "to its pyproject.toml, or with --node to its package.json. What the workspace "
		 "has is resolved together with what is new; an error of that changes nothing. "
		 "Prints what was removed and installed.",
	ARG_TABLE(table),
	.examples = "  carrel install demo requests 'pandas>=2'\n"
		    "  carrel install demo ruff --no-persist\n"
		    "  carrel install demo --node axios typescript@5\n",
	.run = run_change,
	.sends = "packages",
	.cancels = "the change of packages",
};

const struct arg_spec cli_uninstall = {
	.command = "uninstall",
	.summary = "uninstall packages of a workspace",
	.group = GROUP_PACKAGES,
	.usage = "NAME PACKAGE... [options]",
	.about = "Uninstalls packages that were asked for when the workspace was created, or by "
		 "carrel install, with the dependencies that nothing else needs, and removes them "
		 "from pyproject.toml or package.json.",
	ARG_TABLE(table),
	.examples = "  carrel uninstall demo pandas\n"
		    "  carrel uninstall demo --node axios\n",
	.run = run_change,
	.sends = "packages",
	.cancels = "the change of packages",
};
