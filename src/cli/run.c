/* carrel run: options and the host's facts become a plan, the plan a sandbox, the sandbox an exit
 * code. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/trace.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/outcome.h"
#include "cli/run_env.h"
#include "cli/sandbox_rows.h"
#include "envs/shown.h"
#include "format/json.h"
#include "linux/home.h"
#include "model/exec.h"
#include "plan/plan.h"
#include "sandbox/host.h"
#include "sandbox/isolation.h"

struct run_options {
	const char *dir, *cwd, *net, *isolation, *format;
	struct run_env_options environment;
	text_list env, binds;
	bool writable_config, ptrace, tty, interactive, plan;
	struct limits limits;
};

#define FIELD(name) offsetof(struct run_options, name)
#define ENV_FIELD(name) FIELD(environment.build.name)
static const struct arg_help limit_helps[] = {
	{ "cpu_time", "cpu time of all processes together (default no limit)" },
	{ "timeout", "wall time (default no limit)" },
	{ "disk", "size of /workspace (default 1G; with --dir none)" },
	{ "output", "bytes of output (default no limit; 64M with -o json)" },
	{ 0 },
};
static const struct arg_option options_table[] = {
	{ 0, "env", ARG_TEXT, FIELD(environment.name), "NAME",
		"use this Python environment at /env: see `carrel env`", NULL, 0, 0 },
	ENV_SOURCE_ROWS(ENV_FIELD, ENV_FILES, ENV_PACKAGES),
	ENV_CHOICE_ROWS(ENV_FIELD, ENV_FIND_LINKS),
	{ 0, "python", ARG_TEXT, ENV_FIELD(python), "V",
		"use this Python: a version (3.12) or a path", NULL, 0, 0 },
	ENV_ALLOW_BUILD_ROW(ENV_FIELD(allow_build)),
	{ 'e', "setenv", ARG_LIST, FIELD(env), "NAME[=VALUE]",
		"set a variable inside; without =VALUE, pass on the one set here", NULL, 0, 0 },
	{ 'w', "workdir", ARG_TEXT, FIELD(cwd), "DIR", "start in DIR (default /workspace)", NULL, 0,
		0 },
	{ 'v', "volume", ARG_LIST, FIELD(binds), "SRC:DST[:ro]",
		"mount the host's file or directory SRC at DST, writable unless :ro", NULL, 0, 0 },
	{ 0, "dir", ARG_TEXT, FIELD(dir), "PATH", "use this host directory as /workspace", NULL, 0,
		0 },
	{ 0, "writable-config", ARG_FLAG, FIELD(writable_config), NULL,
		"with --dir: leave .git/hooks, .git/config, .claude … writable", NULL, 0, 0 },
	SANDBOX_ROWS(FIELD, limit_helps),
	{ 't', "tty", ARG_FLAG, FIELD(tty), NULL, "give the command a terminal of its own", NULL, 0,
		0 },
	{ 'i', "interactive", ARG_FLAG, FIELD(interactive), NULL,
		"pass stdin on (the default, except with -t alone)", NULL, 0, 0 },
	PTRACE_ROW(FIELD),
	ISOLATION_ROW(FIELD),
	{ 0, "plan", ARG_FLAG, FIELD(plan), NULL, "print the plan as JSON and run nothing", NULL, 0,
		0 },
	{ 'o', "format", ARG_CHOICE, FIELD(format), "text|json",
		"json: capture the output and print one result", "text|json", 0, 0 },
};
#undef FIELD
#undef ENV_FIELD

static const struct arg_spec spec = {
	.command = "run",
	.usage = "carrel run [options] [--] CMD [ARG...]",
	.about = "Runs one command in a new sandbox: no network, none of your files, its own "
		 "processes,\n"
		 "limited memory and tasks. Nothing is left when it ends. The exit code is the\n"
		 "command's; 124: a time limit, 137: another limit, 125: carrel itself failed,\n"
		 "126: not executable, 127: not found.",
	.options = options_table,
	.option_count = sizeof options_table / sizeof *options_table,
	.examples = "  carrel run -- python3 -c 'print(1 + 1)'\n"
		    "  carrel run --dir . --timeout 60s -- make test\n"
		    "  carrel run --pip requests -- python -c 'import requests'\n"
		    "  carrel run --memory 256M -o json -- sh -c 'echo hi; exit 3'\n"
		    "  carrel run -it -- bash\n",
};

static int add_env(const struct run_options *run, struct arena *arena, struct plan_options *options,
	struct error *err)
{
	for (size_t i = 0; i < run->env.count; i++) {
		const char *entry = run->env.items[i];
		if (!strchr(entry, '=')) {
			const char *value = getenv(entry);
			if (!value)
				return fail(err, ERR_NOT_FOUND,
					"-e %s: that variable is not set here", entry);
			entry = arena_printf(arena, "%s=%s", entry, value);
		}
		vec_push(arena, &options->env, entry);
	}
	return 0;
}

static int add_binds(const struct run_options *run, struct arena *arena,
	struct plan_options *options, struct error *err)
{
	for (size_t i = 0; i < run->binds.count; i++) {
		struct plan_bind bind = { 0 };
		if (plan_parse_bind(run->binds.items[i], arena, &bind, err) ||
			host_look_at_source(&bind, "-v", arena, err))
			return -1;
		vec_push(arena, &options->binds, bind);
	}
	return 0;
}

static int check_choices(const struct run_options *run, struct error *err)
{
	if (sandbox_rows_check(run->net, run->isolation, err))
		return -1;
	if (run->writable_config && !run->dir)
		return fail(err, ERR_INVALID, "--writable-config needs --dir");
	return 0;
}

/* Protected names are those of a project; a home has many more that are obeyed. */
static void warn_of_home(const char *dir)
{
	const char *home = getenv("HOME");
	char real[PATH_MAX];
	auto_buf struct buf line;
	buf_init(&line, 8192);
	if (!home || !realpath(home, real) || strcmp(real, dir))
		return;
	buf_printf(&line,
		"carrel: warning: --dir '%s' is your home directory: the command can change "
		".bashrc, .ssh and similar files\n",
		dir);
	(void)!fd_write_full(STDERR_FILENO, line.data, line.len);
}

/* The daemon listens in carrel's own home: whoever connects to it there acts for the home's owner.
 * Resolved, as sources are. */
static const char *find_real_home(struct arena *arena)
{
	char real[PATH_MAX];
	const char *home;
	struct error ignored; /* who needs one is told */
	if (home_find_path(arena, &home, &ignored))
		return NULL;
	return realpath(home, real) ? arena_text(arena, real) : home;
}

/* What was typed, looked at on this host. */
static int gather(const struct run_options *run, char **argv, struct arena *arena,
	struct plan_options *options, struct plan_bind *dir, struct error *err)
{
	*options = (struct plan_options){
		.argv = argv,
		.cwd = run->cwd ? path_normalize(arena, PLAN_WORKSPACE, run->cwd) : NULL,
		.writable_config = run->writable_config,
		.ptrace = run->ptrace,
		.limits = run->limits,
		.captured = run->format && !strcmp(run->format, "json"),
		.tty = run->tty,
		.interactive = run->interactive || !run->tty,
	};
	if (run->dir) {
		dir->source = run->dir;
		if (host_look_at_source(dir, "--dir", arena, err))
			return -1;
		if (dir->kind != PATH_DIRECTORY)
			return fail(err, ERR_INVALID, "--dir '%s' is not a directory", run->dir);
		warn_of_home(dir->source);
		options->dir = dir;
	}
	return add_env(run, arena, options, err) || add_binds(run, arena, options, err) ? -1 : 0;
}

static void print_result(const struct plan *plan, const struct result *result,
	const struct buf *out, const struct buf *errors, struct buf *text)
{
	struct json j;
	struct exec_output output = exec_output_whole((struct str){ out->data, out->len },
		(struct str){ errors->data, errors->len }, result->truncated);
	json_init(&j, text, false);
	json_object(&j, NULL);
	exec_print_result(&j, NULL, result, &output, plan_limiter_name(plan->limiter), NULL);
	json_end(&j);
	buf_char(text, '\n');
}

static int print_all(const struct buf *text, struct error *err)
{
	if (text->overflow)
		return fail(err, ERR_LIMIT, "the result is too large to print");
	if (fd_write_full(STDOUT_FILENO, text->data, text->len) != (ssize_t)text->len)
		return fail_errno(err, "write standard output");
	return 0;
}

static bool has_environment(const struct plan *plan)
{
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (plan->mounts.items[i].kind == MOUNT_OVERLAY)
			return true;
	return false;
}

/* Why a command isn't there is mostly one of these. */
static void hint_at_command(const struct plan *plan, struct error *err)
{
	const char *name = plan->argv[0];
	if (err->code == ERR_NOT_EXECUTABLE && err->sys_errno == ENOEXEC)
		error_hint(err, "a script needs a first line such as #!/bin/sh");
	if (err->code != ERR_COMMAND_NOT_FOUND)
		return;
	if (!plan->argv[1] && strpbrk(name, " |;&<>"))
		error_hint(err, "a shell line needs a shell: sh -c '...'");
	else if (!strcmp(name, "python"))
		error_hint(err, "python3 exists; --python 3 adds an environment that has python");
	else if (!strchr(name, '/'))
		error_hint(err, "it is not in the sandbox's PATH: %s/usr/local/bin, /usr/bin, /bin",
			has_environment(plan) ? "/env/bin, " : "");
	else if (path_is_absolute(name) && !access(name, F_OK))
		error_hint(err,
			"it exists on this host, but not in the sandbox; -v SRC:DST:ro mounts it");
	else
		error_hint(err, "the file, or the interpreter in its first line, does not exist in "
				"the sandbox");
}

struct run_state { /* what is held while the command runs */
	struct host host;
	struct run_env environment;
	struct build_problem problem;
};

static int carry_out(const struct plan *plan, struct run_state *state, int *code, struct error *err)
{
	auto_buf struct buf out, errors, text;
	struct result result;
	buf_init(&out, (size_t)-1 / 2);
	buf_init(&errors, (size_t)-1 / 2);
	buf_init(&text, (size_t)-1 / 2);
	struct sandbox_io io = { &out, &errors };
	if (isolation_run(plan, &state->host.cgroups, &io, &result, err)) {
		hint_at_command(plan, err);
		return -1;
	}
	*code = result_exit_code(&result);
	if (plan->streams[1] != STREAM_CAPTURED) {
		outcome_explain(&result, &plan->limits);
		return 0;
	}
	print_result(plan, &result, &out, &errors, &text);
	return print_all(&text, err);
}

/* A name that didn't exist could not be made read-only; tools on this host will obey what lies
 * there now. */
static void warn_of_new(const struct host *host, const char *dir, struct arena *arena)
{
	text_list names = { 0 };
	struct error err;
	auto_buf struct buf lines;
	buf_init(&lines, BUF_MAX_DEFAULT);
	if (host_find_new(host, dir, arena, &names, &err))
		return; /* the directory is gone: so is what was in it */
	for (size_t i = 0; i < names.count; i++)
		buf_printf(&lines,
			"carrel: warning: the command created '%s' in '%s': check it before you "
			"use git, an editor or an agent there\n",
			names.items[i], dir);
	(void)!fd_write_full(STDERR_FILENO, lines.data, lines.len);
}

/* What config.yaml says of the system, if there is a home. */
static int add_config(struct host *host, struct arena *arena, struct error *err)
{
	const char *home;
	struct config config;
	struct error ignored; /* without a home there is no configuration */
	if (home_find_path(arena, &home, &ignored))
		return 0;
	if (shown_read(home, arena, &config, err))
		return -1;
	host->facts.landlock_writes = config.landlock_writes;
	return host_show(host, &config.show, home, arena, err);
}

static int run_command(const struct run_options *run, char **argv, struct arena *arena,
	struct run_state *state, int *code, struct error *err)
{
	struct host *host = &state->host;
	struct plan_options options;
	struct plan_bind dir = { 0 };
	struct plan plan;
	if (check_choices(run, err) || gather(run, argv, arena, &options, &dir, err))
		return -1;
	if (run_env_is_asked(&run->environment)) {
		*code = run_env_add(&state->environment, &run->environment, options.captured,
			&options, &state->problem, err);
		if (*code)
			return *code < 0 ? -1 : 0;
	}
	if (options.dir || options.binds.count)
		options.home = find_real_home(arena);
	const char *guarded = run->writable_config ? NULL : dir.source, *home = NULL;
	/* Only root needs a place to note its sandboxes' uids in. */
	if (!run->plan && geteuid() == 0 && home_find_path(arena, &home, err))
		return -1;
	if (host_look(host, home, guarded, arena, err) || add_config(host, arena, err) ||
		plan_build(&options, &host->facts, arena, &plan, err))
		return -1;
	if (!run->plan) {
		int failed = carry_out(&plan, state, code, err);
		if (guarded)
			warn_of_new(host, guarded, arena);
		return failed;
	}
	auto_buf struct buf text;
	buf_init(&text, BUF_MAX_DEFAULT);
	plan_print(&plan, &text);
	return print_all(&text, err);
}

int cli_run(int argc, char **argv)
{
	struct run_options run = { 0 };
	struct error err = { 0 };
	struct run_state state = { .environment = RUN_ENV_NONE,
		.problem = { .failure = BUILD_FAILURE_COUNT } };
	auto_arena struct arena arena;
	int operands, code = 0;
	bool help;
	trace_step("main");
	arena_init(&arena);
	host_init(&state.host);
	bool json = args_want_json(argc, argv);
	if (args_parse(&spec, argc, argv, &run, &arena, &operands, &help, &err))
		return cli_fail(&err, json);
	if (help) {
		args_print_help(&spec);
		return 0;
	}
	json = run.format && !strcmp(run.format, "json");
	if (operands == argc) {
		fail_hint(&err, ERR_INVALID, "carrel run [options] -- CMD [ARG...]",
			"no command was given");
		return cli_fail(&err, json);
	}
	if (run_command(&run, argv + operands, &arena, &state, &code, &err))
		code = state.problem.failure < BUILD_FAILURE_COUNT
			       ? env_fail(&err, &state.problem, json)
			       : cli_fail(&err, json);
	host_done(&state.host);
	run_env_done(&state.environment);
	return code;
}
