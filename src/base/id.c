#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/id.h"

static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

void id_make(char out[ID_LEN + 1])
{
	unsigned char bytes[ID_LEN];
	ssize_t got;

	do {
		got = getrandom(bytes, sizeof bytes, 0);
	} while (got < 0 && errno == EINTR);
	if (got != sizeof bytes)
		abort();
	for (int i = 0; i < ID_LEN; i++)
		out[i] = digits[bytes[i] & 31];
	out[ID_LEN] = '\0';
}

bool id_is_valid(const char *text)
{
	return strlen(text) == ID_LEN && strspn(text, digits) == ID_LEN;
}
