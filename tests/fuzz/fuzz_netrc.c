/* .netrc: whatever is in it, credentials that are in the file, or none, and an end. */
#include <string.h>
#include "format/packages/netrc.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	const char *login = NULL, *password = NULL;

	arena_init(&arena);
	if (size >= 65536)
		return 0;
	if (netrc_find((struct str){ (const char *)data, size }, "a.example", &arena, &login,
		    &password))
		check(login && password && strlen(login) + strlen(password) <= size);
	netrc_logins logins = { 0 };
	netrc_list((struct str){ (const char *)data, size }, &arena, &logins);
	check(logins.count <= size && (!password || logins.count));
	return 0;
}
