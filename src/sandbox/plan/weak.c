#include "sandbox/plan/weak.h"

#include <sys/resource.h>
#include "base/path.h"
#include "sandbox/plan/programs.h"

/* Of the host's own, where a namespace would have files and devices of its own. What is missing is
 * passed over. */
static const struct plan_rule own_rules[] = {
	{ "/etc/passwd", ACCESS_READ },
	{ "/etc/group", ACCESS_READ },
	{ "/etc/nsswitch.conf", ACCESS_READ },
	{ "/etc/hosts", ACCESS_READ },
	{ "/etc/protocols", ACCESS_READ },
	{ "/etc/services", ACCESS_READ },
	{ "/proc", ACCESS_READ },
	{ "/sys/devices/system/cpu", ACCESS_READ },
	{ "/dev/null", ACCESS_READ | ACCESS_DEVICE | ACCESS_TRUNCATE },
	{ "/dev/zero", ACCESS_READ | ACCESS_DEVICE | ACCESS_TRUNCATE },
	{ "/dev/full", ACCESS_READ | ACCESS_DEVICE | ACCESS_TRUNCATE },
	{ "/dev/random", ACCESS_READ },
	{ "/dev/urandom", ACCESS_READ },
	{ "/dev/tty", ACCESS_READ | ACCESS_DEVICE },
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static int refuse(const char *what, struct error *err)
{
	return fail_hint(err, ERR_INVALID, "leave one of them out",
		"%s needs namespaces, which --isolation landlock does without", what);
}

/* What the caller hasn't refused by its option: it would be silently missing. */
static int check_options(
	const struct plan_options *options, const struct plan *plan, struct error *err)
{
	const struct {
		bool is_given;
		const char *what;
	} rows[] = {
		{ options->warm || options->workspace, "a workspace" },
		{ options->binds.count, "a mount (-v, --attach)" },
		{ options->environments.count || options->stage, "an environment" },
		{ options->denials.count, "a rule that hides files (settings)" },
		{ plan_has_root_view(plan), "--view root" },
		{ options->ptrace, "--ptrace" },
		{ options->limits.disk_bytes, "--disk" },
		{ options->limits.tmp_bytes, "--tmp" },
		{ plan->network.listeners.count, "a network" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].is_given)
			return refuse(rows[i].what, err);
	/* Everything must be stopped for it, and only a namespace or a group names everything. */
	if (options->limits.millicpus && plan->limiter == LIMITER_WATCHDOG)
		return fail(err, ERR_UNAVAILABLE,
			"--cpus needs a control group with --isolation landlock, and this host has "
			"none that can be written");
	return 0;
}

/* Landlock adds rights and takes none away below a directory that has them. */
static int check_dir(
	const struct plan_options *options, const struct plan_facts *facts, struct error *err)
{
	const char *dir = options->dir->source;
	if (facts->privileged)
		return fail_hint(err, ERR_UNAVAILABLE, "run carrel as the owner of the directory",
			"--dir '%s' can't be given to the sandbox's own uid without a mount", dir);
	if (facts->protect.count)
		return fail_hint(err, ERR_UNAVAILABLE,
			"--writable-config runs the command without this protection",
			"'%s/%s' can't be made read-only with --isolation landlock", dir,
			facts->protect.items[0].path);
	if (options->home &&
		(path_is_beneath(options->home, dir) || path_is_beneath(dir, options->home)))
		return fail_hint(err, ERR_INVALID, "choose a directory beside it",
			"--dir '%s' contains or is inside carrel's home, which can't be hidden "
			"with "
			"--isolation landlock",
			dir);
	return 0;
}

static void add_rule(struct arena *arena, struct plan *plan, const char *path, unsigned access)
{
	vec_push(arena, &plan->rules, ((struct plan_rule){ path, access }));
}

static void make_rules(const struct plan_facts *facts, struct arena *arena, struct plan *plan)
{
	plan->rules.count = 0;
	plan->landlock_writes = false; /* no mount hides anything */
	for (size_t i = 0; i < facts->host_paths.count; i++) {
		const struct plan_host_path *path = &facts->host_paths.items[i];
		if (path->kind != PATH_LINK) /* what it leads to is judged */
			add_rule(arena, plan, path->source ? path->source : path->path,
				ACCESS_READ | ACCESS_EXECUTE);
	}
	for (size_t i = 0; i < COUNT(own_rules); i++)
		vec_push(arena, &plan->rules, own_rules[i]);
	const unsigned all = ACCESS_READ | ACCESS_EXECUTE | ACCESS_WRITE;
	add_rule(arena, plan, plan->scratch, all);
	if (!path_is_beneath(plan->workspace->target, plan->scratch))
		add_rule(arena, plan, plan->workspace->target, all);
}

static void make_env(const struct plan_options *options, struct arena *arena, struct plan *plan)
{
	const char *workspace = plan->workspace->target;
	const char *const own[] = {
		/* Where a policy judges names, no directory that can be written to. */
		options->judged ? "PATH=" PLAN_SYSTEM_PATH
				: arena_printf(arena, "PATH=%s/node_modules/.bin:" PLAN_SYSTEM_PATH,
					  workspace),
		arena_printf(arena, "HOME=%s", workspace),
		arena_printf(arena, "TMPDIR=%s/tmp", plan->scratch),
		arena_printf(arena, "XDG_CACHE_HOME=%s/cache", plan->scratch),
	};
	for (size_t i = 0; i < COUNT(own); i++)
		plan_set_env(arena, &plan->env, own[i]);
	for (size_t i = 0; i < options->env.count; i++)
		plan_set_env(arena, &plan->env, options->env.items[i]);
	vec_push(arena, &plan->env, NULL);
	plan->env.count--;
}

int plan_weaken(const struct plan_options *options, const struct plan_facts *facts,
	const struct plan_weak *weak, struct arena *arena, struct plan *plan, struct error *err)
{
	if (check_options(options, plan, err) || (options->dir && check_dir(options, facts, err)))
		return -1;
	struct plan_tree *workspace = arena_alloc(arena, sizeof *workspace);
	*workspace = (struct plan_tree){
		.target = options->dir ? options->dir->source
				       : arena_printf(arena, "%s/workspace", weak->scratch),
		.upper = options->dir ? "." : NULL
	};
	plan->isolation = PLAN_ISOLATION_LANDLOCK;
	plan->namespaces = 0;
	plan->seccomp = PLAN_NO_SOCKETS;
	plan->hostname = NULL;
	plan->scratch = weak->scratch;
	plan->workspace = workspace;
	plan->measured = workspace->target;
	plan->inside_uid = facts->outside_uid;
	plan->inside_gid = facts->outside_gid;
	plan->setgid = false;
	plan->counted_disk = false;
	plan->limits.disk_bytes = plan->limits.tmp_bytes = 0;
	plan->root_bytes = plan->root_inodes = 0;
	plan->nodes.count = plan->mounts.count = plan->views.count = 0;
	plan->masks.count = plan->read_only.count = plan->covers.count = 0;
	plan->cwd =
		weak->cwd ? path_normalize(arena, workspace->target, weak->cwd) : workspace->target;
	for (size_t i = 0; i < plan->rlimits.count; i++)
		if (plan->rlimits.items[i].resource == RLIMIT_NPROC)
			plan->rlimits.items[i].value += weak->tasks;
	make_rules(facts, arena, plan);
	make_env(options, arena, plan);
	return plan_check(plan, err);
}
