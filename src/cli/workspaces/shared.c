/* carrel tree create, ls, rm: directories that workspaces share. */
#include "cli/plain.h"
#include "model/nouns/shared_tree.h"
#include "sandbox/plan/grants.h"

static const struct arg_spec tree_create = {
	.command = "tree create",
	.summary = "create an empty shared tree",
	.usage = "TREE [options]",
	.about = "Creates an empty shared tree. A workspace that has it attached writes files to "
		 "it.",
	REMOTE_OPTIONS,
	.run = plain_run,
	.check = grant_check_tree,
	.sends = "name",
};
static const struct arg_spec tree_ls = {
	.command = "tree ls",
	.summary = "list shared trees and the workspaces that have them attached",
	.about = "Lists shared trees and the workspaces that have them attached.",
	REMOTE_OPTIONS,
	.run = plain_list,
	.record = &shared_tree_record,
	.key = "name",
};
static const struct arg_spec tree_rm = {
	.command = "tree rm",
	.summary = "remove shared trees with their files",
	.usage = "TREE... [options]",
	.about = "Removes shared trees with their files, unless a workspace has them attached.",
	REMOTE_OPTIONS,
	.run = plain_remove,
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
