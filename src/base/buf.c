#include "base/arena.h"
#include "base/buf.h"

/* What an empty buffer points to: invariant 1 without an allocation. Never written. */
static char nothing[1];

struct buf buf_empty(size_t max)
{
	/* Half the address space, so that sums of sizes can't wrap. */
	return (struct buf){ .data = nothing, .max = max < SIZE_MAX / 2 ? max : SIZE_MAX / 2 };
}

void buf_init(struct buf *b, size_t max)
{
	*b = buf_empty(max);
}

void buf_done(struct buf *b)
{
	if (b->capacity > 0)
		free(b->data);
	*b = (struct buf){ .data = nothing };
}

char *buf_reserve(struct buf *b, size_t len)
{
	if (b->overflow || len > b->max - b->len) {
		b->overflow = true;
		return NULL;
	}
	size_t need = b->len + len + 1;
	if (need > b->capacity) {
		size_t capacity = b->capacity < 64 ? 64 : b->capacity;
		while (capacity < need)
			capacity *= 2;
		if (capacity > b->max + 1)
			capacity = b->max + 1;
		char *data = realloc(b->capacity > 0 ? b->data : NULL, capacity);
		if (!data)
			abort();
		data[b->len] = '\0';
		b->data = data;
		b->capacity = capacity;
	}
	return b->data + b->len;
}

void buf_grew(struct buf *b, size_t len)
{
	if (len == 0)
		return;
	/* More than was reserved: memory is already overwritten. */
	if (len >= b->capacity - b->len)
		abort();
	b->len += len;
	b->data[b->len] = '\0';
}

bool buf_append(struct buf *b, const void *data, size_t len)
{
	char *at = buf_reserve(b, len);
	if (!at)
		return false;
	if (len > 0)
		memcpy(at, data, len);
	buf_grew(b, len);
	return true;
}

bool buf_text(struct buf *b, const char *text)
{
	return buf_append(b, text, strlen(text));
}

bool buf_char(struct buf *b, char c)
{
	return buf_append(b, &c, 1);
}

bool buf_end_line(struct buf *b)
{
	return b->len == 0 || b->data[b->len - 1] == '\n' || buf_char(b, '\n');
}

bool buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	bool fits = buf_vprintf(b, fmt, args);
	va_end(args);
	return fits;
}

bool buf_vprintf(struct buf *b, const char *fmt, va_list args)
{
	va_list again;
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0)
		b->overflow = true;
	char *at = len < 0 ? NULL : buf_reserve(b, (size_t)len);
	if (!at)
		return false;
	vsnprintf(at, (size_t)len + 1, fmt, args);
	buf_grew(b, (size_t)len);
	return true;
}

void buf_drop_front(struct buf *b, size_t len)
{
	if (len > b->len)
		abort();
	if (len == 0)
		return;
	b->len -= len;
	memmove(b->data, b->data + len, b->len + 1);
}

struct str buf_str(const struct buf *b)
{
	return (struct str){ b->data, b->len };
}

struct str buf_copy(struct arena *arena, const struct buf *b)
{
	return (struct str){ arena_bytes(arena, b->data ? b->data : "", b->len), b->len };
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->overflow = false;
	if (b->capacity > 0)
		b->data[0] = '\0';
}

/* How one byte is written in a JSON string: 0 as it is, 'u' as \\u00XX, WIDE by the character it
 * begins, any other letter after a backslash. */
#define WIDE 1
static const unsigned char escapes[256] = {
	[0x00 ... 0x07] = 'u',
	['\b'] = 'b',
	['\t'] = 't',
	['\n'] = 'n',
	['\v'] = 'u',
	['\f'] = 'f',
	['\r'] = 'r',
	[0x0e ... 0x1f] = 'u',
	['"'] = '"',
	['\\'] = '\\',
	[0x7f] = 'u',
	[0x80 ... 0xff] = WIDE,
};
#define ESCAPED_MAX 6 /* bytes that one byte can become */

static char *put_hex(char *at, unsigned char c)
{
	static const char digits[] = "0123456789abcdef";
	at[0] = '\\';
	at[1] = 'u';
	at[2] = at[3] = '0';
	at[4] = digits[c >> 4];
	at[5] = digits[c & 15];
	return at + 6;
}

/* One character that isn't ASCII; *len: how many bytes of s it is. */
static char *put_wide(char *at, struct str s, size_t *len)
{
	static const char replacement[] = { '\xef', '\xbf', '\xbd' };
	*len = str_utf8_char(s.data, s.len);
	if (*len == 0) {
		*len = 1;
		memcpy(at, replacement, sizeof replacement);
		return at + sizeof replacement;
	}
	if (*len == 2 && (unsigned char)s.data[0] == 0xc2 && (unsigned char)s.data[1] < 0xa0)
		return put_hex(at, (unsigned char)s.data[1]);
	memcpy(at, s.data, *len);
	return at + *len;
}

#define PIECE 16
/* Escapes the first PIECE characters of s, or all there are; how many bytes of s they were. */
static size_t put_escaped(char at[PIECE * ESCAPED_MAX], struct str s, size_t *put)
{
	char *start = at;
	size_t done = 0, len;
	for (int i = 0; i < PIECE && done < s.len; i++, done += len) {
		unsigned char c = (unsigned char)s.data[done], how = escapes[c];
		len = 1;
		if (!how) {
			*at++ = (char)c;
		} else if (how == WIDE) {
			at = put_wide(at, (struct str){ s.data + done, s.len - done }, &len);
		} else if (how == 'u') {
			at = put_hex(at, c);
		} else {
			*at++ = '\\';
			*at++ = (char)how;
		}
	}
	*put = (size_t)(at - start);
	return done;
}

bool buf_escaped(struct buf *b, struct str s)
{
	char piece[PIECE * ESCAPED_MAX];
	while (s.len > 0) {
		size_t taken = 0, put;
		while (taken < s.len && !escapes[(unsigned char)s.data[taken]])
			taken++;
		if (taken) {
			buf_append(b, s.data, taken);
		} else {
			taken = put_escaped(piece, s, &put);
			buf_append(b, piece, put);
		}
		s.data += taken;
		s.len -= taken;
	}
	return !b->overflow;
}

bool buf_quoted(struct buf *b, struct str s)
{
	buf_char(b, '"');
	buf_escaped(b, s);
	return buf_char(b, '"');
}

size_t buf_escaped_len(struct str s)
{
	size_t len = 0;
	for (size_t at = 0, step; at < s.len; at += step) {
		unsigned char how = escapes[(unsigned char)s.data[at]];
		char wide[ESCAPED_MAX];
		step = 1;
		if (how == WIDE)
			len += (size_t)(put_wide(wide, (struct str){ s.data + at, s.len - at },
						&step) -
					wide);
		else
			len += how == 0 ? 1 : how == 'u' ? 6 : 2;
	}
	return len;
}

bool buf_base64(struct buf *b, const void *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;
	size_t out_len = (len + 2) / 3 * 4;
	char *out = buf_reserve(b, out_len);
	if (!out)
		return false;
	for (size_t at = 0; at < len; at += 3, out += 4) {
		size_t left = len - at;
		unsigned three = (unsigned)p[at] << 16 | (left > 1 ? (unsigned)p[at + 1] << 8 : 0) |
				 (left > 2 ? p[at + 2] : 0);
		out[0] = digits[three >> 18];
		out[1] = digits[three >> 12 & 63];
		out[2] = left > 1 ? digits[three >> 6 & 63] : '=';
		out[3] = left > 2 ? digits[three & 63] : '=';
	}
	buf_grew(b, out_len);
	return true;
}
