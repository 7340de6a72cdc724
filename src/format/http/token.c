#include "format/http/token.h"

#define PREFIX_LEN (sizeof TOKEN_PREFIX - 1)
static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

/* `count` characters of five bits each, the first bits first. */
static void print_bits(const unsigned char *bytes, size_t count, char *out)
{
	for (size_t i = 0; i < count; i++) {
		unsigned value = 0;
		for (size_t bit = 5 * i; bit < 5 * i + 5; bit++)
			value = value << 1 | (bytes[bit / 8] >> (7 - bit % 8) & 1);
		out[i] = digits[value];
	}
}

static void print_check(const char *text, size_t len, char out[TOKEN_CHECK_LEN])
{
	unsigned char digest[SHA256_LEN];
	struct sha256 hash;
	sha256_init(&hash);
	sha256_add(&hash, text, len);
	sha256_end(&hash, digest);
	print_bits(digest, TOKEN_CHECK_LEN, out);
}

void token_print(const unsigned char random[TOKEN_RANDOM_BYTES], char out[TOKEN_LEN + 1])
{
	memcpy(out, TOKEN_PREFIX, PREFIX_LEN);
	print_bits(random, TOKEN_RANDOM_LEN, out + PREFIX_LEN);
	print_check(out, PREFIX_LEN + TOKEN_RANDOM_LEN, out + PREFIX_LEN + TOKEN_RANDOM_LEN);
	out[TOKEN_LEN] = '\0';
}

bool token_is_whole(struct str text)
{
	char check[TOKEN_CHECK_LEN];
	if (text.len != TOKEN_LEN || !str_starts_with(text, TOKEN_PREFIX))
		return false;
	for (size_t i = PREFIX_LEN; i < TOKEN_LEN; i++)
		if (!memchr(digits, text.data[i], sizeof digits - 1))
			return false;
	print_check(text.data, TOKEN_LEN - TOKEN_CHECK_LEN, check);
	return !memcmp(check, text.data + TOKEN_LEN - TOKEN_CHECK_LEN, TOKEN_CHECK_LEN);
}

struct str token_of_header(struct str value)
{
	static const char scheme[] = "Bearer ";
	size_t len = sizeof scheme - 1;
	if (value.len <= len || strncasecmp(value.data, scheme, len) != 0)
		return (struct str){ 0 };
	struct str token = str_trim((struct str){ value.data + len, value.len - len });
	return token.len ? token : (struct str){ 0 };
}
