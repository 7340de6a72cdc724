/* utf8.h -- characters as UTF-8, for readers of escapes. */
#pragma once

/* Writes the character (at most 0x10ffff) and returns how many bytes, 1 to 4, that took. */
static inline size_t utf8_write(char *out, uint32_t code)
{
	static const unsigned char first[] = { 0, 0xc0, 0xe0, 0xf0 };
	size_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
	out[0] = (char)(first[more] | code >> 6 * more);
	for (size_t i = 1; i <= more; i++)
		out[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
	return more + 1;
}
