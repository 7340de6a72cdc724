#include "format/http/http1.h"

#define EXTRA_MAX 65536 /* bytes of chunk extensions and trailers */

bool http1_is(struct str text, const char *word)
{
	return text.len == strlen(word) && strncasecmp(text.data, word, text.len) == 0;
}

bool http1_is_one_of(struct str text, const char *const *words)
{
	while (*words && !http1_is(text, *words))
		words++;
	return *words;
}

bool http1_lists(struct str list, struct str word)
{
	struct str one;
	while (str_next(&list, ',', &one)) {
		one = str_trim(one);
		if (one.len == word.len && !strncasecmp(one.data, word.data, word.len))
			return true;
	}
	return false;
}

bool http1_is_token(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
			return false;
	}
	return text.len > 0;
}

/* The length of the head; 0: its end hasn't come yet; -1: invalid or too long. */
static ssize_t find_end(struct str bytes, size_t max, struct error *err)
{
	size_t len = bytes.len < max ? bytes.len : max;
	size_t line = 0; /* where this line began */
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes.data[i];
		bool after_cr = i > line && bytes.data[i - 1] == '\r';
		if (after_cr != (c == '\n'))
			return fail(err, ERR_INVALID, "a line end that isn't CR LF");
		if (c == '\n' && i - line == 1)
			return line ? (ssize_t)i + 1 : fail(err, ERR_INVALID, "no first line");
		if (c == '\n')
			line = i + 1;
		else if ((c < ' ' && c != '\t' && c != '\r') || c == 0x7f)
			return fail(err, ERR_INVALID, "control byte 0x%02x in the head", c);
	}
	if (bytes.len >= max)
		return fail(err, ERR_LIMIT, "the head is longer than %zu bytes", max);
	return 0;
}

/* Takes the next line. The head is complete, so every line ends with CR LF. */
static struct str next_line(struct str *head)
{
	const char *end = memchr(head->data, '\n', head->len);
	struct str line = { head->data, (size_t)(end - head->data) - 1 };
	*head = (struct str){ end + 1, head->len - line.len - 2 };
	return line;
}

void http1_print_header(const struct http1_header *header, struct buf *out)
{
	buf_append(out, header->name.data, header->name.len);
	buf_text(out, ": ");
	buf_append(out, header->value.data, header->value.len);
	buf_text(out, "\r\n");
}

bool http1_next_header(struct str *headers, struct http1_header *header)
{
	if (!headers->len)
		return false;
	str_cut(next_line(headers), ':', &header->name, &header->value);
	header->value = str_trim(header->value);
	return true;
}

bool http1_headers_list(struct str headers, const char *name, struct str word)
{
	struct http1_header header;
	while (http1_next_header(&headers, &header))
		if (http1_is(header.name, name) && http1_lists(header.value, word))
			return true;
	return false;
}

static int take_framing(
	struct http1_head *head, const struct http1_header *header, struct error *err)
{
	if (http1_is(header->name, "content-length")) {
		if (head->has_length || !str_to_u64(header->value, &head->length) ||
			head->length >= INT64_MAX)
			return fail(err, ERR_INVALID, "several or invalid Content-Length headers");
		head->has_length = true;
	} else if (http1_is(header->name, "transfer-encoding")) {
		if (head->is_chunked || !http1_is(header->value, "chunked"))
			return fail(err, ERR_INVALID, "a Transfer-Encoding that isn't chunked");
		head->is_chunked = true;
	}
	return 0;
}

int http1_read_head(struct str bytes, size_t max, struct http1_head *head, struct error *err)
{
	ssize_t len = find_end(bytes, max, err);
	if (len <= 0)
		return (int)len;
	struct str rest = { bytes.data, (size_t)len - 2 };
	struct http1_head found = { .len = (size_t)len };
	struct http1_header header;
	unsigned count = 0;
	found.line = next_line(&rest);
	found.headers = rest;
	while (http1_next_header(&rest, &header)) {
		/* Without a colon, str_cut makes the whole line the name. */
		if (!http1_is_token(header.name) || header.name.data[header.name.len] != ':')
			return fail(err, ERR_INVALID, "a line that isn't a header");
		if (++count > HTTP1_HEADERS_MAX)
			return fail(err, ERR_LIMIT, "more than %d headers", HTTP1_HEADERS_MAX);
		if (take_framing(&found, &header, err) < 0)
			return -1;
	}
	if (found.has_length && found.is_chunked)
		return fail(err, ERR_INVALID, "Content-Length beside Transfer-Encoding");
	*head = found;
	return 1;
}

char *http1_chunk_frame(char *data, size_t len)
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

/* One byte of the chunk-size line. -1: not allowed there. */
static int take_size(struct http1_chunks *chunks, char c)
{
	int digit = str_hex_digit(c);
	if (digit >= 0) {
		/* 15 digits are more than the largest file needs. */
		if (++chunks->digits > 15)
			return -1;
		chunks->left = chunks->left << 4 | (unsigned)digit;
		return 0;
	}
	bool is_extension = !chunks->is_bare && (c == ';' || c == ' ' || c == '\t');
	if (chunks->digits == 0 || (c != '\r' && !is_extension))
		return -1;
	chunks->state = c == '\r' ? SIZE_LF : EXTENSION;
	return 0;
}

/* One byte that isn't data. */
static int take_byte(struct http1_chunks *chunks, char c)
{
	switch (chunks->state) {
	case SIZE:
		return take_size(chunks, c);
	case EXTENSION:
	case TRAILER_TEXT:
		if (++chunks->extra_bytes > EXTRA_MAX || c == '\n' || c == '\0')
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
		return c == '\n' || c == '\0' || (c != '\r' && chunks->is_bare) ? -1 : 0;
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

int http1_chunks_take(struct http1_chunks *chunks, struct str in, size_t *used, struct str *data,
	struct error *err)
{
	struct str piece = { in.data, 0 };
	size_t at = 0;
	while (at < in.len && chunks->state != ENDED) {
		if (chunks->state == DATA) {
			size_t there = in.len - at;
			/* The frame after a piece is consumed with it; stop at the data of the next
			 * chunk. */
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
			return fail(err, ERR_CORRUPT, "a malformed chunk");
		at++;
	}
	*used = at;
	*data = piece;
	return chunks->state == ENDED;
}
