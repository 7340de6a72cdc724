#include "sandbox/native/weak.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "linux/capability.h"
#include "linux/child.h"
#include "linux/landlock.h"
#include "linux/pty.h"
#include "sandbox/native/child.h"
#include "sandbox/native/family.h"

#define END_LOOK_NS 1000000

/* ---- the scratch directory ---- */

static void remove_scratch(const struct plan *plan)
{
	struct error ignored;
	const char *name = path_basename(plan->scratch);
	char parent[256] = "/";
	size_t len = (size_t)(name - plan->scratch);
	if (len > 1 && len <= sizeof parent) {
		memcpy(parent, plan->scratch, len - 1);
		parent[len - 1] = 0;
	}
	auto_close int dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		path_remove_tree(dir, name, &ignored);
}

static int make_one(int parent, const char *name, const struct plan *plan, struct error *err)
{
	if (mkdirat(parent, name, 0700) ||
		(plan->privileged && fchownat(parent, name, plan->outside_uid, plan->outside_gid,
					     AT_SYMLINK_NOFOLLOW)))
		return fail_errno(err, "make the directory '%s' of the sandbox", name);
	return 0;
}

/* The parts come before it is given away. */
static int fill_scratch(const struct plan *plan, struct error *err)
{
	static const char *const parts[] = { "workspace", "tmp", "cache" };
	auto_close int dir = open(plan->scratch, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open '%s'", plan->scratch);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (make_one(dir, parts[i], plan, err))
			return -1;
	if (plan->privileged && fchown(dir, plan->outside_uid, plan->outside_gid))
		return fail_errno(err, "give '%s' to the sandbox", plan->scratch);
	return 0;
}

int weak_run(const struct plan *plan, const struct cgroup_host *cgroups, struct sandbox_io *io,
	struct result *result, struct error *err)
{
	if (mkdir(plan->scratch, 0700))
		return fail_errno(err, "make '%s'", plan->scratch);
	int failed = fill_scratch(plan, err);
	if (!failed)
		failed = sandbox_run(plan, cgroups, io, result, err);
	/* The guardian has, but for a start that failed before there was one. */
	remove_scratch(plan);
	return failed;
}

/* ---- carrel-init ---- */

/* The host's: devpts has no place of its own here. */
static int open_terminal(struct sandbox_child *child, struct error *err)
{
	if (!child->plan->tty)
		return 0;
	auto_close int dev = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return pty_open(
		dev, &child->report[SETUP_PTY_MASTER], &child->report[SETUP_PTY_SLAVE], err);
}

static int take_identity(struct sandbox_child *child, struct error *err)
{
	const struct plan *plan = child->plan;
	if (plan->privileged &&
		(setresgid(plan->outside_gid, plan->outside_gid, plan->outside_gid) ||
			setresuid(plan->outside_uid, plan->outside_uid, plan->outside_uid)))
		return fail_errno(err, "become uid %u", plan->outside_uid);
	if (geteuid() == 0 || getegid() == 0)
		return fail(err, ERR_DENIED, "it would run as root");
	/* The bounding set needs CAP_SETPCAP to be emptied; with no_new_privs nothing gets a
	 * capability of it. */
	return capability_drop_held(err);
}

static const struct child_step steps[] = {
	{ "terminal", open_terminal },
	{ "cgroup", child_join_cgroup },
	{ "limits", child_set_rlimits },
	{ "no_new_privs", child_no_new_privileges },
	{ "identity", take_identity },
	{ "landlock", child_restrict_paths },
	{ "parent-death signal", child_die_with_supervisor },
	{ "seccomp", child_filter_calls },
	{ "report", child_report },
	{ "init", child_become_init },
	{ NULL, NULL },
};

/* ---- the guardian ---- */

/* true: what this process signals from now on is below it. That is tried on the supervisor, which
 * isn't. */
static bool scope_signals(int abi)
{
	struct error ignored;
	auto_close int ruleset = -1;
	pid_t supervisor = getppid();
	if (abi < 6 || landlock_create_scope(&ruleset, &ignored) ||
		landlock_enforce(ruleset, &ignored))
		return false;
	return kill(supervisor, 0) && errno == EPERM && getppid() == supervisor && supervisor > 1;
}

static void end_all(bool is_scoped, int proc)
{
	const struct timespec soon = { .tv_nsec = END_LOOK_NS };
	for (;;) {
		if (is_scoped)
			kill(-1, SIGKILL);
		else
			family_kill(proc, getpid());
		pid_t reaped;
		while ((reaped = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
			;
		if (reaped < 0 && errno == ECHILD)
			return;
		nanosleep(&soon, NULL);
	}
}

/* Until carrel-init has ended or everything is to end. */
static void wait_for_end(pid_t init)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	for (;;) {
		pid_t reaped;
		while ((reaped = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
			if (reaped == init)
				return;
		if (reaped < 0 && errno == ECHILD)
			return;
		if (sigwaitinfo(&set, NULL) == SIGTERM)
			return;
	}
}

static _Noreturn void guard_init(const struct plan *plan, pid_t init, bool is_scoped)
{
	/* Pipes of the command among them, whose ends of file others wait for. */
	fd_close_others(NULL, 0);
	if (child_leave_streams(-1))
		kill(init, SIGKILL);
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	wait_for_end(init);
	end_all(is_scoped, proc);
	remove_scratch(plan);
	_exit(0);
}

static _Noreturn void fail_start(struct start *start, const char *what)
{
	struct setup_message message = { .magic = SETUP_MAGIC, .type = SETUP_FAILED };
	fail_errno(&message.error, "sandbox: %s", what);
	setup_send(start->socket, &message, NULL, 0);
	_exit(125);
}

_Noreturn void weak_main(struct start *start)
{
	sigset_t all;
	struct pollfd peer = { .fd = start->socket };
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) || prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0))
		fail_start(start, "watch over its processes");
	if (poll(&peer, 1, 0) > 0 && peer.revents & (POLLHUP | POLLERR)) {
		remove_scratch(start->plan); /* the supervisor died before it was watched */
		_exit(125);
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail_start(start, "no_new_privs");
	bool is_scoped = scope_signals(start->plan->landlock_abi);
	pid_t init = fork();
	if (init < 0)
		fail_start(start, "fork");
	if (init == 0)
		child_do(start, steps);
	guard_init(start->plan, init, is_scoped);
}
