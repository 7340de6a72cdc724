/* carrel install, uninstall. */
#include <unistd.h>
#include "cli/cli.h"
#include "cli/environments/build_watch.h"

#define BODY_MAX ((size_t)1 << 20)

static const struct arg_option table[] = {
	{ 0, "node", ARG_FLAG, AT(node_packages), NULL, "packages of Node, not of Python" },
	{ 0, "no-persist", ARG_FLAG, AT(no_persist), NULL,
		"leave pyproject.toml, or package.json, as it is" },
	{ ARG_FROM(remote_rows) },
};

static void print_versions(
	struct buf *out, const struct json_value *answer, const char *key, char sign)
{
	const struct json_value *list = json_member(answer, key);
	for (const struct json_value *item = list ? list->first : NULL; item; item = item->next) {
		const char *name = json_member_text(item, "name");
		const char *version = json_member_text(item, "version");
		buf_printf(out, "%c %s %s\n", sign, name ? name : "", version ? version : "");
	}
}

static int change(struct command *command, const char *method, struct error *err)
{
	struct remote_answer answer = { 0 };
	struct build_watch watch;
	auto_buf struct buf body = buf_empty(BODY_MAX);
	struct json j = json_to(&body, false);
	json_object(&j, NULL);
	json_array(&j, "packages");
	for (size_t i = 1; i < command->operands.count; i++)
		json_text(&j, NULL, command->operands.items[i]);
	json_end(&j);
	if (command->options.node_packages)
		json_text(&j, "kind", "node");
	if (command->options.no_persist)
		json_bool(&j, "persist", false);
	json_end(&j);
	enum progress_kind kind = command->json ? PROGRESS_NONE : progress_kind_for(STDERR_FILENO);
	if (remote_open(&command->remote, err))
		return -1;
	command->remote.cancels = "the change of packages";
	command->remote.interrupted_hint = arena_printf(&command->arena,
		"carrel info %s shows its environment", command->operands.items[0]);
	/* Often nothing has to be built: a bar disappears, a line would stay. */
	build_watch_begin(&watch, &command->remote, kind, kind == PROGRESS_BAR ? "resolving" : NULL,
		command->operands.items[0]);
	int failed = remote_call(&command->remote, method,
		remote_workspace_path(&command->remote, command->operands.items[0], "/packages"),
		&body, &answer, err);
	build_watch_end(&watch);
	if (failed)
		return -1;
	if (command->json) {
		remote_print_answer(&answer, &command->out);
		return 0;
	}
	print_versions(&command->out, answer.value, "removed", '-');
	print_versions(&command->out, answer.value, "installed", '+');
	if (!command->out.len)
		cli_say("nothing to change");
	return 0;
}

static int run_install(struct command *command, struct error *err)
{
	return change(command, "POST", err);
}

static int run_uninstall(struct command *command, struct error *err)
{
	return change(command, "DELETE", err);
}

const struct arg_spec cli_install = {
	.command = "install",
	.summary = "install packages into a workspace",
	.group = GROUP_EVERYDAY,
	.usage = "NAME PACKAGE... [options]",
	.about = "Installs packages into a workspace, also while commands run in it, and adds them "
		 "to\n"
		 "its pyproject.toml, or with --node to its package.json. What the workspace has "
		 "is\n"
		 "resolved together with what is new; an error of that changes nothing. Prints "
		 "what\n"
		 "was removed and installed.",
	ARG_TABLE(table),
	.examples = "  carrel install demo requests 'pandas>=2'\n"
		    "  carrel install demo ruff --no-persist\n"
		    "  carrel install demo --node axios typescript@5\n",
	.run = run_install,
};

const struct arg_spec cli_uninstall = {
	.command = "uninstall",
	.summary = "uninstall packages of a workspace",
	.group = GROUP_PACKAGES,
	.usage = "NAME PACKAGE... [options]",
	.about = "Uninstalls packages that were asked for when the workspace was created, or by\n"
		 "carrel install, with the dependencies that nothing else needs, and removes them "
		 "from\n"
		 "pyproject.toml or package.json.",
	ARG_TABLE(table),
	.examples = "  carrel uninstall demo pandas\n"
		    "  carrel uninstall demo --node axios\n",
	.run = run_uninstall,
};
