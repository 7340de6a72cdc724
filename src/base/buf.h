/* buf.h -- a growing byte buffer with a maximum.
 * 1. data is always NUL-terminated at data[len] (also when empty).
 * 2. Appending past `max` sets `overflow`, changes nothing else, and stays refused: check once at
 * the end. */
#pragma once
#include "base/str.h"

struct buf {
	char *data;
	size_t len, capacity, max;
	bool overflow;
};
#define BUF_MAX_DEFAULT ((size_t)1 << 30)

struct buf buf_empty(size_t max); /* initializer of a declaration */
void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
#define auto_buf __attribute__((cleanup(buf_done)))
/* false: overflow. What is appended may not lie in b itself. */
bool buf_append(struct buf *b, const void *data, size_t len);
bool buf_text(struct buf *b, const char *text);
struct str buf_str(const struct buf *b); /* what is in it; valid until it changes */
struct arena;
struct str buf_copy(struct arena *arena, const struct buf *b);
bool buf_char(struct buf *b, char c);
bool buf_end_line(struct buf *b); /* a newline, unless b is empty or ends with one */
bool buf_printf(struct buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));
bool buf_vprintf(struct buf *b, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));
/* s as a JSON string with its quotes: safe to show (control characters, C1 too, are escaped) and
 * always valid UTF-8 (bytes that aren't become U+FFFD). */
bool buf_quoted(struct buf *b, struct str s);
/* The same without the quotes: text may be escaped in pieces that end between characters. */
bool buf_escaped(struct buf *b, struct str s);
size_t buf_escaped_len(struct str s); /* what buf_escaped would append */
/* RFC 4648, padded. Pieces whose length is a multiple of 3 may follow each other. */
bool buf_base64(struct buf *b, const void *data, size_t len);
/* Room for at least `len` bytes at data + len, NULL on overflow; buf_grew says how many were
 * filled. */
char *buf_reserve(struct buf *b, size_t len);
void buf_grew(struct buf *b, size_t len);
void buf_drop_front(struct buf *b, size_t len);
void buf_clear(struct buf *b); /* empty again, overflow forgotten, memory kept */
