#include "sandbox/supervise.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/trace.h"
#include "linux/observe.h"
#include "linux/pidfd.h"
#include "sandbox/guard.h"
#include "sandbox/init_client.h"
#include "sandbox/standby.h"
#include "sandbox/start.h"

#define COMMAND_ID 1
/* Then another process is made that keeps the limits should this one be stopped. */
#define STANDBY_MS 20
#define SLOW_START_MS 5 /* when the child isn't up at the first look */
#define TICK_MS 100
#define DRAIN_MS 3000  /* after a limit: for output that nobody reads */
#define CANCEL_AFTER 3 /* this many SIGINT or SIGTERM: the user means it */

static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT,
	SIGTSTP, SIGWINCH };

struct supervisor {
	struct supervised *given;
	struct guard guard;
	struct standby standby;
	struct loop_timer *standby_timer;
	bool is_stop_due; /* SIGTSTP came before the limits could be kept */
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
	bool has_spawned; /* the spawn message is on its way */
	bool has_signaled;
	int observer; /* FILTER_OBSERVE, or -1 */
	int cancels;
	uint64_t shown_at_cancel; /* what the terminal had shown by the last of them */
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
	/* The kernel takes the rest of the namespace along. */
	pidfd_signal(s->given->pidfd, SIGKILL, &err);
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

int supervise_spawn(const struct supervised *given, struct error *err)
{
	const struct plan *plan = given->plan;
	struct init_spawn spawn = { (const char *const *)plan->argv, plan->env.items, plan->cwd,
		INIT_NO_PIDFD | INIT_NO_STARTED | INIT_STAY | (plan->tty ? INIT_TTY : 0) };
	int failed =
		init_client_spawn(given->socket, COMMAND_ID, &spawn, given->streams->inside, err);
	streams_close_inside(given->streams);
	return failed;
}

/* Explains INIT_FAILED and INIT_REFUSED. */
static void on_spawn_failure(struct supervisor *s, const struct init_reply *reply)
{
	struct error err;
	const struct plan *plan = s->given->plan;
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
		/* A signal, of ours or of the guard, may come too late for its command; that
		 * refuses nothing that matters. */
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
	loop_unwatch(s->given->loop, s->observer);
	fd_close(&s->observer);
}

static void on_observed(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct supervisor *s = ctx;
	const struct sandbox_io *io = s->given->streams->io;
	char path[PATH_MAX];
	/* Nobody is behind the filter any more. */
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
	return fd < 0 ? 0 : loop_watch(s->given->loop, fd, EPOLLIN, on_observed, s, err);
}

static void on_standby_due(struct loop *loop, void *ctx)
{
	struct supervisor *s = ctx;
	struct error err;
	s->standby_timer = NULL;
	if (!s->is_dead && !s->standby.shared &&
		standby_start(&s->standby, &s->guard, s->given->pidfd, false, &err))
		s->standby_timer = loop_after(loop, TICK_MS, on_standby_due, s);
}

static void end_standby(struct supervisor *s)
{
	enum reason reason;
	loop_cancel(s->given->loop, s->standby_timer);
	s->standby_timer = NULL;
	if (standby_stop(&s->standby, &s->guard, &reason) && !s->has_limit) {
		s->has_limit = true;
		s->limit = reason;
	}
}

/* The child has become carrel-init, or is about to. */
static bool is_up(const struct supervisor *s)
{
	return *(const volatile bool *)s->given->is_up;
}

/* 1: the sandbox is ending by itself. */
static int find_descriptors(struct supervisor *s, struct error *err)
{
	int fds[FOUND_MAX];
	int failed = start_find(s->given->pid, s->given->plan->measured, fds, err);
	if (failed)
		return failed;
	guard_descriptors(&s->guard, fds[FOUND_PROC], fds[FOUND_ROOT], fds[FOUND_MEASURED]);
	return 0;
}

static int begin_watch(struct supervisor *s, struct error *err)
{
	int failed = find_descriptors(s, err);
	if (failed || guard_watch(&s->guard, err))
		return failed > 0 ? 1 : -1;
	if (guard_is_needed(s->given->plan))
		s->standby_timer = loop_after(s->given->loop, STANDBY_MS, on_standby_due, s);
	if (s->is_stop_due)
		raise(SIGTSTP); /* again, now that it can be followed */
	return 0;
}

/* It lives long enough to be measured. Until then nothing but its end wakes us: wake-ups are what a
 * short command costs. */
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
	/* If it has just ended, there is nothing left to find. */
	take_packets(s);
	if (!s->is_dead)
		on_failure(s, &err);
}

/* The sandbox is a session of its own: the terminal's stop reaches only us, and we pass it on as
 * one that holds. */
static void stop_and_continue(struct supervisor *s)
{
	struct error err;
	bool is_kept = guard_is_needed(s->given->plan);
	s->is_stop_due = !s->guard.is_watching;
	if (s->is_stop_due)
		return;
	end_standby(s);
	if (is_kept && standby_start(&s->standby, &s->guard, s->given->pidfd, true, &err)) {
		on_standby_due(s->given->loop, s);
		return;
	}
	streams_suspend(s->given->streams);
	init_client_signal(s->given->socket, 0, SIGSTOP, &err);
	raise(SIGSTOP);
	end_standby(s);
	if (is_kept)
		on_standby_due(s->given->loop, s);
	init_client_signal(s->given->socket, 0, SIGCONT, &err);
	streams_continue(s->given->streams);
}

/* We were stopped, perhaps by a signal that nobody can catch. */
static void on_continue(struct supervisor *s)
{
	if (s->standby.shared) {
		end_standby(s);
		on_standby_due(s->given->loop, s);
	}
	streams_continue(s->given->streams);
}

static bool has_hung_up(int socket)
{
	struct pollfd peer = { .fd = socket };
	return poll(&peer, 1, 0) > 0 && peer.revents & POLLHUP;
}

/* The child's own packets come first: descriptors, or why it failed. */
static int on_setup(struct supervisor *s, struct error *err)
{
	struct setup_message message = { 0 };
	int fds[SETUP_FD_MAX];
	int got = setup_receive(s->given->socket, false, &message, fds);
	if (got <= 0)
		return fail_errno(err, "receive from the sandbox");
	if (message.type != SETUP_DESCRIPTORS) {
		*err = message.error;
		return error_adopt(err);
	}
	s->guard.upper = fds[SETUP_UPPER];
	const struct sandbox_io *io = s->given->streams->io;
	for (int i = SETUP_LISTENER; i < SETUP_FD_MAX; i++)
		if (fds[i] >= 0)
			io->listening(io->ctx, fds[i]);
	if (has_hung_up(s->given->socket)) { /* there is nothing left to watch, or to talk to */
		fd_close(&fds[SETUP_OBSERVER]);
		fd_close(&fds[SETUP_PTY_MASTER]);
		fd_close(&fds[SETUP_PTY_SLAVE]);
		return 0;
	}
	if (start_observing(s, fds[SETUP_OBSERVER], err))
		return -1;
	if (!s->given->plan->tty)
		return 0;
	if (streams_use_terminal(
		    s->given->streams, fds[SETUP_PTY_MASTER], fds[SETUP_PTY_SLAVE], err) ||
		supervise_spawn(s->given, err))
		return -1;
	s->has_spawned = true;
	return streams_start(s->given->streams, s->given->loop, &s->relay_events, err);
}

/* What lies next in the socket: the magic of a packet; 0 at its end; -1: nothing yet. A peer that
 * dies with unread packets leaves an ECONNRESET in front of what it said: taken off here. */
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
	int got = init_client_receive(s->given->socket, &reply, &pidfd, err);
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

/* Whether the disk is full is to be seen only while the sandbox is there; init stays for it after a
 * command that failed. */
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
	/* What takes the kernel a while: everything else is done meanwhile. */
	loop_unwatch(s->given->loop, s->given->socket);
	end_standby(s);
	guard_end(&s->guard);
	streams_drain(s->given->streams);
	if (pidfd_reap(s->given->pidfd, true, &status, &s->usage, &err) < 0 && !s->has_failed)
		on_failure(s, &err);
	s->is_dead = true;
	trace_step("init reaped");
	if (!streams_have_output(s->given->streams))
		loop_stop(s->given->loop);
	else if (s->has_limit) /* an end is an end, also for a reader that doesn't read */
		loop_after(s->given->loop, DRAIN_MS, on_drained_long_enough, s);
}

/* Takes all that has come. When init says its last word it exits, and there is nothing to do but
 * wait for that. Relays go on afterwards; a full pipe can't hold it up, since it kills its writers.
 */
static void take_packets(struct supervisor *s)
{
	struct error err;
	int64_t magic;
	while ((magic = peek(s->given->socket)) > 0)
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

/* Passes a signal on to the command. One that was typed is for the foreground of its terminal. It
 * waits in the socket behind the spawn, should init not be there yet. A socket that is full or gone
 * needs no signal. */
static void pass_on(struct supervisor *s, int signo)
{
	struct error err;
	bool is_typed = signo == SIGINT || signo == SIGQUIT || signo == SIGTSTP;
	if (is_typed && streams_signal(s->given->streams, signo))
		return;
	s->has_signaled = true;
	init_client_signal(s->given->socket, COMMAND_ID, signo, &err);
}

/* Whether the user has asked often enough. At a terminal an interpreter or a shell that answers
 * each time isn't ended by it. */
static bool is_insisted(struct supervisor *s, int signo)
{
	uint64_t shown = streams_shown(s->given->streams);
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
	bool is_last = s->given->streams->io->ends_on_signal && (is_end || signo == SIGHUP);
	if (s->is_dead) {
		/* Who runs one job after the other must hear of it also between two of them. */
		if (is_last && !s->has_limit) {
			s->has_limit = true;
			s->limit = REASON_CANCELED;
		}
		/* Only output is left, and whoever reads it doesn't. */
		if (is_end || signo == SIGHUP)
			loop_stop(loop);
		return;
	}
	if (signo == SIGWINCH) {
		streams_resize(s->given->streams);
		return;
	}
	if (signo == SIGTSTP && !streams_have_jobs(s->given->streams)) {
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
	if (s->is_dead && !streams_have_output(s->given->streams))
		loop_stop(s->given->loop);
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
	const struct sandbox_io *io = s->given->streams->io;
	io->tick(io->ctx);
	s->tick = loop_after(loop, TICK_MS, on_tick, s);
}

static int begin(struct supervisor *s, struct error *err)
{
	struct supervised *given = s->given;
	sigset_t set;
	supervise_signals(&set);
	s->guard = (struct guard){ .plan = given->plan,
		.cgroup = given->cgroup,
		.loop = given->loop,
		.init_socket = given->socket,
		.disk_base = given->disk_base,
		.hit = on_limit,
		.ctx = s };
	s->relay_events =
		(struct relay_events){ on_relay_finished, on_relay_over, on_relay_failed, s };
	if (guard_start(&s->guard, err) ||
		loop_watch(given->loop, given->socket, EPOLLIN, on_socket, s, err) ||
		loop_signals(given->loop, &set, on_signal, s, err))
		return -1;
	if (given->streams->io->tick)
		s->tick = loop_after(given->loop, TICK_MS, on_tick, s);
	loop_after(given->loop, guard_first_look_ms(&s->guard), on_first_look, s);
	if (given->plan->tty) /* which the child has yet to make */
		return 0;
	return streams_start(given->streams, given->loop, &s->relay_events, err);
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

int supervise(struct supervised *given, struct result *result, struct error *err)
{
	struct supervisor s = {
		.given = given, .result = result, .has_spawned = !given->plan->tty, .observer = -1
	};
	*result = (struct result){ 0 };
	int failed = begin(&s, err);
	if (failed)
		on_failure(&s, err);
	if (loop_run(given->loop, err))
		on_failure(&s, err);
	if (!s.is_dead)
		reap(&s);
	if (!s.has_failed) {
		judge(&s);
		/* Killed from outside before it was anything: by whom, nobody says. */
		if (!is_up(&s) && !s.has_limit && result->reason == REASON_SIGNALED)
			s.has_failed = true,
			fail(&s.failure, ERR_FAILED, "the sandbox was killed while it started");
	}
	guard_stop(&s.guard);
	stop_observing(&s);
	streams_stop(given->streams);
	if (s.has_failed)
		*err = s.failure;
	return s.has_failed ? -1 : 0;
}
