/* carrel agent: add, ls, show, rm. */
#include "cli/removal.h"
#include "cli/agents/agent.h"
#include "cli/columns.h"
#include "cli/plain.h"
#include "cli/environments/template.h"
#include "model/agents/agent.h"

static int run_add(struct command *command, struct error *err)
{
	const char *path = command->operands.items[0];
	struct remote_answer answer;
	struct str text;
	if (template_read_file(path, &command->arena, &text, err))
		return -1;
	if (plain_ask_with(command, template_print_yaml, &text, &answer, err))
		return err->code == ERR_INVALID || err->code == ERR_NOT_FOUND
			       ? error_context(err, "%s", path)
			       : -1;
	template_print_made(command, &answer);
	return 0;
}

static const struct arg_spec add_spec = {
	.command = "agent add",
	.summary = "add an A2A agent, or replace one",
	.usage = "FILE [options]",
	.about = "Adds the agent in a YAML file (-: stdin) under the name that the file says, and "
		 "serves it at\n/a2a/NAME. It replaces one of that name; tasks that run go on as "
		 "they began. Prints its\nname. docs/agents.md describes the file.",
	REMOTE_OPTIONS,
	.examples = "  carrel agent add tools.yaml\n",
	.run = run_add,
};

static const struct arg_spec ls_spec = {
	.command = "agent ls",
	.summary = "list agents",
	.about = "Lists the agents, by name.",
	REMOTE_OPTIONS,
	.run = plain_list,
	.record = &agent_record,
	.key = "name",
};

static const struct arg_spec show_spec = {
	.command = "agent show",
	.summary = "print an agent",
	.usage = "NAME [options]",
	.about = "Prints the YAML of an agent, as it was added. -o json prints its values.",
	REMOTE_OPTIONS,
	.run = plain_run,
	.check = agent_check_name,
	.prints = "yaml",
};

static const struct arg_spec rm_spec = {
	.command = "agent rm",
	.summary = "remove agents",
	.usage = "NAME... [options]",
	.about = "Removes agents. Their tasks that run are canceled, and all their tasks are "
		 "forgotten. Workspaces\nof their contexts stay until their ttl has passed. While "
		 "a task runs, it asks on a terminal,\nand needs --force elsewhere.",
	ARG_TABLE(plain_rm_table),
	.run = plain_remove,
	.check = agent_check_name,
	.removal = &agent_removal,
};

const struct arg_spec cli_agent = {
	.command = "agent",
	.summary = "add, list, show, ask and remove A2A agents",
	.group = GROUP_AGENTS,
	.about = "A2A agents: each is served at /a2a/NAME, and has a workspace for each context.",
	.examples = "  carrel agent add tools.yaml\n"
		    "  carrel agent send tools --context trip 'ls data'\n",
	.commands = (const struct arg_spec *const[]){ &add_spec, &agent_send_spec, &ls_spec,
		&show_spec, &rm_spec, NULL },
};
