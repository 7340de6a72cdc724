/* Responses: heads, bodies, problems of the server's own. */
#include <fcntl.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "net/internal.h"

#define UNKNOWN UINT64_MAX
#define SMALL_FILE 16384  /* read and sent with its head */
#define DROPPED_MAX 65536 /* of an unwanted body: read and dropped, to keep the connection */

static const struct status {
	int status;
	const char *title;
	const char *code, *hint; /* of the server's own problems */
} statuses[] = {
	{ 101, "Switching Protocols", NULL, NULL },
	{ 200, "OK", NULL, NULL },
	{ 201, "Created", NULL, NULL },
	{ 202, "Accepted", NULL, NULL },
	{ 204, "No Content", NULL, NULL },
	{ 206, "Partial Content", NULL, NULL },
	{ 400, "Bad Request", "invalid", "send one HTTP/1.1 request as RFC 9112 defines it" },
	{ 401, "Unauthorized", NULL, NULL },
	{ 403, "Forbidden", NULL, NULL },
	{ 404, "Not Found", NULL, NULL },
	{ 405, "Method Not Allowed", "invalid", "request a path of this server" },
	{ 406, "Not Acceptable", NULL, NULL },
	{ 408, "Request Timeout", "limit", "send the whole request without such pauses" },
	{ 409, "Conflict", NULL, NULL },
	{ 412, "Precondition Failed", NULL, NULL },
	{ 413, "Content Too Large", "limit", "send a smaller body" },
	{ 414, "URI Too Long", "limit", "send a shorter path and query" },
	{ 415, "Unsupported Media Type", NULL, NULL },
	{ 416, "Range Not Satisfiable", NULL, NULL },
	{ 417, "Expectation Failed", "invalid", "leave the header Expect out" },
	{ 426, "Upgrade Required", NULL, NULL },
	{ 429, "Too Many Requests", "limit", "send fewer requests at once" },
	{ 431, "Request Header Fields Too Large", "limit", "send fewer or shorter headers" },
	{ 500, "Internal Server Error", NULL, NULL },
	{ 502, "Bad Gateway", NULL, NULL },
	{ 503, "Service Unavailable", "unavailable", "try again later" },
	{ 505, "HTTP Version Not Supported", "invalid", "use HTTP/1.1" },
	{ 507, "Insufficient Storage", NULL, NULL },
};

static const struct status *find_status(int status)
{
	static const struct status other = { 0, "Error", "failed", "" };
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].status == status)
			return &statuses[i];
	return &other;
}

const char *http_status_title(int status)
{
	return find_status(status)->title;
}

static const char *date_of(struct http_server *server)
{
	int64_t now_s = clock_now_ms() / 1000;
	if (now_s != server->date_s) {
		clock_format_http(server->date, now_s * 1000);
		server->date_s = now_s;
	}
	return server->date;
}

static void make_head(struct http_connection *c, const struct http_request *r, bool is_last,
	int status, const char *content_type, const char *headers, const char *framing,
	uint64_t length)
{
	struct buf *head = &c->server->head;
	buf_clear(head);
	buf_printf(head, "HTTP/1.1 %d %s\r\nDate: %s\r\nX-Request-Id: %s\r\n", status,
		http_status_title(status), date_of(c->server), r->id);
	if (content_type)
		buf_printf(head, "Content-Type: %s\r\n", content_type);
	if (r->common_headers)
		buf_text(head, r->common_headers);
	if (headers)
		buf_text(head, headers);
	buf_text(head, framing);
	if (length != UNKNOWN)
		buf_printf(head, "Content-Length: %" PRIu64 "\r\n", length);
	if (is_last)
		buf_text(head, "Connection: close\r\n");
	buf_text(head, "\r\n");
}

void respond_problem(
	struct http_connection *c, const struct exchange *x, int status, const char *detail)
{
	const struct status *row = find_status(status);
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	buf_printf(&body,
		"{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":", row->title,
		status);
	buf_quoted(&body, str_from(detail ? detail : row->title));
	buf_printf(&body, ",\"code\":\"%s\",\"hint\":\"%s\",\"request_id\":\"%s\"}\n",
		row->code ? row->code : "failed", row->hint ? row->hint : "", x->request.id);
	make_head(c, &x->request, true, status, "application/problem+json", NULL, "", body.len);
	if (str_is(x->request.method, "HEAD"))
		buf_clear(&body);
	output_send(c, (struct str){ c->server->head.data, c->server->head.len },
		(struct str){ body.data, body.len });
}

/* ---- the handler's ---- */
/* Whether a response may begin; the connection or another answer may be in its way. */
static bool may_begin(struct http_request *r)
{
	struct exchange *x = exchange_of(r);
	return x->answer == ANSWER_NONE && !x->refusal && r->connection->state == CONNECTION_OPEN;
}

static bool is_open(struct http_request *r)
{
	return exchange_of(r)->answer == ANSWER_BEGUN && !exchange_of(r)->is_cut &&
	       r->connection->state == CONNECTION_OPEN;
}

/* What hasn't come of the request is read and dropped where that is little; else this response is
 * the connection's last. */
static void consider_rest(struct exchange *x)
{
	const struct parser *parser = &x->parser;
	if (x->request.connection->server->is_draining)
		x->must_close = true;
	if (x->is_complete)
		return;
	if (parser->is_chunked || parser->length - parser->data_taken > DROPPED_MAX ||
		(parser->expects_continue && !x->is_continued))
		x->must_close = true;
}

static bool is_bare(int status)
{
	return status == 101 || status == 204 || status == 304;
}

/* The head of a response; length UNKNOWN: chunked, or until the connection is closed. */
static void begin_response(struct http_request *r, int status, const char *content_type,
	const char *headers, uint64_t length)
{
	struct exchange *x = exchange_of(r);
	const char *framing = "";
	x->answer = ANSWER_BEGUN;
	x->has_no_body = str_is(r->method, "HEAD") || is_bare(status);
	if (is_bare(status)) {
		length = UNKNOWN;
	} else if (length == UNKNOWN) {
		x->is_chunked = !x->parser.is_old;
		framing = x->is_chunked ? "Transfer-Encoding: chunked\r\n" : "";
		x->must_close = x->must_close || !x->is_chunked;
	}
	/* While a response of unknown length is sent, the handler may still read the body. */
	if (length != UNKNOWN || x->body_mode == BODY_UNDECIDED || x->has_no_body)
		consider_rest(x);
	make_head(r->connection, r, x->must_close, status, content_type, headers, framing, length);
}

static void end_response(struct exchange *x)
{
	x->answer = ANSWER_ENDED;
	consider_rest(x);
	connection_wake(x->request.connection);
}

/* Duplicates the descriptors: they may have to wait, and the caller keeps its own. */
static void add_fds(struct exchange *x, const int *fds, int fd_count)
{
	if (!x->request.connection->stream.is_unix || fd_count > HTTP_FDS_MAX)
		return;
	for (; x->out_fd_count < fd_count && !x->is_cut; x->out_fd_count++) {
		int copy = fcntl(fds[x->out_fd_count], F_DUPFD_CLOEXEC, 3);
		if ((x->is_cut = copy < 0))
			break;
		x->out_fds[x->out_fd_count] = copy;
	}
}

void http_respond(struct http_request *r, int status, const char *content_type, const char *headers,
	struct str body)
{
	struct exchange *x = exchange_of(r);
	struct buf *head = &r->connection->server->head;
	if (!may_begin(r))
		return;
	begin_response(r, status, content_type, headers, body.len);
	output_send(r->connection, (struct str){ head->data, head->len },
		x->has_no_body ? STR("") : body);
	end_response(x);
}

void http_inform(struct http_request *r, const char *location)
{
	char head[512];
	if (!may_begin(r) || exchange_of(r)->parser.is_old)
		return;
	str_format(head, sizeof head, "HTTP/1.1 102 Processing\r\nLocation: %s\r\n\r\n", location);
	output_queue(r->connection, head, strlen(head));
	connection_wake(r->connection);
}

void http_begin_length(struct http_request *r, int status, const char *content_type,
	const char *headers, uint64_t length)
{
	struct buf *head = &r->connection->server->head;
	if (!may_begin(r))
		return;
	begin_response(r, status, content_type, headers, length);
	output_queue(r->connection, head->data, head->len);
	connection_wake(r->connection);
}

void http_begin_fds(struct http_request *r, int status, const char *content_type,
	const char *headers, const int *fds, int fd_count)
{
	struct exchange *x = exchange_of(r);
	struct http_connection *c = r->connection;
	struct buf *head = &c->server->head;
	if (!may_begin(r))
		return;
	begin_response(r, status, content_type, headers, UNKNOWN);
	add_fds(x, fds, fd_count);
	/* With descriptors at once; else with what is written next in this turn. */
	if (x->out_fd_count > 0)
		output_send(c, (struct str){ head->data, head->len }, STR(""));
	else
		output_queue(c, head->data, head->len);
	connection_wake(c);
}

void http_begin(struct http_request *r, int status, const char *content_type, const char *headers)
{
	http_begin_fds(r, status, content_type, headers, NULL, 0);
}

bool http_write(struct http_request *r, struct str data)
{
	struct exchange *x = exchange_of(r);
	struct http_connection *c = r->connection;
	char frame[32];
	if (!is_open(r))
		return false;
	if (x->has_no_body || data.len == 0)
		return true;
	if (x->is_chunked) {
		str_format(frame, sizeof frame, "%zx\r\n", data.len);
		output_queue(c, frame, strlen(frame));
	}
	output_queue(c, data.data, data.len);
	if (x->is_chunked)
		output_queue(c, "\r\n", 2);
	/* A small amount waits for the end of the turn, to be sent together with later output. */
	if (output_queued(c) >= HTTP_CHUNK / 4)
		output_push(c);
	if (output_queued(c) > HTTP_TOO_MUCH)
		x->is_cut = true;
	connection_wake(c);
	x->wants_writable = output_queued(c) >= HTTP_ENOUGH;
	return !x->wants_writable;
}

void http_end(struct http_request *r)
{
	struct exchange *x = exchange_of(r);
	if (!is_open(r))
		return;
	output_drop_sources(r->connection, x);
	if (x->is_chunked && !x->has_no_body)
		output_queue(r->connection, "0\r\n\r\n", 5);
	output_push(r->connection);
	end_response(x);
}

void http_abort(struct http_request *r)
{
	struct exchange *x = exchange_of(r);
	if (x->answer == ANSWER_ENDED || r->connection->state != CONNECTION_OPEN)
		return;
	x->is_cut = true;
	connection_wake(r->connection);
}

void http_respond_file(struct http_request *r, int status, const char *content_type,
	const char *headers, int fd, uint64_t offset, uint64_t len)
{
	struct exchange *x = exchange_of(r);
	struct http_connection *c = r->connection;
	auto_close int file = fd;
	struct str body = { c->server->out, 0 };
	if (!may_begin(r))
		return;
	begin_response(r, status, content_type, headers, len);
	if (!x->has_no_body && len <= SMALL_FILE) {
		ssize_t got = pread(file, c->server->out, (size_t)len, (off_t)offset);
		body.len = got < 0 ? 0 : (size_t)got;
		x->is_cut = body.len < len;
	} else if (!x->has_no_body) {
		x->file = take_fd(&file);
		x->file_at = offset;
		x->file_left = len;
	}
	if (x->file >= 0)
		output_queue(c, c->server->head.data, c->server->head.len);
	else
		output_send(c, (struct str){ c->server->head.data, c->server->head.len }, body);
	end_response(x);
}

void http_pipe(struct http_request *r, int fd,
	void (*ended)(void *ctx, struct http_request *r, bool ok), void *ctx)
{
	struct exchange *x = exchange_of(r);
	auto_close int pipe = fd;
	if (!is_open(r) || x->pipe >= 0)
		return;
	fd_set_nonblocking(pipe);
	x->pipe = take_fd(&pipe);
	x->is_pipe_dry = false;
	x->pipe_ended = ended;
	x->pipe_ctx = ctx;
	connection_wake(r->connection);
}

void http_upgrade(struct http_request *r, const char *protocol, const char *headers,
	void (*taken)(void *ctx, struct net_stream *stream, struct str early), void *ctx)
{
	struct exchange *x = exchange_of(r);
	struct http_connection *c = r->connection;
	if (!may_begin(r))
		return;
	/* A body, or the end of this connection, would be taken for the new protocol's. */
	if (!x->is_complete || x->must_close || c->server->is_draining) {
		x->refusal = 400;
		x->refusal_detail = "this connection can't change its protocol";
		connection_wake(c);
		return;
	}
	begin_response(r, 101, NULL,
		arena_printf(&r->arena, "Connection: Upgrade\r\nUpgrade: %s\r\n%s", protocol,
			headers ? headers : ""),
		UNKNOWN);
	x->upgraded = taken;
	x->upgraded_ctx = ctx;
	output_send(c, (struct str){ c->server->head.data, c->server->head.len }, STR(""));
	end_response(x);
}
