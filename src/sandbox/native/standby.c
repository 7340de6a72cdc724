#include "sandbox/native/standby.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/pidfd.h"
#include "sandbox/native/init_client.h"
#include "sandbox/native/start.h"

#define LOOK_MS 100

struct standby_shared {
	volatile uint64_t cpu_ms; /* that the supervisor has counted */
	volatile bool was_in_charge;
	volatile bool has_ended; /* the sandbox, for: */
	volatile enum reason reason;
};

struct watcher { /* the child's state */
	struct loop *loop;
	const struct guard *from;
	struct guard guard;
	struct standby_shared *shared;
	int pidfd, stat; /* of the sandbox's PID 1; of the supervisor's /proc */
	bool suspended, is_in_charge;
};

static void on_limit(void *ctx, enum reason reason)
{
	struct watcher *w = ctx;
	struct error err;
	if (w->shared->has_ended)
		return;
	w->shared->reason = reason;
	w->shared->has_ended = true;
	pidfd_signal(w->pidfd, start_end_signal(w->from->plan), &err);
	guard_end(&w->guard);
}

/* "pid (name) T ...": the name may hold anything, so the last parenthesis counts. */
static bool is_stopped(int stat)
{
	char text[512];
	ssize_t len = pread(stat, text, sizeof text - 1, 0);
	if (len <= 0)
		return false;
	text[len] = 0;
	const char *end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'T';
}

static void look(struct loop *loop, void *ctx)
{
	struct watcher *w = ctx;
	struct error err;
	bool stopped = is_stopped(w->stat);
	if (stopped && !w->is_in_charge && !w->shared->has_ended) {
		w->guard = (struct guard){ .loop = loop, .hit = on_limit, .ctx = w };
		guard_take_over(&w->guard, w->from, w->suspended, w->shared->cpu_ms);
	}
	if (!stopped && w->is_in_charge)
		guard_end(&w->guard);
	w->is_in_charge = stopped;
	w->shared->was_in_charge |= stopped;
	if (stopped && w->suspended && !w->shared->has_ended)
		init_client_signal(
			w->guard.init_socket, guard_signal_id(w->from->plan), SIGSTOP, &err);
	loop_after(loop, LOOK_MS, look, w);
}

static _Noreturn void watch(struct watcher *w)
{
	struct error err;
	int keep[GUARD_FDS + 2] = { w->pidfd, w->stat };
	setsid();
	if (child_leave_streams(-1))
		_exit(1);
	fd_close_others(keep, 2 + guard_descriptors_of(w->from, keep + 2));
	if (loop_new(&w->loop, &err))
		_exit(1);
	look(w->loop, w);
	loop_run(w->loop, &err);
	_exit(1);
}

int standby_start(
	struct standby *standby, struct guard *guard, int pidfd, bool suspended, struct error *err)
{
	auto_close int stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (stat < 0)
		return fail_errno(err, "open '/proc/self/stat'");
	struct standby_shared *shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return fail_errno(err, "map shared memory");
	struct watcher w = { .from = guard,
		.shared = shared,
		.pidfd = pidfd,
		.stat = stat,
		.suspended = suspended };
	struct child child;
	if (child_fork(&child, 0, SIGKILL, err)) {
		munmap(shared, sizeof *shared);
		return error_context(err, "enforce limits while carrel is stopped");
	}
	if (child.pid == 0)
		watch(&w);
	*standby = (struct standby){ child, shared };
	guard->sampled_cpu_ms = &shared->cpu_ms;
	return 0;
}

bool standby_stop(struct standby *standby, struct guard *guard, enum reason *reason)
{
	if (!standby->shared)
		return false;
	child_kill(&standby->child);
	bool has_ended = standby->shared->has_ended;
	if (has_ended)
		*reason = standby->shared->reason;
	else if (standby->shared->was_in_charge)
		guard_let_go_on(guard);
	guard->sampled_cpu_ms = NULL;
	munmap(standby->shared, sizeof *standby->shared);
	*standby = (struct standby){ 0 };
	return has_ended;
}
