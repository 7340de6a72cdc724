#include <string.h>

/* The compiler may call these for copies and clearing of its own. */
void *memset(void *to, int value, size_t len)
{
	char *bytes = to;
	while (len--)
		*bytes++ = (char)value;
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
	char *bytes = to;
	const char *source = from;
	while (len--)
		*bytes++ = *source++;
	return to;
}
