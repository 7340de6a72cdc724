#include "cli/cli.h"

#include <fcntl.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/id.h"
#include "cli/daemon/daemon.h"
#include "format/text/quantity.h"
#include "model/nouns/exec.h"

const struct arg_option format_rows[] = {
	{ 'o', "format", ARG_CHOICE, AT(format), "text|json", "output format", "text|json" },
};
const struct arg_option remote_rows[] = {
	{ 0, "host", ARG_TEXT, AT(host), "URL|PATH",
		"the daemon: https://HOST:PORT, http://HOST:PORT, unix:PATH or a path (default: "
		"CARREL_HOST, else the context in use, else the daemon of this home)" },
	{ 0, "token-file", ARG_TEXT, AT(token_file), "FILE",
		"act as the bearer of the access token in FILE (default: CARREL_TOKEN, else your "
		"uid)" },
	{ 'o', "format", ARG_CHOICE, AT(format), "text|json", "output format", "text|json" },
};
const struct arg_option command_rows[] = {
	{ 'e', "setenv", ARG_LIST, AT(variables), "NAME[=VALUE]",
		"set a variable; without =VALUE, pass on the one set here" },
	{ 'w', "workdir", ARG_TEXT, AT(cwd), "DIR",
		"start in DIR (default /workspace; / in view root)" },
};
const struct arg_option terminal_rows[] = {
	{ 't', "tty", ARG_FLAG, AT(tty), NULL, "give the command a terminal of its own" },
	{ 'i', "interactive", ARG_FLAG, AT(interactive), NULL,
		"pass stdin on (the default, except with -t alone)" },
};
const struct arg_option network_rows[] = {
	{ 0, "net", ARG_CHOICE, AT(net), "none|list|open",
		"the network inside: none, the hosts of --allow-domain, or all public ones",
		"none|list|open" },
	{ 0, "allow-domain", ARG_LIST, AT(allow_domains), "HOST",
		"allow HOST, *.HOST or HOST:PORT; registries: the package indexes of this host; "
		"repeatable, implies --net list",
		.least = 1 },
	{ 0, "deny-domain", ARG_LIST, AT(deny_domains), "HOST",
		"refuse HOST, *.HOST or HOST:PORT, though it is allowed; repeatable", .least = 1 },
};
const struct arg_option sandbox_rows[] = {
	{ 0, "ptrace", ARG_FLAG, AT(ptrace), NULL,
		"allow processes inside to trace each other (gdb, strace, py-spy)" },
	{ 0, "isolation", ARG_CHOICE, AT(isolation), "native|landlock",
		"the kind of sandbox; landlock: without namespaces, weaker, for `carrel run` on "
		"hosts that give none",
		"native|landlock", .later = "oci|gvisor|bwrap" },
	{ 0, "view", ARG_CHOICE, AT(view), "workspace|root",
		"where its files are: at /workspace, or at / itself", "workspace|root" },
};

static int run_version(struct command *command, struct error *err)
{
	buf_printf(&command->out, command->json ? "{\"version\":\"%s\"}\n" : "carrel %s\n",
		CARREL_VERSION);
	return 0;
}

static const struct arg_option version_table[] = { { ARG_FROM(format_rows) } };
static const struct arg_spec version = {
	.command = "version",
	.summary = "print the version",
	.group = GROUP_SELF,
	.usage = "[-o json]",
	.about = "Prints the version.",
	ARG_TABLE(version_table),
	.run = run_version,
};

static int run_help(struct command *command, struct error *err);
static const struct arg_spec help = {
	.command = "help",
	.summary = "print this list, or the help of one command",
	.group = GROUP_SELF,
	.usage = "[COMMAND...]",
	.about = "Prints the list of commands, or the help of one command.",
	ARG_TABLE(version_table),
	.run = run_help,
};
static const char *const group_titles[GROUP_COUNT] = {
	[GROUP_NONE] = "commands",
	[GROUP_EVERYDAY] = "everyday commands",
	[GROUP_WORKSPACES] = "workspaces",
	[GROUP_EXECS] = "commands in workspaces",
	[GROUP_PACKAGES] = "environments and packages",
	[GROUP_AGENTS] = "agents and services",
	[GROUP_POLICY] = "policy and audit",
	[GROUP_DAEMON] = "the daemon",
	[GROUP_SELF] = "this program",
};
/* In the order in which they are listed: the commands of a group stand together. */
static const struct arg_spec *const commands[] = { &cli_run, &cli_create, &cli_exec, &cli_shell,
	&cli_ls, &cli_cp, &cli_install, &cli_port, &cli_diff, &cli_snapshot, &cli_fork, &cli_rm,
	&cli_info, &cli_update, &cli_top, &cli_apply, &cli_tree, &cli_suspend, &cli_resume,
	&cli_archive, &cli_restore, &cli_health, &cli_repair, &cli_verify, &cli_ps, &cli_logs,
	&cli_wait, &cli_attach, &cli_kill, &cli_env, &cli_template, &cli_uninstall, &cli_agent,
	&cli_package, &cli_deploy, &cli_deployment, &cli_tool, &cli_code, &cli_case, &cli_policy,
	&cli_approval, &cli_audit, &cli_serve, &cli_config, &cli_events, &cli_token, &cli_context,
	&cli_tls, &cli_home, &cli_doctor, &cli_completion, &version, &help, NULL };
const struct arg_spec cli_all = { .command = "", .commands = commands };

/* "build" of "env build". */
const char *cli_word(const struct arg_spec *spec)
{
	const char *space = strrchr(spec->command, ' ');
	return space ? space + 1 : spec->command;
}

const struct arg_spec *cli_find(const struct arg_spec *group, const char *name)
{
	for (const struct arg_spec *const *spec = group->commands; spec && *spec; spec++)
		if (!strcmp(cli_word(*spec), name))
			return *spec;
	return NULL;
}

const char *cli_group_title(const struct arg_spec *spec)
{
	return group_titles[spec->group];
}

static void print_commands(const struct arg_spec *group, struct buf *out)
{
	const char *title = NULL, *blank = "";
	for (const struct arg_spec *const *one = group->commands; *one; one++) {
		if (title != cli_group_title(*one)) {
			title = cli_group_title(*one);
			buf_printf(out, "%s%s:\n", blank, title);
			blank = "\n";
		}
		buf_printf(out, "  %-10s  %s\n", cli_word(*one), (*one)->summary);
	}
}

static void print_help(const struct arg_spec *spec, struct buf *out)
{
	if (spec->commands && !spec->commands[1])
		spec = spec->commands[0];
	if (!spec->commands) {
		args_print_help(spec, out);
		return;
	}
	const char *name = spec->command, *space = name[0] ? " " : "";
	buf_printf(out, "usage: %s\n\n", args_usage(spec).text);
	if (spec->about)
		buf_printf(out, "%s\n\n", spec->about);
	print_commands(spec, out);
	buf_printf(out, "\n'carrel %s%sCOMMAND --help' shows the options of a command.\n", name,
		space);
	if (spec->examples)
		buf_printf(out, "\nexamples:\n%s", spec->examples);
}

/* Commands of Docker that have another name here. */
static const struct {
	const char *word, *hint;
} docker_commands[] = {
	{ "images", "there are no images: carrel env ls lists environments, carrel template ls "
		    "templates" },
	{ "inspect", "carrel info NAME shows a workspace" },
	{ "list", "carrel ls lists workspaces" },
	{ "pull", "there are no images: carrel env build makes an environment, carrel snapshot "
		  "pull gets a snapshot" },
	{ "start", "carrel exec NAME -- CMD starts what it needs; carrel resume NAME after a "
		   "suspend" },
	{ "stop", "carrel suspend NAME ends the processes of a workspace, and keeps its files" },
};

static const char *find_docker_command(const struct arg_spec *group, const char *name)
{
	for (size_t i = 0; i < sizeof docker_commands / sizeof *docker_commands; i++)
		if (group == &cli_all && !strcmp(name, docker_commands[i].word))
			return docker_commands[i].hint;
	return NULL;
}

static int unknown(const struct arg_spec *group, const char *name, struct error *err)
{
	const char *of = group->command, *space = of[0] ? " " : "", *nearest = NULL;
	size_t least = SIZE_MAX;
	fail(err, ERR_INVALID, "unknown %s '%s%s%s'", name[0] == '-' ? "option" : "command", of,
		space, name);
	const char *docker = find_docker_command(group, name);
	if (docker)
		return error_hint(err, "%s", docker);
	for (const struct arg_spec *const *spec = group->commands; *spec; spec++)
		if (str_is_nearer(name, cli_word(*spec), &least))
			nearest = cli_word(*spec);
	if (nearest)
		return error_hint(err, "did you mean 'carrel %s%s%s'?", of, space, nearest);
	if (of[0])
		return error_hint(err, "carrel %s --help lists the commands", of);
	return error_hint(err, "%scarrel help lists the commands",
		name[0] == '-' ? "options follow the command; " : "");
}

static int run_help(struct command *command, struct error *err)
{
	const struct arg_spec *spec = &cli_all;
	for (size_t i = 0; i < command->operands.count; i++) {
		const char *name = command->operands.items[i];
		if (!spec->commands)
			return fail_hint(err, ERR_INVALID, "carrel help COMMAND",
				"help: unexpected argument '%s'", name);
		const struct arg_spec *next = cli_find(spec, name);
		if (!next)
			return unknown(spec, name, err);
		spec = next;
	}
	print_help(spec == &help ? &cli_all : spec, &command->out);
	return 0;
}

void cli_print_error(struct json *j, const char *key, const struct error *err,
	const struct build_problem *problem)
{
	bool is_build = problem && problem->failure < BUILD_FAILURE_COUNT;
	json_object(j, key);
	json_text(j, "code",
		is_build ? build_failure_names[problem->failure] : error_code_name(err->code));
	json_text(j, "message", err->text);
	json_text(j, "hint", err->hint[0] ? err->hint : NULL);
	if (err->code == ERR_POLICY || err->code == ERR_APPROVAL_REQUIRED)
		json_text(j, "reason", reason_names[REASON_DENIED]);
	if (problem)
		json_text(j, "package", is_build ? problem->package : NULL);
	json_end(j);
}

int cli_fail(const struct error *err, bool json, const struct build_problem *problem)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&out, false);
	if (json) {
		json_object(&j, NULL);
		cli_print_error(&j, "error", err, problem);
		json_end(&j);
		buf_char(&out, '\n');
	}
	/* If stdout can't be written (a full disk), the error goes to stderr. */
	if (!json || cli_print(&out, NULL))
		cli_say("%s%s%s", err->text, err->hint[0] ? "\nhint: " : "", err->hint);
	return error_exit_code(err->code);
}

/* The problem of a failed command on environments; NULL for other commands. */
static const struct build_problem *problem_of(const struct command *command)
{
	bool is_env = !strncmp(command->spec->command, "env ", 4);
	return is_env || command->problem.failure < BUILD_FAILURE_COUNT ? &command->problem : NULL;
}

int cli_print(const struct buf *text, struct error *err)
{
	if (text->overflow)
		return fail(err, ERR_LIMIT, "the result is too large to print");
	if (text->len && fd_write_full(STDOUT_FILENO, text->data, text->len) != (ssize_t)text->len)
		return fail_errno(err, "write standard output");
	return 0;
}

void cli_say(const char *fmt, ...)
{
	auto_buf struct buf line = buf_empty(BUF_MAX_DEFAULT);
	va_list args;
	buf_text(&line, "carrel: ");
	va_start(args, fmt);
	buf_vprintf(&line, fmt, args);
	va_end(args);
	buf_char(&line, '\n');
	(void)!fd_write_full(STDERR_FILENO, line.data, line.len);
}

int cli_open_home(struct command *command, struct error *err)
{
	const char *path;
	return home_find_path(&command->arena, &path, err)
		       ? -1
		       : home_open(path, &command->arena, &command->home, err);
}

int cli_open_store(struct command *command, struct error *err)
{
	return cli_open_home(command, err)
		       ? -1
		       : env_store_open(&command->home, &command->arena, &command->store, err);
}

static int check_operands(const struct command *command, struct error *err)
{
	/* An empty name would be another path of the daemon's. */
	for (size_t i = 0; i < command->operands.count; i++)
		if (!command->operands.items[i][0] && !problem_of(command))
			return fail(err, ERR_INVALID, "argument %zu is empty", i + 1);
	return args_check_operands(command->spec, &command->operands, err);
}

/* Options stand before and after the operands, and end where the words of a command begin, so that
 * its own options need no "--". */
static int parse(struct command *command, int argc, char **argv, bool *is_help, struct error *err)
{
	const struct arg_spec *spec = command->spec;
	text_list *operands = &command->operands;
	int at = 0, next = 0;
	if (!spec->takes_command && args_parse_mixed(spec, argc, argv, &command->options,
					    &command->arena, operands, is_help, err))
		return -1;
	while (spec->takes_command) {
		if (args_parse(spec, argc - at, argv + at, &command->options, &command->arena,
			    &next, is_help, err))
			return -1;
		at += next;
		if (at == argc || operands->count == args_least(spec) || *is_help)
			break;
		vec_push(&command->arena, operands, argv[at]);
	}
	command->argv = argv + at;
	return *is_help ? 0 : check_operands(command, err);
}

/* --host and --token-file may also stand before the command. */
static struct leading {
	const char *name;
	size_t offset; /* in struct options */
	const char *value;
} leading[] = { { "--host", AT(host), NULL }, { "--token-file", AT(token_file), NULL } };
#define LEADING_COUNT (sizeof leading / sizeof *leading)

/* How many words it takes: 0, 1 or 2. */
static int take_leading(int argc, char **argv)
{
	for (size_t i = 0; i < LEADING_COUNT && argc > 2; i++) {
		size_t len = strlen(leading[i].name);
		if (strncmp(argv[1], leading[i].name, len) != 0)
			continue;
		if (argv[1][len] && argv[1][len] != '=')
			continue;
		leading[i].value = argv[1][len] ? argv[1] + len + 1 : argv[2];
		return argv[1][len] ? 1 : 2;
	}
	return 0;
}

static int use_leading(struct command *command, struct error *err)
{
	for (size_t i = 0; i < LEADING_COUNT; i++) {
		struct arg_option option;
		if (!leading[i].value)
			continue;
		if (!args_find(command->spec, str_from(leading[i].name + 2), 0, &option))
			return fail(err, ERR_INVALID, "'carrel %s' takes no %s",
				command->spec->command, leading[i].name);
		*(const char **)((char *)&command->options + leading[i].offset) = leading[i].value;
	}
	return 0;
}

/* The store of environments is a directory of this machine. */
static int check_place(struct command *command, struct error *err)
{
	static const char *const here[] = { "env build", "env verify", "env registries", "env rm",
		"env prune", "env warm", "env metrics" };
	const char *name = command->spec->command;
	for (size_t i = 0; i < sizeof here / sizeof *here; i++)
		if (!strcmp(name, here[i]) && !command->options.exported)
			return remote_refuse_far(&command->remote, name,
				"carrel create and carrel install build environments there", err);
	return 0;
}

/* Ids by their beginning: only the caller's own lists are asked, so that nobody learns of the ids
 * of others. Full ids, and words that can't begin one, cost nothing. */
#define PREFIX_LEN_MIN 4
#define CANDIDATES_MOST 5
struct id_prefix {
	struct arena *arena;
	const char *text;
	text_list found;
};

static void note_id(void *ctx, const struct json_value *item)
{
	struct id_prefix *prefix = ctx;
	const char *id = json_member_text(item, "id");
	if (id && !strncmp(id, prefix->text, strlen(prefix->text)))
		vec_push(prefix->arena, &prefix->found, id);
}

static int complete_id(
	struct command *command, const char *path, const char **operand, struct error *err)
{
	struct id_prefix prefix = { .arena = &command->arena, .text = *operand };
	size_t len = strlen(*operand);
	struct error ignored;
	if (len < PREFIX_LEN_MIN || len >= ID_LEN ||
		strspn(*operand, "0123456789abcdefghijklmnopqrstuv") != len)
		return 0;
	/* Who may not list them gets the error of the operation itself. */
	if (remote_each(&command->remote, path, note_id, &prefix, &ignored))
		return 0;
	if (prefix.found.count < 2) {
		*operand = prefix.found.count ? prefix.found.items[0] : *operand;
		return 0;
	}
	auto_buf struct buf list = buf_empty(BUF_MAX_DEFAULT);
	for (size_t i = 0; i < prefix.found.count && i < CANDIDATES_MOST; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", prefix.found.items[i]);
	return fail_hint(err, ERR_CONFLICT, "type more of the id",
		"%zu ids begin with '%s': %.*s%s", prefix.found.count, *operand, (int)list.len,
		list.data, prefix.found.count > CANDIDATES_MOST ? " …" : "");
}

static bool is_served(struct remote *remote)
{
	struct client client;
	struct error ignored;
	if (remote->client.socket >= 0)
		return true;
	if (remote_choose(remote, &ignored) ||
		daemon_connect(&client, remote->host, false, &ignored))
		return false;
	remote->client = client;
	return true;
}

static int complete_ids(struct command *command, struct error *err)
{
	static const struct {
		const char *usage, *path;
		bool is_alone; /* with another operand it is a name */
	} kinds[] = { { "EXEC", "/v1/execs", false }, { "APPROVAL", "/v1/approvals", false },
		{ "SNAPSHOT", "/v1/snapshots", true } };
	const char *usage = command->spec->usage ? command->spec->usage : "";
	const text_list *operands = &command->operands;
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		size_t len = strlen(kinds[kind].usage);
		if (strncmp(usage, kinds[kind].usage, len) || !strchr(" .|", usage[len]) ||
			(kinds[kind].is_alone && operands->count != 1))
			continue;
		for (size_t i = 0; i < operands->count; i++) {
			struct error ignored;
			const char **operand = (const char **)&operands->items[i];
			const char *path = remote_workspace_path(&command->remote, *operand, "");
			/* Names win. */
			if (strstr(usage, "|WORKSPACE") && strlen(*operand) < ID_LEN &&
				!remote_call(&command->remote, "GET", path, NULL, NULL, &ignored))
				continue;
			/* For a word that begins no id, no daemon is started. */
			if (kinds[kind].is_alone && !is_served(&command->remote))
				continue;
			if (complete_id(command, kinds[kind].path, operand, err))
				return -1;
		}
	}
	/* Commands that have several connections begin with none. */
	remote_close(&command->remote);
	return 0;
}

int cli_call(const struct arg_spec *spec, int argc, char **argv)
{
	struct command command = { .spec = spec,
		.json = args_want_json(argc, argv),
		.out = buf_empty((size_t)-1 / 2),
		.value = json_to(&command.out, false),
		.remote = { .arena = &command.arena, .client = { .socket = -1 } },
		.home = { .dir = -1 },
		.store = { .dir = -1, .layers = { .dir = -1 } },
		.problem = { .failure = BUILD_FAILURE_COUNT } };
	struct error err = { 0 };
	bool is_help = false;
	int code =
		use_leading(&command, &err) || parse(&command, argc, argv, &is_help, &err) ? -1 : 0;
	if (!code && is_help)
		args_print_help(spec, &command.out);
	else if (!code) {
		command.json = command.options.format && !strcmp(command.options.format, "json");
		command.remote.host = command.options.host;
		command.remote.token_file = command.options.token_file;
		code = check_place(&command, &err) || complete_ids(&command, &err)
			       ? -1
			       : spec->run(&command, &err);
	}
	struct buf *out = &command.out;
	if (command.json && out->len && out->data[out->len - 1] != '\n')
		buf_char(out, '\n');
	if (code >= 0 && cli_print(&command.out, &err))
		code = -1;
	if (code < 0)
		code = cli_fail(&err, command.json, problem_of(&command));
	remote_close(&command.remote);
	env_store_done(&command.store);
	home_done(&command.home);
	buf_done(&command.out);
	arena_done(&command.arena);
	return code;
}

int cli_read_variables(
	const text_list *given, struct arena *arena, text_list *pairs, struct error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		const char *pair = given->items[i];
		const char *value = strchr(pair, '=') ? "" : getenv(pair);
		if (!value)
			return fail(
				err, ERR_NOT_FOUND, "-e %s: that variable is not set here", pair);
		if (!strchr(pair, '='))
			pair = arena_printf(arena, "%s=%s", pair, value);
		vec_push(arena, pairs, pair);
	}
	return 0;
}

int cli_check_environment(const struct options *options, struct error *err)
{
	if (options->environment && env_request_asks(&options->env, ENV_KIND_PYTHON))
		return fail(err, ERR_INVALID,
			"--env can't be combined with -r, --pip or --python: it names an "
			"environment that exists");
	return 0;
}

/* The directory of this process's PATH that has a program; false: none. */
static bool find_here(const char *name, struct str *directory)
{
	const char *path = getenv("PATH");
	struct str rest = str_from(path ? path : "");
	char file[PATH_MAX];
	while (str_next(&rest, ':', directory)) {
		str_format(
			file, sizeof file, "%.*s/%s", (int)directory->len, directory->data, name);
		if (directory->len && !access(file, X_OK))
			return true;
	}
	return false;
}

void cli_hint_at_command(char *const *argv, const char *python, const char *path, struct error *err)
{
	struct str here;
	if (err->code != ERR_COMMAND_NOT_FOUND)
		return;
	if (!argv[1] && strpbrk(argv[0], " |;&<>"))
		error_hint(err, "a shell line needs a shell: sh -c '...'");
	else if (!strcmp(argv[0], "python"))
		error_hint(err, "%s", python);
	else if (!strchr(argv[0], '/') && find_here(argv[0], &here))
		error_hint(err,
			"%.*s of this machine has it, but is not in the sandbox's PATH: "
			"%s/usr/local/bin, /usr/bin, /bin",
			(int)here.len, here.data, path);
	else if (!strchr(argv[0], '/'))
		error_hint(err, "it is not in the sandbox's PATH: %s/usr/local/bin, /usr/bin, /bin",
			path);
	else
		error_hint(err, "the file, or the interpreter in its first line, does not exist in "
				"the sandbox");
}

/* A limit as it was typed, or would be. */
static void format_limit(char out[32], enum reason reason, const struct limits *limits)
{
	char size[16];
	const uint64_t sizes[REASON_COUNT] = { [REASON_MEMORY_LIMIT] = limits->memory_bytes,
		[REASON_OUTPUT_LIMIT] = limits->output_bytes,
		[REASON_DISK_LIMIT] = limits->disk_bytes };
	uint64_t ms = reason == REASON_TIMEOUT ? limits->timeout_ms : limits->cpu_time_ms;
	quantity_format_size(size, sizes[reason]);
	if (sizes[reason])
		str_copy(out, 32, size);
	else if (ms % 1000)
		str_format(out, 32, "%llums", (unsigned long long)ms);
	else
		str_format(out, 32, "%llus", (unsigned long long)ms / 1000);
}

void cli_explain(const struct result *result, const struct limits *limits)
{
	static const struct {
		const char *before, *after; /* the limit stands between them */
	} texts[REASON_COUNT] = {
		[REASON_TIMEOUT] = { "was ended: timeout, after ", " (--timeout)" },
		[REASON_CPU_LIMIT] = { "was ended: cpu_limit, after ",
			" of cpu time (--cpu-time)" },
		[REASON_MEMORY_LIMIT] = { "was ended: memory_limit, more than ", " (--memory)" },
		[REASON_OUTPUT_LIMIT] = { "was ended: output_limit, more than ", " (--output)" },
		[REASON_DISK_LIMIT] = { "failed: disk_limit, the disk of the workspace is full at ",
			" (--disk)" },
		[REASON_CANCELED] = { "was ended: canceled", NULL },
		[REASON_DAEMON_LOST] = { "was ended: daemon_lost, the daemon was killed while it "
					 "ran",
			NULL },
	};
	char limit[32] = "";
	if (!texts[result->reason].before)
		return;
	if (texts[result->reason].after)
		format_limit(limit, result->reason, limits);
	if (result->reason == REASON_CPU_LIMIT && !limits->cpu_time_ms)
		cli_say("the command was ended: cpu_limit, it kept running although --cpus paused "
			"it");
	else
		cli_say("the command %s%s%s", texts[result->reason].before, limit,
			texts[result->reason].after ? texts[result->reason].after : "");
}

void cli_begin_result(const struct result *result, const struct buf *out, const struct buf *errors,
	const char *limiter, struct json *j)
{
	struct exec_output output = exec_output_whole((struct str){ out->data, out->len },
		(struct str){ errors->data, errors->len }, result->truncated);
	json_object(j, NULL);
	exec_print_result(j, NULL, result, &output, limiter, NULL);
}

void cli_print_result(const struct result *result, const struct buf *out, const struct buf *errors,
	const char *limiter, struct json *j)
{
	cli_begin_result(result, out, errors, limiter, j);
	json_end(j);
}

static void print_archives(struct json *j, const cli_ones *all)
{
	bool is_begun = false;
	for (size_t i = 0; i < all->count; i++) {
		if (!all->items[i].archive)
			continue;
		if (!is_begun)
			json_object(j, "archives");
		is_begun = true;
		json_text(j, all->items[i].name, all->items[i].archive);
	}
	if (is_begun)
		json_end(j);
}

static void print_ones_json(
	struct command *command, const cli_ones *all, size_t failures, const char *done, int signal)
{
	struct json *j = &command->value;
	json_object(j, NULL);
	if (signal)
		json_u64(j, "signal", (uint64_t)signal);
	json_array(j, done);
	for (size_t i = 0; i < all->count; i++)
		if (!all->items[i].has_failed)
			json_text(j, NULL, all->items[i].name);
	json_end(j);
	print_archives(j, all);
	if (failures)
		json_array(j, "failed");
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].has_failed) {
			json_object(j, NULL);
			json_text(j, "name", all->items[i].name);
			cli_print_error(j, "error", &all->items[i].err, problem_of(command));
			json_end(j);
		}
	if (failures)
		json_end(j);
	json_end(j);
}

int cli_print_ones(struct command *command, const cli_ones *all, const char *done, int signal,
	struct error *err)
{
	size_t failures = 0;
	for (size_t i = 0; i < all->count; i++)
		failures += all->items[i].has_failed;
	if (failures && all->count == 1) {
		*err = all->items[0].err;
		return -1;
	}
	if (command->json)
		print_ones_json(command, all, failures, done, signal);
	for (size_t i = 0; i < all->count && !command->json; i++) {
		if (all->items[i].has_failed)
			cli_fail(&all->items[i].err, false, NULL);
		else if (!signal && all->items[i].archive)
			buf_printf(&command->out, "%s %s, archived as %s\n", done,
				all->items[i].name, all->items[i].archive);
		else if (!signal)
			buf_printf(&command->out, "%s %s\n", done, all->items[i].name);
	}
	return failures ? 125 : 0;
}

int cli_read_file(
	const char *path, size_t max, struct arena *arena, struct str *text, struct error *err)
{
	bool is_stdin = !strcmp(path, "-");
	auto_close int fd =
		is_stdin ? -1 : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_buf struct buf read = buf_empty(max);
	if (!is_stdin && fd < 0)
		return fail_errno(err, "open '%s'", path);
	for (;;) {
		char piece[16384];
		ssize_t len = fd_read_full(is_stdin ? STDIN_FILENO : fd, piece, sizeof piece);
		if (len < 0)
			return fail_errno(err, "read '%s'", path);
		if (!len)
			break;
		if (!buf_append(&read, piece, (size_t)len))
			return fail(err, ERR_LIMIT, "'%s' has more than %zu bytes", path, max);
	}
	*text = (struct str){ arena_bytes(arena, read.data, read.len), read.len };
	return 0;
}

static int write_help(const struct arg_spec *group, int fd, int code)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct error err;
	print_help(group, &out);
	if (fd_write_full(fd, out.data, out.len) == (ssize_t)out.len)
		return code;
	fail_errno(&err, "write standard output");
	return cli_fail(&err, false, NULL);
}

/* The command of the group that argv[1] names. */
static int dispatch(const struct arg_spec *group, int argc, char **argv)
{
	const struct build_problem none = { .failure = BUILD_FAILURE_COUNT };
	struct error err;
	if (argc < 2 && group->commands[1])
		return write_help(group, STDERR_FILENO, 125);
	if (argc < 2) {
		fail(&err, ERR_INVALID, "'%s' needs a command", group->command);
		error_hint(&err, "carrel %s --help", group->commands[0]->command);
		return cli_fail(&err, false, NULL);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
		(group != &cli_all && !strcmp(argv[1], "help")))
		return write_help(group, STDOUT_FILENO, 0);
	const struct arg_spec *spec = cli_find(group, argv[1]);
	if (spec && spec->commands)
		return dispatch(spec, argc - 1, argv + 1);
	if (spec)
		return cli_call(spec, argc - 1, argv + 1);
	unknown(group, argv[1], &err);
	return cli_fail(&err, args_want_json(argc, argv), group == &cli_env ? &none : NULL);
}

int cli_main(int argc, char **argv)
{
	struct error err;
	if (fd_sanitize_standard(&err))
		return cli_fail(&err, false, NULL);
	for (int taken; (taken = take_leading(argc, argv)) > 0;) {
		argv[taken] = argv[0];
		argc -= taken;
		argv += taken;
	}
	if (argc > 1 && !strcmp(argv[1], "__complete"))
		return completion_answer(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], "--version"))
		return cli_call(&version, 1, argv);
	return dispatch(&cli_all, argc, argv);
}
