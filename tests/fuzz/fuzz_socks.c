/* What clients of a SOCKS5 proxy send: a request that passes has a host and a port, ends within its
 * bytes, and is not whole before its last byte. */
#include <string.h>
#include "format/network/socks.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	struct socks_request request, shorter;
	enum socks_reply reply = SOCKS_SUCCEEDED;
	size_t len = 0;
	bool is_open;

	int status = socks_parse_greeting(bytes, &len, &is_open);
	check(status >= -1 && status <= 1);
	check(status != 1 || (len >= 3 && len <= size));
	if (status == 1)
		check(socks_parse_greeting((struct str){ bytes.data, len - 1 }, &len, &is_open) ==
			0);
	status = socks_parse_request(bytes, &request, &reply, NULL);
	check(status >= -1 && status <= 1);
	check(status != -1 || reply != SOCKS_SUCCEEDED);
	if (status != 1)
		return 0;
	check(request.len <= size && request.port && request.host[0]);
	check(memchr(request.host, '\0', sizeof request.host) != NULL);
	check(socks_parse_request(
		      (struct str){ bytes.data, request.len - 1 }, &shorter, &reply, NULL) == 0);
	return 0;
}
