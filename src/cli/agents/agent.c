/* carrel agent: add, ls, show, rm. */
#include <string.h>
#include "cli/removal.h"
#include "cli/agents/agent.h"
#include "cli/columns.h"
#include "cli/environments/template.h"
#include "model/agents/agent.h"

static int run_add(struct command *command, struct error *err)
{
	const char *path = command->operands.items[0];
	auto_buf struct buf body = buf_empty((size_t)8 << 20);
	struct json j = json_to(&body, false);
	struct remote_answer answer;
	struct str text;
	if (template_read_file(path, &command->arena, &text, err))
		return -1;
	json_object(&j, NULL);
	json_str(&j, "yaml", text);
	json_end(&j);
	if (remote_call(&command->remote, "POST", "/v1/agents", &body, &answer, err))
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

static int run_ls(struct command *command, struct error *err)
{
	return listing_print_records(command, &agent_record, "name", "/v1/agents", err);
}

static const struct arg_spec ls_spec = {
	.command = "agent ls",
	.summary = "list agents",
	.about = "Lists the agents, by name.",
	REMOTE_OPTIONS,
	.run = run_ls,
};

static int run_show(struct command *command, struct error *err)
{
	const char *name = command->operands.items[0];
	struct remote_answer answer;
	if (agent_check_name(name, err) ||
		remote_call(&command->remote, "GET",
			arena_printf(&command->arena, "/v1/agents/%s", name), NULL, &answer, err))
		return -1;
	const char *yaml = json_member_text(answer.value, "yaml");
	if (command->json) {
		remote_print_answer(&answer, &command->out);
		return 0;
	}
	buf_text(&command->out, yaml ? yaml : "");
	buf_end_line(&command->out);
	return 0;
}

static const struct arg_spec show_spec = {
	.command = "agent show",
	.summary = "print an agent",
	.usage = "NAME [options]",
	.about = "Prints the YAML of an agent, as it was added. -o json prints its values.",
	REMOTE_OPTIONS,
	.run = run_show,
};

static int run_rm(struct command *command, struct error *err)
{
	for (size_t i = 0; i < command->operands.count; i++)
		if (agent_check_name(command->operands.items[i], err))
			return -1;
	return removal_run(command, &agent_removal, &command->operands, NULL, err);
}

static const struct arg_option rm_table[] = { REMOVAL_FORCE_ROW, { ARG_FROM(remote_rows) } };
static const struct arg_spec rm_spec = {
	.command = "agent rm",
	.summary = "remove agents",
	.usage = "NAME... [options]",
	.about = "Removes agents. Their tasks that run are canceled, and all their tasks are "
		 "forgotten. Workspaces\nof their contexts stay until their ttl has passed. While "
		 "a task runs, it asks on a terminal,\nand needs --force elsewhere.",
	ARG_TABLE(rm_table),
	.run = run_rm,
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
