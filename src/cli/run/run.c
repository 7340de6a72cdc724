/* carrel run: options and the host's facts become a plan, the plan a sandbox, the sandbox an exit
 * code. */
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "base/trace.h"
#include "cli/environments/env.h"
#include "cli/environments/template.h"
#include "cli/run/network.h"
#include "cli/run/policy_file.h"
#include "cli/run/review.h"
#include "cli/run/run_policy.h"
#include "envs/builder/environment.h"
#include "envs/builder/progress.h"
#include "envs/kind.h"
#include "envs/shown.h"
#include "linux/home.h"
#include "linux/landlock.h"
#include "linux/probe.h"
#include "sandbox/native/host.h"
#include "sandbox/native/isolation.h"
#include "sandbox/plan/grants.h"
#include "sandbox/plan/plan.h"
#include "sandbox/plan/programs.h"
#include "sandbox/plan/weak.h"

static const struct arg_help limit_helps[] = {
	{ "cpu-time", "cpu time of all processes together (default no limit)" },
	{ "timeout", "wall time (default no limit)" },
	{ "disk", "size of /workspace (default 1G; with --dir none)" },
	{ "tmp", "size of /tmp, /.cache and /dev/shm together (default half of memory)" },
	{ "output", "bytes of output (default no limit; 64M with -o json)" },
	{ 0 },
};
static const struct arg_help python_helps[] = {
	{ "python", "use this Python: a version (3.12) or a path" },
	{ 0 },
};
static const struct arg_option table[] = {
	{ 0, "template", ARG_TEXT, AT(template), "NAME|FILE",
		"with the packages, variables and limits of this template; options win over it",
		NULL, 1 },
	{ 0, "env", ARG_TEXT, AT(environment), "NAME", "use this environment: see `carrel env`" },
	{ ARG_FROM(env_source_rows) },
	{ ARG_FROM(env_choice_rows), .helps = python_helps },
	{ ARG_FROM(env_node_rows) },
	{ ARG_FROM(command_rows) },
	{ ARG_FROM(mount_rows) },
	{ 0, "writable-config", ARG_FLAG, AT(writable_config), NULL,
		"with --dir: leave .git/hooks, .git/config, .claude … writable" },
	{ 0, "review", ARG_FLAG, AT(review), NULL,
		"with --dir: show what the command changed, and apply what is accepted" },
	{ 0, "accept", ARG_LIST, AT(accept), "all|none|ask|GLOB",
		"with --review: which changes; may be repeated with patterns (default ask on a "
		"terminal, else none)",
		.least = 1 },
	{ .kind = ARG_RECORD,
		.offset = AT(limits),
		.record = &limits_record,
		.helps = limit_helps },
	{ ARG_FROM(terminal_rows) },
	{ ARG_FROM(network_rows) },
	{ ARG_FROM(sandbox_rows) },
	{ ARG_FROM(policy_file_rows) },
	{ 0, "ask", ARG_FLAG, AT(ask), NULL,
		"ask on the terminal before a command that the rules want to be approved" },
	{ 0, "plan", ARG_FLAG, AT(plan), NULL, "print the plan as JSON and run nothing" },
	{ 'o', "format", ARG_CHOICE, AT(format), "text|json",
		"json: capture the output and print one result", "text|json" },
};

struct run_environment {
	struct env_meta meta;
	int pin;
	struct environment_mount mount;
};
struct run_state { /* what is held while the command runs */
	struct host host;
	struct run_environment environments[ENV_KINDS]; /* one of each */
	size_t count;					/* of them */
	struct review review;
	struct run_network network;
	struct network_settings egress; /* of config.yaml */
	struct policy_stack policies;
};

/* One made of -r, --pip and --python, or of --npm and --node, with the name run_…. > 0: building
 * failed, all has been said, and this is the exit code. */
static int ensure_environment(struct command *command, const struct policy_stack *policies,
	enum env_kind_id id, const char **name, struct error *err)
{
	struct options asked = command->options;
	struct env_ensured ensured;
	bool is_bound;
	asked.env = env_request_part(&asked.env, id);
	if (env_request_has_packages(&asked.env, id) &&
		policy_stack_indexes(policies, env_kind_rows[id].manager, &command->arena,
			&asked.env.allowed_indexes, &is_bound, err))
		return error_context(err, "denied");
	/* Progress goes to a terminal only: elsewhere stderr belongs to the command. */
	asked.quiet = progress_kind_for(STDERR_FILENO) != PROGRESS_BAR;
	if (env_ensure(command, &asked, "run", &ensured, err))
		return -1;
	if (ensured.exit_code)
		buf_text(&command->out, ensured.said);
	*name = ensured.meta.name;
	return ensured.exit_code;
}

static int use_environment(struct command *command, const char *name, struct run_state *state,
	struct plan_options *options, struct error *err)
{
	struct run_environment *one = &state->environments[state->count++];
	one->pin = -1;
	if (env_use(&command->store, name, &command->arena, &one->meta, &one->pin, err)) {
		if (err->code == ERR_CORRUPT && !err->hint[0])
			error_hint(err, "carrel env verify --repair %s", name);
		return -1;
	}
	const struct env_meta *first = &state->environments[0].meta;
	if (state->count > 1 && env_kind_of(first) == env_kind_of(&one->meta))
		return fail(err, ERR_INVALID,
			"environments '%s' and '%s' are both of %s: a sandbox has one of each kind",
			first->name, one->meta.name, env_kind_row_of(first)->name);
	if (run_policy_environment(&state->policies, &one->meta, &command->arena, err))
		return -1;
	return environment_mount(&command->store.layers, &one->meta, NULL, &command->arena, options,
		&one->mount, err);
}

/* A built one by name, or what the options ask for, of each kind. */
static int add_environments(struct command *command, struct run_state *state,
	struct plan_options *options, struct error *err)
{
	const struct options *run = &command->options;
	const char *name;
	bool is_given = run->environment != NULL;
	for (enum env_kind_id id = 0; id < ENV_KINDS; id++)
		is_given |= env_request_asks(&run->env, id);
	if (!is_given)
		return 0;
	if (cli_open_store(command, err))
		return -1;
	if (run->environment &&
		(env_resolve(&command->store, run->environment, &command->arena, &name, err) ||
			use_environment(command, name, state, options, err)))
		return -1;
	int failed = 0;
	for (enum env_kind_id id = 0; !failed && id < ENV_KINDS; id++)
		if (env_request_asks(&run->env, id)) {
			failed = ensure_environment(command, &state->policies, id, &name, err);
			if (!failed)
				failed = use_environment(command, name, state, options, err);
		}
	return failed;
}

static int add_binds(const struct options *run, struct arena *arena, struct plan_options *options,
	struct error *err)
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

/* Shared trees lie in the home, whose owner they belong to. */
static int add_trees(const struct options *run, struct arena *arena, struct plan_options *options,
	struct error *err)
{
	char real[PATH_MAX];
	const char *home;
	if (!run->attach.count)
		return 0;
	if (home_find_path(arena, &home, err))
		return -1;
	home = realpath(home, real) ? arena_text(arena, real) : home;
	for (size_t i = 0; i < run->attach.count; i++) {
		struct grant grant;
		struct stat st;
		if (grant_parse_tree(run->attach.items[i], arena, &grant, err))
			return -1;
		struct plan_bind bind = { .source = home,
			.beneath = arena_printf(arena, "trees/%s", grant.source),
			.target = grant.target,
			.read_only = grant.read_only,
			.kind = PATH_DIRECTORY };
		if (lstat(arena_printf(arena, "%s/%s", home, bind.beneath), &st) ||
			!S_ISDIR(st.st_mode))
			return fail_hint(err, ERR_NOT_FOUND, "carrel tree ls lists them",
				"there is no shared tree '%s'", grant.source);
		bind.owner_uid = st.st_uid;
		bind.owner_gid = st.st_gid;
		vec_push(arena, &options->binds, bind);
	}
	return 0;
}

/* Protected names are those of a project; a home has many more that are obeyed. */
static void warn_of_home(const char *dir)
{
	const char *home = getenv("HOME");
	char real[PATH_MAX];
	if (home && realpath(home, real) && !strcmp(real, dir))
		cli_say("warning: --dir '%s' is your home directory: the command can change "
			".bashrc, .ssh and similar files",
			dir);
}

/* What was typed, looked at on this host. */
static int gather(const struct options *run, char **argv, struct arena *arena,
	struct plan_options *options, struct plan_bind *dir, struct error *err)
{
	*options = (struct plan_options){
		.argv = argv,
		.view = workspace_view_find(run->view),
		.writable_config = run->writable_config,
		.ptrace = run->ptrace,
		.limits = run->limits,
		.captured = run->format && !strcmp(run->format, "json"),
		.tty = run->tty,
		.interactive = run->interactive || !run->tty,
	};
	if (run->cwd)
		options->cwd = path_normalize(arena, plan_view_path(options->view), run->cwd);
	if (run->writable_config && !run->dir)
		return fail(err, ERR_INVALID, "--writable-config needs --dir");
	if (run->dir) {
		dir->source = run->dir;
		if (host_look_at_source(dir, "--dir", arena, err))
			return -1;
		if (dir->kind != PATH_DIRECTORY)
			return fail(err, ERR_INVALID, "--dir '%s' is not a directory", run->dir);
		warn_of_home(dir->source);
		options->dir = dir;
	}
	return cli_read_variables(&run->variables, arena, &options->env, err) ||
			       add_binds(run, arena, options, err) ||
			       add_trees(run, arena, options, err)
		       ? -1
		       : 0;
}

static bool has_environment(const struct plan *plan)
{
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (plan->mounts.items[i].kind == MOUNT_OVERLAY)
			return true;
	return false;
}

static void hint_at_command(const struct plan *plan, struct error *err)
{
	const char *name = plan->argv[0];
	if (err->code == ERR_NOT_EXECUTABLE && err->sys_errno == ENOEXEC)
		error_hint(err, "a script needs a first line such as #!/bin/sh");
	if (err->code == ERR_COMMAND_NOT_FOUND && plan->judged && !strchr(name, '/')) {
		error_hint(err, PLAN_PROGRAMS_HINT);
		return;
	}
	cli_hint_at_command(plan->argv,
		"python3 exists; --python 3 adds an environment that has python",
		has_environment(plan) ? "/env/bin, " : "", err);
	if (err->code == ERR_COMMAND_NOT_FOUND && path_is_absolute(name) && !access(name, F_OK))
		error_hint(err,
			"it exists on this host, but not in the sandbox; -v SRC:DST:ro mounts it");
}

/* ---- --isolation landlock: for hosts where no user namespace can be made ---- */

static bool is_weak_asked(const struct options *run)
{
	return run->isolation && !strcmp(run->isolation, PLAN_ISOLATION_LANDLOCK);
}

/* Refuses, by its name, an option that needs namespaces or mounts; before anything is done for it.
 */
static int check_weak(const struct options *run, struct error *err)
{
	const struct {
		bool is_given;
		const char *option;
	} rows[] = {
		{ run->template != NULL, "--template" },
		{ run->environment != NULL, "--env" },
		{ env_request_asks(&run->env, ENV_KIND_PYTHON),
			"a Python environment (-r, --pip, --python)" },
		{ env_request_asks(&run->env, ENV_KIND_NODE),
			"a Node environment (--npm, --node)" },
		{ run->binds.count, "-v" },
		{ run->attach.count, "--attach" },
		{ plan_view_is_root(workspace_view_find(run->view)), "--view root" },
		{ run->net && strcmp(run->net, "none") != 0, "--net" },
		{ run->allow_domains.count, "--allow-domain" },
		{ run->deny_domains.count, "--deny-domain" },
		{ run->review, "--review" },
		{ run->ptrace, "--ptrace" },
		{ run->limits.disk_bytes, "--disk" },
		{ run->limits.tmp_bytes, "--tmp" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].is_given)
			return fail_hint(err, ERR_INVALID, "leave one of the two out",
				"%s needs namespaces, which --isolation landlock does without",
				rows[i].option);
	return 0;
}

/* Makes the plan of plan_build one without namespaces. */
static int make_weak(const struct options *run, const struct plan_options *options,
	const struct host *host, struct arena *arena, struct plan *plan, struct error *err)
{
	char id[ID_LEN + 1];
	id_make(id);
	const struct plan_weak weak = { .scratch = arena_printf(arena, "/tmp/carrel-%s", id),
		.cwd = run->cwd,
		.tasks = host_count_tasks(host) };
	return plan_weaken(options, &host->facts, &weak, arena, plan, err);
}

static void say_weak(const struct plan *plan)
{
	if (plan->streams[1] != STREAM_CAPTURED)
		cli_say("warning: --isolation landlock has no namespaces: the command is confined "
			"by Landlock, seccomp and limits alone");
}

/* An error of a run with namespaces: where they can't be made, the hint names the weaker way. */
static void hint_at_weak(struct error *err)
{
	struct probe userns, proc;
	const struct probe_ids ids = { geteuid(), getegid() };
	char before[ERROR_HINT_SIZE];
	if (err->code != ERR_UNAVAILABLE || landlock_abi() < 1)
		return;
	probe_user_namespace(&ids, &userns);
	if (!userns.error)
		probe_fresh_proc(&ids, &proc);
	if (!userns.error && !proc.error)
		return;
	str_copy(before, sizeof before, err->hint);
	if (before[0])
		error_hint(err, "%s; or, with less isolation: --isolation landlock", before);
	else
		error_hint(err, "with less isolation: --isolation landlock");
}

/* ---- the command ---- */

static int carry_out(struct command *command, const struct plan *plan, struct run_state *state,
	struct error *err)
{
	struct result result;
	auto_buf struct buf out = buf_empty((size_t)-1 / 2);
	auto_buf struct buf errors = buf_empty((size_t)-1 / 2);
	/* A review goes on with the upper directory of the sandbox's overlay. */
	struct sandbox_io io = { &out, &errors, run_network_listening, .ctx = &state->network,
		.is_last = !state->review.path };
	if (run_network_begin(&state->network, &state->egress, err))
		return -1;
	if (isolation_run(plan, &state->host.cgroups, &io, &result, err)) {
		hint_at_command(plan, err);
		return -1;
	}
	/* A command may end before the role is up: it is waited for only to be asked. */
	struct error no_network;
	bool is_asked = result_exit_code(&result) || plan->streams[1] == STREAM_CAPTURED ||
			state->network.has_failed;
	if (is_asked && run_network_end(&state->network, &no_network))
		cli_say("warning: %s", no_network.text);
	int code = result_exit_code(&result);
	/* 127: no network brings a program that isn't there. */
	if (code && code != 127 && plan->streams[1] != STREAM_CAPTURED)
		run_network_explain(&state->network, plan->argv);
	if (plan->streams[1] != STREAM_CAPTURED)
		cli_explain(&result, &plan->limits);
	else
		cli_begin_result(
			&result, &out, &errors, plan_limiter_name(plan->limiter), &command->value);
	/* Only the weaker one is named: a native result has the usual members alone. */
	if (plan->streams[1] == STREAM_CAPTURED && !plan->namespaces)
		json_text(&command->value, "isolation", plan->isolation);
	if (plan->streams[1] == STREAM_CAPTURED && plan_network_has_names(&plan->network))
		run_network_print(&state->network, &command->value);
	int failed = state->review.path ? review_finish(&state->review, command, err) : 0;
	if (plan->streams[1] != STREAM_CAPTURED)
		return failed ? -1 : result_exit_code(&result);
	/* The command has run: its result is told also when its changes can't be applied. */
	if (failed)
		cli_print_error(&command->value, "error", err, NULL);
	json_end(&command->value);
	return failed ? error_exit_code(err->code) : result_exit_code(&result);
}

/* A name that didn't exist could not be made read-only; tools on this host will obey what lies
 * there now. */
static void warn_of_new(const struct host *host, const char *dir, struct arena *arena)
{
	text_list names = { 0 };
	struct error err;
	if (host_find_new(host, dir, arena, &names, &err))
		return; /* the directory is gone: so is what was in it */
	for (size_t i = 0; i < names.count; i++)
		cli_say("warning: the command created '%s' in '%s': check it before you use git, "
			"an editor or an agent there",
			names.items[i], dir);
}

int run_look_at_host(struct host *host, bool is_run, const char *guarded, const char **home,
	struct network_settings *egress, struct arena *arena, struct error *err)
{
	struct error no_home;
	struct config config;
	bool is_needed = is_run && geteuid() == 0,
	     has_home = !home_find_path(arena, home, &no_home);
	if (is_needed && !has_home) {
		*err = no_home;
		return -1;
	}
	if (host_look(host, is_needed ? *home : NULL, guarded, arena, err))
		return -1;
	if (!has_home) {
		*home = NULL;
		return 0;
	}
	if (shown_read(*home, arena, &config, err))
		return -1;
	host->facts.landlock_writes = config.landlock_writes;
	if (egress)
		*egress = config.egress;
	return host_show(host, &config.show, *home, arena, err);
}

static int run_command(struct command *command, struct run_state *state, struct error *err)
{
	const struct options *run = &command->options;
	struct arena *arena = &command->arena;
	struct host *host = &state->host;
	struct plan_options options;
	struct plan_bind dir = { 0 };
	struct plan plan;
	bool is_weak = is_weak_asked(run);
	if (is_weak && check_weak(run, err))
		return -1;
	if (template_use(&command->options, arena, err) || cli_check_environment(run, err) ||
		review_check(run, err) || gather(run, command->argv, arena, &options, &dir, err))
		return -1;
	/* Before anything is built for it. */
	if (run_policy(command, &options, &state->policies, err) ||
		run_network_prepare(command, &state->policies, &state->network, &options, err))
		return -1;
	int added = add_environments(command, state, &options, err);
	if (added)
		return added;
	const char *guarded = run->writable_config ? NULL : dir.source, *home;
	char real[PATH_MAX];
	host->is_weak = is_weak;
	if (run_look_at_host(host, !run->plan, guarded, &home, &state->egress, arena, err))
		return -1;
	/* The daemon listens in the home: a command that can connect to it there acts for the
	 * home's owner. Resolved, as sources are. */
	if (home && (options.dir || options.binds.count))
		options.home = realpath(home, real) ? real : home;
	if (run->review && review_begin(&state->review, command, &options, err))
		return -1;
	if (plan_build(&options, &host->facts, arena, &plan, err) ||
		(is_weak && make_weak(run, &options, host, arena, &plan, err)))
		return -1;
	if (run->plan) {
		plan_print(&plan, &command->out);
		return 0;
	}
	if (is_weak)
		say_weak(&plan);
	int code = carry_out(command, &plan, state, err);
	if (guarded && !run->review)
		warn_of_new(host, guarded, arena);
	return code;
}

static int run(struct command *command, struct error *err)
{
	struct run_state state = { .review = REVIEW_NONE, .network = RUN_NETWORK_NONE };
	trace_step("main");
	if (!command->argv[0])
		return fail_hint(err, ERR_INVALID, "carrel run [options] -- CMD [ARG...]",
			"no command was given");
	host_init(&state.host);
	int code = run_command(command, &state, err);
	if (code < 0 && !is_weak_asked(&command->options))
		hint_at_weak(err);
	run_network_done(&state.network);
	review_done(&state.review);
	host_done(&state.host);
	for (size_t i = 0; i < state.count; i++) {
		environment_unmount(&state.environments[i].mount);
		fd_close(&state.environments[i].pin);
	}
	return code;
}

const struct arg_spec cli_run = {
	.command = "run",
	.summary = "run one command in a new sandbox",
	.group = GROUP_EVERYDAY,
	.usage = "[options] [--] CMD [ARG...]",
	.about = "Runs one command in a new sandbox: no network unless asked for, none of your "
		 "files, its own processes, limited memory and tasks. Nothing is left when it "
		 "ends. The exit code is the command's; 124: a time limit, 137: another limit, "
		 "130: canceled, 125: carrel itself failed, 126: denied by a policy, or not "
		 "executable, 127: not found.",
	ARG_TABLE(table),
	.examples = "  carrel run -- python3 -c 'print(1 + 1)'\n"
		    "  carrel run --dir . --timeout 60s -- make test\n"
		    "  carrel run --pip requests -- python -c 'import requests'\n"
		    "  carrel run --npm axios -- node -e 'require(\"axios\")'\n"
		    "  carrel run --allow-domain registries --dir . -- npm install\n"
		    "  carrel run --memory 256M -o json -- sh -c 'echo hi; exit 3'\n"
		    "  carrel run -it -- bash\n",
	.takes_command = true,
	.run = run,
};
