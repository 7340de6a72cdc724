/* HTTP requests through the proxy, or in a tunnel: each is judged, rewritten and passed on with
 * exactly its body; where its answer ends is known, so that both sides may be kept for the next. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/arena.h"
#include "egress/exchange.h"

#define ROUNDS 8
#define AGAIN_MAX 16384 /* bytes of a request that is kept to be sent again */
/* The beginning of an answer's head, and what is read when it ends. */
#define HEAD_BYTES_MAX (FORWARD_ANSWER_MAX + CHUNK)

static void egress_exchange_watch(struct connection *c);

struct forward_request *exchange_request(struct connection *c)
{
	if (!c->exchange) {
		c->exchange = xzalloc(sizeof *c->exchange);
		buf_init(&c->exchange->head, HEAD_BYTES_MAX);
		buf_init(&c->exchange->again, 4 * FORWARD_HEAD_MAX);
	}
	return &c->exchange->request;
}

void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	buf_done(&exchange->head);
	buf_done(&exchange->again);
	free(exchange);
}

bool exchange_has_served(const struct connection *c)
{
	return c->exchange && c->exchange->served;
}

/* ---- the request ---- */

/* The body bytes at the beginning of c->in are appended to `out`; false: malformed. */
static bool take_body(struct connection *c, struct buf *out)
{
	struct exchange *e = c->exchange;
	size_t taken = 0;
	if (e->body.is_done || !c->in.len)
		return true;
	if (forward_body_take(&e->body, (struct str){ c->in.data, c->in.len }, &taken, NULL) < 0)
		return false;
	buf_append(out, c->in.data, taken);
	buf_drop_front(&c->in, taken);
	return true;
}

static void egress_exchange_begin(struct connection *c)
{
	struct exchange *e = c->exchange;
	e->is_active = true;
	e->is_head = str_is(e->request.method, "HEAD");
	e->is_upgrade = e->request.is_upgrade;
	e->keeps = e->request.keeps;
	e->answer = ANSWER_HEAD;
	buf_clear(&e->head);
	buf_clear(&e->again);
	forward_body_start(&e->body, &e->request);
	c->requests++;
	c->policy->status.requests++;
}

void exchange_connected(struct connection *c)
{
	struct exchange *e = c->exchange;
	auto_buf struct buf out = buf_empty(8 * FORWARD_HEAD_MAX);
	c->state = EXCHANGING;
	if (!e->is_active) {
		egress_exchange_begin(c);
		forward_rewrite(&e->request, &out);
		buf_drop_front(&c->in, e->request.head_len);
		/* A server may close a kept connection just when a request is sent on it. */
		if (e->is_reused && e->body.is_done && out.len <= AGAIN_MAX)
			buf_append(&e->again, out.data, out.len);
		if (!take_body(c, &out)) {
			front_reject(c, 400, "Bad Request", "a malformed chunk");
			return;
		}
	} else { /* once more, on a new connection */
		buf_append(&out, e->again.data, e->again.len);
		buf_clear(&e->again);
		e->is_reused = false;
	}
	if (!c->timer)
		connection_set_timer(c, c->policy->limits.idle_ms);
	relay_count(c, CLIENT, out.len);
	c->flows[CLIENT].is_ended = c->flows[CLIENT].is_shut = false;
	if (!relay_send(c, CLIENT, out.data, out.len))
		return;
	egress_exchange_watch(c);
}

/* More of the body, or of what follows it, which waits in c->in. */
static void pump_requests(struct connection *c)
{
	struct exchange *e = c->exchange;
	auto_buf struct buf out = buf_empty(2 * CLIENT_BYTES_MAX);
	bool has_more = false;
	if (!relay_flush(c, CLIENT))
		return;
	if (c->is_ready[CLIENT] && !c->is_client_ended) {
		size_t most = policy_budget(c->policy, CHUNK);
		c->is_throttled = c->is_throttled || !most;
		if (most && !connection_read_client(c, &has_more))
			return;
	}
	if (!take_body(c, &out)) {
		connection_break(c);
		return;
	}
	if (out.len) {
		relay_count(c, CLIENT, out.len);
		relay_send(c, CLIENT, out.data, out.len);
	}
	if (c->state == EXCHANGING && c->is_client_ended && !e->body.is_done)
		connection_break(c);
}

/* ---- the answer ---- */

static void become_relay(struct connection *c)
{
	exchange_free(c->exchange);
	c->exchange = NULL;
	relay_begin(c);
}

/* The head of the answer is whole, in `bytes`. */
static bool take_head(struct connection *c, struct str bytes, const struct forward_answer *answer)
{
	struct exchange *e = c->exchange;
	auto_buf struct buf out = buf_empty(HEAD_BYTES_MAX + FORWARD_ANSWER_MAX);
	if (answer->status == 101 && !e->is_upgrade)
		return false;
	bool is_last = answer->status >= 200;
	if (is_last) {
		bool is_empty = e->is_head || answer->status == 204 || answer->status == 304;
		e->keeps_upstream = answer->keeps;
		e->answer = ANSWER_BODY;
		if (!is_empty && !answer->is_chunked && !answer->has_length) {
			e->answer = ANSWER_REST;
			e->keeps = e->keeps_upstream = false;
		}
		forward_answer_body(&e->answer_body, answer, is_empty);
		e->keeps = e->keeps && e->body.is_done;
	}
	forward_rewrite_answer(answer, !is_last || e->keeps, &out);
	if (e->answer == ANSWER_BODY) { /* what has come of the body goes out with the head */
		size_t taken = 0;
		struct str rest = { bytes.data + answer->head_len, bytes.len - answer->head_len };
		if (forward_body_take(&e->answer_body, rest, &taken, NULL) < 0)
			return false;
		buf_append(&out, rest.data, taken);
		e->keeps_upstream = e->keeps_upstream && taken == rest.len;
		if (e->answer_body.is_done)
			e->answer = ANSWER_DONE;
	}
	return relay_send(c, UPSTREAM, out.data, out.len);
}

/* Bytes before the end of the answer's head. false: the connection is to be broken, or closed. */
static bool take_answer_head(struct connection *c, struct str bytes)
{
	struct exchange *e = c->exchange;
	struct forward_answer answer;
	if (e->head.len) {
		if (!buf_append(&e->head, bytes.data, bytes.len))
			return false;
		bytes = (struct str){ e->head.data, e->head.len };
	}
	for (;;) {
		int status = forward_parse_answer(bytes, &answer, NULL);
		if (status < 0) { /* not in a form that can be framed: passed on until the end */
			e->answer = ANSWER_REST;
			e->keeps = e->keeps_upstream = false;
			return relay_send(c, UPSTREAM, bytes.data, bytes.len);
		}
		if (status == 0)
			break;
		if (!take_head(c, bytes, &answer))
			return false;
		struct str rest = { bytes.data + answer.head_len, bytes.len - answer.head_len };
		if (answer.status == 101) {
			if (!relay_send(c, UPSTREAM, rest.data, rest.len))
				return false;
			become_relay(c);
			return true;
		}
		if (e->answer == ANSWER_REST && rest.len)
			return relay_send(c, UPSTREAM, rest.data, rest.len);
		if (e->answer != ANSWER_HEAD)
			return true;
		bytes = rest;
	}
	/* The beginning of a head is kept. It may lie in the same buffer. */
	if (e->head.len) {
		buf_drop_front(&e->head, e->head.len - bytes.len);
		return true;
	}
	return buf_append(&e->head, bytes.data, bytes.len);
}

static bool egress_exchange_take_answer(struct connection *c, struct str bytes)
{
	struct exchange *e = c->exchange;
	size_t taken = bytes.len;
	if (e->answer == ANSWER_HEAD)
		return take_answer_head(c, bytes);
	if (e->answer == ANSWER_BODY) {
		if (forward_body_take(&e->answer_body, bytes, &taken, NULL) < 0)
			return false;
		if (e->answer_body.is_done)
			e->answer = ANSWER_DONE;
	} else if (e->answer == ANSWER_DONE) {
		taken = 0;
	}
	/* Bytes behind an answer belong to no request. */
	e->keeps_upstream = e->keeps_upstream && taken == bytes.len;
	return relay_send(c, UPSTREAM, bytes.data, taken);
}

/* The server has closed the connection, or broken it. */
static void end_answer(struct connection *c, bool is_broken)
{
	struct exchange *e = c->exchange;
	if (e->answer == ANSWER_REST && !is_broken) {
		e->answer = ANSWER_DONE;
		e->keeps_upstream = false;
	} else if (e->answer == ANSWER_HEAD && !e->head.len && e->again.len) {
		connection_close_side(c, UPSTREAM);
		relay_drop(c->policy->server, &c->flows[CLIENT]);
		c->flows[CLIENT] = (struct flow){ 0 };
		connection_leave(c);
		front_judge(c);
	} else if (e->answer == ANSWER_HEAD && !e->head.len && !is_broken) {
		front_fail(c, 502, "Bad Gateway", "the server closed the connection");
	} else {
		connection_break(c);
	}
}

static void pump_answers(struct connection *c)
{
	char *chunk = c->policy->server->chunk;
	for (int round = 0; round < ROUNDS; round++) {
		if (!relay_flush(c, UPSTREAM) || c->state != EXCHANGING ||
			c->exchange->answer == ANSWER_DONE)
			return;
		size_t most = policy_budget(c->policy, CHUNK);
		if (!most) {
			c->is_throttled = true;
			return;
		}
		ssize_t got = recv(c->fds[UPSTREAM], chunk, most, MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			end_answer(c, got < 0);
			return;
		}
		relay_count(c, UPSTREAM, (size_t)got);
		if (front_is_over(c))
			return;
		buf_clear(&c->exchange->again);
		if (!egress_exchange_take_answer(c, (struct str){ chunk, (size_t)got })) {
			connection_break(c);
			return;
		}
		if (c->state != EXCHANGING || (size_t)got < most)
			return;
	}
}

/* ---- both ---- */

/* The answer has been sent: the next request, or the end. */
static void egress_exchange_finish(struct connection *c)
{
	struct exchange *e = c->exchange;
	e->is_active = false;
	e->served++;
	e->is_reused = true;
	if (!e->keeps || !e->body.is_done || c->is_client_ended) {
		connection_finish(c, "", 0);
		return;
	}
	if (!e->keeps_upstream || c->flows[CLIENT].is_shut) {
		connection_leave(c);
		e->is_reused = false;
	}
	c->state = HEAD;
	c->is_begun = false;
	connection_watch(c, CLIENT, EPOLLIN);
	connection_watch(c, UPSTREAM, EPOLLIN);
	buf_done(&e->head); /* an idle connection holds no memory */
	buf_init(&e->head, HEAD_BYTES_MAX);
	if (!c->in.len) {
		buf_done(&c->in);
		buf_init(&c->in, CLIENT_BYTES_MAX);
		return;
	}
	/* In the next turn of the loop: a client may have sent hundreds. */
	c->is_pending = true;
	connection_set_timer(c, 0);
}

static void egress_exchange_watch(struct connection *c)
{
	bool has_room = c->in.len < CLIENT_BYTES_MAX && !c->is_client_ended &&
			!c->flows[CLIENT].len && !c->is_throttled;
	bool reads = !c->flows[UPSTREAM].len && !c->is_throttled;
	uint32_t client = (has_room ? EPOLLIN : 0u) | (c->flows[UPSTREAM].len ? EPOLLOUT : 0u);
	uint32_t upstream = (reads ? EPOLLIN : 0u) | (c->flows[CLIENT].len ? EPOLLOUT : 0u);
	connection_watch(c, CLIENT, client ? client : UNWATCHED);
	connection_watch(c, UPSTREAM, upstream ? upstream : UNWATCHED);
}

void exchange_pump(struct connection *c)
{
	bool is_woken = c->is_throttled;
	c->is_throttled = false;
	if (is_woken)
		c->is_ready[CLIENT] = c->is_ready[UPSTREAM] = true;
	pump_requests(c);
	if (c->state == EXCHANGING)
		pump_answers(c);
	if (c->state != EXCHANGING)
		return;
	if (c->exchange->answer == ANSWER_DONE && relay_flush(c, UPSTREAM)) {
		if (c->state == EXCHANGING)
			egress_exchange_finish(c);
		return;
	}
	if (c->state == EXCHANGING)
		egress_exchange_watch(c);
}
