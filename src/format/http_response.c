#include <string.h>
#include <strings.h>
#include "format/http_response.h"

#define BESIDE_MAX 65536 /* bytes of chunk extensions and trailers */

static int corrupt(struct error *err, const char *what)
{
	return fail(err, ERR_CORRUPT, "the response isn't HTTP: %s", what);
}

static bool is_same(struct str name, const char *text)
{
	return name.len == strlen(text) && strncasecmp(name.data, text, name.len) == 0;
}

/* "HTTP/1.1 200 OK": the reason is for people and may be anything printable. */
static int parse_status(struct str line, struct http_response *response, struct error *err)
{
	if (!str_starts_with(line, "HTTP/1.") || line.len < 12 || line.data[8] != ' ' ||
		(line.len > 12 && line.data[12] != ' '))
		return corrupt(err, "bad status line");
	if (line.data[7] != '0' && line.data[7] != '1')
		return corrupt(err, "bad version");
	uint64_t status;
	if (!str_to_u64((struct str){ line.data + 9, 3 }, &status) || status < 100 || status > 599)
		return corrupt(err, "bad status");
	response->status = (int)status;
	response->will_close = line.data[7] == '0';
	return 0;
}

static bool is_token(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.data[i];

		if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
			return false;
	}
	return name.len > 0;
}

static bool is_clean(struct str value)
{
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* Takes the next line off *rest, without its CRLF. false: a bare LF or CR, or none left. */
static bool next_line(struct str *rest, struct str *line)
{
	const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;

	if (!end || end == rest->data || end[-1] != '\r')
		return false;
	*line = (struct str){ rest->data, (size_t)(end - rest->data) - 1 };
	*rest = (struct str){ end + 1, rest->len - line->len - 2 };
	return true;
}

static int take_header(
	struct str line, bool *has_length, struct http_response *response, struct error *err)
{
	struct str name, value;

	if (!str_cut(line, ':', &name, &value) || !is_token(name) || !is_clean(value))
		return corrupt(err, "bad header");
	value = str_trim(value);
	if (is_same(name, "content-length")) {
		if (*has_length || !str_to_u64(value, &response->length) ||
			response->length >= INT64_MAX)
			return corrupt(err, "bad Content-Length");
		*has_length = true;
	} else if (is_same(name, "transfer-encoding")) {
		if (response->is_chunked || !is_same(value, "chunked"))
			return corrupt(err, "bad Transfer-Encoding");
		response->is_chunked = true;
	} else if (is_same(name, "connection") && is_same(value, "close")) {
		response->will_close = true;
	}
	return 0;
}

int http_response_parse(struct str text, bool is_head, size_t *used, struct http_response *response,
	struct error *err)
{
	struct str scanned = text;
	if (scanned.len > HTTP_RESPONSE_HEAD_MAX)
		scanned.len = HTTP_RESPONSE_HEAD_MAX;
	const char *end = scanned.len ? memmem(scanned.data, scanned.len, "\r\n\r\n", 4) : NULL;
	if (!end && text.len >= HTTP_RESPONSE_HEAD_MAX)
		return fail(err, ERR_LIMIT, "the head of the response is longer than %d bytes",
			HTTP_RESPONSE_HEAD_MAX);
	if (!end)
		return 0;

	struct http_response parsed = { .length = HTTP_LENGTH_UNKNOWN };
	struct str rest = { text.data, (size_t)(end - text.data) + 2 }, line;
	bool has_length = false;
	if (!next_line(&rest, &line) || !is_clean(line))
		return corrupt(err, "bad status line");
	if (parse_status(line, &parsed, err) < 0)
		return -1;
	parsed.text = rest;
	while (rest.len > 0) {
		if (!next_line(&rest, &line))
			return corrupt(err, "bad line end");
		if (take_header(line, &has_length, &parsed, err) < 0)
			return -1;
	}
	if (has_length && parsed.is_chunked)
		return corrupt(err, "two lengths");
	if (is_head || parsed.status < 200 || parsed.status == 204 || parsed.status == 304) {
		parsed.is_chunked = false;
		parsed.length = 0;
	} else if (!has_length && !parsed.is_chunked) {
		parsed.will_close = true;
	}
	*used = (size_t)(end - text.data) + 4;
	*response = parsed;
	return 1;
}

struct str http_response_header(const struct http_response *response, const char *name)
{
	struct str rest = response->text, line, found, value;

	while (next_line(&rest, &line)) {
		str_cut(line, ':', &found, &value);
		if (is_same(found, name))
			return str_trim(value);
	}
	return (struct str){ 0 };
}

char *http_chunk_frame(char *data, size_t len)
{
	size_t left = len;

	data[len] = '\r';
	data[len + 1] = '\n';
	*--data = '\n';
	*--data = '\r';
	do {
		*--data = "0123456789abcdef"[left & 15];
		left >>= 4;
	} while (left > 0);
	return data;
}

enum chunk_state {
	SIZE,	   /* digits, then an extension or CR */
	EXTENSION, /* up to CR */
	SIZE_LF,   /* the LF after it */
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER, /* at the start of a line after the last chunk */
	TRAILER_TEXT,
	TRAILER_LF,
	LAST_LF,
	ENDED
};

static int size_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of the size's line. -1: it doesn't belong there. */
static int take_size(struct http_chunks *chunks, char c)
{
	int digit = size_digit(c);

	if (digit >= 0) {
		/* 15 digits hold all that a file can be long. */
		if (++chunks->digits > 15)
			return -1;
		chunks->left = chunks->left << 4 | (unsigned)digit;
		return 0;
	}
	if (chunks->digits == 0 || (c != '\r' && c != ';' && c != ' ' && c != '\t'))
		return -1;
	chunks->state = c == '\r' ? SIZE_LF : EXTENSION;
	return 0;
}

/* One byte that isn't data. */
static int take_byte(struct http_chunks *chunks, char c)
{
	switch (chunks->state) {
	case SIZE:
		return take_size(chunks, c);
	case EXTENSION:
	case TRAILER_TEXT:
		if (++chunks->beside > BESIDE_MAX || c == '\n' || c == '\0')
			return -1;
		if (c == '\r')
			chunks->state = chunks->state == EXTENSION ? SIZE_LF : TRAILER_LF;
		return 0;
	case SIZE_LF:
		chunks->state = chunks->left > 0 ? DATA : TRAILER;
		chunks->digits = 0;
		return c == '\n' ? 0 : -1;
	case DATA_CR:
		chunks->state = DATA_LF;
		return c == '\r' ? 0 : -1;
	case DATA_LF:
		chunks->state = SIZE;
		return c == '\n' ? 0 : -1;
	case TRAILER:
		chunks->state = c == '\r' ? LAST_LF : TRAILER_TEXT;
		return c == '\n' || c == '\0' ? -1 : 0;
	case TRAILER_LF:
		chunks->state = TRAILER;
		return c == '\n' ? 0 : -1;
	case LAST_LF:
		chunks->state = ENDED;
		return c == '\n' ? 0 : -1;
	default:
		return -1;
	}
}

int http_chunks_take(struct http_chunks *chunks, struct str in, size_t *used, struct str *data,
	struct error *err)
{
	struct str piece = { in.data, 0 };
	size_t at = 0;

	while (at < in.len && chunks->state != ENDED) {
		if (chunks->state == DATA) {
			size_t there = in.len - at;
			/* The frame behind a piece is taken along: what is left is data. */
			if (piece.len)
				break;
			piece.len = chunks->left < there ? (size_t)chunks->left : there;
			piece.data = in.data + at;
			at += piece.len;
			chunks->left -= piece.len;
			if (chunks->left == 0)
				chunks->state = DATA_CR;
			continue;
		}
		if (take_byte(chunks, in.data[at]) < 0)
			return corrupt(err, "bad chunk");
		at++;
	}
	*used = at;
	*data = piece;
	return chunks->state == ENDED;
}
