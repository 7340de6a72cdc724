#include "sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include "base/fd.h"
#include "base/trace.h"
#include "linux/pidfd.h"
#include "sandbox/guard.h"
#include "sandbox/start.h"
#include "sandbox/supervise.h"

/* The child is ended and reaped. Had it failed by itself before, its own reason is the better one.
 */
static int abandon(const struct supervised *given, struct error *err)
{
	struct setup_message message = { 0 };
	struct error ignored;
	int status, fds[SETUP_FD_MAX];
	pidfd_signal(given->pidfd, SIGKILL, &ignored);
	pidfd_reap(given->pidfd, true, &status, NULL, &ignored);
	int got = setup_receive(given->socket, false, &message, fds);
	for (int i = 0; i < SETUP_FD_MAX; i++)
		fd_close(&fds[i]);
	if (got == 1 && message.type == SETUP_FAILED)
		*err = message.error;
	return -1;
}

/* Everything that happens in the parent once the child is there. */
static int follow(struct supervised *given, const struct start *start, pid_t pid,
	struct result *result, struct error *err)
{
	if (start_let_go(start, given->socket, pid, err) ||
		(!given->plan->tty && supervise_spawn(given, err)) || loop_new(&given->loop, err))
		return abandon(given, err);
	if (given->plan->limiter != LIMITER_WATCHDOG)
		cgroup_sweep(
			start->cgroups); /* what killed carrels left; the child is busy anyway */
	int failed = supervise(given, result, err);
	loop_free(given->loop);
	return failed;
}

static int start_and_follow(struct start *start, struct streams *streams,
	const struct held_base *disk_base, struct result *result, struct error *err)
{
	auto_close int ours = -1;
	auto_close int pidfd = -1;
	pid_t pid;
	if (start_clone(start, &ours, &pidfd, &pid, err))
		return -1;
	struct supervised given = { .plan = start->plan,
		.cgroup = start->cgroup,
		.streams = streams,
		.socket = ours,
		.pidfd = pidfd,
		.pid = pid,
		.is_up = start->is_up,
		.disk_base = *disk_base };
	return follow(&given, start, pid, result, err);
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

static int share_flag(bool **flag, struct error *err)
{
	bool *made =
		mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return fail_errno(err, "map memory that two processes share");
	*flag = made;
	return 0;
}

int sandbox_run(const struct plan *plan, const struct cgroup_host *cgroups, struct sandbox_io *io,
	struct result *result, struct error *err)
{
	struct streams streams;
	struct cgroup group;
	struct start start;
	auto_close int image = -1;
	struct held_base disk_base = { 0 };
	const struct streams_kind kind = { plan->privileged,
		{ plan->streams[0], plan->streams[1], plan->streams[2] }, plan->merged,
		plan->mirrors, plan->limits.output_bytes };
	sigset_t before;
	cgroup_init(&group);
	if (plan->counted_disk && guard_disk_check(plan, &disk_base, err))
		return -1;
	hold_signals(&before);
	start_init(&start, plan, cgroups, &group);
	int failed = share_flag(&start.is_up, err) || streams_prepare(&streams, &kind, io, err) ||
		     start_open_image(&image, err) || start_prepare(&start, err);
	start.init_image = image;
	if (!failed)
		failed = start_and_follow(&start, &streams, &disk_base, result, err);
	start_done(&start);
	streams_done(&streams);
	munmap(start.is_up, sizeof *start.is_up);
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
