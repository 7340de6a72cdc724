#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/args.h"
#include "format/json.h"

const struct cli_command cli_commands[] = {
	{ "run", "run one command in a new sandbox", cli_run },
	{ "create", "create a workspace: files that stay, an environment, limits", cli_create },
	{ "exec", "run one command in a workspace", cli_exec },
	{ "shell", "open a shell in a workspace", cli_shell },
	{ "ls", "list workspaces", cli_ls },
	{ "info", "show one workspace", cli_info },
	{ "update", "change labels, limits and lifetimes of a workspace", cli_update },
	{ "rm", "remove workspaces", cli_rm },
	{ "cp", "copy files and directories in and out of a workspace", cli_cp },
	{ "ps", "list commands running in workspaces", cli_ps },
	{ "logs", "print the output of a background command", cli_logs },
	{ "kill", "send a signal to a command", cli_kill },
	{ "events", "follow events of workspaces", cli_events },
	{ "env", "build, list, verify and remove Python environments", cli_env },
	{ "home", "give the home a file system with exact disk limits", cli_home },
	{ "serve", "run the daemon that serves workspaces over REST", cli_serve },
	{ "doctor", "check what this host supports, and how to change it", cli_doctor },
	{ "version", "print the version", cli_version },
	{ "help", "print this list, or the help of one command", cli_help },
	{ NULL, NULL, NULL },
};

static const struct cli_command *find(const char *name)
{
	for (const struct cli_command *command = cli_commands; command->name; command++)
		if (!strcmp(command->name, name))
			return command;
	return NULL;
}

void cli_print_error(struct json *j, const char *key, const struct error *err)
{
	json_object(j, key);
	json_text(j, "code", error_code_name(err->code));
	json_text(j, "message", err->text);
	json_text(j, "hint", err->hint[0] ? err->hint : NULL);
	json_end(j);
}

static bool print_json_error(const struct error *err)
{
	auto_buf struct buf out;
	struct json j;
	buf_init(&out, BUF_MAX_DEFAULT);
	json_init(&j, &out, false);
	json_object(&j, NULL);
	cli_print_error(&j, "error", err);
	json_end(&j);
	buf_char(&out, '\n');
	return fd_write_full(STDOUT_FILENO, out.data, out.len) == (ssize_t)out.len;
}

int cli_fail(const struct error *err, bool json)
{
	auto_buf struct buf out;
	buf_init(&out, BUF_MAX_DEFAULT);
	/* A full disk behind stdout is said on stderr. */
	if (json && print_json_error(err))
		return error_exit_code(err->code);
	buf_printf(&out, "carrel: %s\n", err->text);
	if (err->hint[0])
		buf_printf(&out, "hint: %s\n", err->hint);
	/* Nobody is left to tell when this fails, and the exit code says it all the same. */
	(void)!fd_write_full(STDERR_FILENO, out.data, out.len);
	return error_exit_code(err->code);
}

const char *cli_nearest(const struct cli_command *commands, const char *name)
{
	const char *nearest = NULL;
	size_t least = SIZE_MAX;
	for (const struct cli_command *command = commands; command->name; command++)
		if (str_is_nearer(name, command->name, &least))
			nearest = command->name;
	return nearest;
}

static int unknown_command(int argc, char **argv)
{
	const char *name = argv[0], *nearest = cli_nearest(cli_commands, name);
	struct error err;
	if (name[0] == '-')
		fail_hint(&err, ERR_INVALID,
			"options follow the command; carrel help lists the commands",
			"unknown option '%s'", name);
	else
		fail_hint(&err, ERR_INVALID, "carrel help lists the commands",
			"unknown command '%s'", name);
	if (nearest)
		error_hint(&err, "did you mean 'carrel %s'?", nearest);
	return cli_fail(&err, args_want_json(argc, argv));
}

static void print_commands(FILE *out)
{
	fprintf(out, "usage: carrel COMMAND [options]\n\ncommands:\n");
	for (const struct cli_command *command = cli_commands; command->name; command++)
		fprintf(out, "  %-10s  %s\n", command->name, command->summary);
	fprintf(out, "\n'carrel COMMAND --help' shows the options of a command.\n");
}

/* What was printed must have arrived: a full disk behind stdout is an error like any other. */
static int finish_stdout(int code)
{
	struct error err;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fail_errno(&err, "write standard output");
	return cli_fail(&err, false);
}

int cli_help(int argc, char **argv)
{
	const struct cli_command *command = argc > 1 ? find(argv[1]) : NULL;
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
		(command && command->run == cli_help)) {
		print_commands(stdout);
		return finish_stdout(0);
	}
	if (!command)
		return unknown_command(argc - 1, argv + 1);
	/* `help env build`: one that has commands of its own looks for the next word among them. */
	bool has_commands = command->run == cli_env || command->run == cli_home;
	if (argc > (has_commands ? 3 : 2)) {
		struct error err;
		fail_hint(&err, ERR_INVALID, "carrel help COMMAND",
			"help: unexpected argument '%s'", argv[has_commands ? 3 : 2]);
		return cli_fail(&err, false);
	}
	if (argc > 2)
		return command->run(3, (char *[]){ argv[1], argv[2], (char[]){ "--help" }, NULL });
	return command->run(2, (char *[]){ argv[1], (char[]){ "--help" }, NULL });
}

static struct arg_spec simple_spec(const char *command, const char *usage, const char *about)
{
	return (struct arg_spec){ .command = command, .usage = usage, .about = about };
}

int cli_version(int argc, char **argv)
{
	struct version_options {
		const char *output;
	} options = { NULL };
	static const struct arg_option table[] = {
		ARG_FORMAT_ROW(offsetof(struct version_options, output)),
	};
	struct arg_spec spec =
		simple_spec("version", "carrel version [-o json]", "Prints the version.");
	spec.options = table;
	spec.option_count = 1;
	auto_arena struct arena arena;
	arena_init(&arena);
	struct error err;
	int operands;
	bool help;
	if (args_parse(&spec, argc, argv, &options, &arena, &operands, &help, &err))
		return cli_fail(&err, args_want_json(argc, argv));
	if (!help && operands < argc) {
		fail(&err, ERR_INVALID, "unexpected argument '%s'", argv[operands]);
		return cli_fail(&err, args_want_json(argc, argv));
	}
	if (help)
		args_print_help(&spec);
	else if (options.output && !strcmp(options.output, "json"))
		printf("{\"version\":\"%s\"}\n", CARREL_VERSION);
	else
		printf("carrel %s\n", CARREL_VERSION);
	return finish_stdout(0);
}

int cli_main(int argc, char **argv)
{
	struct error err;
	if (fd_sanitize_standard(&err))
		return cli_fail(&err, false);
	if (argc < 2) {
		print_commands(stderr);
		return 125;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cli_help(1, argv);
	if (!strcmp(argv[1], "--version"))
		return cli_version(1, argv);
	const struct cli_command *command = find(argv[1]);
	if (!command)
		return unknown_command(argc - 1, argv + 1);
	return command->run(argc - 1, argv + 1);
}
