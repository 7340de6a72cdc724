#include "net/parse.h"
#include "format/http/uri.h"

/* What may stand around a head: empty lines before it, blanks around values. */
#define AROUND_MAX 4096
/* Limit for chunk sizes, extensions and trailers of a chunked body: FRAMING_MIN bytes, and
 * FRAMING_TIMES as many as its data. */
#define FRAMING_MIN 65536
#define FRAMING_TIMES 16

static struct parser *parser_of(llhttp_t *llhttp)
{
	return (struct parser *)llhttp;
}

static int parser_refuse(struct parser *parser, int status, const char *detail)
{
	parser->status = status;
	parser->detail = detail;
	return -1;
}

/* A piece of a text that may arrive in parts: appended. */
static int add_text(struct parser *parser, const char *at, size_t len)
{
	if (len > 0 && memchr(at, '\0', len))
		return parser_refuse(parser, 400, "the head contains a NUL byte");
	if (!buf_append(&parser->text, at, len))
		return parser_refuse(parser, 431, "the request head is too long");
	return 0;
}

static int end_text(struct parser *parser)
{
	return buf_char(&parser->text, '\0')
		       ? 0
		       : parser_refuse(parser, 431, "the request head is too long");
}

static int on_url(llhttp_t *llhttp, const char *at, size_t len)
{
	struct parser *parser = parser_of(llhttp);
	if (len > parser->limits->line_bytes - parser->text.len)
		return parser_refuse(parser, 414, "the request's target is too long");
	return add_text(parser, at, len);
}

static int on_url_complete(llhttp_t *llhttp)
{
	return end_text(parser_of(llhttp));
}

static int on_header_bytes(struct parser *parser, const char *at, size_t len)
{
	/* Trailers are passed over; as bytes of framing they are counted. */
	if (parser->has_head)
		return 0;
	parser->header_bytes += len;
	if (parser->header_bytes > parser->limits->header_bytes)
		return parser_refuse(parser, 431, "the headers are too long");
	return add_text(parser, at, len);
}

static int on_header_field(llhttp_t *llhttp, const char *at, size_t len)
{
	struct parser *parser = parser_of(llhttp);
	size_t start = parser->text.len;
	if (on_header_bytes(parser, at, len) < 0)
		return -1;
	for (size_t i = start; i < parser->text.len; i++)
		if (parser->text.data[i] >= 'A' && parser->text.data[i] <= 'Z')
			parser->text.data[i] |= 0x20;
	return 0;
}

static int on_header_field_complete(llhttp_t *llhttp)
{
	struct parser *parser = parser_of(llhttp);
	if (parser->has_head)
		return 0;
	if (++parser->header_count > parser->limits->header_count)
		return parser_refuse(parser, 431, "the request has too many headers");
	return end_text(parser);
}

static int on_header_value(llhttp_t *llhttp, const char *at, size_t len)
{
	return on_header_bytes(parser_of(llhttp), at, len);
}

static int on_header_value_complete(llhttp_t *llhttp)
{
	struct parser *parser = parser_of(llhttp);
	return parser->has_head ? 0 : end_text(parser);
}

/* ---- the rules for a head ---- */
struct counts {
	unsigned hosts, lengths, encodings;
	struct str host;
};

static bool is_same(struct str s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.data, text, s.len) == 0;
}

static int check_header(
	struct parser *parser, struct str name, struct str value, struct counts *counts)
{
	if (str_is(name, "host")) {
		counts->hosts++;
		counts->host = value;
		if (!uri_is_authority(value))
			return parser_refuse(parser, 400, "invalid Host");
	} else if (str_is(name, "content-length")) {
		counts->lengths++;
		if (!str_to_u64(value, &parser->length) || parser->length > INT64_MAX)
			return parser_refuse(parser, 400, "invalid Content-Length");
	} else if (str_is(name, "transfer-encoding")) {
		counts->encodings++;
		parser->is_chunked = true;
		if (!is_same(value, "chunked"))
			return parser_refuse(
				parser, 400, "the only supported transfer coding is chunked");
	} else if (str_is(name, "expect") && !parser->is_old) {
		parser->expects_continue = true;
		if (!is_same(value, "100-continue"))
			return parser_refuse(
				parser, 417, "the only supported expectation is 100-continue");
	}
	return 0;
}

static struct str next_text(struct str *rest)
{
	struct str text;
	str_cut(*rest, '\0', &text, rest);
	return text;
}

static int take_headers(struct parser *parser, struct str rest, struct counts *counts)
{
	struct http_request *r = parser->request;
	for (size_t i = 0; i < parser->header_count; i++) {
		struct str name = next_text(&rest), value = str_trim(next_text(&rest));
		vec_push(&r->arena, &r->headers, (struct http_header){ name, value });
		if (check_header(parser, name, value, counts) < 0)
			return -1;
	}
	if (counts->hosts > 1 || (counts->hosts == 0 && !parser->is_old))
		return parser_refuse(parser, 400, "a request must have exactly one Host header");
	if (counts->lengths + counts->encodings > 1)
		return parser_refuse(
			parser, 400, "a request must have one length: Content-Length or chunked");
	if (parser->is_chunked && parser->is_old)
		return parser_refuse(parser, 400, "HTTP/1.0 has no chunked coding");
	/* Two opinions on where the body ends are what smuggling lives on. */
	if (counts->lengths && parser->llhttp.content_length != parser->length)
		return parser_refuse(parser, 400, "invalid Content-Length");
	return 0;
}

/* "http://host/path": the host must be the one in Host. */
static int cut_absolute(struct parser *parser, struct str *path, const struct counts *counts)
{
	const char *slashes = memmem(path->data, path->len, "://", 3);
	struct str scheme = { path->data, slashes ? (size_t)(slashes - path->data) : 0 };
	if (!is_same(scheme, "http") && !is_same(scheme, "https"))
		return parser_refuse(parser, 400, "the target is not a path");
	struct str rest = { slashes + 3, path->len - scheme.len - 3 };
	size_t len = 0;
	while (len < rest.len && rest.data[len] != '/' && rest.data[len] != '?')
		len++;
	struct str host = { rest.data, len };
	if (!len || !uri_is_authority(host))
		return parser_refuse(parser, 400, "the target has no host");
	if (counts->hosts &&
		(len != counts->host.len || strncasecmp(host.data, counts->host.data, len)))
		return parser_refuse(
			parser, 400, "the host of the target differs from the Host header");
	*path = (struct str){ rest.data + len, rest.len - len };
	return 0;
}

static int take_target(struct parser *parser, struct str target, const struct counts *counts)
{
	struct http_request *r = parser->request;
	struct str path = target;
	for (size_t i = 0; i < target.len; i++) {
		unsigned char c = (unsigned char)target.data[i];
		if (c <= ' ' || c >= 0x7f || c == '#')
			return parser_refuse(parser, 400,
				"the target contains characters that must be percent-encoded");
	}
	if (target.len == 0)
		return parser_refuse(parser, 400, "the request has no target");
	if (target.data[0] != '/' && !(str_is(target, "*") && str_is(r->method, "OPTIONS")) &&
		cut_absolute(parser, &path, counts) < 0)
		return -1;
	r->target = target;
	str_cut(path, '?', &r->path, &r->query);
	if (r->path.len == 0)
		r->path = STR("/");
	return 0;
}

static int take_head(struct parser *parser)
{
	struct http_request *r = parser->request;
	struct str rest = { parser->text.data, parser->text.len };
	struct counts counts = { 0 };
	if (parser->llhttp.http_major != 1 || parser->llhttp.http_minor > 1)
		return parser_refuse(parser, 505, "this server speaks HTTP/1.1");
	parser->is_old = parser->llhttp.http_minor == 0;
	if (parser->llhttp.method == HTTP_CONNECT)
		return parser_refuse(parser, 405, "this server is not a proxy");
	r->method = str_from(llhttp_method_name((llhttp_method_t)parser->llhttp.method));
	struct str target = next_text(&rest);
	if (take_headers(parser, rest, &counts) < 0 || take_target(parser, target, &counts) < 0)
		return -1;
	parser->has_body = parser->is_chunked || parser->length > 0;
	parser->expects_continue = parser->expects_continue && parser->has_body;
	parser->keep_alive = !parser->is_old && llhttp_should_keep_alive(&parser->llhttp);
	return 0;
}

static int on_headers_complete(llhttp_t *llhttp)
{
	struct parser *parser = parser_of(llhttp);
	if (take_head(parser) < 0)
		return -1;
	/* An offer of another protocol that isn't taken: the request is an ordinary one. */
	llhttp->upgrade = 0;
	parser->has_head = true;
	parser->event = PARSE_HEAD;
	return HPE_PAUSED;
}

static int on_body(llhttp_t *llhttp, const char *at, size_t len)
{
	struct parser *parser = parser_of(llhttp);
	if (len == 0)
		return 0;
	parser->event = PARSE_BODY;
	parser->piece = (struct str){ at, len };
	return HPE_PAUSED;
}

static int on_message_complete(llhttp_t *llhttp)
{
	parser_of(llhttp)->event = PARSE_END;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_url_complete = on_url_complete,
	.on_header_field = on_header_field,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value = on_header_value,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

void parser_init(
	struct parser *parser, struct http_request *request, const struct http_limits *limits)
{
	*parser = (struct parser){ .request = request, .limits = limits };
	llhttp_init(&parser->llhttp, HTTP_REQUEST, &settings);
	buf_init(&parser->text,
		limits->line_bytes + limits->header_bytes + 2 * limits->header_count + 2);
	/* An ordinary head, at one go. */
	buf_reserve(&parser->text, 512);
}

void parser_done(struct parser *parser)
{
	buf_done(&parser->text);
}

/* What llhttp passes over without a word has a maximum too. */
static int count_bytes(struct parser *parser, size_t used, bool was_head)
{
	const struct http_limits *limits = parser->limits;
	parser->taken += used;
	if (was_head) {
		if (parser->taken > limits->line_bytes + limits->header_bytes + AROUND_MAX)
			return parser_refuse(parser, 431, "the request head is too long");
		if (parser->has_head)
			parser->taken = 0;
		return 0;
	}
	parser->data_taken += parser->piece.len;
	if (parser->taken - parser->data_taken > FRAMING_MIN + FRAMING_TIMES * parser->data_taken)
		return parser_refuse(parser, 400, "the chunks are too small: mostly framing");
	return 0;
}

enum parse_event parser_next(struct parser *parser, struct str in, size_t *used)
{
	const char *data = in.len > 0 ? in.data : "";
	bool was_head = !parser->has_head;
	if (parser->status)
		return PARSE_ERROR;
	parser->event = PARSE_MORE;
	parser->piece = (struct str){ 0 };
	llhttp_errno_t code = llhttp_execute(&parser->llhttp, data, in.len);
	if (code == HPE_PAUSED) {
		*used = (size_t)(llhttp_get_error_pos(&parser->llhttp) - data);
		llhttp_resume(&parser->llhttp);
	} else {
		*used = in.len;
		parser->event = PARSE_MORE;
		if (code != HPE_OK && !parser->status)
			parser_refuse(parser, 400, llhttp_get_error_reason(&parser->llhttp));
	}
	if (!parser->status)
		count_bytes(parser, *used, was_head);
	return parser->status ? PARSE_ERROR : parser->event;
}
