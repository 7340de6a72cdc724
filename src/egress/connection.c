/* Connections: their sides, timers and ends. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "egress/internal.h"

#define ROUNDS 8      /* reads in a turn of the loop */
#define DRAIN_MS 2000 /* for the client to read an answer and close */

static void on_egress_connection_timer(struct loop *loop, void *ctx);

struct connection *connection_new(struct policy *policy, int fd)
{
	struct connection *c = xzalloc(sizeof *c);
	*c = (struct connection){ .policy = policy,
		.front = EGRESS_FRONT_HTTP,
		.next = policy->connections,
		.link = &policy->connections,
		.fds = { fd, -1 },
		.events = { UNWATCHED, UNWATCHED } };
	if (c->next)
		c->next->link = &c->next;
	policy->connections = c;
	buf_init(&c->in, CLIENT_BYTES_MAX);
	buf_init(&c->tunnel, 0);
	policy->server->count++;
	policy->count++;
	return c;
}

void connection_watch(struct connection *c, int side, uint32_t events)
{
	struct loop *loop = c->policy->server->loop;
	if (c->events[side] == events || c->fds[side] < 0)
		return;
	if (events == UNWATCHED)
		loop_unwatch(loop, c->fds[side]);
	else if (c->events[side] == UNWATCHED)
		loop_watch(loop, c->fds[side], events, connection_on_event, c, NULL);
	else
		loop_change(loop, c->fds[side], events, NULL);
	c->events[side] = events;
}

void connection_close_side(struct connection *c, int side)
{
	connection_watch(c, side, UNWATCHED);
	fd_close(&c->fds[side]);
}

void connection_stop_timer(struct connection *c)
{
	loop_cancel(c->policy->server->loop, c->timer);
	c->timer = NULL;
}

void connection_set_timer(struct connection *c, uint64_t delay_ms)
{
	connection_stop_timer(c);
	c->timer = loop_after(c->policy->server->loop, delay_ms, on_egress_connection_timer, c);
}

/* ---- the end ---- */

static void free_closed(struct loop *loop, void *ctx)
{
	struct server *server = ctx;
	server->reaper = NULL;
	while (server->closed) {
		struct connection *c = server->closed;
		server->closed = c->next;
		free(c);
	}
}

void connection_leave(struct connection *c)
{
	struct policy *policy = c->policy;
	uint64_t now = clock_monotonic_ms();
	connection_close_side(c, UPSTREAM);
	free(c->attempt);
	c->attempt = NULL;
	c->lookup = NULL;
	c->proxy = NULL;
	if (c->is_open) {
		struct egress_record record = { .id = c->id,
			.event = EGRESS_CLOSED,
			.front = (uint8_t)c->front,
			.port = c->port,
			.bytes_in = c->bytes_in,
			.bytes_out = c->bytes_out,
			.requests = c->requests,
			.duration_ms = now - c->opened_ms };
		str_copy(record.host, sizeof record.host, c->host);
		str_copy(record.rule, sizeof record.rule, c->verdict.rule ? c->verdict.rule : "");
		address_print(&c->address, record.address);
		policy_record(policy, &record);
	}
	c->is_open = false;
	c->bytes_in = c->bytes_out = c->requests = 0;
	c->address = (union address){ 0 };
	rules_release(&policy->server->rules, c->rules);
	c->rules = NULL;
	c->verdict = (struct network_verdict){ 0 };
}

void connection_close(struct connection *c)
{
	struct server *server = c->policy->server;
	if (c->state == CLOSED)
		return;
	c->state = CLOSED;
	connection_close_side(c, CLIENT);
	connection_leave(c);
	relay_drop(server, &c->flows[CLIENT]);
	relay_drop(server, &c->flows[UPSTREAM]);
	buf_done(&c->in);
	buf_done(&c->tunnel);
	exchange_free(c->exchange);
	c->exchange = NULL;
	connection_stop_timer(c);
	server->count--;
	c->policy->count--;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->next = server->closed;
	server->closed = c;
	if (!server->reaper)
		server->reaper = loop_after(server->loop, 0, free_closed, server);
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

void connection_finish(struct connection *c, const char *data, size_t len)
{
	struct server *server = c->policy->server;
	/* Closing while the client still sends would reset the connection, and with it the answer
	 * that it hasn't read yet. */
	c->state = DRAINING;
	connection_leave(c);
	relay_drop(server, &c->flows[CLIENT]);
	buf_done(&c->in);
	connection_set_timer(c, DRAIN_MS);
	if (!relay_send(c, UPSTREAM, data, len))
		return;
	c->flows[UPSTREAM].is_ended = true;
	connection_pump(c);
}

/* Discards the rest of the client's bytes, and waits for the client to close. */
static void drain(struct connection *c)
{
	struct flow *flow = &c->flows[UPSTREAM];
	ssize_t got;
	if (relay_flush(c, UPSTREAM) && !flow->is_shut) {
		shutdown(c->fds[CLIENT], SHUT_WR);
		flow->is_shut = true;
	}
	for (int round = 0; c->state != CLOSED && round < ROUNDS; round++) {
		got = recv(c->fds[CLIENT], c->policy->server->chunk, CHUNK, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (got < 0 || (!got && flow->is_shut)) {
			connection_close(c);
			return;
		}
		if (!got) { /* half closed; what is left for it to read has to go out first */
			connection_watch(c, CLIENT, EPOLLOUT);
			return;
		}
	}
	if (c->state != CLOSED)
		connection_watch(c, CLIENT, EPOLLIN | (flow->is_shut ? 0u : EPOLLOUT));
}

/* ---- events ---- */

bool connection_read_client(struct connection *c, bool *has_more)
{
	size_t room = CLIENT_BYTES_MAX - c->in.len;
	char *chunk = c->policy->server->chunk;
	ssize_t got = 0;
	*has_more = false;
	if (!room)
		return true;
	do
		got = recv(c->fds[CLIENT], chunk, room, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return true;
	if (got < 0) {
		connection_break(c);
		return false;
	}
	if (!got)
		c->is_client_ended = true;
	buf_append(&c->in, chunk, (size_t)got);
	*has_more = got > 0;
	return true;
}

void connection_pump(struct connection *c)
{
	if (c->state == DRAINING)
		drain(c);
	else if (c->state == RELAYING)
		relay_pump(c);
	else if (c->state == EXCHANGING)
		exchange_pump(c);
	else if (c->state == HELLO)
		hello_judge(c);
}

void connection_on_event(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct connection *c = ctx;
	c->is_ready[CLIENT] = fd == c->fds[CLIENT];
	c->is_ready[UPSTREAM] = !c->is_ready[CLIENT];
	switch (c->state) {
	case HEAD:
		if (fd == c->fds[CLIENT])
			front_read(c);
		else /* an upstream server that is kept for the next request has closed */
			connection_leave(c);
		break;
	case CONNECTING:
	case TUNNELING:
		if (fd == c->fds[UPSTREAM])
			upstream_on_event(c);
		else if (events & (EPOLLHUP | EPOLLERR))
			connection_close(c);
		break;
	case WAITING:
	case RESOLVING:
		if (events & (EPOLLHUP | EPOLLERR)) /* the client has gone */
			connection_close(c);
		break;
	default:
		connection_pump(c);
	}
}

static void on_egress_connection_timer(struct loop *loop, void *ctx)
{
	struct connection *c = ctx;
	uint64_t idle_ms = clock_monotonic_ms() - c->active_ms, most = c->policy->limits.idle_ms;
	c->timer = NULL;
	switch (c->state) {
	case HEAD:
		if (c->is_pending)
			front_read(c);
		else if (c->exchange && !c->in.len && idle_ms < most) /* between two requests */
			connection_set_timer(c, most - idle_ms);
		else if (c->exchange && !c->in.len)
			connection_close(c);
		else
			front_reject(
				c, 408, "Request Timeout", "the request did not arrive in time");
		break;
	case WAITING:
		front_refuse(c, network_reason_text(NETWORK_REASON_UNLISTED));
		break;
	case CONNECTING:
	case TUNNELING:
		upstream_on_timer(c);
		break;
	case HELLO:
		front_refuse(c, "the first bytes did not arrive in time");
		break;
	case RELAYING:
	case EXCHANGING:
		if (idle_ms >= most)
			connection_break(c);
		else
			connection_set_timer(c, most - idle_ms);
		break;
	case DRAINING:
		connection_close(c);
		break;
	case RESOLVING:
	case CLOSED:
		break;
	}
}
