/* /v1/workspaces/{id}/ports: what listens in a workspace, and a reverse proxy to it. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include "base/foreign.h"
#include "core/workspaces/ports.h"
#include "doors/rest/forward.h"
#include "doors/rest/handlers.h"
#include "doors/rest/port_head.h"
#include "doors/rest/relay.h"

#define RAW_PROTOCOL "carrel-tcp" /* of Upgrade: bytes as they are, no HTTP */
#define QUEUED_MAX 65536	  /* bytes of a request's body that the server hasn't taken */
#define PIECE 16384
#define ROUNDS 8 /* reads in a turn of the loop */
#define UNWATCHED UINT32_MAX

enum stage {
	STAGE_CONNECTING,
	STAGE_HEAD,	 /* of the response is awaited */
	STAGE_BODY,	 /* is passed on */
	STAGE_UPGRADING, /* 101 is being sent; then the relay has both sides */
};
/* One request, of the life of its call; of one that is upgraded, until the relay begins. */
struct forwarding {
	struct api *api;
	struct call *call; /* NULL: it has ended */
	struct port_call *connecting;
	enum stage stage;
	int fd; /* to the server, or -1 */
	uint32_t events;
	struct port_head head;
	bool is_raw;	/* RAW_PROTOCOL */
	bool is_broken; /* the server takes no more of the request; its response may be there */
	bool is_full;	/* the client has enough to read */
	bool has_ended; /* the request's body */
	struct buf out; /* for the server */
	struct buf in;	/* from it: its head, until that is whole; what came early */
	struct http_response response;
	uint64_t left; /* of the response's body */
	struct http1_chunks chunks;
	struct share share;	    /* of the connections to ports */
	void (*on_left)(void *ctx); /* or NULL */
	void *left_ctx;
};

static void on_event(struct loop *loop, int fd, uint32_t events, void *ctx);

static void watch(struct forwarding *f)
{
	struct loop *loop = f->api->loop;
	bool reads = f->stage == STAGE_HEAD || (f->stage == STAGE_BODY && !f->is_full);
	uint32_t events = (reads ? EPOLLIN : 0u) | (f->out.len && !f->is_broken ? EPOLLOUT : 0u);
	if (!events || f->fd < 0)
		events = UNWATCHED;
	if (events == f->events)
		return;
	if (events == UNWATCHED)
		loop_unwatch(loop, f->fd);
	else if (f->events == UNWATCHED)
		loop_watch(loop, f->fd, events, on_event, f, NULL);
	else
		loop_change(loop, f->fd, events, NULL);
	f->events = events;
}

static void close_server(struct forwarding *f)
{
	if (f->events != UNWATCHED)
		loop_unwatch(f->api->loop, f->fd);
	f->events = UNWATCHED;
	foreign_close(&f->fd);
}

static void free_forwarding(struct forwarding *f)
{
	if (f->connecting)
		port_cancel(f->connecting);
	close_server(f);
	share_release(&f->share);
	if (f->on_left)
		f->on_left(f->left_ctx);
	buf_done(&f->out);
	buf_done(&f->in);
	free(f);
}

static void on_gone(struct call *c)
{
	struct forwarding *f = c->priv;
	/* An upgraded connection is handed over after the request has ended. */
	f->call = NULL;
	if (f->stage != STAGE_UPGRADING || c->is_aborted)
		free_forwarding(f);
}

/* The server can't be used: answers, or cuts an answer that was begun. f is gone then. */
static void give_up(struct forwarding *f, const char *why)
{
	struct call *c = f->call;
	bool has_begun = f->stage == STAGE_BODY;
	unsigned port = f->head.port;
	struct error err;
	call_let_go(c);
	if (has_begun) {
		http_abort(c->r);
		return;
	}
	fail_hint(&err, ERR_UNAVAILABLE, "see what the server in the workspace logs",
		"the server on port %u %s", port, why);
	call_problem_with(c, 502, NULL, &err);
}

/* ---- to the server ---- */

static void push(struct forwarding *f)
{
	while (f->out.len && !f->is_broken) {
		ssize_t sent = send(f->fd, f->out.data, f->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			break;
		/* It may have answered without reading the whole request. */
		f->is_broken = sent < 0;
		if (sent > 0)
			buf_drop_front(&f->out, (size_t)sent);
	}
	if (f->is_broken)
		buf_clear(&f->out);
	if (!f->has_ended)
		http_pause_body(f->call->r, f->out.len >= QUEUED_MAX);
	watch(f);
}

static void upgrade(struct forwarding *f, const char *protocol, const char *headers);

static void on_piece(struct call *c, struct str data)
{
	struct forwarding *f = c->priv;
	f->has_ended |= !data.len;
	if (f->is_raw && f->fd >= 0)
		upgrade(f, RAW_PROTOCOL, NULL);
	if (f->is_raw || f->is_broken || f->stage == STAGE_UPGRADING)
		return;
	if (f->head.is_chunked)
		buf_printf(&f->out, "%zx\r\n", data.len);
	if (data.len)
		buf_append(&f->out, data.data, data.len);
	if (f->head.is_chunked)
		buf_text(&f->out, "\r\n");
	if (f->stage != STAGE_CONNECTING)
		push(f);
}

/* ---- from the server ---- */

static void finish(struct forwarding *f)
{
	struct call *c = f->call;
	call_end(c);
}

/* Passes on what is there of the body. false: f is gone. */
static bool pass_body(struct forwarding *f, struct str bytes)
{
	struct http_request *r = f->call->r;
	struct error err;
	while (bytes.len) {
		struct str data = bytes;
		size_t used = bytes.len;
		int is_over = 0;
		if (f->response.is_chunked) {
			is_over = http1_chunks_take(&f->chunks, bytes, &used, &data, &err);
			if (is_over < 0) {
				give_up(f, "sends a malformed chunk");
				return false;
			}
		} else if (f->response.length != HTTP_LENGTH_UNKNOWN) {
			data.len = used = bytes.len < f->left ? bytes.len : (size_t)f->left;
			f->left -= used;
			is_over = !f->left;
		}
		if (data.len && !http_write(r, data))
			f->is_full = true;
		bytes = (struct str){ bytes.data + used, bytes.len - used };
		if (is_over) { /* what follows is nobody's: the connection was to be closed */
			finish(f);
			return false;
		}
	}
	return true;
}

static void on_relayed(void *ctx, struct net_stream *stream, struct str early)
{
	struct forwarding *f = ctx;
	int fd = f->fd;
	void (*left)(void *) = f->on_left;
	f->fd = -1;
	f->on_left = NULL;
	struct share share = f->share;
	f->share = (struct share){ 0 };
	relay_start(f->api, stream, fd, early, (struct str){ f->in.data, f->in.len }, &share, left,
		f->left_ctx);
	free_forwarding(f);
}

static void upgrade(struct forwarding *f, const char *protocol, const char *headers)
{
	struct call *c = f->call;
	f->stage = STAGE_UPGRADING;
	buf_clear(&f->out);
	watch(f);
	c->status = 101;
	http_upgrade(c->r, protocol, headers, on_relayed, f);
}

static bool begin_upgrade(struct forwarding *f, size_t used)
{
	struct arena *arena = &f->call->r->arena;
	struct str protocol = http_response_header(&f->response, "upgrade");
	if (!f->head.protocol.data || !f->has_ended || !protocol.len) {
		give_up(f, "changes the protocol, which was not asked for");
		return false;
	}
	auto_buf struct buf lines = buf_empty(2 * HTTP_RESPONSE_HEAD_MAX);
	port_head_response(&f->head, &f->response, &lines);
	const char *name = arena_bytes(arena, protocol.data, protocol.len);
	const char *headers = arena_bytes(arena, lines.data, lines.len);
	buf_drop_front(&f->in, used);
	upgrade(f, name, headers);
	return false;
}

/* false: f is gone, or the connection is no longer read here. */
static bool begin_answer(struct forwarding *f, size_t used)
{
	struct call *c = f->call;
	struct http_response *response = &f->response;
	if (response->status == 101)
		return begin_upgrade(f, used);
	if (response->status < 200) { /* the final one follows */
		buf_drop_front(&f->in, used);
		return true;
	}
	auto_buf struct buf lines = buf_empty(2 * HTTP_RESPONSE_HEAD_MAX);
	port_head_response(&f->head, response, &lines);
	f->stage = STAGE_BODY;
	f->left = response->length;
	c->status = response->status;
	uint64_t length = response->is_chunked ? HTTP_LENGTH_UNKNOWN : response->length;
	bool has_no_body = !length;
	/* The response to HEAD says how long that to GET is. */
	if (str_is(c->r->method, "HEAD") &&
		!str_to_u64(http_response_header(response, "content-length"), &length))
		length = HTTP_LENGTH_UNKNOWN;
	if (length != HTTP_LENGTH_UNKNOWN)
		http_begin_length(c->r, response->status, NULL, lines.data, length);
	else
		http_begin(c->r, response->status, NULL, lines.data);
	if (has_no_body) {
		finish(f);
		return false;
	}
	auto_buf struct buf in = f->in;
	buf_init(&f->in, HTTP_RESPONSE_HEAD_MAX + PIECE);
	return pass_body(f, (struct str){ in.data + used, in.len - used });
}

/* The head, as far as it has come. false: as begin_answer. */
static bool read_head(struct forwarding *f)
{
	bool is_head = str_is(f->call->r->method, "HEAD");
	struct error err;
	size_t used;
	while (f->stage == STAGE_HEAD) {
		int status = http_response_parse(
			(struct str){ f->in.data, f->in.len }, is_head, &used, &f->response, &err);
		if (status < 0) {
			give_up(f, "does not answer in HTTP");
			return false;
		}
		if (!status)
			return true;
		if (!begin_answer(f, used))
			return false;
	}
	return true;
}

/* The server has closed the connection. */
static void on_end(struct forwarding *f)
{
	bool is_whole = f->stage == STAGE_BODY && !f->response.is_chunked &&
			f->response.length == HTTP_LENGTH_UNKNOWN;
	if (is_whole)
		finish(f);
	else
		give_up(f, "closed the connection before its response was complete");
}

static void receive(struct forwarding *f)
{
	for (int i = 0; i < ROUNDS; i++) {
		char *room = buf_reserve(&f->in, PIECE);
		ssize_t got = room ? recv(f->fd, room, PIECE, MSG_DONTWAIT) : -1;
		if (!room) {
			give_up(f, "sends too many headers");
			return;
		}
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			break;
		if (got <= 0) {
			on_end(f);
			return;
		}
		buf_grew(&f->in, (size_t)got);
		if (f->stage == STAGE_HEAD && !read_head(f))
			return;
		if (f->stage == STAGE_BODY && f->in.len) {
			struct str bytes = { f->in.data, f->in.len };
			f->in.len = 0; /* the bytes stay where they are until the next read */
			if (!pass_body(f, bytes))
				return;
		}
		if (f->is_full)
			break;
	}
	watch(f);
}

static void on_event(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct forwarding *f = ctx;
	if (events & EPOLLOUT)
		push(f);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(f);
}

static void on_writable(struct call *c)
{
	struct forwarding *f = c->priv;
	f->is_full = false;
	watch(f);
}

/* ---- the request ---- */

static void on_connected(void *ctx, int fd, const struct error *err)
{
	struct forwarding *f = ctx;
	struct call *c = f->call;
	f->connecting = NULL;
	if (err) {
		call_let_go(c);
		call_problem_with(c, 502, NULL, err);
		return;
	}
	f->fd = fd;
	/* The protocol is changed when the request has been read to its end. */
	if (f->is_raw && f->has_ended)
		upgrade(f, RAW_PROTOCOL, NULL);
	if (f->is_raw)
		return;
	f->stage = STAGE_HEAD;
	/* The pieces of a body that have come already go behind the head. */
	auto_buf struct buf body = f->out;
	buf_init(&f->out, BUF_MAX_DEFAULT);
	port_head_request(&f->head, c->r, &f->out);
	buf_append(&f->out, body.data, body.len);
	if (!f->has_ended)
		http_stream_body(c->r);
	push(f);
}

static int read_port(const char *text, uint16_t *port, struct error *err)
{
	uint64_t value;
	if (!str_to_u64(str_from(text), &value) || !value || value > UINT16_MAX || text[0] == '0')
		return fail(err, ERR_INVALID, "invalid port '%s'; it is 1 to 65535", text);
	*port = (uint16_t)value;
	return 0;
}

static bool has_body(const struct http_request *r)
{
	struct str length = http_header(r, "content-length");
	return http_header(r, "transfer-encoding").data || (length.data && !str_is(length, "0"));
}

/* The header Upgrade, when Connection names it, and the request has no body. */
static struct str wanted_protocol(struct call *c)
{
	struct str list = http_header(c->r, "connection");
	bool is_wanted = list.data && !has_body(c->r) && http1_lists(list, STR("upgrade"));
	return is_wanted ? http_header(c->r, "upgrade") : (struct str){ 0 };
}

static int describe(struct call *c, struct port_head *head, struct error *err)
{
	struct str path = c->r->path;
	head->rest = c->rest;
	path.len -= c->rest.len;
	while (path.len && path.data[path.len - 1] == '/')
		path.len--;
	head->prefix = path;
	head->protocol = wanted_protocol(c);
	head->is_chunked = http_header(c->r, "transfer-encoding").data;
	for (size_t i = 0; i < c->r->target.len; i++)
		if ((unsigned char)c->r->target.data[i] <= ' ' || c->r->target.data[i] == 0x7f)
			return fail(err, ERR_INVALID, "a blank or control byte in the path");
	return 0;
}

int forward_start(struct call *c, const struct request *request, struct core_workspace *w,
	uint16_t port, void (*left)(void *ctx), void *ctx, struct error *err)
{
	struct port_head head = { .port = port };
	struct port_call *connecting;
	if (describe(c, &head, err))
		return -1;
	if (shares_check(&c->api->port_connections, c->r->holder, 1, err))
		return -1;
	struct forwarding *f = xzalloc(sizeof *f);
	*f = (struct forwarding){ .api = c->api,
		.call = c,
		.fd = -1,
		.events = UNWATCHED,
		.head = head,
		.is_raw = http1_is(head.protocol, RAW_PROTOCOL),
		.on_left = left,
		.left_ctx = ctx };
	if (core_connect_port(request, w, head.port, on_connected, f, &connecting, err)) {
		free(f);
		return -1;
	}
	f->connecting = connecting;
	share_join(&c->api->port_connections, c->r->holder, &f->share);
	share_add(&f->share, 1);
	buf_init(&f->out, BUF_MAX_DEFAULT);
	buf_init(&f->in, HTTP_RESPONSE_HEAD_MAX + PIECE);
	c->priv = f;
	c->gone = on_gone;
	c->piece = on_piece;
	c->writable = on_writable;
	/* Its end must have come before the protocol can be changed. A body is read when there is
	 * somewhere to put it. */
	if (!has_body(c->r))
		http_stream_body(c->r);
	return 0;
}

static int api_port_forward(struct call *c, struct error *err)
{
	struct core_workspace *w;
	uint16_t port;
	if (read_port(c->port, &port, err) || call_workspace(c, &w, err))
		return -1;
	return forward_start(c, c->request, w, port, NULL, NULL, err);
}

static int api_port_list(struct call *c, struct error *err)
{
	const struct page_query *query = c->query;
	uint64_t limit = query->limit ? query->limit : LIMIT_DEFAULT, at = 0, end;
	struct core_workspace *w;
	port_list ports = { 0 };
	if (query->cursor && !str_to_u64(str_from(query->cursor), &at))
		return fail(err, ERR_INVALID, "cursor: invalid cursor '%s'", query->cursor);
	if (call_workspace(c, &w, err) || core_ports(c->request, w, &c->r->arena, &ports, err))
		return -1;
	struct json *j = call_print_list(c);
	for (end = at; end < ports.count && end - at < limit; end++)
		record_print(j, NULL, &port_record, &ports.items[end]);
	call_send_list(c, end < ports.count
				  ? arena_printf(&c->r->arena, "%llu", (unsigned long long)end)
				  : NULL);
	return 0;
}

const struct handler ports_handlers[] = { { "listPorts", api_port_list },
	{ "forwardPort", api_port_forward }, { 0 } };
