/* What a handler asks of a request, and how it wants its body. */
#include "format/http/uri.h"
#include "net/internal.h"

#define RESERVE_MAX ((size_t)1 << 20) /* for a length that is only claimed as yet */

struct str http_header(const struct http_request *r, const char *name)
{
	for (size_t i = 0; i < r->headers.count; i++)
		if (str_is(r->headers.items[i].name, name))
			return r->headers.items[i].value;
	return (struct str){ 0 };
}

bool http_decode(struct http_request *r, struct str text, struct str *out)
{
	return uri_decode(&r->arena, text, false, out);
}

bool http_query_at(struct http_request *r, size_t index, struct str *name, struct str *value)
{
	struct str rest = r->query, raw_name, raw_value;
	do
		if (!uri_next_parameter(&rest, &raw_name, &raw_value))
			return false;
	while (index-- > 0);
	if (!uri_decode(&r->arena, raw_name, true, name))
		*name = (struct str){ 0 };
	if (!uri_decode(&r->arena, raw_value, true, value))
		*value = (struct str){ 0 };
	return true;
}

/* The handler wants the body: the client that waits to be asked is asked. */
static void want_body(struct exchange *x, enum body_mode mode)
{
	struct http_connection *c = x->request.connection;
	x->body_mode = mode;
	if (x->parser.expects_continue && !x->is_continued && !x->refusal && !x->is_complete) {
		x->is_continued = true;
		/* No need for 100 Continue when the body has already arrived. */
		if (c->unread.len == 0 && c->in.len == 0)
			output_queue(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	}
	connection_wake(c);
}

static bool may_choose(const struct http_request *r, const struct exchange *x)
{
	return x->body_mode == BODY_UNDECIDED && x->answer == ANSWER_NONE &&
	       r->connection->state == CONNECTION_OPEN;
}

void http_take_body(struct http_request *r, size_t max)
{
	struct exchange *x = exchange_of(r);
	size_t most = r->connection->server->limits.body_bytes;
	if (!may_choose(r, x))
		return;
	x->body_max = max < most ? max : most;
	if (x->parser.length > x->body_max) {
		x->refusal = 413;
		x->refusal_detail = exchange_too_big(x);
	}
	buf_init(&x->body, x->body_max);
	if (!x->refusal && x->parser.length > 0)
		buf_reserve(&x->body,
			x->parser.length < RESERVE_MAX ? (size_t)x->parser.length : RESERVE_MAX);
	want_body(x, BODY_TAKEN);
}

void http_stream_body(struct http_request *r)
{
	struct exchange *x = exchange_of(r);
	if (may_choose(r, x))
		want_body(x, BODY_STREAMED);
}

void http_pause_body(struct http_request *r, bool paused)
{
	struct exchange *x = exchange_of(r);
	if (x->is_paused == paused)
		return;
	x->is_paused = paused;
	if (!paused && r->connection->state == CONNECTION_OPEN)
		connection_wake(r->connection);
}
