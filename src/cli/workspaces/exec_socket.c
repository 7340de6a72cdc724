/* carrel exec, shell, with a daemon on another machine: the same streams, terminals and signals as
 * in exec.c, but what there is handed to the daemon is here a pipe to this process itself (or a
 * socket pair in place of the terminal), whose bytes travel in messages of a WebSocket
 * (docs/websocket.md).
 * 1. Neither side is read while the other one is full.
 * 2. The caller's stdin is not read, and its terminal not changed, before the command has started.
 * 3. When the reader of an output is gone, the command gets SIGPIPE, as from a pipe of its own. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/workspaces/exec_call.h"
#include "client/socket.h"
#include "linux/pty.h"
#include "proc/loop.h"

#define PROTOCOL "carrel.exec.v1"
#define PIECE 32768		   /* of stdin: a message */
#define UNSENT_MAX (4u * PIECE)	   /* then stdin isn't read */
#define HELD_MAX ((size_t)1 << 18) /* of output: then the connection isn't read */
#define DISCARDED_MAX (1u << 20)   /* a command that goes on after SIGPIPE is ended */
#define STOP_FLUSH_MS 1000

static const char gone[] = "the connection to the daemon ended, and the command with it";

enum { IN, OUT, ERRORS };
struct output {
	int to;		 /* our end, or -1: its reader is gone, or all is delivered */
	struct buf held; /* came, and isn't written yet */
	size_t at;
	size_t discarded;
	bool is_gone; /* and the command was told */
};
struct far_exec {
	struct remote *remote;
	struct exec_call *call;
	struct exec_ended *ended;
	struct loop *loop;
	struct streams streams;
	struct relay_events relay_events;
	struct client_socket socket;
	int terminal; /* our end of the pair in its place, or -1 */
	int input;    /* our end of stdin, or -1 */
	struct output outputs[2];
	/* Events that are watched; 0: none. */
	uint32_t socket_events, input_events, output_events[2];
	uint64_t began_ms;
	int cancels;
	bool is_started;  /* the command */
	bool has_exit;	  /* its result has come */
	bool is_finished; /* and its output went to the streams */
	bool has_failed;
	struct error failure;
};

static void update(struct far_exec *e);

/* ---- the end ---- */

static void on_failure(struct far_exec *e, const struct error *err)
{
	if (!e->has_failed)
		e->failure = *err;
	e->has_failed = true;
	loop_stop(e->loop);
}

static void stop_when_delivered(struct far_exec *e)
{
	if (!streams_have_output(&e->streams))
		loop_stop(e->loop);
}

static void on_drained_long_enough(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

/* Nothing more comes from inside: what is held goes to the streams, then they end. */
static void finish(struct far_exec *e)
{
	if (e->is_finished || e->outputs[0].held.len || e->outputs[1].held.len)
		return;
	e->is_finished = true;
	streams_drain(&e->streams);
	stop_when_delivered(e);
}

static void end(struct far_exec *e)
{
	e->has_exit = true;
	/* An end is an end, also for a reader that doesn't read. */
	if (e->ended->result.reason != REASON_EXITED)
		loop_after(e->loop, EXEC_DRAIN_MS, on_drained_long_enough, e);
	finish(e);
}

/* A daemon whose client is gone ends the command. */
static void cancel(struct far_exec *e)
{
	e->ended->result = (struct result){ .reason = REASON_CANCELED,
		.signal = SIGKILL,
		.duration_ms = clock_monotonic_ms() - e->began_ms };
	loop_unwatch(e->loop, e->remote->client.socket);
	e->socket_events = 0;
	remote_close(e->remote);
	end(e);
}

/* ---- messages to the daemon ---- */

static int send_text(struct far_exec *e, const char *text, struct error *err)
{
	const struct str part = str_from(text);
	return client_socket_send(&e->socket, WEBSOCKET_TEXT, &part, 1, err);
}

static int send_start(struct far_exec *e, struct error *err)
{
	const struct buf *body = e->call->body;
	/* The body is an object that isn't empty. */
	const struct str parts[] = { STR("{\"type\":\"start\","),
		{ body->data + 1, body->len - 1 } };
	return client_socket_send(&e->socket, WEBSOCKET_TEXT, parts, 2, err);
}

static void send_signal(struct far_exec *e, int signo)
{
	char text[64];
	struct error err;
	str_format(text, sizeof text, "{\"type\":\"signal\",\"signal\":%d}", signo);
	if (send_text(e, text, &err))
		on_failure(e, &err);
}

static void send_size(struct far_exec *e)
{
	struct pty_size size;
	struct error err;
	char text[96];
	int fd = 0;
	while (fd < 3 && pty_get_size(fd, &size, &err))
		fd++;
	if (!e->call->tty || fd == 3 || !size.rows || !size.columns)
		return;
	str_format(text, sizeof text, "{\"type\":\"resize\",\"rows\":%u,\"columns\":%u}", size.rows,
		size.columns);
	if (send_text(e, text, &err))
		on_failure(e, &err);
}

static void close_input(struct far_exec *e)
{
	if (e->input_events)
		loop_unwatch(e->loop, e->input);
	e->input_events = 0;
	fd_close(&e->input);
}

/* One piece of stdin; an empty message closes it. */
static void on_input(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct far_exec *e = ctx;
	static const char stream = IN;
	char data[PIECE];
	struct error err;
	ssize_t got = read(fd, data, sizeof data);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	const struct str parts[] = { { &stream, 1 }, { data, got > 0 ? (size_t)got : 0 } };
	if (client_socket_send(&e->socket, WEBSOCKET_BINARY, parts, 2, &err)) {
		on_failure(e, &err);
		return;
	}
	if (got <= 0)
		close_input(e);
	update(e);
}

/* ---- output ---- */

static void close_output(struct far_exec *e, int i)
{
	struct output *output = &e->outputs[i];
	if (e->output_events[i])
		loop_unwatch(e->loop, output->to);
	e->output_events[i] = 0;
	fd_close(&output->to);
}

/* Its reader is gone. */
static void discard(struct far_exec *e, int i)
{
	struct output *output = &e->outputs[i];
	close_output(e, i);
	output->discarded += output->held.len;
	buf_clear(&output->held);
	output->at = 0;
	if (e->has_exit)
		return;
	if (!output->is_gone)
		send_signal(e, SIGPIPE);
	else if (output->discarded >= DISCARDED_MAX) {
		output->discarded = 0;
		send_signal(e, SIGTERM);
	}
	output->is_gone = true;
}

static void deliver(struct far_exec *e, int i)
{
	struct output *output = &e->outputs[i];
	while (output->to >= 0 && output->at < output->held.len) {
		ssize_t wrote = write(
			output->to, output->held.data + output->at, output->held.len - output->at);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0 && errno == EAGAIN)
			break;
		if (wrote < 0)
			close_output(e, i);
		else
			output->at += (size_t)wrote;
	}
	if (output->to < 0 && output->held.len)
		discard(e, i);
	if (output->at < output->held.len)
		return;
	buf_clear(&output->held);
	output->at = 0;
}

static void on_output(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct far_exec *e = ctx;
	deliver(e, fd == e->outputs[1].to);
	if (e->has_exit)
		finish(e);
	update(e);
}

static int take_output(struct far_exec *e, struct str data, struct error *err)
{
	int stream = data.len ? data.data[0] : -1;
	if (stream != OUT && stream != ERRORS)
		return fail(err, ERR_CORRUPT, "the daemon sent output of an unknown stream");
	/* One place has one order. */
	int i = stream == ERRORS && !e->call->tty && !e->streams.kind.is_merged;
	buf_append(&e->outputs[i].held, data.data + 1, data.len - 1);
	deliver(e, i);
	return 0;
}

/* ---- messages from the daemon ---- */

static int take_fd_copy(int fd, int *out, struct error *err)
{
	*out = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *out < 0 || fd_set_nonblocking(*out) ? fail_errno(err, "prepare a stream") : 0;
}

/* Our ends of what the command would get. */
static int open_streams(struct far_exec *e, struct error *err)
{
	const int *inside = e->streams.inside;
	if (e->call->tty)
		return take_fd_copy(e->terminal, &e->input, err) ||
				       take_fd_copy(e->terminal, &e->outputs[0].to, err)
			       ? -1
			       : 0;
	if (take_fd_copy(inside[0], &e->input, err) ||
		take_fd_copy(inside[1], &e->outputs[0].to, err))
		return -1;
	return e->streams.kind.is_merged ? 0 : take_fd_copy(inside[2], &e->outputs[1].to, err);
}

static int on_started(struct far_exec *e, const struct json_value *message, struct error *err)
{
	const char *id = json_member_text(message, "exec");
	if (e->is_started)
		return 0;
	e->is_started = true;
	if (id && id_is_valid(id))
		memcpy(e->ended->id, id, sizeof e->ended->id);
	if (open_streams(e, err))
		return -1;
	streams_close_inside(&e->streams);
	fd_close(&e->terminal);
	/* It may have changed since the start was asked for. */
	send_size(e);
	return streams_start(&e->streams, e->loop, &e->relay_events, err);
}

static int on_exit_message(struct far_exec *e, const struct json_value *message, struct error *err)
{
	struct exec_ended *ended = e->ended;
	if (remote_read_result(message, &ended->result, err))
		return fail(err, ERR_CORRUPT, "the daemon's response is not a result");
	ended->result.truncated = json_member_true(message, "truncated");
	ended->limiter = json_member_text(message, "limits");
	end(e);
	return 0;
}

/* A problem; that of --no-wait names the exec that waits in the background. */
static int on_error_message(
	struct far_exec *e, struct str text, const struct json_value *message, struct error *err)
{
	struct arena *arena = e->remote->arena;
	uint64_t status = 500;
	json_member_u64(message, "status", &status);
	if (json_member_text(message, "exec") && json_member(message, "approval")) {
		e->ended->waiting =
			(struct str){ arena_bytes(arena, text.data, text.len), text.len };
		end(e);
		return 0;
	}
	return client_problem((int)status, text, arena, err);
}

static int take_text(struct far_exec *e, struct str text, struct error *err)
{
	struct json_value *message;
	struct str kept = { arena_bytes(e->remote->arena, text.data, text.len), text.len };
	if (json_read(kept, e->remote->arena, &message, err))
		return error_context(err, "the daemon's message");
	const char *type = json_member_text(message, "type");
	const char *approval = json_member_text(message, "approval");
	if (!type)
		return fail(err, ERR_CORRUPT, "the daemon's message has no type");
	if (!strcmp(type, "started"))
		return on_started(e, message, err);
	if (!strcmp(type, "exit"))
		return on_exit_message(e, message, err);
	if (!strcmp(type, "waiting") && approval && !e->call->is_quiet)
		exec_say_waiting(approval);
	if (!strcmp(type, "waiting"))
		return 0;
	/* Its own "type" is that of the message, or of the problem. */
	if (!strcmp(type, "error") || json_member(message, "detail"))
		return on_error_message(e, kept, message, err);
	return 0; /* of a daemon that knows more types */
}

static int take_messages(struct far_exec *e, struct error *err)
{
	struct websocket_message message;
	int got;
	while (!e->has_exit && !e->has_failed && e->outputs[0].held.len < HELD_MAX &&
		e->outputs[1].held.len < HELD_MAX) {
		got = client_socket_next(&e->socket, &message, err);
		if (got < 0)
			return -1;
		if (got == 0 && e->socket.is_ended)
			return fail(err, ERR_UNAVAILABLE, "%s", gone);
		if (got == 0)
			break;
		if (message.opcode == WEBSOCKET_CLOSE)
			return message.data.len ? fail(err, ERR_UNAVAILABLE,
							  "the daemon closed the connection: %.*s",
							  (int)message.data.len, message.data.data)
						: fail(err, ERR_UNAVAILABLE, "%s", gone);
		if (message.opcode == WEBSOCKET_TEXT ? take_text(e, message.data, err)
						     : take_output(e, message.data, err))
			return -1;
	}
	return 0;
}

static void on_socket(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct far_exec *e = ctx;
	struct error err;
	if ((events & EPOLLOUT && client_socket_flush(&e->socket, &err)) ||
		(events & ~EPOLLOUT && client_socket_fill(&e->socket, &err)) ||
		take_messages(e, &err)) {
		on_failure(e, &err);
		return;
	}
	update(e);
}

/* ---- what is waited for ---- */

static void watch(struct far_exec *e, int fd, uint32_t wanted, uint32_t *watched, loop_fd_fn *fn)
{
	struct error err;
	if (wanted == *watched || fd < 0)
		return;
	if (!wanted)
		loop_unwatch(e->loop, fd);
	else if (*watched ? loop_change(e->loop, fd, wanted, &err)
			  : loop_watch(e->loop, fd, wanted, fn, e, &err)) {
		on_failure(e, &err);
		return;
	}
	*watched = wanted;
}

static void on_more(struct loop *loop, void *ctx)
{
	on_socket(loop, -1, 0, ctx);
}

/* What is full isn't filled. One that is watched for nothing would be reported again and again when
 * it hangs up. */
static void update(struct far_exec *e)
{
	if (e->has_failed || e->is_finished)
		return;
	bool is_full = false;
	for (int i = 0; i < 2; i++) {
		bool is_held = e->outputs[i].held.len > 0;
		watch(e, e->outputs[i].to, is_held ? EPOLLOUT : 0, &e->output_events[i], on_output);
		is_full |= e->outputs[i].held.len >= HELD_MAX;
	}
	if (e->remote->client.socket < 0)
		return;
	size_t unsent = client_socket_unsent(&e->socket);
	bool was_full = !(e->socket_events & EPOLLIN);
	watch(e, e->remote->client.socket,
		(is_full || e->has_exit ? 0u : EPOLLIN) | (unsent ? EPOLLOUT : 0u),
		&e->socket_events, on_socket);
	watch(e, e->input, unsent < UNSENT_MAX && !e->has_exit ? EPOLLIN : 0, &e->input_events,
		on_input);
	/* Messages that were read already: the socket isn't readable for them. */
	if (was_full && !is_full && !e->has_exit)
		loop_after(e->loop, 0, on_more, e);
}

/* ---- signals and streams ---- */

static void stop_and_continue(struct far_exec *e)
{
	streams_suspend(&e->streams);
	send_signal(e, SIGSTOP);
	client_socket_flush_for(&e->socket, STOP_FLUSH_MS);
	raise(SIGSTOP);
	send_signal(e, SIGCONT);
	streams_continue(&e->streams);
}

static void on_signal(struct loop *loop, const struct signalfd_siginfo *info, void *ctx)
{
	struct far_exec *e = ctx;
	int signo = (int)info->ssi_signo;
	bool is_end = signo == SIGINT || signo == SIGTERM;
	if (e->has_exit) {
		/* Only output is left, and its reader has stopped reading. */
		if (is_end || signo == SIGHUP)
			loop_stop(loop);
		return;
	}
	if (signo == SIGCONT) /* perhaps after a SIGSTOP */
		streams_continue(&e->streams);
	if (signo == SIGWINCH)
		send_size(e);
	else if (signo == SIGTSTP)
		stop_and_continue(e);
	else if ((is_end && ++e->cancels >= EXEC_CANCEL_AFTER) ||
		 (!e->is_started && (is_end || signo == SIGHUP || signo == SIGQUIT)))
		cancel(e);
	else
		send_signal(e, signo);
	update(e);
}

static void on_relay_finished(void *ctx)
{
	struct far_exec *e = ctx;
	if (e->is_finished)
		stop_when_delivered(e);
}

/* The daemon keeps the limit. */
static void on_relay_over(void *ctx)
{
}

static void on_relay_failed(void *ctx, const struct error *err)
{
	on_failure(ctx, err);
}

static struct streams_kind choose_streams(const struct exec_call *call)
{
	struct streams_kind kind = { 0 };
	for (int i = 0; i < 3; i++)
		kind.each[i] = call->tty	       ? STREAM_TTY
			       : i > 0 && call->io.out ? STREAM_CAPTURED
						       : STREAM_RELAYED;
	kind.is_merged = !call->tty && !call->io.out && exec_lead_to_one_place(1, 2);
	return kind;
}

/* A socket in place of the terminal, which is on the daemon's machine. */
static int make_terminal(struct far_exec *e, struct error *err)
{
	int ends[2];
	if (!e->call->tty)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a socket pair");
	e->terminal = ends[1];
	return streams_use_terminal(&e->streams, ends[0], -1, err);
}

static int begin(struct far_exec *e, struct error *err)
{
	struct client *client = &e->remote->client;
	struct str early;
	sigset_t set;
	supervise_signals(&set);
	if (loop_new(&e->loop, err) || loop_signals(e->loop, &set, on_signal, e, err) ||
		client_upgrade_websocket(
			client, e->call->path, PROTOCOL, e->remote->arena, &early, err))
		return -1;
	client_socket_done(&e->socket);
	client_socket_init(&e->socket, client, early);
	if (send_start(e, err))
		return -1;
	on_socket(e->loop, client->socket, 0, e);
	return 0;
}

int exec_over_socket(
	struct remote *remote, struct exec_call *call, struct exec_ended *ended, struct error *err)
{
	struct far_exec e = { .remote = remote,
		.call = call,
		.ended = ended,
		.terminal = -1,
		.input = -1,
		.outputs = { { .to = -1 }, { .to = -1 } },
		.began_ms = clock_monotonic_ms() };
	const struct streams_kind kind = choose_streams(call);
	*ended = (struct exec_ended){ 0 };
	e.relay_events =
		(struct relay_events){ on_relay_finished, on_relay_over, on_relay_failed, &e };
	if (call->tty && !call->interactive && exec_replace_stdin(err))
		return -1;
	for (int i = 0; i < 2; i++)
		buf_init(&e.outputs[i].held, BUF_MAX_DEFAULT);
	client_socket_init(&e.socket, &remote->client, STR(""));
	/* Writes to a closed pipe fail with EPIPE instead. */
	signal(SIGPIPE, SIG_IGN);
	int failed = streams_prepare(&e.streams, &kind, &call->io, err) || make_terminal(&e, err) ||
		     begin(&e, err) || (!e.has_failed && loop_run(e.loop, err));
	streams_done(&e.streams);
	if (e.loop)
		loop_free(e.loop);
	client_socket_done(&e.socket);
	for (int i = 0; i < 2; i++) {
		fd_close(&e.outputs[i].to);
		buf_done(&e.outputs[i].held);
	}
	fd_close(&e.input);
	fd_close(&e.terminal);
	if (!failed && e.has_failed) {
		*err = e.failure;
		failed = true;
	}
	return failed ? -1 : 0;
}
