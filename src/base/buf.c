#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"

/* What an empty buffer points to: invariant 1 without an allocation. Never written. */
static char nothing[1];

void buf_init(struct buf *b, size_t max)
{
	/* Half the address space, so that sums of sizes can't wrap. */
	*b = (struct buf){ .data = nothing, .max = max < SIZE_MAX / 2 ? max : SIZE_MAX / 2 };
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

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->overflow = false;
	if (b->capacity > 0)
		b->data[0] = '\0';
}

/* The letter after the backslash of JSON's short escapes; 0 when c has none. */
static char short_escape(char c)
{
	static const char from[] = "\"\\\b\t\n\f\r", to[] = "\"\\btnfr";
	const char *at = c != '\0' ? strchr(from, c) : NULL;

	return at ? to[at - from] : '\0';
}

/* How many bytes in front stand for themselves: most of all text, so it is copied by the piece. */
static size_t plain_length(struct str s)
{
	size_t len = 0;

	while (len < s.len && s.data[len] >= 0x20 && s.data[len] < 0x7f && s.data[len] != '"' &&
		s.data[len] != '\\')
		len++;
	return len;
}

/* Of one character that may need more than itself; how many bytes it has. */
static size_t quote_char(struct buf *b, struct str s)
{
	size_t len = str_utf8_char(s.data, s.len);
	char escaped[2] = { '\\', short_escape(s.data[0]) };
	unsigned char c = (unsigned char)s.data[0];
	unsigned char last = (unsigned char)s.data[len > 0 ? len - 1 : 0];

	if (len == 0)
		buf_text(b, "\xef\xbf\xbd");
	else if (escaped[1])
		buf_append(b, escaped, sizeof escaped);
	else if (c < 0x20 || c == 0x7f || (c == 0xc2 && last < 0xa0))
		buf_printf(b, "\\u%04x", last);
	else
		buf_append(b, s.data, len);
	return len > 0 ? len : 1;
}

bool buf_quoted(struct buf *b, struct str s)
{
	buf_char(b, '"');
	while (s.len > 0) {
		size_t len = plain_length(s);

		if (len > 0)
			buf_append(b, s.data, len);
		else
			len = quote_char(b, s);
		s.data += len;
		s.len -= len;
	}
	return buf_char(b, '"');
}
