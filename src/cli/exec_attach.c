#include "cli/exec_attach.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "cli/daemon.h"
#include "format/sse.h"
#include "proc/loop.h"
#include "sandbox/streams.h"
#include "sandbox/supervise.h"

#define ANSWER_MAX 65536
#define CANCEL_AFTER 3 /* this many SIGINT or SIGTERM: the user means it */
#define DRAIN_MS 3000  /* after a limit: for output that nobody reads */

static const char gone[] = "the daemon ended, and the command with it";

struct attached {
	struct remote *remote;
	const struct exec_call *call;
	char id[ID_LEN + 1];
	struct sandbox_io io;
	struct streams streams;
	struct relay_events relay_events;
	struct loop *loop;
	struct client_response response;
	bool has_head;
	struct buf answer;
	struct client side; /* for signals */
	int cancels;
	uint64_t began_ms;
	bool is_over; /* output went past its cap */
	bool has_ended, has_failed;
	struct exec_ended *ended;
	struct error failure;
};

bool exec_can_be_handed(int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		return false;
	if (S_ISFIFO(st.st_mode))
		return true;
	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static bool lead_to_one_place(int a, int b)
{
	struct stat x, y;
	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static struct streams_kind choose_streams(const struct exec_call *call)
{
	struct streams_kind kind = { .is_privileged = geteuid() == 0,
		.output_bytes = call->output_bytes };
	enum plan_stream *streams = kind.each;
	for (int i = 0; i < 3; i++) {
		if (call->tty)
			streams[i] = STREAM_TTY;
		else if (i > 0 && call->out)
			streams[i] = STREAM_CAPTURED;
		else if (i > 0 && call->output_bytes)
			streams[i] = STREAM_RELAYED;
		else
			streams[i] = exec_can_be_handed(i) ? STREAM_HANDED : STREAM_RELAYED;
	}
	kind.is_merged = streams[1] == STREAM_RELAYED && streams[2] == STREAM_RELAYED &&
			 lead_to_one_place(1, 2);
	return kind;
}

static int replace_stdin(struct error *err)
{
	auto_close int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return empty < 0 || dup2(empty, STDIN_FILENO) < 0 ? fail_errno(err, "open '/dev/null'") : 0;
}

static void stop_when_delivered(struct attached *a)
{
	if (!streams_have_output(&a->streams))
		loop_stop(a->loop);
}

static void on_drained_long_enough(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

/* Nothing more comes from inside. */
static void finish(struct attached *a)
{
	a->has_ended = true;
	loop_unwatch(a->loop, a->remote->client.socket);
	streams_drain(&a->streams);
	/* An end is an end, also for a reader that doesn't read. */
	if (a->ended->result.reason != REASON_EXITED)
		loop_after(a->loop, DRAIN_MS, on_drained_long_enough, a);
	stop_when_delivered(a);
}

static void on_failure(struct attached *a, const struct error *err)
{
	if (!a->has_failed)
		a->failure = *err;
	a->has_failed = true;
	loop_stop(a->loop);
}

/* A daemon whose client is gone ends the command. */
static void cancel(struct attached *a)
{
	a->ended->result = (struct result){ .reason = REASON_CANCELED,
		.signal = SIGKILL,
		.duration_ms = clock_monotonic_ms() - a->began_ms };
	finish(a);
	remote_close(a->remote);
}

static bool find_reason(const char *name, enum reason *reason)
{
	for (int i = 0; name && i < REASON_COUNT; i++)
		if (!strcmp(name, reason_names[i])) {
			*reason = (enum reason)i;
			return true;
		}
	return false;
}

/* The result object, without output. */
static int read_result(struct attached *a, struct str text, struct error *err)
{
	struct json_value *value;
	struct result *result = &a->ended->result;
	uint64_t code = 0, number = 0;
	if (json_read(text, a->remote->arena, &value, err) ||
		!find_reason(json_member_text(value, "reason"), &result->reason) ||
		!json_member_u64(value, "exit_code", &code) || code > 255)
		return fail(err, ERR_CORRUPT, "the daemon's response is not a result");
	json_member_u64(value, "signal", &number);
	result->exit_status = result->reason == REASON_EXITED ? (int)code : 0;
	result->signal = number < 128 ? (int)number : 0;
	json_member_u64(value, "duration_ms", &result->duration_ms);
	json_member_u64(value, "cpu_ms", &result->cpu_ms);
	json_member_u64(value, "max_rss_bytes", &result->max_rss_bytes);
	a->ended->limiter = json_member_text(value, "limits");
	/* It was killed from here, and this is why. */
	if (a->is_over)
		result->reason = REASON_OUTPUT_LIMIT;
	result->truncated = a->is_over;
	return 0;
}

/* One that ended at once may have none to send any more. */
static int begin_terminal(struct attached *a, struct error *err)
{
	struct client *client = &a->remote->client;
	if (client->fd_count < 1)
		return 0;
	if (streams_use_terminal(&a->streams, take_fd(&client->fds[0]), -1, err))
		return -1;
	return streams_start(&a->streams, a->loop, &a->relay_events, err);
}

static int receive_head(struct attached *a, struct error *err)
{
	if (client_receive(&a->remote->client, a->remote->arena, &a->response, err))
		return -1;
	a->has_head = true;
	return a->call->tty && a->response.status < 300 ? begin_terminal(a, err) : 0;
}

/* The end of the answer. With a terminal it is a stream of events, and the last one counts. */
static int conclude(struct attached *a, struct error *err)
{
	struct str text = { a->answer.data, a->answer.len };
	if (a->response.status >= 300)
		return client_problem(a->response.status, text, a->remote->arena, err);
	if (a->call->tty) {
		struct sse sse;
		int got;
		sse_init(&sse);
		sse_add(&sse, text);
		while ((got = sse_next(&sse, err)) == 1)
			if (!strcmp(sse.event, "exit"))
				break;
		if (got == 1)
			text = (struct str){ arena_bytes(
						     a->remote->arena, sse.data.data, sse.data.len),
				sse.data.len };
		sse_done(&sse);
		if (got != 1)
			return got < 0 ? -1 : fail(err, ERR_UNAVAILABLE, "%s", gone);
	}
	if (read_result(a, text, err))
		return -1;
	finish(a);
	return 0;
}

/* Takes what has come. Only the first read may wait, and there is something for it. */
static int receive_body(struct attached *a, struct error *err)
{
	struct client *client = &a->remote->client;
	bool is_readable = a->has_head;
	if (!a->has_head && receive_head(a, err))
		return -1;
	while (is_readable || client_has_input(client) || a->response.at_end) {
		char *room = buf_reserve(&a->answer, 4096);
		if (!room)
			return fail(err, ERR_CORRUPT, "the daemon's response is too long");
		ssize_t got = client_read(client, &a->response, room, 4096, err);
		if (got <= 0)
			return got < 0 ? -1 : conclude(a, err);
		buf_grew(&a->answer, (size_t)got);
		is_readable = false;
	}
	return 0;
}

static void on_answer(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct attached *a = ctx;
	struct error err;
	if (a->has_ended || !receive_body(a, &err))
		return;
	/* An answer that breaks off isn't all: the command has run, and to try again is no advice.
	 */
	if (err.code == (a->has_head ? ERR_CORRUPT : ERR_UNAVAILABLE))
		fail(&err, ERR_UNAVAILABLE, "%s", gone);
	on_failure(a, &err);
}

/* reason: NULL, or what of ours ends it. */
static int send_signal(struct attached *a, int signo, const char *reason, struct error *err)
{
	auto_arena struct arena arena;
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	char body[64], path[64];
	arena_init(&arena);
	/* A daemon that isn't there has ended the command already. */
	if (a->side.socket < 0 && daemon_connect(&a->side, a->remote->host, false, err)) {
		a->side.socket = -1;
		return -1;
	}
	str_format(path, sizeof path, "/v1/execs/%s/signal", a->id);
	if (reason)
		str_format(body, sizeof body, "{\"signal\":%d,\"reason\":\"%s\"}", signo, reason);
	else
		str_format(body, sizeof body, "{\"signal\":%d}", signo);
	request.method = "POST";
	request.path = path;
	request.body = str_from(body);
	return client_call(&a->side, &request, &arena, &response, err);
}

/* The sandbox is a session of its own: the terminal's stop reaches only us, and we pass it on as
 * one that holds. */
static void stop_and_continue(struct attached *a)
{
	struct error err;
	streams_suspend(&a->streams);
	send_signal(a, SIGSTOP, NULL, &err);
	raise(SIGSTOP);
	send_signal(a, SIGCONT, NULL, &err);
	streams_continue(&a->streams);
}

static void on_signal(struct loop *loop, const struct signalfd_siginfo *info, void *ctx)
{
	struct attached *a = ctx;
	struct error err;
	int signo = (int)info->ssi_signo;
	bool is_end = signo == SIGINT || signo == SIGTERM;
	if (a->has_ended) {
		/* Only output is left, and whoever reads it doesn't. */
		if (is_end || signo == SIGHUP)
			loop_stop(loop);
		return;
	}
	if (signo == SIGCONT) /* perhaps after a stop that nobody can catch */
		streams_continue(&a->streams);
	if (signo == SIGWINCH)
		streams_resize(&a->streams);
	else if (signo == SIGTSTP)
		stop_and_continue(a);
	else if (is_end && ++a->cancels >= CANCEL_AFTER)
		cancel(a);
	else if (send_signal(a, signo, NULL, &err) && err.code != ERR_CONFLICT &&
		 (is_end || signo == SIGHUP || signo == SIGQUIT))
		cancel(a); /* it hasn't begun; of one that has ended the answer is on its way */
}

static void on_relay_finished(void *ctx)
{
	struct attached *a = ctx;
	if (a->has_ended)
		stop_when_delivered(a);
}

static void on_relay_over(void *ctx)
{
	struct attached *a = ctx;
	struct error err;
	a->is_over = true;
	if (!a->has_ended && send_signal(a, SIGKILL, "output_limit", &err) &&
		err.code != ERR_CONFLICT) {
		cancel(a);
		a->ended->result.reason = REASON_OUTPUT_LIMIT;
		a->ended->result.truncated = true;
	}
}

static void on_relay_failed(void *ctx, const struct error *err)
{
	on_failure(ctx, err);
}

static int send_request(struct attached *a, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	char headers[128];
	str_format(headers, sizeof headers, "Carrel-Streams: %s\r\nCarrel-Exec-Id: %s\r\n",
		a->call->tty ? "pty" : "handed", a->id);
	request.method = "POST";
	request.path = a->call->path;
	request.headers = headers;
	request.body = (struct str){ a->call->body->data, a->call->body->len };
	if (!a->call->tty) {
		request.fds = a->streams.inside;
		request.fd_count = 3;
	}
	int failed = client_send(&a->remote->client, &request, err);
	streams_close_inside(&a->streams);
	return failed;
}

static int begin(struct attached *a, struct error *err)
{
	sigset_t set;
	supervise_signals(&set);
	if (loop_new(&a->loop, err) || loop_signals(a->loop, &set, on_signal, a, err) ||
		send_request(a, err) ||
		loop_watch(a->loop, a->remote->client.socket, EPOLLIN, on_answer, a, err))
		return -1;
	return a->call->tty ? 0 : streams_start(&a->streams, a->loop, &a->relay_events, err);
}

int exec_attach(struct remote *remote, const struct exec_call *call, struct exec_ended *ended,
	struct error *err)
{
	struct attached a = { .remote = remote,
		.call = call,
		.io = { .out = call->out, .err = call->err },
		.side = { .socket = -1 },
		.began_ms = clock_monotonic_ms(),
		.ended = ended };
	*ended = (struct exec_ended){ 0 };
	a.relay_events =
		(struct relay_events){ on_relay_finished, on_relay_over, on_relay_failed, &a };
	id_make(a.id);
	buf_init(&a.answer, ANSWER_MAX);
	const struct streams_kind kind = choose_streams(call);
	/* Nobody types: what reads there is at its end at once. */
	if (call->tty && !call->interactive && replace_stdin(err))
		return -1;
	/* Writing where nobody reads is an error code here. */
	signal(SIGPIPE, SIG_IGN);
	int failed = streams_prepare(&a.streams, &kind, &a.io, err) || begin(&a, err) ||
		     loop_run(a.loop, err);
	streams_done(&a.streams);
	if (a.loop)
		loop_free(a.loop);
	if (a.side.socket >= 0)
		client_done(&a.side);
	buf_done(&a.answer);
	if (!failed && a.has_failed) {
		*err = a.failure;
		failed = true;
	}
	return failed ? -1 : 0;
}
