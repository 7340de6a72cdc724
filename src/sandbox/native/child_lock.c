/* The last steps of the child of a start, the same with and without namespaces: control group,
 * limits, Landlock, filters, and becoming carrel-init. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/trace.h"
#include "linux/landlock.h"
#include "linux/observe.h"
#include "linux/seccomp.h"
#include "sandbox/init/protocol.h"
#include "sandbox/native/child.h"

/* What the parent does meanwhile: it has, mostly, by now. */
void child_wait_for_parent(struct sandbox_child *child, enum setup_type type, int fds[SETUP_FD_MAX])
{
	struct setup_message message = { 0 };
	if (setup_receive(child->start->socket, true, &message, fds) != 1 || message.type != type)
		_exit(125); /* the parent has exited or failed, and reports that itself */
}

/* After the mounts: the kernel keeps lists of each file system's inodes for every group that one
 * was made in, and none of those that were made until now is the command's doing. */
int child_join_cgroup(struct sandbox_child *child, struct error *err)
{
	int fds[SETUP_FD_MAX];
	if (child->plan->limiter == LIMITER_CGROUP_V1) {
		child_wait_for_parent(child, SETUP_CGROUP, fds);
		cgroup_adopt(child->start->cgroup, fds, SETUP_FD_MAX);
	}
	if (cgroup_enter(child->start->cgroup))
		return fail_errno(err, "enter the control group");
	/* Not a flag of clone3: the namespace's root must be the group that was just entered. */
	if (child->plan->namespaces & NAMESPACE_CGROUP && unshare(CLONE_NEWCGROUP))
		return fail_errno(err, "make a cgroup namespace");
	return 0;
}

/* What the supervisor needs to measure: it gets the descriptors and nothing inside has them. That
 * of a cold sandbox looks for most of them itself (start_find) if the command lives long enough to
 * be measured: a packet wakes it, and the last descriptor of a mount is dear to close. */
int child_report(struct sandbox_child *child, struct error *err)
{
	struct setup_message message = { .magic = SETUP_MAGIC, .type = SETUP_DESCRIPTORS };
	bool is_any = child->start->listener >= 0;
	if (child->start->is_up)
		*child->start->is_up = true;
	if (is_any)
		child->report[SETUP_ROOT] = child->root;
	else
		child->report[SETUP_PROC] = child->report[SETUP_WORKSPACE] = -1;
	if (child->plan->limiter != LIMITER_WATCHDOG) /* only the watchdog counts its memory */
		child->report[SETUP_UPPER] = -1;
	/* A warm one's carrel-init keeps the listeners. */
	int count = child->start->listener >= 0 ? SETUP_LISTENER : SETUP_FD_MAX;
	for (int i = SETUP_UPPER; i < count; i++)
		is_any |= child->report[i] >= 0;
	if (!is_any)
		return 0;
	if (setup_send(child->start->socket, &message, child->report, count))
		return fail_errno(err, "report to the supervisor");
	return 0;
}

static int set_rlimit(const struct plan_rlimit *limit, struct error *err)
{
	struct rlimit value = { limit->value, limit->value }, seen;
	/* carrel-init keeps the hard limit of descriptors for the file server, and takes it from
	 * every command. */
	if (limit->resource == RLIMIT_NOFILE && !getrlimit(RLIMIT_NOFILE, &seen) &&
		seen.rlim_max > limit->value)
		value.rlim_max = seen.rlim_max;
	if (setrlimit((unsigned)limit->resource, &value)) {
		fail_errno(err, "set the limit '%s' to %llu", limit->name,
			(unsigned long long)limit->value);
		return error_hint(
			err, "the hard limit of this host may be lower: ulimit -Ha shows it");
	}
	if (getrlimit((unsigned)limit->resource, &seen) || seen.rlim_cur != limit->value)
		return fail(err, ERR_FAILED, "the limit '%s' has no effect", limit->name);
	return 0;
}

static int set_some(struct sandbox_child *child, bool descriptors, struct error *err)
{
	for (size_t i = 0; i < child->plan->rlimits.count; i++) {
		const struct plan_rlimit *limit = &child->plan->rlimits.items[i];
		if ((limit->resource == RLIMIT_NOFILE) == descriptors && set_rlimit(limit, err))
			return -1;
	}
	return 0;
}

int child_set_rlimits(struct sandbox_child *child, struct error *err)
{
	return set_some(child, false, err);
}

int child_restrict_paths(struct sandbox_child *child, struct error *err)
{
	const struct plan *plan = child->plan;
	auto_close int ruleset = -1;
	if (!(plan->filters & FILTER_LANDLOCK))
		return 0;
	bool is_alone = !plan_has_pids(plan); /* no mounts: Landlock decides everything */
	unsigned only = plan->landlock_writes ? LANDLOCK_ONLY_WRITES : 0;
	int failed = is_alone ? landlock_create_alone(plan->landlock_abi, &ruleset, err)
		     : only   ? landlock_create_writes(plan->landlock_abi, &ruleset, err)
			      : landlock_create(plan->landlock_abi, &ruleset, err);
	if (failed)
		return -1;
	for (size_t i = 0; i < plan->rules.count; i++) {
		const struct plan_rule *rule = &plan->rules.items[i];
		auto_close int path = open(rule->path, O_PATH | O_CLOEXEC);
		if (path < 0 && is_alone && errno == ENOENT)
			continue; /* a path of the host: it needs no rule if it doesn't exist */
		if (path < 0)
			return fail_errno(err, "open '%s' for its rule", rule->path);
		if (landlock_allow(ruleset, plan->landlock_abi, path, rule->path,
			    rule->access | only, err))
			return -1;
	}
	return landlock_enforce(ruleset, err);
}

int child_no_new_privileges(struct sandbox_child *child, struct error *err)
{
	if (child->plan->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail_errno(err, "set no_new_privs");
	return 0;
}

/* Set after the last change of credentials, which would clear it. If the supervisor died before,
 * its socket is closed; a launcher's may still be held by another child of its. */
int child_die_with_supervisor(struct sandbox_child *child, struct error *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return fail_errno(err, "set the parent-death signal");
	struct pollfd peers[] = { { .fd = child->start->socket },
		{ .fd = child->start->parent, .events = POLLIN } };
	if (poll(peers, 2, 0) > 0 && (peers[0].revents & (POLLHUP | POLLERR) || peers[1].revents))
		_exit(125);
	return 0;
}

int child_filter_calls(struct sandbox_child *child, struct error *err)
{
	const struct plan *plan = child->plan;
	if (plan->filters & FILTER_OBSERVE && observe_load(&child->report[SETUP_OBSERVER], err))
		return -1;
	if (!(plan->filters & FILTER_SECCOMP))
		return 0;
	bool has_sockets = strcmp(plan->seccomp, PLAN_NO_SOCKETS) != 0;
	if (!has_sockets && seccomp_load_alone(err))
		return -1;
	if (has_sockets && strcmp(plan->seccomp, "default") != 0)
		return fail(err, ERR_UNAVAILABLE, "unknown filter '%s'", plan->seccomp);
	return seccomp_load((plan->memfd ? SECCOMP_WITH_MEMFD : 0) |
				    (plan->ptrace ? SECCOMP_WITH_PTRACE : 0) |
				    (plan->setgid ? SECCOMP_WITH_SETGID : 0),
		err);
}

/* Above the numbers that carrel-init is given. */
static int move_away(int *fd)
{
	const int least = INIT_LISTENER_FD + PLAN_LISTENERS_MAX;
	if (*fd < 0 || *fd >= least)
		return 0;
	*fd = fcntl(*fd, F_DUPFD_CLOEXEC, least);
	return *fd < 0 ? -1 : 0;
}

/* To INIT_SOCKET_FD: what init listens on, or the setup socket, which then is its master's. The
 * setup socket must be there for as long as this can fail. */
static int pass_socket(struct start *start)
{
	int *passed = start->listener >= 0 ? &start->listener : &start->socket;
	if (dup2(*passed, INIT_SOCKET_FD) < 0)
		return -1;
	*passed = INIT_SOCKET_FD;
	return 0;
}

/* Of a warm sandbox, to INIT_LISTENER_FD and the numbers after it. The setup socket and the image
 * were moved out of the way. */
static int pass_listeners(struct sandbox_child *child)
{
	size_t count = child->start->listener >= 0 ? child->plan->network.listeners.count : 0;
	int *fds = &child->report[SETUP_LISTENER], first_free = INIT_LISTENER_FD + (int)count;
	/* One after the other would overwrite those that are there by chance. */
	for (size_t i = 0; i < count; i++)
		if (fds[i] < first_free &&
			(fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, first_free)) < 0)
			return -1;
	for (size_t i = 0; i < count; i++)
		if (dup2(fds[i], INIT_LISTENER_FD + (int)i) < 0)
			return -1;
	return (int)count;
}

int child_become_init(struct sandbox_child *child, struct error *err)
{
	umask(child->plan->umask); /* modes above were meant as written */
	/* Standard streams of init itself lead nowhere; the command's come in the spawn message. */
	char name[] = "carrel-init";
	char *const argv[] = { name, NULL }, *const env[] = { NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), image = child->start->init_image;
	if (null < 0)
		return fail_errno(err, "open /dev/null in the sandbox");
	/* The image and the setup socket must survive at numbers out of the way of those that init
	 * is given. */
	if (move_away(&image) || move_away(&child->start->socket) ||
		move_away(&child->start->listener))
		return fail_errno(err, "duplicate the descriptor of carrel-init");
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		return fail_errno(err, "close the standard streams");
	int listeners = pass_listeners(child);
	if (listeners < 0 || pass_socket(child->start))
		return fail_errno(err, "pass on the sockets");
	/* After ours are sent: those that a user has under way are held against the limit, and
	 * other sandboxes of a plain user's may have as many. And after ours are moved out of the
	 * way: a small limit has no such numbers. */
	if (set_some(child, true, err))
		return error_context(err, "descriptors");
	/* Makes all other descriptors close-on-exec, however they were opened. */
	if (close_range(INIT_LISTENER_FD + (unsigned)listeners, ~0U, CLOSE_RANGE_CLOEXEC))
		return fail_errno(err, "close the other descriptors");
	trace_step("child: exec init");
	syscall(SYS_execveat, image, "", argv, env, AT_EMPTY_PATH);
	return fail_errno(err, "execute carrel-init");
}
