/* URLs of indexes: the host of one that passes is plain, and the same when written as a URL again.
 */
#include <string.h>
#include "egress/forward.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct forward_host host, again;
	char text[320];

	struct forward_proxy proxy;

	arena_init(&arena);
	if (forward_proxy_parse(arena_bytes(&arena, (const char *)data, size), &proxy, NULL) == 0)
		check(proxy.port && proxy.host[0] && !strpbrk(proxy.authorization, "\r\n"));
	forward_proxy_is_excepted(arena_bytes(&arena, (const char *)data, size), "a.example", 443);
	if (forward_host_from_url(
		    arena_bytes(&arena, (const char *)data, size), &arena, &host, NULL) < 0)
		return 0;
	check(host.port && *host.host && strlen(host.host) < 254 && !host.is_named);
	for (const char *c = host.host; *c; c++)
		check((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || strchr("-_.:", *c));
	str_format(text, sizeof text, strchr(host.host, ':') ? "http://[%s]:%u" : "http://%s:%u",
		host.host, host.port);
	check(forward_host_from_url(text, &arena, &again, NULL) == 0);
	check(!strcmp(host.host, again.host) && host.port == again.port);
	return 0;
}
