#include "sandbox/native/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/trace.h"
#include "linux/late_close.h"
#include "linux/observe.h"
#include "linux/pidfd.h"
#include "sandbox/native/guard.h"
#include "sandbox/native/init_client.h"
#include "sandbox/native/standby.h"
#include "sandbox/native/start.h"
#include "sandbox/native/streams.h"

#define COMMAND_ID GUARD_COMMAND_ID
/* After this time a standby process is started, which enforces the limits while this one is
 * stopped. */
#define STANDBY_MS 20
#define SLOW_START_MS 5 /* retry when the child isn't up at the first look */
#define TICK_MS 100
#define DRAIN_MS 3000  /* after a limit: how long to wait for a slow reader of the output */
#define CANCEL_AFTER 3 /* number of SIGINT or SIGTERM that end the sandbox */

static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT,
	SIGTSTP, SIGWINCH };

struct supervisor {
	const struct plan *plan;
	struct loop *loop;
	int socket;	   /* to the child, then to carrel-init */
	int pidfd;	   /* of PID 1 */
	pid_t pid;	   /* of PID 1, in this pid namespace */
	const bool *is_up; /* start.is_up */
	struct streams streams;
	struct guard guard;
	struct standby standby;
	struct loop_timer *standby_timer;
	bool is_stop_due; /* SIGTSTP came before the guard was watching */
	struct relay_events relay_events;
	struct loop_timer *tick;
	struct result *result;
	bool has_exit; /* INIT_EXITED came */
	int wait_status;
	uint64_t command_rss_kb;
	bool is_dead; /* PID 1 is reaped */
	struct pidfd_usage usage;
	bool has_limit;
	enum reason limit;
	bool has_spawned; /* the spawn message was sent */
	bool has_signaled;
	int observer; /* FILTER_OBSERVE, or -1 */
	int cancels;
	uint64_t shown_at_cancel; /* streams_shown at the last of them */
	bool has_failed;
	struct error failure;
};

static void take_packets(struct supervisor *s);

void supervise_signals(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
		sigaddset(set, forwarded[i]);
}

static void kill_all(struct supervisor *s)
{
	struct error err;
	/* The kernel then kills the rest of the pid namespace. */
	pidfd_signal(s->pidfd, start_end_signal(s->plan), &err);
}

static void on_limit(void *ctx, enum reason reason)
{
	struct supervisor *s = ctx;
	if (s->has_limit)
		return;
	s->has_limit = true;
	s->limit = reason;
	guard_note_usage(&s->guard);
	kill_all(s);
	guard_end(&s->guard);
}

static void on_failure(struct supervisor *s, const struct error *err)
{
	if (!s->has_failed)
		s->failure = *err;
	s->has_failed = true;
	kill_all(s);
}

/* Sends the spawn message. */
static int send_spawn(struct supervisor *s, struct error *err)
{
	const struct plan *plan = s->plan;
	struct init_spawn spawn = { (const char *const *)plan->argv, plan->env.items, plan->cwd,
		INIT_NO_PIDFD | INIT_NO_STARTED | INIT_STAY | (plan->tty ? INIT_TTY : 0) };
	int failed = init_client_spawn(s->socket, COMMAND_ID, &spawn, s->streams.inside, err);
	streams_close_inside(&s->streams);
	s->has_spawned = true;
	return failed;
}

/* Explains INIT_FAILED and INIT_REFUSED. */
static void on_spawn_failure(struct supervisor *s, const struct init_reply *reply)
{
	struct error err;
	const struct plan *plan = s->plan;
	struct init_spawn spawn = { (const char *const *)plan->argv, NULL, plan->cwd, 0 };
	init_client_failure(reply, &spawn, &err);
	on_failure(s, &err);
}

static void on_reply(struct supervisor *s, const struct init_reply *reply)
{
	switch (reply->type) {
	case INIT_EXITED:
		trace_step("command ended");
		s->has_exit = true;
		s->wait_status = reply->value;
		s->command_rss_kb = reply->max_rss_kb;
		break;
	case INIT_REFUSED:
		/* A signal from here or from the guard may come after the command's end: ignore its
		 * refusal. */
		if (s->has_signaled || s->has_exit)
			break;
		on_spawn_failure(s, reply);
		break;
	case INIT_FAILED:
		on_spawn_failure(s, reply);
		break;
	case INIT_STATS_ARE:
		guard_shm(&s->guard, reply->shm_bytes);
		break;
	default:
		break;
	}
}

static void stop_observing(struct supervisor *s)
{
	loop_unwatch(s->loop, s->observer);
	fd_close(&s->observer);
}

static void on_observed(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct supervisor *s = ctx;
	const struct sandbox_io *io = s->streams.io;
	char path[PATH_MAX];
	/* No process with the filter is left. */
	if (!(events & EPOLLIN)) {
		stop_observing(s);
		return;
	}
	if (observe_take(fd, path, sizeof path) == 0 && path[0])
		io->looked(io->ctx, path);
}

static int start_observing(struct supervisor *s, int fd, struct error *err)
{
	s->observer = fd;
	return fd < 0 ? 0 : loop_watch(s->loop, fd, EPOLLIN, on_observed, s, err);
}

static void on_standby_due(struct loop *loop, void *ctx)
{
	struct supervisor *s = ctx;
	struct error err;
	s->standby_timer = NULL;
	if (!s->is_dead && !s->standby.shared &&
		standby_start(&s->standby, &s->guard, s->pidfd, false, &err))
		s->standby_timer = loop_after(loop, TICK_MS, on_standby_due, s);
}

static void end_standby(struct supervisor *s)
{
	enum reason reason;
	loop_cancel(s->loop, s->standby_timer);
	s->standby_timer = NULL;
	if (standby_stop(&s->standby, &s->guard, &reason) && !s->has_limit) {
		s->has_limit = true;
		s->limit = reason;
	}
}

/* The child has become carrel-init, or is about to. */
static bool is_up(const struct supervisor *s)
{
	return *(const volatile bool *)s->is_up;
}

/* 1: the sandbox is ending by itself. */
static int find_descriptors(struct supervisor *s, struct error *err)
{
	int fds[START_FD_MAX];
	if (!plan_has_pids(s->plan)) { /* nothing of its own but processes */
		int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
		guard_descriptors(&s->guard, proc, -1, -1);
		s->guard.family = s->pid;
		return proc < 0 ? fail_errno(err, "open '/proc'") : 0;
	}
	int failed = start_find(s->pid, s->plan->measured, fds, err);
	if (failed)
		return failed;
	guard_descriptors(&s->guard, fds[START_PROC], fds[START_ROOT], fds[START_WORKSPACE]);
	return 0;
}

static int begin_watch(struct supervisor *s, struct error *err)
{
	int failed = find_descriptors(s, err);
	if (failed || guard_watch(&s->guard, err))
		return failed > 0 ? 1 : -1;
	if (guard_is_needed(s->plan))
		s->standby_timer = loop_after(s->loop, STANDBY_MS, on_standby_due, s);
	if (s->is_stop_due)
		raise(SIGTSTP); /* again, now that stop_and_continue can act on it */
	return 0;
}

/* The command has run long enough to be measured. Before that only its end wakes this process:
 * wake-ups are most of the cost of a short command. */
static void on_first_look(struct loop *loop, void *ctx)
{
	struct supervisor *s = ctx;
	struct error err;
	if (s->is_dead || s->has_limit)
		return;
	if (!is_up(s)) {
		loop_after(loop, SLOW_START_MS, on_first_look, s);
		return;
	}
	if (begin_watch(s, &err) >= 0)
		return;
	/* A failure is expected if the sandbox has just ended. */
	take_packets(s);
	if (!s->is_dead)
		on_failure(s, &err);
}

/* The sandbox is a separate session: the terminal's SIGTSTP reaches only this process, which passes
 * it on as a SIGSTOP. */
static void stop_and_continue(struct supervisor *s)
{
	struct error err;
	bool is_kept = guard_is_needed(s->plan);
	s->is_stop_due = !s->guard.is_watching;
	if (s->is_stop_due)
		return;
	end_standby(s);
	if (is_kept && standby_start(&s->standby, &s->guard, s->pidfd, true, &err)) {
		on_standby_due(s->loop, s);
		return;
	}
	streams_suspend(&s->streams);
	s->has_signaled = true;
	init_client_signal(s->socket, guard_signal_id(s->plan), SIGSTOP, &err);
	raise(SIGSTOP);
	end_standby(s);
	if (is_kept)
		on_standby_due(s->loop, s);
	init_client_signal(s->socket, guard_signal_id(s->plan), SIGCONT, &err);
	streams_continue(&s->streams);
}

/* This process was stopped, perhaps by a SIGSTOP. */
static void on_continue(struct supervisor *s)
{
	if (s->standby.shared) {
		end_standby(s);
		on_standby_due(s->loop, s);
	}
	streams_continue(&s->streams);
}

static bool has_hung_up(int socket)
{
	struct pollfd peer = { .fd = socket };
	return poll(&peer, 1, 0) > 0 && peer.revents & POLLHUP;
}

/* A packet of the child before it becomes init: descriptors, or an error. */
static int on_setup(struct supervisor *s, struct error *err)
{
	struct setup_message message = { 0 };
	int fds[SETUP_FD_MAX];
	int got = setup_receive(s->socket, false, &message, fds);
	if (got <= 0)
		return fail_errno(err, "receive from the sandbox");
	if (message.type != SETUP_DESCRIPTORS) {
		*err = message.error;
		return error_adopt(err);
	}
	s->guard.upper = fds[SETUP_UPPER];
	const struct sandbox_io *io = s->streams.io;
	for (int i = SETUP_LISTENER; i < SETUP_FD_MAX; i++)
		if (fds[i] >= 0)
			io->listening(io->ctx, s->loop,
				&s->plan->network.listeners.items[i - SETUP_LISTENER], fds[i]);
	if (has_hung_up(s->socket)) { /* the sandbox has already ended */
		fd_close(&fds[SETUP_OBSERVER]);
		fd_close(&fds[SETUP_PTY_MASTER]);
		fd_close(&fds[SETUP_PTY_SLAVE]);
		return 0;
	}
	if (start_observing(s, fds[SETUP_OBSERVER], err))
		return -1;
	if (!s->plan->tty)
		return 0;
	if (streams_use_terminal(&s->streams, fds[SETUP_PTY_MASTER], fds[SETUP_PTY_SLAVE], err) ||
		send_spawn(s, err))
		return -1;
	return streams_start(&s->streams, s->loop, &s->relay_events, err);
}

/* The magic of the next packet in the socket; 0 at end of file; -1: no packet yet. A peer that dies
 * with unread packets leaves an ECONNRESET before its own packets: skipped here. */
static int64_t peek(int socket)
{
	uint32_t magic;
	ssize_t got;
	do
		got = recv(socket, &magic, sizeof magic, MSG_PEEK | MSG_DONTWAIT);
	while (got < 0 && (errno == ECONNRESET || errno == EINTR));
	return got == sizeof magic ? (int64_t)magic : got < 0 ? -1 : 0;
}

static int take_packet(struct supervisor *s, int64_t magic, struct error *err)
{
	struct init_reply reply;
	int pidfd;
	if (magic == SETUP_MAGIC)
		return on_setup(s, err);
	int got = init_client_receive(s->socket, &reply, &pidfd, err);
	if (got != INIT_CLIENT_REPLY)
		return got < 0 ? -1 : 0;
	fd_close(&pidfd);
	on_reply(s, &reply);
	return 0;
}

static void on_drained_long_enough(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

/* A full disk can be detected only while the sandbox exists; init stays for that after a command
 * that failed. */
static void look_for_cause(struct supervisor *s)
{
	struct error ignored;
	if (s->has_exit && s->wait_status && s->guard.proc < 0)
		find_descriptors(s, &ignored);
}

static void reap(struct supervisor *s)
{
	struct error err;
	int status;
	s->result->duration_ms = clock_monotonic_ms() - s->guard.started_ms;
	look_for_cause(s);
	if (s->has_exit && s->wait_status)
		kill_all(s);
	/* The kernel needs a while for that: do everything else meanwhile. */
	loop_unwatch(s->loop, s->socket);
	end_standby(s);
	guard_end(&s->guard);
	streams_drain(&s->streams);
	if (pidfd_reap(s->pidfd, true, &status, &s->usage, &err) < 0 && !s->has_failed)
		on_failure(s, &err);
	s->is_dead = true;
	trace_step("init reaped");
	if (!streams_have_output(&s->streams))
		loop_stop(s->loop);
	else if (s->has_limit) /* don't wait for ever for a reader that doesn't read */
		loop_after(s->loop, DRAIN_MS, on_drained_long_enough, s);
}

/* Takes all packets that have come. After INIT_EXITED init exits, so reap() may block. Relays go on
 * afterwards; a full pipe can't delay the exit, since init kills the writers. */
static void take_packets(struct supervisor *s)
{
	struct error err;
	int64_t magic;
	while ((magic = peek(s->socket)) > 0)
		if (take_packet(s, magic, &err)) {
			on_failure(s, &err);
			break;
		}
	if (s->has_exit || magic == 0)
		reap(s);
}

static void on_socket(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct supervisor *s = ctx;
	if (!s->is_dead)
		take_packets(s);
}

/* Passes a signal on to the command; a signal typed at a terminal goes to its foreground process
 * group. Before init is up, the message waits in the socket behind the spawn. Errors are ignored: a
 * full or closed socket means that the sandbox is ending. */
static void pass_on(struct supervisor *s, int signo)
{
	struct error err;
	bool is_typed = signo == SIGINT || signo == SIGQUIT || signo == SIGTSTP;
	if (is_typed && streams_signal(&s->streams, signo))
		return;
	s->has_signaled = true;
	init_client_signal(s->socket, COMMAND_ID, signo, &err);
}

/* Counts requests to end; true at CANCEL_AFTER. Output since the last SIGINT resets the count, so
 * that an interpreter or shell that answers each Ctrl-C isn't ended. */
static bool is_insisted(struct supervisor *s, int signo)
{
	uint64_t shown = streams_shown(&s->streams);
	if (signo == SIGINT && shown != s->shown_at_cancel)
		s->cancels = 0;
	s->shown_at_cancel = shown;
	return ++s->cancels >= CANCEL_AFTER;
}

static void on_signal(struct loop *loop, const struct signalfd_siginfo *info, void *ctx)
{
	struct supervisor *s = ctx;
	int signo = (int)info->ssi_signo;
	bool is_end = signo == SIGINT || signo == SIGTERM;
	bool is_last = s->streams.io->ends_on_signal && (is_end || signo == SIGHUP);
	if (s->is_dead) {
		/* Report the signal also between two jobs: the caller runs several in a row. */
		if (is_last && !s->has_limit) {
			s->has_limit = true;
			s->limit = REASON_CANCELED;
		}
		/* Only output is left that its reader doesn't take. */
		if (is_end || signo == SIGHUP)
			loop_stop(loop);
		return;
	}
	if (signo == SIGWINCH) {
		streams_resize(&s->streams);
		return;
	}
	if (signo == SIGTSTP && !streams_have_jobs(&s->streams)) {
		stop_and_continue(s);
		return;
	}
	if (signo == SIGCONT)
		on_continue(s);
	if (is_last) {
		on_limit(s, REASON_CANCELED);
		return;
	}
	if (is_end && (is_insisted(s, signo) || !s->has_spawned))
		on_limit(s, REASON_CANCELED);
	else if (s->has_spawned)
		pass_on(s, signo);
}

static void on_relay_finished(void *ctx)
{
	struct supervisor *s = ctx;
	if (s->is_dead && !streams_have_output(&s->streams))
		loop_stop(s->loop);
}

static void on_relay_over(void *ctx)
{
	struct supervisor *s = ctx;
	s->result->truncated = true;
	on_limit(s, REASON_OUTPUT_LIMIT);
}

static void on_relay_failed(void *ctx, const struct error *err)
{
	on_failure(ctx, err);
}

static void on_tick(struct loop *loop, void *ctx)
{
	struct supervisor *s = ctx;
	const struct sandbox_io *io = s->streams.io;
	io->tick(io->ctx);
	s->tick = loop_after(loop, TICK_MS, on_tick, s);
}

/* So that the caller doesn't wait for the end of the mounts. Without io_uring, it does: nothing
 * else depends on it. */
static void leave_mounts(const struct supervisor *s)
{
	char path[48];
	str_format(path, sizeof path, "/proc/%d/ns/mnt", (int)s->pid);
	auto_close int mounts = open(path, O_RDONLY | O_CLOEXEC);
	if (mounts >= 0)
		late_close(mounts);
}

/* Sets up the event loop, while the child prepares the sandbox. */
static int begin(struct supervisor *s, const struct start *start, struct error *err)
{
	sigset_t set;
	supervise_signals(&set);
	s->relay_events =
		(struct relay_events){ on_relay_finished, on_relay_over, on_relay_failed, s };
	s->guard.loop = s->loop;
	s->guard.init_socket = s->socket;
	if (start->plan->limiter != LIMITER_WATCHDOG)
		cgroup_sweep(
			start->cgroups); /* leftovers of killed carrels; the child is still busy */
	if (guard_start(&s->guard, err) ||
		loop_watch(s->loop, s->socket, EPOLLIN, on_socket, s, err) ||
		loop_signals(s->loop, &set, on_signal, s, err))
		return -1;
	if (s->streams.io->tick)
		s->tick = loop_after(s->loop, TICK_MS, on_tick, s);
	loop_after(s->loop, guard_first_look_ms(&s->guard), on_first_look, s);
	if (s->streams.io->is_last && plan_has_pids(s->plan))
		leave_mounts(s);
	if (s->plan->tty) /* the child has yet to make the terminal */
		return 0;
	return streams_start(&s->streams, s->loop, &s->relay_events, err);
}

static void judge(struct supervisor *s)
{
	struct result *result = s->result;
	bool exited = s->has_exit && WIFEXITED(s->wait_status);
	result->exit_status = exited ? WEXITSTATUS(s->wait_status) : 0;
	result->signal = exited ? 0 : s->has_exit ? WTERMSIG(s->wait_status) : SIGKILL;
	result->reason = exited ? REASON_EXITED : REASON_SIGNALED;
	bool failed = !exited || result->exit_status != 0;
	if (s->has_limit || guard_last_look(&s->guard, failed, &s->limit))
		result->reason = s->limit;
	uint64_t rss_kb =
		s->usage.max_rss_kb > s->command_rss_kb ? s->usage.max_rss_kb : s->command_rss_kb;
	result->cpu_ms = (s->usage.utime_us + s->usage.stime_us) / 1000;
	result->max_rss_bytes = rss_kb * 1024;
	guard_add_usage(&s->guard, result);
}

/* Returns when PID 1 is gone and all output has been passed on. */
static int supervise(struct supervisor *s, const struct start *start, struct error *err)
{
	if (begin(s, start, err) || loop_run(s->loop, err))
		on_failure(s, err);
	if (!s->is_dead)
		reap(s);
	if (!s->has_failed)
		judge(s);
	/* Killed from outside before init was up, for an unknown reason. */
	if (!s->has_failed && !is_up(s) && !s->has_limit && s->result->reason == REASON_SIGNALED) {
		fail(err, ERR_FAILED, "the sandbox was killed while it started");
		on_failure(s, err);
	}
	guard_stop(&s->guard);
	stop_observing(s);
	streams_stop(&s->streams);
	if (s->has_failed)
		*err = s->failure;
	return s->has_failed ? -1 : 0;
}

static int start_and_supervise(struct supervisor *s, struct start *start, struct error *err)
{
	if (start_clone(start, &s->socket, &s->pidfd, &s->pid, err))
		return -1;
	if (start_let_go(start, s->socket, s->pid, err) || (!s->plan->tty && send_spawn(s, err)) ||
		loop_new(&s->loop, err)) {
		start_abandon(s->plan, s->pid, s->socket, err);
		/* Nobody starts another one, and the user did not cancel it. */
		if (err->code == ERR_CANCELED)
			err->code = ERR_FAILED;
		return -1;
	}
	int failed = supervise(s, start, err);
	loop_free(s->loop);
	return failed;
}

/* Blocks the signals that the loop takes; SIGPIPE and SIGXFSZ are ignored, so that writes fail
 * instead. */
static void hold_signals(sigset_t *before)
{
	sigset_t set;
	supervise_signals(&set);
	sigprocmask(SIG_BLOCK, &set, before);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* if ignored, the exit statuses of children would be lost */
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
	struct cgroup group;
	struct start start;
	struct supervisor s = {
		.plan = plan, .socket = -1, .pidfd = -1, .observer = -1, .result = result
	};
	const struct streams_kind kind = { plan->privileged,
		{ plan->streams[0], plan->streams[1], plan->streams[2] }, plan->merged,
		plan->mirrors, plan->limits.output_bytes };
	sigset_t before;
	*result = (struct result){ 0 };
	s.guard = (struct guard){ .plan = plan, .cgroup = &group, .hit = on_limit, .ctx = &s };
	cgroup_init(&group);
	if (guard_check_disk(plan, &s.guard.counted.base, err))
		return -1;
	hold_signals(&before);
	start_init(&start, plan, cgroups, &group);
	int failed = streams_prepare(&s.streams, &kind, io, err) || share_flag(&start.is_up, err) ||
		     start_open_image(&start.init_image, err) || start_prepare(&start, err);
	s.is_up = start.is_up;
	if (!failed)
		failed = start_and_supervise(&s, &start, err);
	fd_close(&s.socket);
	fd_close(&s.pidfd);
	fd_close(&start.init_image);
	start_done(&start);
	streams_done(&s.streams);
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
