/* str.h -- a view of bytes that it doesn't own; not NUL-terminated. */
#pragma once

struct str {
	const char *data;
	size_t len;
};
#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })

static inline struct str str_from(const char *text)
{
	return (struct str){ text, strlen(text) };
}
bool str_equal(struct str a, struct str b);
bool str_is(struct str s, const char *text);
bool str_starts_with(struct str s, const char *prefix);
struct str str_trim(struct str s); /* spaces, tabs, newlines at both ends */
/* The last line that has text, without white space at its end; empty if no line has. */
struct str str_last_line(struct str s);
/* Cuts s at the first `separator`: *head is before it, *tail after. false (head = s, tail empty)
 * when there is none. */
bool str_cut(struct str s, char separator, struct str *head, struct str *tail);
/* Takes the next piece up to `separator` off *rest. false when *rest is exhausted: "a,,b," has the
 * pieces "a", "" and "b". */
bool str_next(struct str *rest, char separator, struct str *piece);
/* Decimal, no sign, no blanks, whole string. false when it isn't, or overflows. */
bool str_to_u64(struct str s, uint64_t *value);
int str_hex_digit(char c); /* 0 to 15, in either case; -1: not a digit */
/* Bounded C string helpers: always NUL-terminated; false when it was cut. */
bool str_copy(char *out, size_t size, const char *text);
bool str_format(char *out, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(3)));
/* How many letters have to be inserted, removed, changed or swapped with their neighbour to turn
 * one word into the other; SIZE_MAX when b has more than 255. */
size_t str_distance(const char *a, const char *b);
/* Whether `typed` is close enough to `known` for a "did you mean" hint, and closer than *distance,
 * which is updated (SIZE_MAX at first): one edit for 3 to 5 letters, two for 6 to 10, else three.
 * Of a shorter word anything could be meant. */
bool str_is_nearer(const char *typed, const char *known, size_t *distance);
/* Length of the longest valid UTF-8 prefix (no surrogates, no overlong forms, max U+10FFFF). */
size_t str_utf8_prefix(const char *data, size_t len);
/* How many bytes at the end (0 to 3) are the beginning of a character that isn't complete. */
size_t str_utf8_incomplete(const char *data, size_t len);
/* Length (1 to 4) of the valid UTF-8 character at data, 0 when there is none. */
size_t str_utf8_char(const char *data, size_t len);
/* s as one line that is safe to show: control characters (C1 too) and bytes that aren't UTF-8
 * become \xNN. What doesn't fit is cut and marked by "..."; false then. */
bool str_printable(char *out, size_t size, struct str s);
