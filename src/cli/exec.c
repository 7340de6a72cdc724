/* carrel exec, shell: one command in a workspace. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/env.h"
#include "cli/exec_attach.h"
#include "cli/outcome.h"
#include "cli/remote.h"
#include "linux/pty.h"
#include "model/exec.h"
#include "plan/plan.h"

struct exec_options {
	struct remote_options remote;
	text_list env;
	const char *cwd, *user;
	bool tty, interactive, background;
	uint64_t timeout_ms, cpu_time_ms, output_bytes;
};
#define FIELD(name) offsetof(struct exec_options, name)
#define COMMON_ROWS                                                                                \
	{ 'e', "setenv", ARG_LIST, FIELD(env), "NAME[=VALUE]",                                     \
		"set a variable; without =VALUE, pass on the one set here", NULL, 0, 0 },          \
	{                                                                                          \
		'w', "workdir", ARG_TEXT, FIELD(cwd), "DIR", "start in DIR (default /workspace)",  \
			NULL, 0, 0                                                                 \
	}
static const struct arg_option exec_table[] = {
	COMMON_ROWS,
	{ 't', "tty", ARG_FLAG, FIELD(tty), NULL, "give the command a terminal of its own", NULL, 0,
		0 },
	{ 'i', "interactive", ARG_FLAG, FIELD(interactive), NULL,
		"pass stdin on (the default, except with -t alone)", NULL, 0, 0 },
	{ 'd', "background", ARG_FLAG, FIELD(background), NULL,
		"run in the background: print the id of the exec; see `carrel logs`", NULL, 0, 0 },
	{ 0, "timeout", ARG_DURATION, FIELD(timeout_ms), "TIME",
		"wall time (default the workspace's, else no limit)", NULL, 1, 0 },
	{ 0, "cpu-time", ARG_DURATION, FIELD(cpu_time_ms), "TIME",
		"cpu time (default the workspace's, else no limit)", NULL, 1, 0 },
	{ 0, "output", ARG_SIZE, FIELD(output_bytes), "SIZE",
		"bytes of output (default the workspace's, else no limit; 64M with -o json and -d)",
		NULL, 1, 0 },
	{ 0, "user", ARG_TEXT, FIELD(user), "NAME",
		"the user inside: only agent or 1000, the user of the sandbox", NULL, 0, 0 },
	REMOTE_ROWS(FIELD),
};
static const struct arg_option shell_table[] = {
	COMMON_ROWS,
	{ 0, "host", ARG_TEXT, FIELD(remote.host), "SOCKET",
		"the daemon's socket (default: the daemon of this home)", NULL, 0, 0 },
};
#undef FIELD
static const struct arg_spec exec_spec = {
	.command = "exec",
	.usage = "carrel exec NAME [options] [--] CMD [ARG...]",
	.about = "Runs a command in a workspace. The command uses the streams of this process. The "
		 "exit\ncode is the command's; 124: a time limit, 137: another limit, 130: "
		 "canceled, 125:\ncarrel itself failed, 126: not executable, 127: not found.",
	.options = exec_table,
	.option_count = sizeof exec_table / sizeof *exec_table,
	.examples = "  carrel exec demo -- python -c 'import requests'\n"
		    "  carrel exec demo --timeout 60s -- sh -c 'make && make test'\n"
		    "  carrel exec -it demo bash\n"
		    "  carrel exec demo -d -- ./server\n",
};
static const struct arg_spec shell_spec = {
	.command = "shell",
	.usage = "carrel shell NAME [options]",
	.about = "Opens a shell in a workspace on this terminal: bash if the workspace has it, "
		 "else sh.",
	.options = shell_table,
	.option_count = sizeof shell_table / sizeof *shell_table,
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

static int print_request(struct exec_options *options, char *const *argv, struct arena *arena,
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
	for (size_t i = 0; i < options->env.count; i++)
		vec_push(arena, &env, options->env.items[i]);
	if (remote_print_env(&j, &env, err))
		return -1;
	if (options->user)
		json_text(&j, "user", options->user);
	if (options->tty)
		print_terminal(&j);
	if (options->background)
		json_bool(&j, "background", true);
	if (options->timeout_ms)
		json_u64(&j, "timeout_ms", options->timeout_ms);
	json_object(&j, "limits");
	if (options->cpu_time_ms)
		json_u64(&j, "cpu_time_ms", options->cpu_time_ms);
	if (options->output_bytes)
		json_u64(&j, "output", options->output_bytes);
	json_end(&j);
	json_end(&j);
	return 0;
}

static int check_options(const struct exec_options *options, bool json, struct error *err)
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
	struct remote *remote, const char *path, const struct buf *body, struct error *err)
{
	auto_buf struct buf out;
	struct remote_answer answer;
	buf_init(&out, 256);
	if (remote_call_once(remote, path, body, &answer, err))
		return -1;
	if (remote->json)
		return remote_print_answer(&answer);
	const char *id = json_member_text(answer.value, "id");
	if (!id)
		return fail(err, ERR_CORRUPT, "the daemon's response names no exec");
	buf_printf(&out, "%s\n", id);
	return remote_print(&out);
}

static bool read_limits(struct remote *remote, const char *name, struct limits *limits)
{
	struct remote_answer answer;
	struct error err;
	if (remote->client.socket < 0 ||
		remote_call(remote, "GET", remote_workspace_path(remote, name, ""), NULL, &answer,
			&err))
		return false;
	remote_read_limits(answer.value, limits);
	return true;
}

/* What the limits are is known to the workspace; only who hit one wants to know. */
static void explain(struct remote *remote, const char *name, const struct exec_options *options,
	const struct result *result)
{
	struct limits limits = { 0 };
	if (result->reason == REASON_EXITED || result->reason == REASON_SIGNALED)
		return;
	read_limits(remote, name, &limits);
	if (options->timeout_ms)
		limits.timeout_ms = options->timeout_ms;
	if (options->cpu_time_ms)
		limits.cpu_time_ms = options->cpu_time_ms;
	if (options->output_bytes)
		limits.output_bytes = options->output_bytes;
	outcome_explain(result, &limits);
}

static int print_captured(const struct exec_ended *ended, const struct buf *out,
	const struct buf *errors, struct error *err)
{
	auto_buf struct buf text;
	struct json j;
	struct exec_output output = exec_output_whole((struct str){ out->data, out->len },
		(struct str){ errors->data, errors->len }, ended->result.truncated);
	buf_init(&text, (size_t)-1 / 2);
	json_init(&j, &text, false);
	json_object(&j, NULL);
	exec_print_result(&j, NULL, &ended->result, &output, ended->limiter, NULL);
	json_end(&j);
	buf_char(&text, '\n');
	if (fd_write_full(STDOUT_FILENO, text.data, text.len) != (ssize_t)text.len)
		return fail_errno(err, "write standard output");
	return 0;
}

/* Why a command isn't there is mostly one of these. */
static void hint_at_command(char *const *argv, struct error *err)
{
	if (err->code != ERR_COMMAND_NOT_FOUND || err->hint[0])
		return;
	if (!argv[1] && strpbrk(argv[0], " |;&<>"))
		error_hint(err, "a shell line needs a shell: sh -c '...'");
	else if (!strcmp(argv[0], "python"))
		error_hint(err, "this workspace has python3; `carrel create --python 3` creates "
				"one that has python");
	else if (!strchr(argv[0], '/'))
		error_hint(err, "it is not in the sandbox's PATH: /env/bin (with an environment), "
				"/usr/local/bin, /usr/bin, /bin");
	else
		error_hint(err, "the file, or the interpreter in its first line, does not exist in "
				"the sandbox");
}

static int run_attached(struct remote *remote, const char *name, const char *path,
	const struct exec_options *options, const struct buf *body, int *code, struct error *err)
{
	auto_buf struct buf out, errors;
	struct exec_ended ended;
	buf_init(&out, (size_t)-1 / 2);
	buf_init(&errors, (size_t)-1 / 2);
	struct exec_call call = { .path = path,
		.body = body,
		.tty = options->tty,
		.interactive = options->interactive || !options->tty,
		.out = remote->json ? &out : NULL,
		.err = remote->json ? &errors : NULL,
		.output_bytes = options->output_bytes };
	if (remote->json && !call.output_bytes)
		call.output_bytes = LIMIT_OUTPUT_CAPTURED_DEFAULT;
	if (exec_attach(remote, &call, &ended, err))
		return -1;
	*code = result_exit_code(&ended.result);
	if (remote->json)
		return print_captured(&ended, &out, &errors, err);
	explain(remote, name, options, &ended.result);
	return 0;
}

/* A limit of output is kept here, where it is read: the workspace's has to be known. */
static bool learn_output_limit(
	struct remote *remote, const char *name, struct exec_options *options)
{
	struct limits limits = { 0 };
	if (!options->output_bytes && read_limits(remote, name, &limits))
		options->output_bytes = limits.output_bytes;
	return options->output_bytes;
}

static int run_once(struct remote *remote, const char *name, struct exec_options *options,
	char *const *argv, int *code, struct error *err)
{
	auto_buf struct buf body;
	buf_init(&body, BUF_MAX_DEFAULT);
	const char *path = remote_workspace_path(remote, name, "/exec");
	if (print_request(options, argv, &remote->arena, &body, err))
		return -1;
	if (!options->background)
		return run_attached(remote, name, path, options, &body, code, err);
	*code = run_background(remote, path, &body, err);
	return *code < 0 ? -1 : 0;
}

static int carry_out(struct remote *remote, const char *name, struct exec_options *options,
	char *const *argv, int *code, struct error *err)
{
	if (remote_open(remote, &options->remote, err))
		return -1;
	/* Few workspaces limit output, and one that does says so (ERR_CONFLICT). Only what is read
	 * here before there is an answer can't be read again. */
	bool is_asked = !options->background && !options->output_bytes &&
			(options->tty || exec_can_be_handed(STDIN_FILENO));
	if (!options->background && !is_asked)
		learn_output_limit(remote, name, options);
	int failed = run_once(remote, name, options, argv, code, err);
	if (failed && is_asked && err->code == ERR_CONFLICT &&
		learn_output_limit(remote, name, options))
		failed = run_once(remote, name, options, argv, code, err);
	if (failed)
		hint_at_command(argv, err);
	return failed;
}

/* Options stand before and after the name; the command begins at the operand after it, so that its
 * own need no "--". */
static int parse(struct remote *remote, int argc, char **argv, struct exec_options *options,
	const char **name, char ***command, bool *help, struct error *err)
{
	int at = 0, next = 0;
	if (args_parse(&exec_spec, argc, argv, options, &remote->arena, &at, help, err) || *help)
		return *help ? 0 : -1;
	if (at == argc)
		return fail_hint(err, ERR_INVALID, exec_spec.usage, "exec needs a NAME");
	*name = argv[at];
	if (remote_check_names(name, 1, err) || args_parse(&exec_spec, argc - at, argv + at,
							options, &remote->arena, &next, help, err))
		return -1;
	*command = argv + at + next;
	if (!*help && at + next == argc)
		return fail_hint(err, ERR_INVALID, exec_spec.usage,
			"no command was given to run in '%s'", *name);
	return 0;
}

int cli_exec(int argc, char **argv)
{
	struct exec_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	struct error err;
	const char *name = NULL;
	char **command = NULL;
	bool help = false;
	int code = 0;
	arena_init(&remote.arena);
	int failed = parse(&remote, argc, argv, &options, &name, &command, &help, &err);
	if (!failed && help) {
		args_print_help(&exec_spec);
		return 0;
	}
	remote.json = failed ? args_want_json(argc, argv) : env_cli_is_json(options.remote.format);
	if (failed || check_options(&options, remote.json, &err) ||
		carry_out(&remote, name, &options, command, &code, &err))
		return cli_fail(&err, remote.json);
	return code;
}

int cli_shell(int argc, char **argv)
{
	/* A shell that isn't interactive is left by an `exec` that fails: look first. */
	static char sh[] = "/bin/sh", flag[] = "-c",
		    line[] = "command -v bash >/dev/null && exec bash -l; exec sh -l";
	char *const command[] = { sh, flag, line, NULL };
	struct exec_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	text_list operands = { 0 };
	struct error err;
	int code = 0;
	if (!remote_parse(&remote, &shell_spec, argc, argv, &options, &options.remote, 1, 1,
		    &operands, &code))
		return code;
	options.tty = options.interactive = true;
	if (!isatty(STDIN_FILENO)) {
		fail(&err, ERR_INVALID, "shell needs a terminal, but stdin is not one");
		error_hint(&err, "carrel exec %s -- sh -c '...', or carrel exec -i %s -- sh",
			operands.items[0], operands.items[0]);
		return cli_fail(&err, false);
	}
	if (carry_out(&remote, operands.items[0], &options, command, &code, &err))
		return cli_fail(&err, false);
	return code;
}
