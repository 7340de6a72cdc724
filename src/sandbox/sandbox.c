#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/trace.h"
#include "init/image.h"
#include "linux/namespace.h"
#include "linux/pidfd.h"
#include "sandbox/guard.h"
#include "sandbox/start.h"
#include "sandbox/supervise.h"

#define SANDBOX_NAMESPACES                                                                         \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

/* A copy that nobody can change, at no path of the host. */
static int open_init_image(int *image, struct error *err)
{
	auto_close int fd = memfd_create("carrel-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return fail_errno(err, "make a memfd for carrel-init");
	if (fd_write_full(fd, init_image, init_image_len) != (ssize_t)init_image_len) {
		fail_errno(err, "write carrel-init into its memfd");
		return err->sys_errno == EFBIG
			       ? error_hint(err, "a file size limit is set here: ulimit -f")
			       : -1;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return fail_errno(err, "seal the memfd of carrel-init");
	*image = take_fd(&fd);
	return 0;
}

static int make_cgroup(const struct plan *plan, const struct cgroup_host *host,
	struct cgroup *group, struct error *err)
{
	struct cgroup_want want = {
		.memory_bytes = plan->limits.memory_bytes,
		.millicpus = plan->limits.millicpus,
		.pids = plan->limits.pids + 1,
		.count_cpu = plan->limits.cpu_time_ms != 0,
	};
	return cgroup_create(host, &want, group, err);
}

/* What root must do before the clone, because the child can't: lose its groups (setgroups is denied
 * inside), and lift hard limits that are lower than the plan's. */
static int prepare_root(const struct plan *plan, struct error *err)
{
	if (!plan->privileged)
		return 0;
	if (setgroups(0, NULL))
		return fail_errno(err, "drop supplementary groups");
	for (size_t i = 0; i < plan->rlimits.count; i++) {
		const struct plan_rlimit *limit = &plan->rlimits.items[i];
		struct rlimit now;
		if (getrlimit((unsigned)limit->resource, &now) || now.rlim_max >= limit->value)
			continue;
		now.rlim_max = limit->value;
		if (setrlimit((unsigned)limit->resource, &now))
			return fail_errno(err, "raise the hard limit '%s' to %llu", limit->name,
				(unsigned long long)limit->value);
	}
	return 0;
}

/* What the child needs of us before it can go on. It works already: what is done here costs no
 * time. */
static int let_go(const struct plan *plan, const struct cgroup_host *host, struct cgroup *group,
	int socket, pid_t pid, struct error *err)
{
	struct namespace_ids ids = { plan->inside_uid, plan->outside_uid, plan->inside_gid,
		plan->outside_gid };
	struct setup_message go = { .magic = SETUP_MAGIC, .type = SETUP_GO };
	if (!start_waits(plan))
		return 0;
	if (plan->privileged && namespace_write_maps(pid, &ids, true, err))
		return -1;
	if (plan->limiter == LIMITER_CGROUP_V1 && make_cgroup(plan, host, group, err))
		return -1;
	if (setup_send(socket, &go, group->enter,
		    plan->limiter == LIMITER_CGROUP_V1 ? group->dir_count : 0))
		return fail_errno(err, "start the sandbox");
	return 0;
}

/* The child is ended and reaped. Had it failed by itself before, its own reason is the better one.
 */
static int abandon(const struct supervised *given, struct error *err)
{
	struct setup_message message = { 0 };
	struct error ignored;
	int status, fds[SETUP_FD_MAX];
	pidfd_signal(given->pidfd, SIGKILL, &ignored);
	pidfd_reap(given->pidfd, true, &status, NULL, &ignored);
	/* A peer that died with unread packets leaves one ECONNRESET in front of what it said. */
	int got = setup_receive(given->socket, false, &message, fds);
	if (got < 0 && errno == ECONNRESET)
		got = setup_receive(given->socket, false, &message, fds);
	for (int i = 0; i < SETUP_FD_MAX; i++)
		fd_close(&fds[i]);
	if (got == 1 && message.type == SETUP_FAILED)
		*err = message.error;
	return -1;
}

/* Everything that happens in the parent once the child is there. */
static int follow(struct supervised *given, const struct cgroup_host *host, struct cgroup *group,
	pid_t pid, struct result *result, struct error *err)
{
	if (let_go(given->plan, host, group, given->socket, pid, err) ||
		(!given->plan->tty && supervise_spawn(given, err)) || loop_new(&given->loop, err))
		return abandon(given, err);
	if (given->plan->limiter != LIMITER_WATCHDOG)
		cgroup_sweep(host); /* what killed carrels left; the child is busy anyway */
	int failed = supervise(given, result, err);
	loop_free(given->loop);
	return failed;
}

static int start_and_follow(struct start *start, struct streams *streams,
	const struct cgroup_host *host, struct result *result, struct error *err)
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return fail_errno(err, "make a socket pair");
	auto_close int ours = sockets[0];
	auto_close int theirs = sockets[1];
	auto_close int pidfd = -1;
	pid_t pid;
	start->socket = theirs;
	trace_step("parent: prepared");
	if (namespace_clone(SANDBOX_NAMESPACES, start->cgroup->clone_into, &pidfd, &pid, err))
		return -1;
	if (pid == 0) {
		close(ours);
		child_main(start);
	}
	trace_step("parent: cloned");
	fd_close(&theirs);
	struct supervised given = { .plan = start->plan,
		.cgroup = start->cgroup,
		.streams = streams,
		.socket = ours,
		.pidfd = pidfd };
	return follow(&given, host, start->cgroup, pid, result, err);
}

/* Signals wait until the loop takes them; SIGPIPE and SIGXFSZ are error codes here. */
static void hold_signals(sigset_t *before)
{
	sigset_t set;
	supervise_signals(&set);
	sigprocmask(SIG_BLOCK, &set, before);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* ignored, it would take our children's ends away */
}

int sandbox_run(const struct plan *plan, const struct cgroup_host *cgroups, struct sandbox_io *io,
	struct result *result, struct error *err)
{
	struct streams streams;
	struct cgroup group;
	auto_close int image = -1;
	auto_arena struct arena arena;
	sigset_t before;
	arena_init(&arena);
	int *trees = arena_array(&arena, plan->mounts.count, sizeof *trees);
	for (size_t i = 0; i < plan->mounts.count; i++)
		trees[i] = -1;
	cgroup_init(&group);
	if (plan->counted_disk && guard_check_disk(plan, err))
		return -1;
	hold_signals(&before);
	struct start start = { .plan = plan, .cgroup = &group, .trees = trees };
	int failed =
		streams_prepare(&streams, plan, io, err) || open_init_image(&image, err) ||
		prepare_root(plan, err) ||
		(plan->privileged && sources_open(plan, true, trees, err)) ||
		(plan->limiter == LIMITER_CGROUP_V2 && make_cgroup(plan, cgroups, &group, err));
	start.init_image = image;
	if (!failed)
		failed = start_and_follow(&start, &streams, cgroups, result, err);
	for (size_t i = 0; i < plan->mounts.count; i++)
		fd_close(&trees[i]);
	streams_done(&streams);
	struct error cleanup;
	if (cgroup_remove(&group, &cleanup) && !failed) {
		*err = cleanup;
		failed = -1;
	}
	cgroup_done(&group);
	trace_step("parent: done");
	sigprocmask(SIG_SETMASK, &before, NULL);
	return failed ? -1 : 0;
}
