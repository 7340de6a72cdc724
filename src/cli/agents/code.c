/* carrel code run: a file and its tests in a throw-away workspace of the daemon. */
#include <unistd.h>
#include "base/fd.h"
#include "cli/run/network.h"
#include "format/text/base64.h"
#include "model/agents/code.h"

#define BODY_MAX ((size_t)8 << 20)
#define STDIN_MAX ((size_t)1 << 20)

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* A text file of this host and its name, as the members `name` and `text`. */
static int print_file(struct command *command, struct json *j, const char *path, const char *name,
	const char *text, struct error *err)
{
	struct str content;
	if (code_check_file(base_name(path), err) ||
		cli_read_file(path, CODE_BYTES_MAX, &command->arena, &content, err))
		return error_context(err, "%s", path);
	if (str_utf8_prefix(content.data, content.len) != content.len ||
		memchr(content.data, '\0', content.len))
		return fail(err, ERR_INVALID, "%s: not a text in UTF-8", path);
	json_text(j, name, base_name(path));
	json_str(j, text, content);
	return 0;
}

static int print_input(struct command *command, struct json *j, struct error *err)
{
	struct str content;
	if (!command->options.file)
		return 0;
	if (cli_read_file(command->options.file, STDIN_MAX, &command->arena, &content, err))
		return -1;
	json_object(j, "stdin");
	json_base64(j, "base64", content.data, content.len);
	json_end(j);
	return 0;
}

static int print_wanted(struct command *command, struct buf *out, struct error *err)
{
	const struct options *options = &command->options;
	struct limits limits = options->limits;
	struct json j = json_to(out, false);
	limits.timeout_ms = 0; /* it is of each command */
	json_object(&j, NULL);
	if (print_file(command, &j, command->operands.items[0], "file", "code", err) ||
		(options->tests &&
			print_file(command, &j, options->tests, "tests_file", "tests", err)) ||
		print_input(command, &j, err) ||
		remote_print_env(&j, &options->variables, NULL, &command->arena, err) ||
		network_print_options(options, &j, err))
		return -1;
	if (options->env.pip.count)
		json_texts(&j, "packages", &options->env.pip);
	if (options->env.python)
		json_text(&j, "python", options->env.python);
	record_print_given(&j, "limits", &limits_record, &limits);
	if (options->limits.timeout_ms)
		json_u64(&j, "timeout_ms", options->limits.timeout_ms);
	json_end(&j);
	return 0;
}

/* What a command wrote, to the streams of this one. */
static int print_stream(struct command *command, const struct json_value *result, const char *key,
	int fd, struct error *err)
{
	const struct json_value *text = json_member(result, key);
	const char *encoding = json_member_text(result, "encoding");
	struct str bytes = text && text->kind == JSON_STRING ? text->string : STR("");
	if (encoding && !strcmp(encoding, "base64") &&
		!base64_decode(bytes, &command->arena, &bytes))
		return fail(err, ERR_CORRUPT, "the daemon's answer has no valid %s", key);
	return fd_write_full(fd, bytes.data, bytes.len) == (ssize_t)bytes.len
		       ? 0
		       : fail_errno(err, "write %s", key);
}

/* The exit code: the file's own, or 1 when its tests didn't pass. */
static int finish(struct command *command, const struct remote_answer *answer, struct error *err)
{
	const struct json_value *tests = json_member(answer->value, "tests");
	const struct json_value *ended = json_member(tests, "result");
	const char *verdict = json_member_text(tests, "verdict");
	struct result result;
	if (remote_read_result(answer->value, &result, err))
		return -1;
	int code = result_exit_code(&result);
	if (!code && verdict && strcmp(verdict, "passed") != 0)
		code = 1;
	if (command->json) {
		remote_print_answer(answer, &command->out);
		return code;
	}
	if (print_stream(command, answer->value, "stdout", STDOUT_FILENO, err) ||
		print_stream(command, answer->value, "stderr", STDERR_FILENO, err) ||
		print_stream(command, ended, "stdout", STDERR_FILENO, err) ||
		print_stream(command, ended, "stderr", STDERR_FILENO, err))
		return -1;
	cli_explain(&result, &command->options.limits);
	if (verdict)
		cli_say("tests: %s", verdict);
	return code;
}

static int run_run(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	auto_buf struct buf body = buf_empty(BODY_MAX);
	if (print_wanted(command, &body, err) || remote_open(&command->remote, err))
		return -1;
	remote_catch_interrupts(&command->remote);
	int failed = remote_call(&command->remote, "POST", "/v1/code", &body, &answer, err);
	if (remote_is_interrupted())
		return fail(
			err, ERR_CANCELED, "interrupted: the code was ended, and nothing is kept");
	return failed ? -1 : finish(command, &answer, err);
}

static const struct arg_option run_table[] = {
	{ 0, "tests", ARG_TEXT, AT(tests), "FILE",
		"then run these tests: .py by pytest, .sh by a shell", NULL, 1 },
	{ 0, "pip", ARG_LIST, AT(env.pip), "PKG",
		"with this package, e.g. 'requests>=2.31'; repeatable", NULL, 1 },
	{ 0, "python", ARG_TEXT, AT(env.python), "VERSION", "use this Python (3.12)", NULL, 1 },
	{ 0, "stdin", ARG_TEXT, AT(file), "FILE",
		"what the code reads from its input; - is the input of this command", NULL, 1 },
	{ 'e', "setenv", ARG_LIST, AT(variables), "NAME[=VALUE]",
		"set a variable; without =VALUE, pass on the one set here" },
	{ .kind = ARG_RECORD, .offset = AT(limits), .record = &limits_record },
	{ ARG_FROM(network_rows) },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec run_spec = {
	.command = "code run",
	.summary = "run a file and its tests in a throw-away workspace",
	.usage = "FILE [options]",
	.about = "Runs FILE, which ends in .py or .sh, in a workspace that is made for it and "
		 "removed afterwards, then its tests. Tests in Python import FILE by its name. The "
		 "exit code is that of FILE, or 1 when it is 0 and the tests didn't pass.",
	ARG_TABLE(run_table),
	.examples = "  carrel code run fib.py --tests test_fib.py\n"
		    "  carrel code run report.sh --timeout 30s -o json\n"
		    "  carrel code run fetch.py --pip requests --allow-domain example.com\n",
	.run = run_run,
};

static const struct arg_spec *const commands[] = { &run_spec, NULL };
const struct arg_spec cli_code = {
	.command = "code",
	.summary = "run code once, with its tests",
	.group = GROUP_AGENTS,
	.about = "Code that is run once, in a throw-away workspace of the daemon.",
	.commands = commands,
};
