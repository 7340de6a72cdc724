#include <sys/random.h>
#include "base/id.h"

static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

void id_random(void *out, size_t len)
{
	ssize_t got;
	do {
		got = getrandom(out, len, 0);
	} while (got < 0 && errno == EINTR);
	if (got != (ssize_t)len)
		abort();
}

void id_make(char out[ID_LEN + 1])
{
	unsigned char bytes[ID_LEN];
	id_random(bytes, sizeof bytes);
	for (int i = 0; i < ID_LEN; i++)
		out[i] = digits[bytes[i] & 31];
	out[ID_LEN] = '\0';
}

bool id_is_valid(const char *text)
{
	return strlen(text) == ID_LEN && strspn(text, digits) == ID_LEN;
}
