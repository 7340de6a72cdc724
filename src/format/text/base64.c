#include "format/text/base64.h"

int base64_digit(char c, const char last[2])
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == last[0] ? 62 : c == last[1] ? 63 : -1;
}

bool base64_decode(struct str text, struct arena *arena, struct str *bytes)
{
	size_t padding = 0, len = 0;
	if (text.len % 4)
		return false;
	while (padding < 2 && padding < text.len && text.data[text.len - 1 - padding] == '=')
		padding++;
	char *out = arena_alloc(arena, text.len / 4 * 3 + 1);
	for (size_t i = 0; i < text.len; i += 4) {
		size_t missing = i + 4 == text.len ? padding : 0;
		uint32_t bits = 0;
		for (size_t k = 0; k < 4; k++) {
			int value = k < 4 - missing ? base64_digit(text.data[i + k], "+/") : 0;
			if (value < 0)
				return false;
			bits = bits << 6 | (uint32_t)value;
		}
		if (bits & ((1u << 8 * missing) - 1))
			return false;
		for (size_t k = 0; k < 3 - missing; k++)
			out[len++] = (char)(bits >> (16 - 8 * k));
	}
	*bytes = (struct str){ out, len };
	return true;
}
