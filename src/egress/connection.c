/* Moving bytes between a client and the host it asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "egress/internal.h"

#define ROUNDS 8      /* reads of one flow in a turn of the loop */
#define DRAIN_MS 2000 /* for the client to read an answer and close */

void connection_watch(struct connection *c, int side, uint32_t events)
{
	struct loop *loop = c->policy->server->loop;

	if (c->events[side] == events || c->fds[side] < 0)
		return;
	if (events == UNWATCHED)
		loop_unwatch(loop, c->fds[side]);
	else if (c->events[side] == UNWATCHED)
		loop_watch(loop, c->fds[side], events, serve_on_event, c, NULL);
	else
		loop_change(loop, c->fds[side], events, NULL);
	c->events[side] = events;
}

void connection_close_side(struct connection *c, int side)
{
	connection_watch(c, side, UNWATCHED);
	fd_close(&c->fds[side]);
}

static void drop_flow(struct flow *flow)
{
	free(flow->data);
	flow->data = NULL;
	flow->start = flow->len = 0;
}

static void keep_in_flow(struct flow *flow, const char *data, size_t len)
{
	drop_flow(flow);
	if (!len)
		return;
	flow->data = malloc(len);
	if (!flow->data)
		abort();
	memcpy(flow->data, data, len);
	flow->len = len;
}

static void reap_closed(struct loop *loop, void *ctx)
{
	struct server *server = ctx;
	struct connection **link = &server->connections;

	server->reaper = NULL;
	while (*link) {
		struct connection *c = *link;
		if (c->state != CLOSED) {
			link = &c->next;
			continue;
		}
		*link = c->next;
		free(c);
	}
}

void connection_close(struct connection *c)
{
	struct server *server = c->policy->server;

	if (c->state == CLOSED)
		return;
	c->state = CLOSED;
	connection_close_side(c, CLIENT);
	connection_close_side(c, UPSTREAM);
	drop_flow(&c->flows[CLIENT]);
	drop_flow(&c->flows[UPSTREAM]);
	buf_done(&c->head);
	buf_done(&c->tunnel);
	loop_cancel(server->loop, c->timer);
	c->timer = NULL;
	server->count--;
	c->policy->count--;
	if (!server->reaper)
		server->reaper = loop_after(server->loop, 0, reap_closed, server);
	serve_on_closed(server);
}

void connection_break(struct connection *c)
{
	struct linger at_once = { .l_onoff = 1 };

	for (int side = 0; side < 2; side++)
		if (c->fds[side] >= 0)
			setsockopt(c->fds[side], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	connection_close(c);
}

void connection_set_timer(struct connection *c, uint64_t delay_ms)
{
	loop_cancel(c->policy->server->loop, c->timer);
	c->timer = loop_after(c->policy->server->loop, delay_ms, serve_on_timer, c);
}

static void drain(struct connection *c)
{
	/* Closing while the client still sends would reset the connection, and with it the answer
	 * that it hasn't read yet. */
	c->state = DRAINING;
	connection_close_side(c, UPSTREAM);
	drop_flow(&c->flows[CLIENT]);
	c->flows[UPSTREAM].is_ended = true;
	connection_set_timer(c, DRAIN_MS);
	connection_pump(c);
}

void connection_answer(struct connection *c, int code, const char *title, const char *text)
{
	char response[1024];
	size_t len = strlen(text) + 1;

	str_format(response, sizeof response,
		"HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n%s\n",
		code, title, len, text);
	keep_in_flow(&c->flows[UPSTREAM], response, strlen(response));
	drain(c);
}

/* How many of the *len bytes of the client may be passed on. false: the connection is broken. */
static bool take_body(struct connection *c, size_t *len)
{
	size_t taken;

	if (c->request.is_connect)
		return true;
	struct str bytes = { c->policy->server->chunk, *len };
	if (forward_body_take(&c->body, bytes, &taken, NULL) < 0) {
		connection_break(c);
		return false;
	}
	/* Bytes behind the body are another request, which was not judged. The server is told that
	 * no more comes, so that it closes the connection, and the client sends the request again
	 * on a new one. */
	if (taken < *len)
		c->flows[CLIENT].is_ended = true;
	*len = taken;
	return true;
}

/* How many bytes the other side takes now; -1: it takes none any more, or the connection is closed.
 */
static ssize_t send_some(struct connection *c, int side, const char *data, size_t len)
{
	struct flow *flow = &c->flows[side];
	ssize_t sent;

	do
		sent = send(c->fds[!side], data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno == EAGAIN)
		return 0;
	if (sent < 0 && side == UPSTREAM) {
		connection_break(c);
		return -1;
	}
	if (sent < 0) {
		/* A server may answer and close without reading the whole request: its answer can
		 * still be read. */
		drop_flow(flow);
		flow->is_ended = flow->is_shut = true;
		return -1;
	}
	c->active_ms = clock_monotonic_ms();
	if (side == CLIENT)
		c->policy->status.bytes_out += (uint64_t)sent;
	return sent;
}

/* Hands on what is kept. false: the other side must take it first, or the connection is closed. */
static bool flush(struct connection *c, int side)
{
	struct flow *flow = &c->flows[side];

	while (flow->len) {
		ssize_t sent = send_some(c, side, flow->data + flow->start, flow->len);
		if (sent < 0)
			return c->state != CLOSED;
		if (!sent)
			return false;
		flow->start += (size_t)sent;
		flow->len -= (size_t)sent;
	}
	drop_flow(flow);
	return true;
}

/* The server was told to close the connection after its answer (forward_rewrite). Not every server
 * says so in the answer, and a client that isn't told may send its next request just before the
 * end: then it would fail. */
static void say_closing(struct connection *c, size_t *len)
{
	static const char version[] = "HTTP/1.";
	char *chunk = c->policy->server->chunk;

	if (!c->is_answer_begun &&
		(*len < strlen(version) || memcmp(chunk, version, strlen(version))))
		c->is_status_passed = true; /* not an answer that has headers */
	c->is_answer_begun = true;
	char *end = c->is_status_passed ? NULL : memchr(chunk, '\n', *len);
	if (!end)
		return;
	c->is_status_passed = true;
	end++;
	memmove(end + strlen(CLOSING), end, *len - (size_t)(end - chunk));
	memcpy(end, CLOSING, strlen(CLOSING));
	*len += strlen(CLOSING);
}

/* false: nothing to read now, or the connection is closed. */
static bool fill(struct connection *c, int side)
{
	struct flow *flow = &c->flows[side];
	ssize_t got = recv(c->fds[side], c->policy->server->chunk, CHUNK, MSG_DONTWAIT);
	size_t len = got > 0 ? (size_t)got : 0;

	if (got < 0 && errno == EINTR)
		return true;
	if (got < 0 && errno == EAGAIN)
		return false;
	if (got < 0) {
		connection_break(c);
		return false;
	}
	if (!got) {
		flow->is_ended = true;
		return true;
	}
	if (side == CLIENT && !take_body(c, &len))
		return false;
	if (side == UPSTREAM) /* not where it is sent: answers of our own aren't from there */
		c->policy->status.bytes_in += len;
	if (side == UPSTREAM && !c->request.is_connect)
		say_closing(c, &len);
	ssize_t sent = len ? send_some(c, side, c->policy->server->chunk, len) : 0;
	if (sent >= 0)
		keep_in_flow(flow, c->policy->server->chunk + sent, len - (size_t)sent);
	return c->state != CLOSED;
}

static void pump_flow(struct connection *c, int side)
{
	struct flow *flow = &c->flows[side];

	for (int round = 0; round < ROUNDS; round++) {
		if (!flush(c, side) || flow->is_ended || !fill(c, side))
			break;
	}
	if (c->state == CLOSED || !flush(c, side) || !flow->is_ended || flow->is_shut)
		return;
	shutdown(c->fds[!side], SHUT_WR);
	flow->is_shut = true;
}

static void watch_flows(struct connection *c)
{
	for (int side = 0; side < 2; side++) {
		const struct flow *from = &c->flows[side], *to = &c->flows[!side];
		uint32_t events =
			(!from->is_ended && !from->len ? EPOLLIN : 0u) | (to->len ? EPOLLOUT : 0u);
		/* A read or write reports errors. A side that does neither is not watched: epoll
		 * would report its error in every turn of the loop. */
		connection_watch(c, side, events ? events : UNWATCHED);
	}
}

/* Discards the rest of the client's bytes, and waits for the client to close. */
static void pump_drain(struct connection *c)
{
	ssize_t got;

	pump_flow(c, UPSTREAM);
	for (int round = 0; c->state != CLOSED && round < ROUNDS; round++) {
		got = recv(c->fds[CLIENT], c->policy->server->chunk, CHUNK, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (got < 0 || (!got && c->flows[UPSTREAM].is_shut)) {
			connection_close(c);
			return;
		}
		if (!got) { /* half closed; what is left for it to read has to go out first */
			connection_watch(c, CLIENT, EPOLLOUT);
			return;
		}
	}
	if (c->state != CLOSED)
		connection_watch(c, CLIENT, EPOLLIN | (c->flows[UPSTREAM].len ? EPOLLOUT : 0u));
}

void connection_pump(struct connection *c)
{
	if (c->state == DRAINING) {
		pump_drain(c);
		return;
	}
	pump_flow(c, UPSTREAM);
	if (c->state != CLOSED)
		pump_flow(c, CLIENT);
	if (c->state == CLOSED)
		return;
	bool is_over = c->flows[UPSTREAM].is_shut;
	if (is_over && !c->request.is_connect)
		drain(c);
	else if (is_over && c->flows[CLIENT].is_shut)
		connection_close(c);
	else
		watch_flows(c);
}

/* Only a failure of the same host: others may still be the reason why a build fails. */
static void forget_failure(struct connection *c)
{
	char *failure = c->policy->status.last_failure, host[320];
	str_format(host, sizeof host, "%s:%u: ", c->request.host, c->request.port);
	if (str_starts_with(str_from(failure), host))
		failure[0] = '\0';
}

void connection_relay(struct connection *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	size_t head_len = c->request.head_len, rest = c->head.len - head_len;
	size_t taken = rest;

	c->state = RELAYING;
	c->active_ms = clock_monotonic_ms();
	connection_set_timer(c, c->policy->given.limits.idle_ms);
	c->policy->status.connections++;
	forget_failure(c);
	auto_buf struct buf out = buf_empty(4 * FORWARD_HEAD_MAX);
	if (c->request.is_connect) {
		keep_in_flow(&c->flows[UPSTREAM], established, sizeof established - 1);
	} else {
		struct str head = { c->head.data, c->head.len };
		forward_rewrite(head, &c->request, &out);
		forward_body_start(&c->body, &c->request);
		if (forward_body_take(&c->body, (struct str){ c->head.data + head_len, rest },
			    &taken, NULL) < 0) {
			connection_answer(c, 400, "Bad Request", "carrel: a malformed chunk");
			return;
		}
		c->flows[CLIENT].is_ended = taken < rest;
	}
	buf_append(&out, c->head.data + head_len, taken);
	keep_in_flow(&c->flows[CLIENT], out.data, out.len);
	buf_done(&c->head);
	buf_done(&c->tunnel);
	connection_pump(c);
}
