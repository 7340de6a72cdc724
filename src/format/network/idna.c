#include "format/network/idna.h"

#define LETTERS_MAX 63

struct letters { /* a range in one of three forms */
	uint32_t first, last;
	enum { LOWER, UPPER, PAIRS } kind; /* PAIRS: upper, lower, upper, lower … */
	uint32_t distance;		   /* UPPER: to the lower case */
};
/* Left out: letters that standards map differently (sharp s, final sigma, dotted I), compatibility
 * forms, and everything that combines with its neighbours. */
static const struct letters known[] = {
	{ 0xc0, 0xd6, UPPER, 0x20 },
	{ 0xd8, 0xde, UPPER, 0x20 },
	{ 0xe0, 0xf6, LOWER, 0 },
	{ 0xf8, 0xff, LOWER, 0 },
	{ 0x100, 0x12f, PAIRS, 0 },
	{ 0x134, 0x137, PAIRS, 0 },
	{ 0x139, 0x13e, PAIRS, 0 },
	{ 0x141, 0x148, PAIRS, 0 },
	{ 0x14a, 0x177, PAIRS, 0 },
	{ 0x179, 0x17e, PAIRS, 0 },
	{ 0x391, 0x3a1, UPPER, 0x20 },
	{ 0x3a3, 0x3a9, UPPER, 0x20 },
	{ 0x3ac, 0x3af, LOWER, 0 },
	{ 0x3b1, 0x3c1, LOWER, 0 },
	{ 0x3c3, 0x3c9, LOWER, 0 },
	{ 0x3cc, 0x3ce, LOWER, 0 },
	{ 0x400, 0x40f, UPPER, 0x50 },
	{ 0x410, 0x42f, UPPER, 0x20 },
	{ 0x430, 0x45f, LOWER, 0 },
	{ 0x3005, 0x3005, LOWER, 0 },
	{ 0x3041, 0x3096, LOWER, 0 },
	{ 0x30a1, 0x30fa, LOWER, 0 },
	{ 0x30fc, 0x30fc, LOWER, 0 },
	{ 0x4e00, 0x9fff, LOWER, 0 },
	{ 0xac00, 0xd7a3, LOWER, 0 },
};

/* The lower case of a letter; 0: not one of those that are known. */
static uint32_t lower(uint32_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c + 0x20;
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')
		return c;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const struct letters *range = &known[i];
		if (c < range->first || c > range->last)
			continue;
		if (range->kind == PAIRS)
			return c + !((c - range->first) & 1);
		return c + (range->kind == UPPER ? range->distance : 0);
	}
	return 0;
}

static size_t decode(struct str label, uint32_t out[LETTERS_MAX])
{
	size_t count = 0, len;
	for (size_t at = 0; at < label.len; at += len) {
		const unsigned char *c = (const unsigned char *)label.data + at;
		len = str_utf8_char(label.data + at, label.len - at);
		if (!len || count == LETTERS_MAX)
			return 0;
		uint32_t value = len == 1 ? c[0] : c[0] & (0x7fu >> len);
		for (size_t i = 1; i < len; i++)
			value = value << 6 | (c[i] & 0x3f);
		out[count] = lower(value);
		if (!out[count++])
			return 0;
	}
	return count;
}

/* RFC 3492, section 6.1. */
static uint32_t adapt(uint32_t delta, uint32_t count, bool is_first)
{
	uint32_t k = 0;
	delta = is_first ? delta / 700 : delta / 2;
	for (delta += delta / count; delta > 455; k += 36)
		delta /= 35;
	return k + 36 * delta / (delta + 38);
}

static char digit(uint32_t value)
{
	return (char)(value < 26 ? 'a' + value : '0' + (value - 26));
}

static bool idna_put(char *out, size_t *len, char c)
{
	if (*len + 1 >= IDNA_LABEL_SIZE)
		return false;
	out[(*len)++] = c;
	return true;
}

/* A variable-length integer: the distance to the place and value of the next letter. */
static bool put_delta(char *out, size_t *len, uint32_t delta, uint32_t bias)
{
	for (uint32_t k = 36;; k += 36) {
		uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
		if (delta < t)
			return idna_put(out, len, digit(delta));
		if (!idna_put(out, len, digit(t + (delta - t) % (36 - t))))
			return false;
		delta = (delta - t) / (36 - t);
	}
}

static uint32_t next_letter(const uint32_t *letters, size_t count, uint32_t from)
{
	uint32_t next = UINT32_MAX;
	for (size_t i = 0; i < count; i++)
		if (letters[i] >= from && letters[i] < next)
			next = letters[i];
	return next;
}

bool idna_encode(struct str label, char out[IDNA_LABEL_SIZE])
{
	uint32_t letters[LETTERS_MAX], value = 0x80, bias = 72, delta = 0;
	char made[IDNA_LABEL_SIZE] = "xn--";
	size_t count = decode(label, letters), len = 4, basic, done;
	if (!count || letters[0] == '-' || letters[count - 1] == '-')
		return false;
	for (size_t i = 0; i < count; i++)
		if (letters[i] < 0x80 && !idna_put(made, &len, (char)letters[i]))
			return false;
	basic = done = len - 4;
	if (basic == count || (basic && !idna_put(made, &len, '-')))
		return false; /* ASCII needs no A-label */
	while (done < count) {
		uint32_t next = next_letter(letters, count, value);
		delta += (next - value) * ((uint32_t)done + 1); /* 63 letters below 2^16 */
		value = next;
		for (size_t i = 0; i < count; i++) {
			delta += letters[i] < value;
			if (letters[i] != value)
				continue;
			if (!put_delta(made, &len, delta, bias))
				return false;
			bias = adapt(delta, (uint32_t)done + 1, done == basic);
			delta = 0;
			done++;
		}
		delta++;
		value++;
	}
	made[len] = '\0';
	memcpy(out, made, len + 1);
	return true;
}
