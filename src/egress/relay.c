/* Moving bytes between a client and the host it asked for, without looking at them. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "egress/internal.h"

#define ROUNDS 8 /* reads of one flow in a turn of the loop */
#define PIPE_BYTES (1 << 18)
#define PIPES_KEPT 32  /* empty ones for the next flow that needs one */
#define BULK_MIN 16384 /* bytes of a read below which more is unlikely to be there */

/* ---- pipes ---- */

static struct pipe *take_pipe(struct server *server)
{
	struct pipe *pipe = server->pipes;
	if (pipe) {
		server->pipes = pipe->next;
		server->pipe_count--;
		return pipe;
	}
	pipe = xzalloc(sizeof *pipe);
	if (pipe2(pipe->fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(pipe);
		return NULL;
	}
	(void)fcntl(pipe->fds[1], F_SETPIPE_SZ, PIPE_BYTES); /* a small one is slower */
	return pipe;
}

static void return_pipe(struct server *server, struct flow *flow)
{
	struct pipe *pipe = flow->pipe;
	if (!pipe)
		return;
	flow->pipe = NULL;
	if (!flow->piped && server->pipe_count < PIPES_KEPT) {
		pipe->next = server->pipes;
		server->pipes = pipe;
		server->pipe_count++;
		return;
	}
	flow->piped = 0;
	fd_close(&pipe->fds[0]);
	fd_close(&pipe->fds[1]);
	free(pipe);
}

void relay_drop(struct server *server, struct flow *flow)
{
	free(flow->data);
	flow->data = NULL;
	flow->start = flow->len = 0;
	return_pipe(server, flow);
}

/* ---- sending ---- */

void relay_count(struct connection *c, int side, size_t bytes)
{
	struct egress_status *status = &c->policy->status;
	c->active_ms = clock_monotonic_ms();
	policy_spend(c->policy, bytes);
	*(side == CLIENT ? &status->bytes_out : &status->bytes_in) += bytes;
	*(side == CLIENT ? &c->bytes_out : &c->bytes_in) += bytes;
}

/* The other side takes nothing any more. */
static void egress_relay_give_up(struct connection *c, int side)
{
	struct flow *flow = &c->flows[side];
	if (side == UPSTREAM || c->state == HELLO) {
		connection_break(c);
		return;
	}
	/* A server may answer and close without reading the whole request: its answer can still be
	 * read. */
	relay_drop(c->policy->server, flow);
	flow->is_ended = flow->is_shut = true;
}

/* How many bytes the other side takes now; -1: it takes none any more, or the connection is closed.
 */
static ssize_t send_some(struct connection *c, int side, const char *data, size_t len)
{
	ssize_t sent;
	do
		sent = send(c->fds[!side], data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno == EAGAIN)
		return 0;
	if (sent < 0)
		egress_relay_give_up(c, side);
	return sent;
}

static void egress_relay_keep(struct flow *flow, const char *data, size_t len)
{
	if (!len)
		return;
	flow->data = malloc(len);
	if (!flow->data)
		abort();
	memcpy(flow->data, data, len);
	flow->start = 0;
	flow->len = len;
}

bool relay_send(struct connection *c, int side, const char *data, size_t len)
{
	struct flow *flow = &c->flows[side];
	if (flow->is_shut)
		return true;
	if (flow->len) { /* behind what is kept */
		char *all = malloc(flow->len + len);
		if (!all)
			abort();
		memcpy(all, flow->data + flow->start, flow->len);
		if (len)
			memcpy(all + flow->len, data, len);
		free(flow->data);
		flow->data = all;
		flow->start = 0;
		flow->len += len;
		return true;
	}
	ssize_t sent = len ? send_some(c, side, data, len) : 0;
	if (sent >= 0)
		egress_relay_keep(flow, data + sent, len - (size_t)sent);
	return c->state != CLOSED;
}

static bool flush_pipe(struct connection *c, int side)
{
	struct flow *flow = &c->flows[side];
	while (flow->piped) {
		ssize_t moved = splice(flow->pipe->fds[0], NULL, c->fds[!side], NULL, flow->piped,
			SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0 && errno == EAGAIN)
			return false;
		if (moved <= 0) {
			egress_relay_give_up(c, side);
			return c->state != CLOSED;
		}
		flow->piped -= (size_t)moved;
	}
	return true;
}

bool relay_flush(struct connection *c, int side)
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
	if (flow->data) {
		free(flow->data);
		flow->data = NULL;
	}
	return flush_pipe(c, side);
}

/* ---- reading ---- */

/* What a read returned: true: bytes came. */
static bool judge_read(struct connection *c, int side, ssize_t got)
{
	if (got > 0)
		return true;
	if (got == 0)
		c->flows[side].is_ended = true;
	else if (errno != EAGAIN && errno != EINTR)
		connection_break(c);
	return false;
}

/* By a pipe: the bytes are never in this process. */
static bool fill_pipe(struct connection *c, int side, size_t most, size_t *got)
{
	struct flow *flow = &c->flows[side];
	struct server *server = c->policy->server;
	if (!flow->pipe)
		flow->pipe = take_pipe(server);
	if (!flow->pipe) { /* no descriptor is left */
		flow->is_bulk = false;
		return true;
	}
	ssize_t moved = splice(c->fds[side], NULL, flow->pipe->fds[1], NULL,
		most < PIPE_BYTES ? most : PIPE_BYTES, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (!judge_read(c, side, moved))
		return false;
	flow->piped += (size_t)moved;
	*got = (size_t)moved;
	return flush_pipe(c, side) && c->state != CLOSED;
}

static bool fill_chunk(struct connection *c, int side, size_t most, size_t *got)
{
	char *chunk = c->policy->server->chunk;
	ssize_t came = recv(c->fds[side], chunk, most < CHUNK ? most : CHUNK, MSG_DONTWAIT);
	if (!judge_read(c, side, came))
		return false;
	*got = (size_t)came;
	c->flows[side].is_bulk = came == CHUNK;
	return relay_send(c, side, chunk, (size_t)came);
}

/* false: nothing to read now, or the connection is closed. */
static bool egress_relay_fill(struct connection *c, int side)
{
	struct flow *flow = &c->flows[side];
	size_t most = policy_budget(c->policy, PIPE_BYTES), got = 0;
	if (!most) {
		c->is_throttled = true;
		return false;
	}
	bool goes_on =
		flow->is_bulk ? fill_pipe(c, side, most, &got) : fill_chunk(c, side, most, &got);
	if (c->state == CLOSED)
		return false;
	if (got) /* not where it is sent: answers of our own aren't from there */
		relay_count(c, side, got);
	if (side == UPSTREAM && front_is_over(c))
		return false;
	if (got && got < BULK_MIN) {
		flow->is_bulk = false;
		return false;
	}
	return goes_on;
}

void relay_pump_flow(struct connection *c, int side)
{
	struct flow *flow = &c->flows[side];
	for (int round = 0; round < ROUNDS; round++)
		if (!relay_flush(c, side) || flow->is_ended || !egress_relay_fill(c, side))
			break;
	if (c->state == CLOSED)
		return;
	if (!flow->piped)
		return_pipe(c->policy->server, flow);
	if (!flow->is_ended || flow->is_shut || !relay_flush(c, side) || c->state == CLOSED)
		return;
	shutdown(c->fds[!side], SHUT_WR);
	flow->is_shut = true;
}

static bool is_kept(const struct flow *flow)
{
	return flow->len || flow->piped;
}

static void egress_relay_watch(struct connection *c)
{
	for (int side = 0; side < 2; side++) {
		const struct flow *from = &c->flows[side], *to = &c->flows[!side];
		bool is_wanted = !from->is_ended && !is_kept(from) && !c->is_throttled;
		uint32_t events = (is_wanted ? EPOLLIN : 0u) | (is_kept(to) ? EPOLLOUT : 0u);
		/* A read or write reports errors. A side that does neither is not watched: epoll
		 * would report its error in every turn of the loop. */
		connection_watch(c, side, events ? events : UNWATCHED);
	}
}

void relay_pump(struct connection *c)
{
	c->is_throttled = false;
	relay_pump_flow(c, UPSTREAM);
	if (c->state != CLOSED)
		relay_pump_flow(c, CLIENT);
	if (c->state == CLOSED)
		return;
	if (c->flows[UPSTREAM].is_shut && c->flows[CLIENT].is_shut)
		connection_close(c);
	else
		egress_relay_watch(c);
}

void relay_begin(struct connection *c)
{
	c->state = RELAYING;
	connection_set_timer(c, c->policy->limits.idle_ms);
	c->flows[CLIENT].is_ended = c->is_client_ended;
	relay_count(c, CLIENT, c->in.len);
	if (!relay_send(c, CLIENT, c->in.data, c->in.len))
		return;
	buf_done(&c->in);
	buf_init(&c->in, CLIENT_BYTES_MAX);
	relay_pump(c);
}
