/* A client's connection: reading, running its requests, deadlines, closing. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "linux/fd_message.h"
#include "net/internal.h"

static void on_http_event(struct loop *loop, int fd, uint32_t events, void *ctx);

struct http_connection *connection_new(const struct listening *listening, int fd)
{
	const struct http_listener *from = &listening->listener;
	struct http_server *server = listening->server;
	struct http_connection *c = xzalloc(sizeof *c);
	c->server = server;
	c->listening = listening;
	(from->open ? from->open : stream_open_plain)(from->stream_ctx, fd, &c->stream);
	c->deadline = DEADLINE_NONE;
	c->events = EPOLLIN | (c->stream.is_unix ? 0 : EPOLLRDHUP);
	buf_init(&c->in, HTTP_CHUNK);
	buf_init(&c->out, BUF_MAX_DEFAULT);
	if (loop_watch(server->loop, fd, c->events, on_http_event, c, NULL) == 0)
		return c;
	c->stream.kind->close(&c->stream);
	free(c);
	return NULL;
}

struct http_peer connection_peer(const struct http_connection *c)
{
	bool is_unix = c->stream.is_unix;
	return (struct http_peer){ .kind = is_unix ? HTTP_PEER_UNIX : HTTP_PEER_TCP,
		.uid = c->peer_uid,
		.address = is_unix ? NULL : c->address,
		.local = is_unix ? NULL : c->local,
		.is_tls = c->stream.is_tls,
		.subject = c->stream.subject };
}

/* ---- the end of a turn ---- */
static void end_turn(struct loop *loop, void *ctx)
{
	struct http_server *server = ctx;
	struct http_connection *c = server->awake, *next;
	server->awake = NULL;
	server->turn = NULL;
	server->now_ms = clock_monotonic_ms();
	for (; c; c = next) {
		next = c->next_awake;
		c->is_awake = false;
		if (c->state == CONNECTION_CLOSED)
			free(c);
		else
			connection_run(c);
	}
}

void connection_again(struct http_connection *c)
{
	struct http_server *server = c->server;
	if (c->is_awake)
		return;
	c->is_awake = true;
	c->next_awake = server->awake;
	server->awake = c;
	if (!server->turn)
		server->turn = loop_after(server->loop, 0, end_turn, server);
}

void connection_wake(struct http_connection *c)
{
	if (!c->is_running)
		connection_again(c);
}

/* ---- reading ---- */
/* A descriptor belongs to the request whose body is being read, else to the next request. */
static void keep_fd(struct http_connection *c, int fd)
{
	struct exchange *x = c->exchange;
	bool is_body = x && x->has_begun && !x->is_complete;
	int *fds = is_body ? x->request.fds : c->fds;
	int *count = is_body ? &x->request.fd_count : &c->fd_count;
	if (*count == HTTP_FDS_MAX) {
		c->has_excess_fds = true;
		close(fd);
		return;
	}
	fds[(*count)++] = fd;
}

static void take_fds(struct http_connection *c, const struct fd_message *message)
{
	for (int i = 0; i < message->fd_count; i++)
		keep_fd(c, message->fds[i]);
	if (!message->has_lost_fds)
		return;
	/* Either the client sent too many, or this process is out of descriptors. */
	if (message->fd_count > HTTP_FDS_MAX)
		c->has_excess_fds = true;
	else
		c->has_lost_fds = true;
}

/* false: end of file or an error. */
static bool http_receive(struct http_connection *c)
{
	struct fd_message message;
	ssize_t got = c->stream.kind->receive(&c->stream, c->server->in, HTTP_CHUNK, &message);
	if (got < 0)
		return errno == EAGAIN;
	take_fds(c, &message);
	c->unread = (struct str){ c->server->in, (size_t)got };
	return got > 0;
}

/* Keeps unread bytes in c->in, and frees its memory when there are none. */
static void keep_unread(struct http_connection *c)
{
	if (c->in.len > 0)
		buf_drop_front(&c->in, c->in.len - c->unread.len);
	else
		buf_append(&c->in, c->unread.data, c->unread.len);
	c->unread = (struct str){ 0 };
	if (c->in.len == 0 && c->in.capacity > 0) {
		buf_done(&c->in);
		buf_init(&c->in, HTTP_CHUNK);
	}
}

/* ---- running ---- */
static void update_watch(struct http_connection *c)
{
	uint32_t events = c->is_blocked ? EPOLLOUT : 0;
	/* EPOLLIN stays set while a handler works, until unwanted input arrives: this saves two
	 * epoll_ctl calls per request. */
	if (exchange_wants_input(c))
		c->has_unwanted = false;
	if (!c->has_unwanted)
		events |= EPOLLIN;
	if (c->stream.wants_output)
		events |= EPOLLOUT;
	if (!c->stream.is_unix && c->state == CONNECTION_OPEN)
		events |= EPOLLRDHUP;
	if (events == c->events)
		return;
	if (loop_change(c->server->loop, c->stream.fd, events, NULL) < 0)
		connection_close(c);
	c->events = events;
}

/* ---- times ---- */
static uint64_t length_ms(const struct http_limits *limits, enum deadline kind)
{
	switch (kind) {
	case DEADLINE_HEADER:
		return limits->header_ms;
	case DEADLINE_BODY:
		return limits->body_idle_ms;
	case DEADLINE_WRITE:
		return limits->write_idle_ms;
	case DEADLINE_LINGER:
		return HTTP_LINGER_MS;
	case DEADLINE_FIRST:
		return limits->first_ms ? limits->first_ms : limits->keep_alive_ms;
	default:
		return limits->keep_alive_ms;
	}
}

static void set_timer(struct http_connection *c);

static void expire(struct http_connection *c)
{
	struct exchange *x = c->exchange;
	if (c->state != CONNECTION_OPEN || !x || c->is_blocked || x->answer != ANSWER_NONE) {
		connection_close(c);
		return;
	}
	x->refusal = 408;
	x->refusal_detail = x->has_begun ? "the body did not arrive in time"
					 : "the headers did not arrive in time";
	connection_run(c);
}

static void on_timer(struct loop *loop, void *ctx)
{
	struct http_connection *c = ctx;
	c->timer = NULL;
	c->server->now_ms = clock_monotonic_ms();
	if (c->deadline == DEADLINE_NONE)
		return;
	if (c->due_ms > c->server->now_ms) {
		set_timer(c);
		return;
	}
	c->deadline = DEADLINE_NONE;
	expire(c);
}

static void set_timer(struct http_connection *c)
{
	c->timer_ms = c->due_ms;
	c->timer = loop_after(c->server->loop, c->due_ms - c->server->now_ms, on_timer, c);
}

/* A timer that comes too early finds that out itself: a busy connection sets few. */
void connection_set_deadline(struct http_connection *c, enum deadline kind)
{
	c->deadline = kind;
	if (kind == DEADLINE_NONE)
		return;
	c->due_ms = c->server->now_ms + length_ms(&c->server->limits, kind);
	if (c->timer && c->timer_ms <= c->due_ms)
		return;
	loop_cancel(c->server->loop, c->timer);
	set_timer(c);
}

static enum deadline deadline_of(const struct http_connection *c)
{
	const struct exchange *x = c->exchange;
	if (c->state == CONNECTION_LINGERING)
		return DEADLINE_LINGER;
	if (c->is_blocked)
		return DEADLINE_WRITE;
	if (!x)
		return c->has_asked || c->stream.is_unix ? DEADLINE_KEEP_ALIVE : DEADLINE_FIRST;
	if (!x->has_begun)
		return DEADLINE_HEADER;
	return exchange_wants_input(c) ? DEADLINE_BODY : DEADLINE_NONE;
}

/* Sends the rest of the response, shuts down, and discards further input: closing with unread input
 * would reset the connection, and the client could lose the response. */
static void http_settle(struct http_connection *c)
{
	enum flow flow = output_flush(c);
	if (flow == FLOW_BROKEN || (flow == FLOW_DONE && c->has_unwanted)) {
		connection_close(c);
		return;
	}
	if (flow == FLOW_DONE && !c->is_shut) {
		c->stream.kind->end(&c->stream);
		c->is_shut = true;
	}
	c->unread = (struct str){ 0 };
	buf_clear(&c->in);
}

void connection_run(struct http_connection *c)
{
	c->is_running = true;
	if (c->in.len > 0)
		c->unread = (struct str){ c->in.data, c->in.len };
	while (c->state == CONNECTION_OPEN && exchange_step(c))
		;
	if (c->state == CONNECTION_LINGERING)
		http_settle(c);
	c->is_running = false;
	if (c->state == CONNECTION_CLOSED)
		return;
	keep_unread(c);
	enum deadline deadline = deadline_of(c);
	if (deadline != c->deadline || c->has_moved)
		connection_set_deadline(c, deadline);
	c->has_moved = false;
	update_watch(c);
}

static void discard(struct http_connection *c)
{
	struct fd_message message;
	ssize_t got = c->stream.kind->receive(&c->stream, c->server->in, HTTP_CHUNK, &message);
	fd_message_close(&message, 0);
	/* End of input: in state LINGERING, has_unwanted means that. */
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		c->has_unwanted = true;
}

static void on_http_event(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct http_connection *c = ctx;
	bool is_wanted = exchange_wants_input(c);
	c->server->now_ms = clock_monotonic_ms();
	if (events & EPOLLOUT)
		c->is_blocked = false;
	if (events & EPOLLERR ||
		(events & EPOLLHUP && (!is_wanted || c->state == CONNECTION_LINGERING)) ||
		(events & EPOLLRDHUP && !is_wanted)) {
		connection_close(c);
		return;
	}
	if (events & (EPOLLIN | EPOLLHUP) || (events & EPOLLOUT && c->stream.wants_output)) {
		if (c->state == CONNECTION_LINGERING) {
			discard(c);
		} else if (!is_wanted) {
			c->has_unwanted = true;
		} else if (c->in.len == 0 && !http_receive(c)) {
			connection_close(c);
			return;
		}
	}
	connection_run(c);
}

/* ---- the end ---- */
void connection_leave(struct http_connection *c)
{
	c->state = CONNECTION_LINGERING;
	c->has_unwanted = false;
	c->has_moved = true;
	c->server->lingering++;
	server_check_drained(c->server);
}

void connection_close(struct http_connection *c)
{
	enum connection_state state = c->state;
	if (state == CONNECTION_CLOSED)
		return;
	c->state = CONNECTION_CLOSED;
	loop_cancel(c->server->loop, c->timer);
	c->timer = NULL;
	/* Reset a connection whose response was cut short: the framing alone may not show that. */
	if (c->exchange && c->exchange->is_cut && !c->stream.is_unix)
		setsockopt(c->stream.fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
			sizeof(struct linger));
	/* A client may close after its whole response, before the turn in which the request ends.
	 */
	if (c->exchange)
		exchange_end(c, !exchange_is_answered(c));
	if (c->stream.fd >= 0) {
		loop_unwatch(c->server->loop, c->stream.fd);
		c->stream.kind->close(&c->stream);
	}
	if (c->visit)
		c->listening->listener.left(c->listening->listener.ctx, c->visit);
	c->visit = NULL;
	for (int i = 0; i < c->fd_count; i++)
		fd_close(&c->fds[i]);
	buf_done(&c->in);
	buf_done(&c->out);
	c->out_at = 0;
	if (state == CONNECTION_LINGERING)
		c->server->lingering--;
	server_forget(c);
	connection_again(c);
}

void http_drop(struct http_connection *c)
{
	connection_close(c);
}

void connection_hand_over(struct http_connection *c)
{
	struct exchange *x = c->exchange;
	auto_buf struct buf early = c->in;
	struct net_stream stream = c->stream;
	void (*taken)(void *ctx, struct net_stream *s, struct str bytes) = x->upgraded;
	void *ctx = x->upgraded_ctx;
	/* Copied, since server->in is shared by all connections. */
	if (early.len == 0)
		buf_append(&early, c->unread.data, c->unread.len);
	else
		buf_drop_front(&early, early.len - c->unread.len);
	buf_init(&c->in, HTTP_CHUNK);
	loop_unwatch(c->server->loop, stream.fd);
	c->stream = STREAM_NONE;
	exchange_end(c, false);
	connection_close(c);
	taken(ctx, &stream, (struct str){ early.data, early.len });
}
