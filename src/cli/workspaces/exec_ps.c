/* carrel ps, kill, wait. */
#include <signal.h>
#include "cli/plain.h"
#include "cli/workspaces/workspace_names.h"

static bool is_wanted(const struct command *command, const struct json_value *item)
{
	const char *state = json_member_text(item, "state");
	return command->options.all || !state || strcmp(state, "ended");
}

/* A word as a shell would take it, in one line: with quotes where it needs them, as $'...' when it
 * has control characters. */
static void add_word(struct buf *out, struct str word)
{
	static const char named[] = "\a\b\t\n\v\f\r\033", letters[] = "abtnvfre";
	bool is_plain = word.len > 0, has_control = false;
	for (size_t i = 0; i < word.len; i++) {
		unsigned char c = (unsigned char)word.data[i];
		has_control |= c < ' ' || c == 0x7f;
		is_plain &= c > ' ' && c != 0x7f && !strchr("\"'$;&|<>*\\", c);
	}
	if (!is_plain)
		buf_text(out, has_control ? "$'" : "'");
	for (size_t i = 0; i < word.len; i++) {
		char c = word.data[i];
		const char *name = c ? strchr(named, c) : NULL;
		if (has_control && name)
			buf_printf(out, "\\%c", letters[name - named]);
		else if (has_control && ((unsigned char)c < ' ' || c == 0x7f))
			buf_printf(out, "\\x%02x", (unsigned char)c);
		else if (has_control && (c == '\'' || c == '\\'))
			buf_printf(out, "\\%c", c);
		else if (c == '\'' && !is_plain)
			buf_text(out, "'\\''");
		else
			buf_char(out, c);
	}
	if (!is_plain)
		buf_char(out, '\'');
}

static const char *command_text(struct arena *arena, const struct json_value *word)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	for (; word; word = word->next) {
		if (word->kind != JSON_STRING)
			continue;
		if (text.len)
			buf_char(&text, ' ');
		add_word(&text, word->string);
	}
	return arena_bytes(arena, text.data, text.len);
}

/* "exited 3", "signaled 15", "running": how it is, or how it ended. */
static const char *state_text(struct arena *arena, const struct json_value *item)
{
	const char *state = json_member_text(item, "state"),
		   *reason = json_member_text(item, "reason");
	uint64_t code;
	if (!state || strcmp(state, "ended"))
		return state;
	if (!json_member_u64(item, "exit_code", &code))
		return state;
	if (reason && !strcmp(reason, "signaled") && code > 128)
		code -= 128; /* the number of the signal */
	return arena_printf(arena, "%s %" PRIu64, reason ? reason : "failed", code);
}

static void add_line(struct listing *listing, const struct json_value *item)
{
	struct arena *arena = &listing->command->arena;
	uint64_t cpu_ms;
	if (listing->command->options.quiet) {
		buf_printf(&listing->command->out, "%s\n", json_member_text(item, "id"));
		return;
	}
	const char *id = json_member_text(item, "workspace");
	bool has_cpu = json_member_u64(item, "cpu_ms", &cpu_ms);
	columns_add(&listing->columns,
		(const char *[]){ json_member_text(item, "id"),
			workspace_names_find(&listing->names, item, "workspace", id),
			state_text(arena, item),
			columns_age(arena, json_member_text(item, "started_at")),
			has_cpu ? arena_printf(arena, "%.1fs", (double)cpu_ms / 1000) : NULL,
			command_text(arena, json_member_first(item, "argv")) });
}

static int run_ps(struct command *command, struct error *err)
{
	static const char *const heads[] = { "ID", "WORKSPACE", "STATE", "AGE", "CPU", "COMMAND" };
	struct remote *remote = &command->remote;
	struct arena *arena = &command->arena;
	struct listing listing = { .command = command,
		.columns = { .count = 6, .numbers = 1 << 4, .arena = arena },
		.add = add_line,
		.is_wanted = is_wanted };
	if (!command->options.quiet)
		columns_add(&listing.columns, heads);
	if (!command->json && !command->options.quiet &&
		workspace_names_read(&listing.names, remote, false, err))
		return -1;
	return listing_print(&listing,
		command->operands.count
			? remote_workspace_path(remote, command->operands.items[0], "/execs")
			: "/v1/execs",
		err);
}

static const struct arg_option ps_table[] = {
	{ 'a', "all", ARG_FLAG, AT(all), NULL, "also list commands that have ended" },
	{ 'q', "quiet", ARG_FLAG, AT(quiet), NULL, "ids only" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_ps = {
	.command = "ps",
	.summary = "list commands running in workspaces",
	.group = GROUP_EXECS,
	.usage = "[NAME] [options]",
	.about = "Lists running commands, of one workspace or of all, newest first.",
	ARG_TABLE(ps_table),
	.run = run_ps,
};

/* By number, or by a name that kill(1) takes; real-time signals are not supported. */
static int parse_signal(const char *text, int *number, struct error *err)
{
	/* In the order of their numbers, from 1. */
	static const char *const names[] = { "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS",
		"FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD",
		"CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
		"WINCH", "IO", "PWR", "SYS" };
	_Static_assert(SIGUSR2 == 12 && SIGCHLD == 17 && SIGSYS == 31, "another order");
	const char *name = strncasecmp(text, "SIG", 3) ? text : text + 3;
	uint64_t value;
	if (str_to_u64(str_from(text), &value) && value >= 1 && value <= 64) {
		*number = (int)value;
		return 0;
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcasecmp(name, names[i])) {
			*number = (int)i + 1;
			return 0;
		}
	return fail_hint(
		err, ERR_INVALID, "TERM, KILL, INT, 9 …", "--signal: unknown signal '%s'", text);
}

struct killing {
	struct command *command;
	struct buf *body;
	cli_ones all;
	text_list execs; /* of a workspace, that haven't ended */
};

static bool send_to(struct killing *killing, const char *exec, struct error *err)
{
	struct remote *remote = &killing->command->remote;
	return !remote_call(remote, "POST", remote_exec_path(remote, exec, "/signal"),
		killing->body, NULL, err);
}

static void note_running(void *ctx, const struct json_value *item)
{
	struct killing *killing = ctx;
	const char *id = json_member_text(item, "id"), *state = json_member_text(item, "state");
	if (id && state && strcmp(state, "ended") != 0)
		vec_push(&killing->command->arena, &killing->execs, id);
}

/* Signals all commands that run in workspace `name`. ERR_NOT_FOUND: no workspace has that name. */
static int kill_in(struct killing *killing, const char *name, struct error *err)
{
	struct command *command = killing->command;
	struct remote *remote = &command->remote;
	size_t count = 0;
	killing->execs.count = 0;
	if (remote_each(remote, remote_workspace_path(remote, name, "/execs"), note_running,
		    killing, err))
		return -1;
	for (size_t i = 0; i < killing->execs.count; i++) {
		struct cli_one one = { .name = killing->execs.items[i] };
		one.has_failed = !send_to(killing, one.name, &one.err);
		/* It has ended meanwhile. */
		if (one.has_failed &&
			(one.err.code == ERR_CONFLICT || one.err.code == ERR_NOT_FOUND))
			continue;
		count += !one.has_failed;
		vec_push(&command->arena, &killing->all, one);
	}
	if (!command->json)
		buf_printf(&command->out, "signaled %zu command%s in %s\n", count,
			count == 1 ? "" : "s", name);
	return 0;
}

static void kill_one(struct killing *killing, const char *name)
{
	struct cli_one one = { .name = name };
	struct error err;
	one.has_failed = !send_to(killing, name, &one.err);
	if (one.has_failed && one.err.code == ERR_NOT_FOUND) {
		if (!kill_in(killing, name, &err))
			return;
		if (err.code != ERR_NOT_FOUND)
			one.err = err;
	}
	vec_push(&killing->command->arena, &killing->all, one);
}

static int run_kill(struct command *command, struct error *err)
{
	const char *asked = command->options.signal;
	int number = SIGTERM;
	if (asked && parse_signal(asked, &number, err))
		return -1;
	auto_buf struct buf body = buf_empty(64);
	struct killing killing = { .command = command, .body = &body };
	if (remote_open(&command->remote, err))
		return -1;
	buf_printf(&body, "{\"signal\":%d}", number);
	for (size_t i = 0; i < command->operands.count; i++)
		kill_one(&killing, command->operands.items[i]);
	return cli_print_ones(command, &killing.all, "signaled", number, err);
}

static const struct arg_option kill_table[] = {
	{ 's', "signal", ARG_TEXT, AT(signal), "SIGNAL",
		"by name or number, such as KILL, INT or 9 (default TERM)" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_kill = {
	.command = "kill",
	.summary = "send a signal to a command, or to all of a workspace",
	.group = GROUP_EXECS,
	.usage = "EXEC|WORKSPACE... [options]",
	.about = "Sends a signal to running commands and their process groups: to those with these "
		 "ids, or to all that run in a workspace.",
	ARG_TABLE(kill_table),
	.examples = "  carrel kill -s KILL $(carrel exec demo -d -- sleep 60)\n"
		    "  carrel kill demo\n",
	.run = run_kill,
};

/* ---- wait ---- */

struct awaited {
	struct remote *remote;
	const char *id;
	struct remote_answer answer;
};

static int ask(void *ctx, struct error *err)
{
	struct awaited *awaited = ctx;
	return remote_call(awaited->remote, "GET",
		remote_exec_path(awaited->remote, awaited->id, "?wait=true"), NULL,
		&awaited->answer, err);
}

/* A daemon that restarts still knows its background commands. */
static int wait_for(struct awaited *awaited, uint64_t *code, struct error *err)
{
	if (ask(awaited, err) &&
		(err->code != ERR_UNAVAILABLE || remote_reopen(awaited->remote, ask, awaited, err)))
		return error_context(err, "wait for exec '%s'", awaited->id);
	if (!json_member_u64(awaited->answer.value, "exit_code", code) || *code > 255)
		return fail(err, ERR_CORRUPT, "the daemon's response has no exit code");
	return 0;
}

static int run_wait(struct command *command, struct error *err)
{
	int first = 0;
	if (command->json)
		buf_char(&command->out, '[');
	if (remote_open(&command->remote, err))
		return -1;
	for (size_t i = 0; i < command->operands.count; i++) {
		struct awaited awaited = { .remote = &command->remote,
			.id = command->operands.items[i] };
		uint64_t code;
		if (wait_for(&awaited, &code, err))
			return -1;
		if (!first)
			first = (int)code;
		if (!command->json) {
			buf_printf(&command->out, "%" PRIu64 "\n", code);
			continue;
		}
		if (i)
			buf_char(&command->out, ',');
		remote_print_answer(&awaited.answer, &command->out);
	}
	if (command->json)
		buf_char(&command->out, ']');
	return first;
}

const struct arg_spec cli_wait = {
	.command = "wait",
	.summary = "wait until commands have ended",
	.group = GROUP_EXECS,
	.usage = "EXEC... [options]",
	.about =
		"Waits until all these commands have ended and prints their exit codes, one a "
		"line, in the order of the arguments. The exit code is the first one that isn't 0.",
	REMOTE_OPTIONS,
	.examples = "  carrel wait $(carrel exec demo -d -- make test)\n",
	.run = run_wait,
};
