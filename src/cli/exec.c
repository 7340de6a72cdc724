/* carrel exec, shell: one command in a workspace. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/path.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/exec_attach.h"
#include "cli/outcome.h"
#include "linux/pty.h"
#include "model/exec.h"
#include "plan/plan.h"

static const struct arg_option exec_table[] = {
	{ ARG_FROM(command_rows) },
	{ ARG_FROM(terminal_rows) },
	{ 'd', "background", ARG_FLAG, AT(background), NULL,
		"run in the background: print the id of the exec; see `carrel logs`" },
	{ 0, "timeout", ARG_DURATION, AT(limits.timeout_ms), "TIME",
		"wall time (default the workspace's, else no limit)", NULL, 1 },
	{ 0, "cpu-time", ARG_DURATION, AT(limits.cpu_time_ms), "TIME",
		"cpu time (default the workspace's, else no limit)", NULL, 1 },
	{ 0, "output", ARG_SIZE, AT(limits.output_bytes), "SIZE",
		"bytes of output (default the workspace's, else no limit; 64M with -o json and -d)",
		NULL, 1 },
	{ 0, "user", ARG_TEXT, AT(user), "NAME",
		"the user inside: only agent or 1000, the user of the sandbox" },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_option shell_table[] = {
	{ ARG_FROM(command_rows) },
	{ .kind = ARG_ROWS, .rows = remote_rows, .row_count = 1 },
};

static int print_argv(struct json *j, char *const *argv, struct error *err)
{
	json_array(j, "argv");
	for (; *argv; argv++) {
		size_t len = strlen(*argv);
		/* JSON has no other text. */
		if (str_utf8_prefix(*argv, len) != len)
			return fail_hint(err, ERR_INVALID,
				"write it to a file, or produce it in a shell: sh -c \"... "
				"$(printf ...)\"",
				"the argument '%s' is not UTF-8", *argv);
		json_text(j, NULL, *argv);
	}
	json_end(j);
	return 0;
}

static void print_terminal(struct json *j)
{
	struct pty_size size = { 24, 80 };
	struct error err;
	for (int i = 0; i < 3; i++)
		if (!pty_get_size(i, &size, &err))
			break;
	json_bool(j, "tty", true);
	/* A terminal that nobody looks at may have none: then it is the daemon's default. */
	if (!size.rows || !size.columns)
		return;
	json_u64(j, "rows", size.rows);
	json_u64(j, "columns", size.columns);
}

static int print_request(const struct options *options, char *const *argv, struct arena *arena,
	struct buf *out, struct error *err)
{
	struct json j;
	const char *term = getenv("TERM");
	text_list env = { 0 };
	json_init(&j, out, false);
	json_object(&j, NULL);
	if (print_argv(&j, argv, err))
		return -1;
	if (options->cwd)
		json_text(&j, "cwd", path_normalize(arena, PLAN_WORKSPACE, options->cwd));
	if (options->tty && term && term[0])
		vec_push(arena, &env, arena_printf(arena, "TERM=%s", term));
	for (size_t i = 0; i < options->variables.count; i++)
		vec_push(arena, &env, options->variables.items[i]);
	if (remote_print_env(&j, &env, arena, err))
		return -1;
	if (options->user)
		json_text(&j, "user", options->user);
	if (options->tty)
		print_terminal(&j);
	if (options->background)
		json_bool(&j, "background", true);
	if (options->limits.timeout_ms)
		json_u64(&j, "timeout_ms", options->limits.timeout_ms);
	json_object(&j, "limits");
	if (options->limits.cpu_time_ms)
		json_u64(&j, "cpu_time_ms", options->limits.cpu_time_ms);
	if (options->limits.output_bytes)
		json_u64(&j, "output", options->limits.output_bytes);
	json_end(&j);
	json_end(&j);
	return 0;
}

static int check_options(const struct options *options, bool json, struct error *err)
{
	if (options->tty && json)
		return fail(err, ERR_INVALID,
			"-t and -o json can't be combined: a terminal does not separate stdout and "
			"stderr");
	if (options->background && (options->interactive || options->tty))
		return fail(err, ERR_INVALID,
			"-d and -%c can't be combined: a background command has no terminal or "
			"stdin",
			options->tty ? 't' : 'i');
	return 0;
}

static int run_background(
	struct command *command, const char *path, const struct buf *body, struct error *err)
{
	struct remote_answer answer;
	if (remote_call_once(&command->remote, path, body, &answer, err))
		return -1;
	const char *id = json_member_text(answer.value, "id");
	if (command->json)
		remote_print_answer(&answer, &command->out);
	else if (!id)
		return fail(err, ERR_CORRUPT, "the daemon's response names no exec");
	else
		buf_printf(&command->out, "%s\n", id);
	return 0;
}

static bool read_limits(struct command *command, const char *name, struct limits *limits)
{
	struct remote *remote = &command->remote;
	struct remote_answer answer;
	struct error err;
	if (remote->client.socket < 0 ||
		remote_call(remote, "GET", remote_workspace_path(remote, name, ""), NULL, &answer,
			&err))
		return false;
	const struct json_value *from = json_member(answer.value, "limits");
	for (size_t i = 0; i < limit_count; i++)
		json_member_u64(from, field_name(&limit_rows[i], FIELD_OUT).text,
			limit_at(limits, &limit_rows[i]));
	return true;
}

/* What the limits are is known to the workspace; only who hit one wants to know. */
static void explain(struct command *command, const char *name, const struct result *result)
{
	const struct limits *given = &command->options.limits;
	struct limits limits = { 0 };
	if (result->reason == REASON_EXITED || result->reason == REASON_SIGNALED)
		return;
	read_limits(command, name, &limits);
	for (size_t i = 0; i < limit_count; i++)
		if (limit_get(given, &limit_rows[i]))
			*limit_at(&limits, &limit_rows[i]) = limit_get(given, &limit_rows[i]);
	outcome_explain(result, &limits);
}

static int run_attached(struct command *command, const char *name, const char *path,
	const struct buf *body, struct error *err)
{
	const struct options *options = &command->options;
	auto_buf struct buf out, errors;
	struct exec_ended ended;
	buf_init(&out, (size_t)-1 / 2);
	buf_init(&errors, (size_t)-1 / 2);
	struct exec_call call = { .path = path,
		.body = body,
		.tty = options->tty,
		.interactive = options->interactive || !options->tty,
		.out = command->json ? &out : NULL,
		.err = command->json ? &errors : NULL,
		.output_bytes = options->limits.output_bytes };
	if (command->json && !call.output_bytes)
		call.output_bytes = LIMIT_OUTPUT_CAPTURED_DEFAULT;
	if (exec_attach(&command->remote, &call, &ended, err))
		return -1;
	if (command->json)
		outcome_print(&ended.result, &out, &errors, ended.limiter, &command->out);
	else
		explain(command, name, &ended.result);
	return result_exit_code(&ended.result);
}

/* A limit of output is kept here, where it is read: the workspace's has to be known. */
static bool learn_output_limit(struct command *command, const char *name)
{
	struct limits limits = { 0 };
	uint64_t *output_bytes = &command->options.limits.output_bytes;
	if (!*output_bytes && read_limits(command, name, &limits))
		*output_bytes = limits.output_bytes;
	return *output_bytes;
}

static int run_once(struct command *command, const char *name, char *const *argv, struct error *err)
{
	auto_buf struct buf body;
	buf_init(&body, BUF_MAX_DEFAULT);
	const char *path = remote_workspace_path(&command->remote, name, "/exec");
	if (print_request(&command->options, argv, &command->arena, &body, err))
		return -1;
	return command->options.background ? run_background(command, path, &body, err)
					   : run_attached(command, name, path, &body, err);
}

static int carry_out(struct command *command, char *const *argv, struct error *err)
{
	const struct options *options = &command->options;
	const char *name = command->operands.items[0];
	if (remote_open(&command->remote, err))
		return -1;
	/* Few workspaces limit output, and one that does says so (ERR_CONFLICT). Only what is read
	 * here before there is an answer can't be read again. */
	bool is_asked = !options->background && !options->limits.output_bytes &&
			(options->tty || exec_can_be_handed(STDIN_FILENO));
	if (!options->background && !is_asked)
		learn_output_limit(command, name);
	int code = run_once(command, name, argv, err);
	if (code < 0 && is_asked && err->code == ERR_CONFLICT && learn_output_limit(command, name))
		code = run_once(command, name, argv, err);
	if (code < 0 && !err->hint[0])
		cli_hint_at_command(argv,
			"this workspace has python3; `carrel create --python 3` creates one that "
			"has python",
			"/env/bin (with an environment), ", err);
	return code;
}

static int run_exec(struct command *command, struct error *err)
{
	if (!command->argv[0])
		return fail_hint(err, ERR_INVALID, command->spec->usage,
			"no command was given to run in '%s'", command->operands.items[0]);
	if (check_options(&command->options, command->json, err))
		return -1;
	return carry_out(command, command->argv, err);
}

static int run_shell(struct command *command, struct error *err)
{
	/* A shell that isn't interactive is left by an `exec` that fails: look first. */
	static char sh[] = "/bin/sh", flag[] = "-c",
		    line[] = "command -v bash >/dev/null && exec bash -l; exec sh -l";
	char *const argv[] = { sh, flag, line, NULL };
	const char *name = command->operands.items[0];
	command->options.tty = command->options.interactive = true;
	if (!isatty(STDIN_FILENO)) {
		fail(err, ERR_INVALID, "shell needs a terminal, but stdin is not one");
		return error_hint(err, "carrel exec %s -- sh -c '...', or carrel exec -i %s -- sh",
			name, name);
	}
	return carry_out(command, argv, err);
}

const struct arg_spec cli_exec = {
	.command = "exec",
	.summary = "run one command in a workspace",
	.usage = "carrel exec NAME [options] [--] CMD [ARG...]",
	.about = "Runs a command in a workspace. The command uses the streams of this process. The "
		 "exit\ncode is the command's; 124: a time limit, 137: another limit, 130: "
		 "canceled, 125:\ncarrel itself failed, 126: not executable, 127: not found.",
	ARG_TABLE(exec_table),
	.examples = "  carrel exec demo -- python -c 'import requests'\n"
		    "  carrel exec demo --timeout 60s -- sh -c 'make && make test'\n"
		    "  carrel exec -it demo bash\n"
		    "  carrel exec demo -d -- ./server\n",
	.least = 1,
	.most = 1,
	.takes_command = true,
	.run = run_exec,
};
const struct arg_spec cli_shell = {
	.command = "shell",
	.summary = "open a shell in a workspace",
	.usage = "carrel shell NAME [options]",
	.about = "Opens a shell in a workspace on this terminal: bash if the workspace has it, "
		 "else sh.",
	ARG_TABLE(shell_table),
	.least = 1,
	.most = 1,
	.run = run_shell,
};
