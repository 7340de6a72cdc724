#include "base/str.h"

bool str_equal(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool str_is(struct str s, const char *text)
{
	return str_equal(s, str_from(text));
}

bool str_starts_with(struct str s, const char *prefix)
{
	size_t len = strlen(prefix);
	return s.len >= len && (len == 0 || memcmp(s.data, prefix, len) == 0);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct str str_trim(struct str s)
{
	while (s.len > 0 && is_blank(s.data[0])) {
		s.data++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.data[s.len - 1]))
		s.len--;
	return s;
}

struct str str_last_line(struct str s)
{
	struct str line = str_trim(s);
	const char *end = line.len > 0 ? memrchr(line.data, '\n', line.len) : NULL;
	if (end)
		line = (struct str){ end + 1, line.len - (size_t)(end + 1 - line.data) };
	return line;
}

bool str_cut(struct str s, char separator, struct str *head, struct str *tail)
{
	const char *at = s.len > 0 ? memchr(s.data, separator, s.len) : NULL;
	if (!at) {
		*head = s;
		*tail = (struct str){ s.len > 0 ? s.data + s.len : s.data, 0 };
		return false;
	}
	*head = (struct str){ s.data, (size_t)(at - s.data) };
	*tail = (struct str){ at + 1, s.len - head->len - 1 };
	return true;
}

bool str_next(struct str *rest, char separator, struct str *piece)
{
	if (rest->len == 0)
		return false;
	str_cut(*rest, separator, piece, rest);
	return true;
}

bool str_to_u64(struct str s, uint64_t *value)
{
	uint64_t sum = 0;
	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.data[i] < '0' || s.data[i] > '9')
			return false;
		if (__builtin_mul_overflow(sum, 10u, &sum) ||
			__builtin_add_overflow(sum, (uint64_t)(s.data[i] - '0'), &sum))
			return false;
	}
	*value = sum;
	return true;
}

int str_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool str_copy(char *out, size_t size, const char *text)
{
	size_t len = strlen(text);
	size_t kept = len < size ? len : size - 1;
	if (size == 0)
		return false;
	memcpy(out, text, kept);
	out[kept] = '\0';
	return kept == len;
}

bool str_format(char *out, size_t size, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int len = vsnprintf(out, size, fmt, args);
	va_end(args);
	if (len < 0 && size > 0)
		out[0] = '\0';
	return len >= 0 && (size_t)len < size;
}

size_t str_utf8_char(const char *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;
	/* Only the second byte has a narrower range than 80..bf: it is what rules out overlong
	 * forms, surrogates and values above U+10FFFF. */
	unsigned char least = 0x80, most = 0xbf;
	size_t need;
	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		need = 2;
	else if ((p[0] & 0xf0) == 0xe0)
		need = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		need = 4;
	else
		return 0;
	if (p[0] == 0xe0)
		least = 0xa0;
	else if (p[0] == 0xed)
		most = 0x9f;
	else if (p[0] == 0xf0)
		least = 0x90;
	else if (p[0] == 0xf4)
		most = 0x8f;
	if (len < need || p[1] < least || p[1] > most)
		return 0;
	for (size_t i = 2; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return need;
}

size_t str_utf8_prefix(const char *data, size_t len)
{
	size_t done = 0, step = 1;
	uint64_t eight;
	while (step > 0) {
		/* Most text is ASCII: eight bytes at once. */
		for (; len - done >= sizeof eight; done += sizeof eight) {
			memcpy(&eight, data + done, sizeof eight);
			if (eight & 0x8080808080808080ull)
				break;
		}
		step = str_utf8_char(data + done, len - done);
		done += step;
	}
	return done;
}

size_t str_utf8_incomplete(const char *data, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)data[len - back];
		size_t needs = c >= 0xf0 && c <= 0xf4 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;
		if ((c & 0xc0) == 0x80)
			continue;
		return c <= 0xf4 && needs > back ? back : 0;
	}
	return 0;
}

/* Writes the next character of s as shown to out (up to 4 bytes); returns how many bytes of s it
 * was. */
static size_t show_char(struct str s, char out[5], size_t *shown)
{
	unsigned char c = (unsigned char)s.data[0];
	size_t len = str_utf8_char(s.data, s.len);
	bool is_control =
		c < 0x20 || c == 0x7f || (c == 0xc2 && len == 2 && (unsigned char)s.data[1] < 0xa0);
	if (len > 0 && !is_control) {
		memcpy(out, s.data, len);
		*shown = len;
		return len;
	}
	snprintf(out, 5, "\\x%02x", c);
	*shown = 4;
	return 1;
}

bool str_printable(char *out, size_t size, struct str s)
{
	static const char mark[] = "...";
	size_t len = 0,
	       fits = 0; /* fits: the end of the last character that leaves room for the mark */
	if (size == 0)
		return false;
	while (s.len > 0) {
		char shown[5];
		size_t add;
		size_t taken = show_char(s, shown, &add);
		if (len + add >= size) {
			size_t room = size - 1 - fits;
			size_t marked = room < 3 ? room : 3;
			memcpy(out + fits, mark, marked);
			out[fits + marked] = '\0';
			return false;
		}
		memcpy(out + len, shown, add);
		len += add;
		if (len + 3 < size)
			fits = len;
		s.data += taken;
		s.len -= taken;
	}
	out[len] = '\0';
	return true;
}

size_t str_distance(const char *a, const char *b)
{
	size_t rows[3][256], b_len = strlen(b);
	size_t *before = rows[0], *last = rows[1], *row = rows[2];
	if (b_len >= sizeof rows[0] / sizeof *rows[0])
		return SIZE_MAX;
	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t *oldest = before;
		before = last;
		last = row;
		row = oldest;
		row[0] = i + 1;
		for (size_t j = 0; j < b_len; j++) {
			size_t best = last[j] + (a[i] != b[j]);
			best = best < row[j] + 1 ? best : row[j] + 1;
			best = best < last[j + 1] + 1 ? best : last[j + 1] + 1;
			if (i && j && a[i] == b[j - 1] && a[i - 1] == b[j] &&
				before[j - 1] + 1 < best)
				best = before[j - 1] + 1;
			row[j + 1] = best;
		}
	}
	return row[b_len];
}

bool str_is_nearer(const char *typed, const char *known, size_t *distance)
{
	size_t len = strlen(typed), far = str_distance(typed, known);
	size_t most = len < 3 ? 0 : len < 6 ? 1 : len < 11 ? 2 : 3;
	if (far > most || far >= *distance)
		return false;
	*distance = far;
	return true;
}
