/* One request and its response: what comes next in it. */
#include "base/clock.h"
#include "base/fd.h"
#include "net/internal.h"

static struct exchange *new_exchange(struct http_connection *c)
{
	struct exchange *x = xzalloc(sizeof *x);
	arena_init(&x->request.arena);
	buf_init(&x->body, 0);
	x->request.connection = c;
	x->request.visit = c->visit;
	x->request.headers.items = x->headers;
	x->request.headers.capacity = HTTP_INLINE_HEADERS;
	x->request.began_ns = clock_monotonic_ns();
	x->request.peer = connection_peer(c);
	for (int i = 0; i < HTTP_FDS_MAX; i++)
		x->request.fds[i] = -1;
	x->file = x->pipe = -1;
	parser_init(&x->parser, &x->request, &c->server->limits);
	c->exchange = x;
	c->has_moved = c->has_asked = true;
	return x;
}

void exchange_end(struct http_connection *c, bool aborted)
{
	struct http_server *server = c->server;
	struct exchange *x = take_ptr(c->exchange);
	/* From here on the handler's calls have no effect. */
	x->answer = ANSWER_ENDED;
	if (x->has_begun && server->handler.done)
		server->handler.done(server->handler.ctx, &x->request, aborted);
	output_drop_sources(c, x);
	for (int i = 0; i < x->request.fd_count; i++)
		fd_close(&x->request.fds[i]);
	for (int i = 0; i < x->out_fd_count; i++)
		fd_close(&x->out_fds[i]);
	share_release(&x->share);
	buf_done(&x->body);
	parser_done(&x->parser);
	arena_done(&x->request.arena);
	free(x);
}

bool exchange_is_answered(const struct http_connection *c)
{
	const struct exchange *x = c->exchange;
	return x->answer == ANSWER_ENDED && x->is_complete && !x->is_cut && !c->is_broken &&
	       x->file < 0 && x->pipe < 0 && output_queued(c) == 0;
}

bool exchange_wants_input(const struct http_connection *c)
{
	const struct exchange *x = c->exchange;
	if (c->state != CONNECTION_OPEN)
		return false;
	if (!x || !x->has_begun)
		return true;
	if (x->is_complete || x->is_cut)
		return false;
	if (x->answer == ANSWER_ENDED)
		return !x->must_close;
	return x->body_mode != BODY_UNDECIDED && !x->is_paused;
}

static void exchange_refuse(struct exchange *x, int status, const char *detail)
{
	x->refusal = status;
	x->refusal_detail = detail;
}

/* ---- calling the handler ---- */
static void choose_id(struct http_server *server, struct http_request *r)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
	struct str given = http_header(r, "x-request-id");
	uint64_t count = server->id_count++;
	size_t good = 0;
	while (good < given.len && given.len < sizeof r->id &&
		((given.data[good] >= '0' && given.data[good] <= '9') ||
			((given.data[good] | 0x20) >= 'a' && (given.data[good] | 0x20) <= 'z') ||
			given.data[good] == '.' || given.data[good] == '_' ||
			given.data[good] == '-'))
		good++;
	if (good > 0 && good == given.len) {
		memcpy(r->id, given.data, good);
		return;
	}
	/* A number after what this server alone has: no system call for each. */
	memcpy(r->id, server->id_prefix, sizeof server->id_prefix - 1);
	for (size_t i = sizeof r->id - 1; i-- > sizeof server->id_prefix - 1; count >>= 5)
		r->id[i] = digits[count & 31];
}

static void exchange_begin(struct http_connection *c, struct exchange *x)
{
	struct http_server *server = c->server;
	struct http_request *r = &x->request;
	size_t used;
	choose_id(server, r);
	x->must_close = !x->parser.keep_alive;
	for (; r->fd_count < c->fd_count; r->fd_count++)
		r->fds[r->fd_count] = take_fd(&c->fds[r->fd_count]);
	c->fd_count = 0;
	if (!x->parser.has_body)
		x->is_complete = parser_next(&x->parser, STR(""), &used) == PARSE_END;
	x->has_begun = true;
	const struct http_listener *from = &c->listening->listener;
	struct error err;
	int found = from->authenticate ? from->authenticate(from->ctx, r, &r->principal, &err) : 0;
	if (found == 0)
		server->handler.begin(server->handler.ctx, r);
	if (found >= 0)
		return;
	x->must_close = true;
	server->handler.refused(server->handler.ctx, r, &err);
}

const char *exchange_too_big(const struct exchange *x)
{
	return x->body_max ? "the body is too big" : "this request takes no body";
}

static void keep_piece(struct http_server *server, struct exchange *x, struct str piece)
{
	const char *holder = x->request.holder;
	struct error why;
	if (piece.len > x->body_max - x->body.len) {
		exchange_refuse(x, 413, exchange_too_big(x));
	} else if (shares_check(&server->buffered, NULL, piece.len, &why)) {
		exchange_refuse(x, 503, "too many request bodies are being received");
	} else if (shares_check(&server->buffered, holder, piece.len, &why)) {
		exchange_refuse(
			x, 429, "too many request bodies of this principal are being received");
	} else {
		if (!x->share.holder)
			share_join(&server->buffered, holder, &x->share);
		share_add(&x->share, piece.len);
		buf_append(&x->body, piece.data, piece.len);
	}
}

static void take_piece(struct http_connection *c, struct exchange *x, struct str piece)
{
	c->has_moved = true;
	/* What is answered already has no use for it. */
	if (x->answer == ANSWER_ENDED)
		return;
	if (x->body_mode == BODY_TAKEN)
		keep_piece(c->server, x, piece);
	else
		c->server->handler.body(c->server->handler.ctx, &x->request, piece);
}

/* Makes one call of the handler that is due. false: none is due. */
static bool exchange_tell(struct http_connection *c, struct exchange *x)
{
	const struct http_handler *handler = &c->server->handler;
	struct http_request *r = &x->request;
	if (x->has_pipe_ended) {
		x->has_pipe_ended = false;
		x->pipe_ended(x->pipe_ctx, r, x->is_pipe_ok);
	} else if (x->wants_writable && !c->is_blocked && output_queued(c) < HTTP_ENOUGH / 4) {
		x->wants_writable = false;
		if (handler->writable)
			handler->writable(handler->ctx, r);
	} else if (x->is_complete && !x->is_told && x->body_mode == BODY_TAKEN) {
		x->is_told = true;
		r->body = (struct str){ x->body.data, x->body.len };
		handler->complete(handler->ctx, r);
	} else if (x->is_complete && !x->is_told && x->body_mode == BODY_STREAMED &&
		   !x->is_paused) {
		x->is_told = true;
		handler->body(handler->ctx, r, STR(""));
	} else {
		return false;
	}
	return true;
}

/* ---- steps ---- */
static bool are_fds_refused(const struct http_connection *c, struct exchange *x)
{
	if (c->has_excess_fds)
		exchange_refuse(x, 400, "the request carries too many descriptors");
	else if (c->has_lost_fds)
		exchange_refuse(x, 503, "the daemon has no free descriptors");
	return x->refusal;
}

static bool read_on(struct http_connection *c, struct exchange *x)
{
	size_t used;
	enum parse_event event = parser_next(&x->parser, c->unread, &used);
	if (event == PARSE_ERROR) {
		exchange_refuse(x, x->parser.status, x->parser.detail);
		return true;
	}
	c->unread = (struct str){ c->unread.data + used, c->unread.len - used };
	if (event == PARSE_HEAD)
		exchange_begin(c, x);
	else if (event == PARSE_BODY)
		take_piece(c, x, x->parser.piece);
	else if (event == PARSE_END)
		x->is_complete = true;
	return event != PARSE_MORE;
}

static bool begin_next(struct http_connection *c)
{
	if (c->server->is_draining) {
		connection_close(c);
		return false;
	}
	/* Skip empty lines between requests. */
	while (c->unread.len > 0 && (c->unread.data[0] == '\r' || c->unread.data[0] == '\n'))
		c->unread = (struct str){ c->unread.data + 1, c->unread.len - 1 };
	if (c->unread.len == 0)
		return false;
	struct exchange *x = new_exchange(c);
	return are_fds_refused(c, x) || read_on(c, x);
}

static bool exchange_finish(struct http_connection *c, struct exchange *x)
{
	bool is_last = x->must_close || !x->is_complete || c->server->is_draining;
	bool is_clean = x->is_complete && c->unread.len == 0;
	if (x->upgraded) {
		connection_hand_over(c);
		return false;
	}
	exchange_end(c, false);
	c->has_moved = true;
	if (is_last && is_clean)
		connection_close(c);
	else if (is_last)
		connection_leave(c);
	return true;
}

static bool exchange_give_up(struct http_connection *c, struct exchange *x)
{
	/* A response that has begun can't become another. */
	if (x->answer != ANSWER_NONE) {
		x->is_cut = true;
		connection_close(c);
		return false;
	}
	if (!x->request.id[0])
		choose_id(c->server, &x->request);
	respond_problem(c, x, x->refusal, x->refusal_detail);
	exchange_end(c, true);
	connection_leave(c);
	return false;
}

bool exchange_step(struct http_connection *c)
{
	struct exchange *x = c->exchange;
	enum flow flow = output_flush(c);
	if (flow == FLOW_BROKEN || (x && x->is_cut)) {
		connection_close(c);
		return false;
	}
	if (!x)
		return begin_next(c);
	if (c->server->is_draining && !x->has_begun && !x->refusal)
		exchange_refuse(x, 503, "the daemon is stopping");
	if (are_fds_refused(c, x) && x->answer != ANSWER_ENDED)
		return exchange_give_up(c, x);
	if (x->refusal)
		x->must_close = true;
	if (x->answer != ANSWER_ENDED && exchange_tell(c, x))
		return true;
	if (x->answer == ANSWER_ENDED && flow == FLOW_DONE && (x->is_complete || x->must_close))
		return exchange_finish(c, x);
	return exchange_wants_input(c) && read_on(c, x);
}
