/* Requests to the server: whole or byte by byte they are the same ones, and one that passes has one
 * host, one length, and a target that is a path. */
#include <string.h>
#include "net/parse.h"
#include "fuzz.h"

static const struct http_limits limits = {
	.line_bytes = 256, .header_bytes = 1024, .header_count = 8, .body_bytes = 4096
};

static void check_head(const struct parser *parser, const struct http_request *r)
{
	unsigned hosts = 0, lengths = 0;

	check(r->target.len > 0 && r->target.len <= limits.line_bytes && r->path.len > 0);
	check(r->path.data[0] == '/' || str_is(r->path, "*"));
	check(r->headers.count <= limits.header_count);
	for (size_t i = 0; i < r->headers.count; i++) {
		const struct http_header *h = &r->headers.items[i];
		check(h->name.len > 0 && !memchr(h->name.data, ' ', h->name.len));
		check(!h->value.len || (!memchr(h->value.data, '\n', h->value.len) &&
					       !memchr(h->value.data, '\r', h->value.len)));
		hosts += str_is(h->name, "host");
		lengths +=
			str_is(h->name, "content-length") || str_is(h->name, "transfer-encoding");
	}
	check(hosts == 1 || (hosts == 0 && parser->is_old));
	check(lengths <= 1 && parser->has_body == (parser->is_chunked || parser->length > 0));
}

static void write_head(const struct http_request *r, struct buf *out)
{
	buf_printf(out, "[%.*s %.*s ? %.*s", (int)r->method.len, r->method.data, (int)r->path.len,
		r->path.data, (int)r->query.len, r->query.data ? r->query.data : "");
	for (size_t i = 0; i < r->headers.count; i++)
		buf_printf(out, " %.*s=%.*s", (int)r->headers.items[i].name.len,
			r->headers.items[i].name.data, (int)r->headers.items[i].value.len,
			r->headers.items[i].value.data);
}

/* Takes one request off *in, at most `step` bytes at a time. false: an error, or no more. */
static bool take_request(struct str *in, size_t step, struct buf *out)
{
	struct http_request request = { 0 };
	struct parser parser;
	enum parse_event event;

	arena_init(&request.arena);
	parser_init(&parser, &request, &limits);
	do {
		struct str part = { in->data, in->len < step ? in->len : step };
		size_t used = 0;
		event = parser_next(&parser, part, &used);
		if (event == PARSE_ERROR)
			break;
		check(used <= part.len);
		check(event != PARSE_MORE || used == part.len);
		*in = (struct str){ in->data + used, in->len - used };
		if (event == PARSE_HEAD) {
			check_head(&parser, &request);
			write_head(&request, out);
		} else if (event == PARSE_BODY) {
			buf_append(out, parser.piece.data, parser.piece.len);
		}
	} while (event != PARSE_END && (event != PARSE_MORE || in->len > 0));
	buf_text(out, event == PARSE_END ? "]" : event == PARSE_ERROR ? "!" : "...");
	if (event == PARSE_ERROR)
		check(parser.status >= 400 && parser.status < 600 && parser.detail);
	parser_done(&parser);
	arena_done(&request.arena);
	return event == PARSE_END && in->len > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf whole, single;
	struct str in = { (const char *)data, size };

	if (size > 8192)
		return 0;
	buf_init(&whole, BUF_MAX_DEFAULT);
	buf_init(&single, BUF_MAX_DEFAULT);
	while (take_request(&in, SIZE_MAX, &whole))
		;
	in = (struct str){ (const char *)data, size };
	while (take_request(&in, 1, &single))
		;
	check(whole.len == single.len && !memcmp(whole.data, single.data, whole.len));
	return 0;
}
