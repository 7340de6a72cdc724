/* Requests to a proxy. Strict: what two parsers may read in two ways is refused, because the
 * upstream server has the other one. */
#include <string.h>
#include <strings.h>
#include "egress/forward.h"
#include "egress/parts.h"

#define HEADERS_MAX 128

struct header {
	struct str name, value;
};

/* What the headers say, while they are read. */
struct reading {
	struct forward_request request;
	bool has_host, has_encoding;
	unsigned headers;
};

static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.data[i];
		bool is_word =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!is_word && (!c || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return s.len > 0;
}

static bool is_word(struct str s, const char *word)
{
	return s.len == strlen(word) && !strncasecmp(s.data, word, s.len);
}

/* The length of the head, 0 when its end isn't there yet, -1. Judges every byte that is there: what
 * can't become a request is refused at once. */
static ssize_t find_end(struct str bytes, struct error *err)
{
	size_t len = bytes.len < FORWARD_HEAD_MAX ? bytes.len : FORWARD_HEAD_MAX;
	size_t line = 0; /* where this line began */

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes.data[i];
		bool after_cr = i > line && bytes.data[i - 1] == '\r';
		if (after_cr != (c == '\n'))
			return fail(err, ERR_INVALID, "a line end that isn't CR LF");
		if (c == '\n' && i - line == 1)
			return line ? (ssize_t)i + 1 : fail(err, ERR_INVALID, "no request line");
		if (c == '\n')
			line = i + 1;
		else if ((c < ' ' && c != '\t' && c != '\r') || c == 0x7f)
			return fail(err, ERR_INVALID, "control byte 0x%02x in the head", c);
	}
	if (bytes.len >= FORWARD_HEAD_MAX)
		return fail(err, ERR_LIMIT, "a head of more than %d bytes", FORWARD_HEAD_MAX);
	return 0;
}

/* The head is whole, so that every line has its end. */
static struct str next_line(struct str *head)
{
	const char *end = memchr(head->data, '\n', head->len);
	struct str line = { head->data, (size_t)(end - head->data) - 1 };

	head->len -= line.len + 2;
	head->data = end + 1;
	return line;
}

/* Takes the next header off *head. 0: the empty line. */
static int next_header(struct str *head, struct header *header, struct error *err)
{
	struct str line = next_line(head);

	if (!line.len)
		return 0;
	if (line.data[0] == ' ' || line.data[0] == '\t')
		return fail(err, ERR_INVALID, "a folded header");
	if (!str_cut(line, ':', &header->name, &header->value) || !is_token(header->name))
		return fail(err, ERR_INVALID, "a line that isn't a header");
	header->value = str_trim(header->value);
	return 1;
}

static int parse_target(struct str target, struct forward_request *request, struct error *err)
{
	for (size_t i = 0; i < target.len; i++)
		if ((unsigned char)target.data[i] <= ' ' || (unsigned char)target.data[i] > '~' ||
			target.data[i] == '#')
			return fail(err, ERR_INVALID, "byte 0x%02x in the request line",
				(unsigned char)target.data[i]);
	if (request->is_connect)
		return host_parse_authority(target, 0, request->host, &request->port, err);
	if (target.len < 7 || strncasecmp(target.data, "http://", 7) != 0)
		return fail(
			err, ERR_INVALID, "this is a proxy: use CONNECT host:port or http://host/");

	struct str authority = { target.data + 7, target.len - 7 };
	const char *slash = authority.len ? memchr(authority.data, '/', authority.len) : NULL;
	request->path = STR("/");
	if (slash) {
		request->path = (struct str){ slash, (size_t)(target.data + target.len - slash) };
		authority.len -= request->path.len;
	}
	return host_parse_authority(authority, 80, request->host, &request->port, err);
}

static int parse_request_line(struct str line, struct forward_request *request, struct error *err)
{
	struct str rest, target, version;

	if (!str_cut(line, ' ', &request->method, &rest) || !is_token(request->method) ||
		!str_cut(rest, ' ', &target, &version))
		return fail(err, ERR_INVALID, "not a request line");
	request->is_old = str_is(version, "HTTP/1.0");
	if (!request->is_old && !str_is(version, "HTTP/1.1"))
		return fail(err, ERR_INVALID, "neither HTTP/1.1 nor HTTP/1.0");
	request->is_connect = str_is(request->method, "CONNECT");
	return parse_target(target, request, err);
}

static int read_host(struct reading *reading, struct str value, struct error *err)
{
	const struct forward_request *request = &reading->request;
	char host[HOST_SIZE];
	uint16_t port;

	if (reading->has_host)
		return fail(err, ERR_INVALID, "several Host headers");
	reading->has_host = true;
	if (host_parse_authority(value, request->is_connect ? 443 : 80, host, &port, err) < 0)
		return error_context(err, "the Host header");
	if (strcmp(host, request->host) != 0 || port != request->port)
		return fail(err, ERR_INVALID, "the Host header differs from the request line");
	return 0;
}

static int read_length(struct reading *reading, struct str value, struct error *err)
{
	if (reading->request.has_length)
		return fail(err, ERR_INVALID, "several Content-Length headers");
	reading->request.has_length = true;
	if (!str_to_u64(value, &reading->request.body_bytes))
		return fail(err, ERR_INVALID, "a Content-Length that isn't a number");
	return 0;
}

static int read_encoding(struct reading *reading, struct str value, struct error *err)
{
	if (reading->has_encoding)
		return fail(err, ERR_INVALID, "several Transfer-Encoding headers");
	reading->has_encoding = true;
	if (!is_word(value, "chunked") || reading->request.is_old)
		return fail(err, ERR_INVALID, "a Transfer-Encoding that isn't chunked");
	reading->request.is_chunked = true;
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct reading *reading, struct str value, struct error *err);
} readers[] = {
	{ "Host", read_host },
	{ "Content-Length", read_length },
	{ "Transfer-Encoding", read_encoding },
};

static int read_headers(struct reading *reading, struct str head, struct error *err)
{
	struct header header;
	int status;

	while ((status = next_header(&head, &header, err)) > 0) {
		if (++reading->headers > HEADERS_MAX)
			return fail(err, ERR_LIMIT, "more than %d headers", HEADERS_MAX);
		for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
			if (is_word(header.name, readers[i].name) &&
				readers[i].read(reading, header.value, err) < 0)
				return -1;
	}
	return status;
}

int forward_parse(struct str bytes, struct forward_request *out, struct error *err)
{
	struct reading reading = { 0 };
	struct forward_request *request = &reading.request;
	ssize_t len = find_end(bytes, err);

	if (len <= 0)
		return (int)len;
	struct str head = { bytes.data, (size_t)len };
	request->head_len = head.len;
	if (parse_request_line(next_line(&head), request, err) < 0 ||
		read_headers(&reading, head, err) < 0)
		return -1;
	if (!reading.has_host && !request->is_old)
		return fail(err, ERR_INVALID, "no Host header");
	if (request->has_length && reading.has_encoding)
		return fail(err, ERR_INVALID, "Content-Length beside Transfer-Encoding");
	if (request->is_connect && (request->body_bytes || reading.has_encoding))
		return fail(err, ERR_INVALID, "CONNECT with a body");
	*out = *request;
	return 1;
}

/* ---- passing a request on ---- */
static bool is_nominated(struct str head, struct str name)
{
	struct header header;

	while (next_header(&head, &header, NULL) > 0) {
		struct str rest = header.value, word;
		if (!is_word(header.name, "Connection"))
			continue;
		while (str_next(&rest, ',', &word)) {
			word = str_trim(word);
			if (word.len == name.len && !strncasecmp(word.data, name.data, name.len))
				return true;
		}
	}
	return false;
}

static bool is_left_out(struct str headers, struct str name)
{
	static const char *const names[] = { "Host", "Content-Length", "Transfer-Encoding",
		"Connection", "Keep-Alive", "TE", "Trailer", "Upgrade" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (is_word(name, names[i]))
			return true;
	return (name.len >= 6 && !strncasecmp(name.data, "Proxy-", 6)) ||
	       is_nominated(headers, name);
}

void forward_rewrite(struct str bytes, const struct forward_request *request, struct buf *out)
{
	struct str head = { bytes.data, request->head_len }, headers;
	struct header header;
	bool is_ipv6 = strchr(request->host, ':') != NULL;

	next_line(&head);
	headers = head;
	buf_append(out, request->method.data, request->method.len);
	buf_char(out, ' ');
	buf_append(out, request->path.data, request->path.len);
	buf_printf(out, " HTTP/1.%d\r\nHost: %s%s%s", request->is_old ? 0 : 1, is_ipv6 ? "[" : "",
		request->host, is_ipv6 ? "]" : "");
	if (request->port != 80)
		buf_printf(out, ":%u", request->port);
	buf_text(out, "\r\nConnection: close\r\n");
	if (request->is_chunked)
		buf_text(out, "Transfer-Encoding: chunked\r\n");
	else if (request->has_length)
		buf_printf(
			out, "Content-Length: %llu\r\n", (unsigned long long)request->body_bytes);
	while (next_header(&head, &header, NULL) > 0) {
		if (is_left_out(headers, header.name))
			continue;
		buf_append(out, header.name.data, header.name.len);
		buf_text(out, ": ");
		buf_append(out, header.value.data, header.value.len);
		buf_text(out, "\r\n");
	}
	buf_text(out, "\r\n");
}

/* ---- bodies ---- */
enum chunk_state {
	CHUNK_SIZE,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_CR,
	CHUNK_LF,
	CHUNK_END_CR,
	CHUNK_END_LF
};

void forward_body_start(struct forward_body *body, const struct forward_request *request)
{
	*body = (struct forward_body){ .is_chunked = request->is_chunked };
	if (!body->is_chunked)
		body->left = request->body_bytes;
	body->is_done = !body->is_chunked && !body->left;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One byte of what lies around the data of chunks. */
static int take_chunk_byte(struct forward_body *body, char c, struct error *err)
{
	int digit = hex_digit(c);

	if (body->state == CHUNK_SIZE && digit >= 0) {
		/* 60 bits: no sum overflows. */
		if (++body->digits > 15)
			return fail(err, ERR_INVALID, "a chunk's size is too long");
		body->left = body->left << 4 | (unsigned)digit;
		return 0;
	}
	bool is_lf = body->state == CHUNK_SIZE_LF || body->state == CHUNK_LF ||
		     body->state == CHUNK_END_LF;
	if (c != (is_lf ? '\n' : '\r') || (body->state == CHUNK_SIZE && !body->digits))
		return fail(err, ERR_INVALID, "a malformed chunk");
	if (body->state == CHUNK_SIZE_LF) {
		body->state = body->left ? CHUNK_DATA : CHUNK_END_CR;
	} else if (body->state == CHUNK_LF) {
		body->state = CHUNK_SIZE;
		body->digits = 0;
	} else if (body->state == CHUNK_END_LF) {
		body->is_done = true;
	} else {
		body->state++;
	}
	return 0;
}

int forward_body_take(struct forward_body *body, struct str bytes, size_t *taken, struct error *err)
{
	size_t at = 0;

	while (at < bytes.len && !body->is_done) {
		bool is_data = !body->is_chunked || body->state == CHUNK_DATA;
		if (!is_data) {
			if (take_chunk_byte(body, bytes.data[at], err) < 0)
				return -1;
			at++;
			continue;
		}
		size_t part = bytes.len - at < body->left ? bytes.len - at : (size_t)body->left;
		at += part;
		body->left -= part;
		if (!body->left && body->is_chunked)
			body->state = CHUNK_CR;
		else if (!body->left)
			body->is_done = true;
	}
	*taken = at;
	return 0;
}
