/* carrel approval: commands that wait for a person, and the answers. */
#include "cli/plain.h"
#include "cli/workspaces/workspace_names.h"
#include "format/text/base64.h"
#include "model/nouns/approval.h"

/* ---- what runs, for people ---- */

/* As it will be used: decoded, where it was shown as base64. */
static struct str read_bytes(
	struct command *command, const struct json_value *approval, const struct json_value *word)
{
	const char *encoding = json_member_text(approval, "encoding");
	struct str bytes = word->string;
	if (encoding && !strcmp(encoding, "base64"))
		base64_decode(word->string, &command->arena, &bytes);
	return bytes;
}

static const char *read_word(
	struct command *command, const struct json_value *approval, const struct json_value *word)
{
	const struct str bytes = read_bytes(command, approval, word);
	return arena_bytes(&command->arena, bytes.data, bytes.len);
}

static const char *describe(struct command *command, const struct json_value *approval)
{
	const struct json_value *at = json_member_first(approval, "argv"),
				*text = json_member(approval, "command");
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	text_list words = { 0 };
	if (text && text->kind == JSON_STRING) {
		vec_push(&command->arena, &words, "sh");
		vec_push(&command->arena, &words, "-c");
		vec_push(&command->arena, &words, read_word(command, approval, text));
	}
	for (; at; at = at->next)
		if (at->kind == JSON_STRING)
			vec_push(&command->arena, &words, read_word(command, approval, at));
	approval_print_words(words.items, words.count, &out);
	return arena_bytes(&command->arena, out.len ? out.data : "", out.len);
}

static const char *printable(struct command *command, const char *text)
{
	size_t size = 4 * strlen(text) + 1;
	char *shown = arena_alloc(&command->arena, size);
	str_printable(shown, size, str_from(text));
	return shown;
}

/* ---- ls ---- */

static int run_ls(struct command *command, struct error *err)
{
	struct listing listing = { .command = command,
		.record = &approval_record,
		.key = "id",
		.is_of_workspaces = true,
		.head = "COMMAND",
		.text = describe };
	return listing_print_named(&listing, plain_path(command, NULL), err);
}

static const struct arg_option ls_table[] = {
	{ 0, "state", ARG_CHOICE, AT(state), "pending|approved|denied|expired",
		"only those in this state", "pending|approved|denied|expired" },
	{ 0, "workspace", ARG_TEXT, AT(workspace), "NAME", "only of this workspace", NULL, 1 },
	{ 'q', "quiet", ARG_FLAG, AT(quiet), NULL, "ids only" },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec ls_spec = {
	.command = "approval ls",
	.summary = "list approvals",
	.about = "Lists approvals, newest first.",
	ARG_TABLE(ls_table),
	.run = run_ls,
};

/* ---- show ---- */

static void print_texts(
	struct command *command, const struct json_value *approval, const char *member)
{
	const struct json_value *at = json_member_first(approval, member);
	for (; at; at = at->next)
		if (at->kind == JSON_STRING)
			buf_printf(&command->out, "%-16s %s\n", member,
				printable(command, at->string.data));
}

static void print_trail(struct command *command, const struct json_value *approval)
{
	const struct json_value *at = json_member_first(approval, "trail");
	for (; at; at = at->next) {
		const char *subject = json_member_text(at, "subject"),
			   *rule = json_member_text(at, "rule"),
			   *reason = json_member_text(at, "reason"),
			   *decision = json_member_text(at, "decision");
		const char *why = rule ? rule : reason;
		buf_printf(&command->out, "%-16s %s: %s%s%s%s\n", "trail",
			decision ? decision : "-", printable(command, subject ? subject : ""),
			why ? " (" : "", why ? printable(command, why) : "", why ? ")" : "");
	}
}

/* What else decides what the command does: its variables, its input. */
static void print_inputs(struct command *command, const struct json_value *approval)
{
	static const char *const flags[] = { "open_stdin", "tty" };
	const struct json_value *at = json_member_first(approval, "env");
	const struct json_value *input = json_member(approval, "stdin");
	for (; at; at = at->next) {
		const char *value =
			at->kind == JSON_STRING ? read_word(command, approval, at) : "(hidden)";
		const struct json_value key = { .kind = JSON_STRING, .string = at->key };
		buf_printf(&command->out, "%-16s %s=%s\n", "env",
			printable(command, read_word(command, approval, &key)),
			printable(command, value));
	}
	if (input && input->kind == JSON_STRING) {
		const struct str bytes = read_bytes(command, approval, input); /* NULs, too */
		size_t size = 4 * bytes.len + 1;
		char *shown = arena_alloc(&command->arena, size);
		str_printable(shown, size, bytes);
		buf_printf(&command->out, "%-16s %s\n", "stdin", shown);
	}
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (json_member_true(approval, flags[i]))
			buf_printf(&command->out, "%-16s yes\n", flags[i]);
}

static void print_approval(struct command *command, const struct json_value *approval,
	const struct workspace_names *names)
{
	static const char *const members[] = { "id", "state", "workspace_name", "exec",
		"requested_by", "created_at", "expires_at", "answered_at", "answered_by", "note" };
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		const char *text = json_member_text(approval, members[i]);
		if (!strcmp(members[i], "workspace_name"))
			text = workspace_names_find(names, approval, "workspace", text);
		if (text)
			buf_printf(
				&command->out, "%-16s %s\n", members[i], printable(command, text));
	}
	const struct json_value *cwd = json_member(approval, "cwd");
	if (cwd && cwd->kind == JSON_STRING) {
		const char *word = read_word(command, approval, cwd);
		buf_printf(&command->out, "%-16s ", "cwd");
		approval_print_words(&word, 1, &command->out);
		buf_char(&command->out, '\n');
	}
	buf_printf(&command->out, "%-16s %s\n", "command", describe(command, approval));
	print_inputs(command, approval);
	print_trail(command, approval);
	print_texts(command, approval, "suggested_rules");
	const char *refused = json_member_text(approval, "always_refused");
	if (refused)
		buf_printf(
			&command->out, "%-16s %s\n", "always_refused", printable(command, refused));
	print_texts(command, approval, "rules");
}

static int run_show(struct command *command, struct error *err)
{
	struct remote_answer answer;
	struct workspace_names names;
	if (plain_ask(command, &answer, err) ||
		(!command->json && workspace_names_read(&names, &command->remote, true, err)))
		return -1;
	if (command->json)
		remote_print_answer(&answer, &command->out);
	else
		print_approval(command, answer.value, &names);
	return 0;
}

static const struct arg_spec show_spec = {
	.command = "approval show",
	.summary = "show an approval",
	.usage = "APPROVAL [options]",
	.about = "Shows an approval: the command as it will run, how the policy judged it, and the "
		 "rules that `approve --always` would add. Characters that can't be seen are shown "
		 "as \\xNN.",
	REMOTE_OPTIONS,
	.run = run_show,
};

/* ---- approve, deny ---- */

static int run_approve(struct command *command, struct error *err);

/* A policy that denies it by now overrules an approval. */
static int print_decision(const void *ctx, struct json *j, struct error *err)
{
	json_text(j, "decision", ctx);
	return 0;
}

static int send_answer(struct command *command, const char *decision, struct error *err)
{
	struct remote_answer answer;
	if (plain_ask_with(command, print_decision, decision, &answer, err))
		return -1;
	const char *state = json_member_text(answer.value, "state");
	const char *note = json_member_text(answer.value, "note");
	bool is_overruled = command->spec->run == run_approve && state &&
			    strcmp(state, approval_state_names[APPROVAL_APPROVED]) != 0;
	if (is_overruled)
		cli_say("it was not approved: %s", printable(command, note ? note : ""));
	if (command->json) {
		remote_print_answer(&answer, &command->out);
		return is_overruled ? error_exit_code(ERR_POLICY) : 0;
	}
	buf_printf(&command->out, "%s %s\n", state ? state : "-", command->operands.items[0]);
	const struct json_value *at = json_member_first(answer.value, "rules");
	for (; at; at = at->next)
		if (at->kind == JSON_STRING)
			buf_printf(&command->out, "allowed from now on: %s\n",
				printable(command, at->string.data));
	return is_overruled ? error_exit_code(ERR_POLICY) : 0;
}

static int run_approve(struct command *command, struct error *err)
{
	return send_answer(command, "approve", err);
}

static int run_deny(struct command *command, struct error *err)
{
	return send_answer(command, "deny", err);
}

#define NOTE_ROW                                                                                   \
	{                                                                                          \
		0, "note", ARG_TEXT, AT(note), "TEXT", "a word for the requester"                  \
	}
static const struct arg_option approve_table[] = {
	{ 0, "always", ARG_FLAG, AT(always), NULL,
		"also add the rules that `show` suggests to the policy of the workspace" },
	NOTE_ROW,
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec approve_spec = {
	.command = "approval approve",
	.summary = "let a command run",
	.usage = "APPROVAL [options]",
	.about = "Lets the command run that waits: the same bytes that `show` shows. Not for the "
		 "principal that asked, unless approvals.self is set: see carrel-token(1).",
	ARG_TABLE(approve_table),
	.examples = "  CARREL_TOKEN=crl_... carrel approval approve ID --note 'looks fine'\n",
	.run = run_approve,
};
static const struct arg_option deny_table[] = { NOTE_ROW, { ARG_FROM(remote_rows) } };
static const struct arg_spec deny_spec = {
	.command = "approval deny",
	.summary = "refuse a command",
	.usage = "APPROVAL [options]",
	.about = "Refuses the command that waits: it ends `denied`.",
	ARG_TABLE(deny_table),
	.run = run_deny,
	.asks = "answerApproval",
};

const struct arg_spec cli_approval = {
	.command = "approval",
	.summary = "answer what commands wait for",
	.group = GROUP_POLICY,
	.about = "Commands that wait for a person, because a policy asks for one.",
	.commands = (const struct arg_spec *const[]){ &ls_spec, &show_spec, &approve_spec,
		&deny_spec, NULL },
};
