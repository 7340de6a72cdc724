/* carrel tree create, ls, rm: directories that workspaces share. */
#include <string.h>
#include "cli/cli.h"
#include "cli/columns.h"
#include "sandbox/plan/grants.h"

static int run_create(struct command *command, struct error *err)
{
	const char *name = command->operands.items[0];
	struct remote_answer answer;
	auto_buf struct buf body = buf_empty(4096);
	struct json j = json_to(&body, false);
	if (grant_check_tree(name, err))
		return -1;
	json_object(&j, NULL);
	json_text(&j, "name", name);
	json_end(&j);
	if (remote_call(&command->remote, "POST", "/v1/trees", &body, &answer, err))
		return -1;
	if (command->json)
		remote_print_answer(&answer, &command->out);
	else
		buf_printf(&command->out, "%s\n", name);
	return 0;
}

static void add_line(struct listing *listing, const struct json_value *item)
{
	const char *names = columns_list(listing->columns.arena, json_member(item, "workspaces"));
	columns_add(&listing->columns, (const char *[]){ json_member_text(item, "name"),
					       names && names[0] ? names : NULL });
}

static int run_ls(struct command *command, struct error *err)
{
	static const char *const heads[] = { "NAME", "WORKSPACES" };
	struct listing listing = { .command = command,
		.columns = { .count = 2, .arena = &command->arena },
		.add = add_line };
	columns_add(&listing.columns, heads);
	return listing_print(&listing, "/v1/trees", err);
}

static int run_rm(struct command *command, struct error *err)
{
	return cli_remove_ones(command, "/v1/trees", &command->operands, err);
}

static const struct arg_spec tree_create = {
	.command = "tree create",
	.summary = "create an empty shared tree",
	.usage = "TREE [options]",
	.about = "Creates an empty shared tree. A workspace that has it attached writes files to "
		 "it.",
	REMOTE_OPTIONS,
	.run = run_create,
};
static const struct arg_spec tree_ls = {
	.command = "tree ls",
	.summary = "list shared trees and the workspaces that have them attached",
	.about = "Lists shared trees and the workspaces that have them attached.",
	REMOTE_OPTIONS,
	.run = run_ls,
};
static const struct arg_spec tree_rm = {
	.command = "tree rm",
	.summary = "remove shared trees with their files",
	.usage = "TREE... [options]",
	.about = "Removes shared trees with their files, unless a workspace has them attached.",
	REMOTE_OPTIONS,
	.run = run_rm,
};
static const struct arg_spec *const commands[] = { &tree_create, &tree_ls, &tree_rm, NULL };
const struct arg_spec cli_tree = {
	.command = "tree",
	.summary = "create, list and remove directories that workspaces share",
	.group = GROUP_WORKSPACES,
	.about = "A shared tree is a directory that several workspaces have mounted at once:\n"
		 "carrel create --attach TREE:PATH[:ro].",
	.commands = commands,
	.examples = "  carrel tree create skills\n"
		    "  carrel create writer --attach skills:/workspace/skills\n"
		    "  carrel cp ./skills/. writer:skills\n"
		    "  carrel create agent --attach skills:/workspace/.solven/skills/system:ro\n",
};
