/* carrel agent: add, ls, show, send, rm. */
#include <unistd.h>
#include "base/fd.h"
#include "base/id.h"
#include "cli/environments/template.h"
#include "cli/plain.h"
#include "cli/removal.h"
#include "format/text/base64.h"
#include "model/agents/a2a.h"
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
		 "serves it at /a2a/NAME. It replaces one of that name; tasks that run go on as "
		 "they began. Prints its name. docs/agents.md describes the file.",
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
		 "forgotten. Workspaces of their contexts stay until their ttl has passed. While a "
		 "task runs, it asks on a terminal, and needs --force elsewhere.",
	ARG_TABLE(plain_rm_table),
	.run = plain_remove,
	.check = agent_check_name,
	.removal = &agent_removal,
};

/* ---- send: one message, and the task that it became ---- */

#define TEXT_MAX ((size_t)1 << 20)

static const struct arg_option send_table[] = {
	{ 0, "context", ARG_TEXT, AT(context_id), "ID",
		"the conversation, whose workspace it works in; without one, a throw-away "
		"sandbox" },
	{ 0, "task", ARG_TEXT, AT(task), "ID", "answer this task, which waits for input" },
	{ ARG_FROM(remote_rows) },
};

/* The text that is sent: the operand, or stdin. */
static int read_text(struct command *command, struct str *text, struct error *err)
{
	const char *given = command->operands.items[1];
	*text = str_from(given);
	if (!strcmp(given, "-") && cli_read_file("-", TEXT_MAX, &command->arena, text, err))
		return -1;
	if (str_utf8_prefix(text->data, text->len) != text->len)
		return fail(err, ERR_INVALID, "the message is not a text in UTF-8");
	return 0;
}

static void print_request(struct command *command, struct str text, struct buf *body)
{
	const struct options *options = &command->options;
	struct json j = json_to(body, false);
	char id[ID_LEN + 1];
	id_make(id);
	json_object(&j, NULL);
	json_text(&j, "jsonrpc", "2.0");
	json_u64(&j, "id", 1);
	json_text(&j, "method", "SendMessage");
	json_object(&j, "params");
	json_object(&j, "message");
	json_text(&j, "messageId", id);
	json_text(&j, "role", "ROLE_USER");
	if (options->context_id)
		json_text(&j, "contextId", options->context_id);
	if (options->task)
		json_text(&j, "taskId", options->task);
	json_array(&j, "parts");
	json_object(&j, NULL);
	json_str(&j, "text", text);
	for (int i = 0; i < 5; i++)
		json_end(&j);
}

/* Texts and data of the parts of a message or an artifact, each data as one line of JSON. */
static void gather_parts(const struct json_value *message, struct buf *out)
{
	const struct json_value *part = json_member_first(message, "parts");
	for (; part; part = part->next) {
		const struct json_value *text = json_member(part, "text");
		const struct json_value *data = json_member(part, "data");
		struct json j = json_to(out, false);
		if (text && text->kind == JSON_STRING)
			buf_append(out, text->string.data, text->string.len);
		else if (data)
			json_copy(&j, NULL, data);
		if (data)
			buf_char(out, '\n');
	}
}

/* What a task made, to stdout, but the artifact `stderr` of a command. */
static int print_artifacts(
	struct command *command, const struct json_value *task, struct error *err)
{
	auto_buf struct buf errors = buf_empty(JSON_READ_MAX);
	const struct json_value *one = json_member_first(task, "artifacts");
	for (; one; one = one->next) {
		const char *id = json_member_text(one, "artifactId");
		bool is_stdout = id && !strcmp(id, "stdout");
		bool is_stderr = id && !strcmp(id, "stderr");
		if (id && !strcmp(id, "result"))
			continue;
		gather_parts(one, is_stderr ? &errors : &command->out);
		if (!is_stdout && !is_stderr)
			buf_end_line(&command->out);
	}
	return fd_write_full(STDERR_FILENO, errors.data, errors.len) == (ssize_t)errors.len
		       ? 0
		       : fail_errno(err, "write stderr");
}

/* What the agent said since the message that was sent: the end of the history. The message of its
 * state, which may be there too, is printed elsewhere. */
static void print_replies(struct command *command, const struct json_value *task,
	const struct json_value *state_message)
{
	const char *state_id = json_member_text(state_message, "messageId");
	const struct json_value *one = json_member_first(task, "history"), *reply = one;
	for (; one; one = one->next) {
		const char *role = json_member_text(one, "role");
		if (role && !strcmp(role, "ROLE_USER"))
			reply = one->next;
	}
	for (; reply; reply = reply->next) {
		const char *id = json_member_text(reply, "messageId");
		if (id && state_id && !strcmp(id, state_id))
			continue;
		gather_parts(reply, &command->out);
		buf_end_line(&command->out);
	}
}

/* The exit code of the command that the task was; 0: none, or none that says more than its state.
 */
static int find_exit_code(const struct json_value *task)
{
	const struct json_value *one = json_member_first(task, "artifacts");
	for (; one; one = one->next) {
		const char *id = json_member_text(one, "artifactId");
		const struct json_value *data =
			json_member(json_member_first(one, "parts"), "data");
		uint64_t code;
		if (id && !strcmp(id, "result") && json_member_u64(data, "exit_code", &code))
			return code < 256 ? (int)code : 0;
	}
	return 0;
}

/* The approval that a task waits for, with who answers it; NULL: it waits for none. */
static const struct json_value *find_approval(
	const struct json_value *message, const char **approver)
{
	const struct json_value *part = json_member_first(message, "parts"), *found = NULL;
	for (; part && !found; part = part->next) {
		const struct json_value *data = json_member(part, "data");
		*approver = json_member_text(data, "approver");
		found = json_member(data, "approval");
	}
	return found;
}

/* The command that an approval is about, whole: what is approved must be what was seen. */
static const char *show_command(struct command *command, const struct json_value *approval)
{
	const struct json_value *value = json_member(approval, "command");
	const char *encoding = json_member_text(approval, "encoding");
	struct str bytes = value && value->kind == JSON_STRING ? value->string : STR("");
	if (encoding && !strcmp(encoding, "base64") &&
		!base64_decode(bytes, &command->arena, &bytes))
		return "a command that is not shown";
	size_t size = 4 * bytes.len + 1; /* each byte may become \xNN */
	char *shown = arena_alloc(&command->arena, size);
	str_printable(shown, size, bytes);
	return shown;
}

static int explain_approval(struct command *command, const char *id,
	const struct json_value *approval, const char *approver)
{
	const char *approval_id = json_member_text(approval, "id");
	const char *shown = show_command(command, approval);
	if (approver && !strcmp(approver, "reviewer") && approval_id)
		cli_say("task %s waits for an approval: %s\n"
			"hint: a reviewer answers: carrel approval approve %s",
			id, shown, approval_id);
	else
		cli_say("task %s waits for an approval: %s\n"
			"hint: carrel agent send %s --task %s approve",
			id, shown, command->operands.items[0], id);
	return error_exit_code(ERR_APPROVAL_REQUIRED);
}

/* The states that a task may be answered in; ERR_NONE: no error. */
static const struct ending {
	enum error_code code;
	const char *word;
} endings[TASK_STATE_COUNT] = {
	[TASK_FAILED] = { ERR_FAILED, "failed" },
	[TASK_CANCELED] = { ERR_CANCELED, "was canceled" },
	[TASK_REJECTED] = { ERR_POLICY, "was rejected" },
};

/* Prints what the task made. The exit code: the command's, or 0, 125, 126 or 130 by its state; it
 * is the same with -o json, which prints the task as it came. */
static int print_task(struct command *command, const struct json_value *task, struct error *err)
{
	const struct json_value *status = json_member(task, "status");
	const struct json_value *message = json_member(status, "message");
	const char *state_name = json_member_text(status, "state");
	const char *id = json_member_text(task, "id"), *approver = NULL;
	int state = state_name ? task_state_find(a2a_state_names, state_name) : -1;
	const struct json_value *approval = find_approval(message, &approver);
	auto_buf struct buf said = buf_empty(JSON_READ_MAX);
	int code = find_exit_code(task);
	if (!id || state < 0 || !task_state_is_settled((enum task_state)state))
		return fail(err, ERR_CORRUPT, "the daemon's response is not a task that has ended");
	const struct ending *ending = &endings[state];
	bool is_waiting = state == TASK_INPUT_REQUIRED;
	if (command->json) {
		struct json j = json_to(&command->out, false);
		task_copy_json(&j, NULL, task);
		buf_char(&command->out, '\n');
		if (code || (ending->code == ERR_NONE && !(is_waiting && approval)))
			return code;
		return error_exit_code(ending->code ? ending->code : ERR_APPROVAL_REQUIRED);
	}
	print_replies(command, task, message);
	if (print_artifacts(command, task, err))
		return -1;
	if (is_waiting && approval)
		return explain_approval(command, id, approval, approver);
	gather_parts(message, &said);
	if (ending->code == ERR_NONE) {
		buf_append(&command->out, said.data, said.len);
		if (said.len)
			buf_end_line(&command->out);
		if (is_waiting)
			cli_say("task %s waits for an answer\nhint: carrel agent send %s --task %s "
				"TEXT",
				id, command->operands.items[0], id);
		return 0;
	}
	if (code)
		return code;
	/* The message of a program that failed: what happened, then the end of its log. */
	buf_end_line(&said);
	const char *newline = said.len ? memchr(said.data, '\n', said.len) : NULL;
	size_t len = newline ? (size_t)(newline - said.data) : 0;
	if (newline && fd_write_full(STDERR_FILENO, newline + 1, said.len - len - 1) < 0)
		return fail_errno(err, "write stderr");
	return fail(err, ending->code, "task %s of agent '%s' %s%s%.*s", id,
		command->operands.items[0], ending->word, len ? ": " : "", (int)len,
		len ? said.data : "");
}

/* The answer of a program that made no task of the message. */
static int print_reply(struct command *command, const struct json_value *message)
{
	struct json j = json_to(&command->out, false);
	if (command->json)
		task_copy_json(&j, NULL, message);
	else
		gather_parts(message, &command->out);
	buf_end_line(&command->out);
	return 0;
}

static int run_send(struct command *command, struct error *err)
{
	const char *name = command->operands.items[0];
	auto_buf struct buf body = buf_empty((size_t)8 << 20);
	struct remote_answer answer;
	struct str text;
	if (agent_check_name(name, err) || read_text(command, &text, err))
		return -1;
	print_request(command, text, &body);
	if (remote_call(&command->remote, "POST", arena_printf(&command->arena, "/a2a/%s", name),
		    &body, &answer, err))
		return -1;
	const char *refused = json_member_text(json_member(answer.value, "error"), "message");
	if (refused)
		return fail(err, ERR_INVALID, "agent '%s': %s", name, refused);
	const struct json_value *result = json_member(answer.value, "result");
	const struct json_value *message = json_member(result, "message");
	return message ? print_reply(command, message)
		       : print_task(command, json_member(result, "task"), err);
}

static const struct arg_spec send_spec = {
	.command = "agent send",
	.summary = "send a message to an agent, and print what it answers",
	.usage = "NAME TEXT [options]",
	.about = "Sends one message (-: from stdin) by A2A, waits until its task has ended or "
		 "needs an answer, and prints what it made. With `kind: shell` the text is a "
		 "command; the exit code is the command's.",
	ARG_TABLE(send_table),
	.examples = "  carrel agent send tools --context trip 'ls data'\n"
		    "  carrel agent send tools --task a1b2 approve\n",
	.run = run_send,
};

const struct arg_spec cli_agent = {
	.command = "agent",
	.summary = "add, list, show and remove A2A agents, and send to them",
	.group = GROUP_AGENTS,
	.about = "A2A agents: each is served at /a2a/NAME, and has a workspace for each context.",
	.examples = "  carrel agent add tools.yaml\n"
		    "  carrel agent send tools --context trip 'ls data'\n",
	.commands = (const struct arg_spec *const[]){ &add_spec, &send_spec, &ls_spec, &show_spec,
		&rm_spec, NULL },
};
