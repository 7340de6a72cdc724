/* Lists of hosts: the first line is a target, others are entries ("-entry" denies). A host that is
 * open is in its normal form, and normalizing it again changes nothing. */
#include <string.h>
#include "fuzz.h"
#include "model/network/network.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct str rest = { (const char *)data, size }, line, target;
	struct network_list list;
	char host[NETWORK_HOST_SIZE], again[NETWORK_HOST_SIZE];
	uint16_t port;

	if (network_list_init(&list, &arena, NETWORK_LIST, NULL, NULL) < 0 ||
		!str_next(&rest, '\n', &target))
		return 0;
	while (str_next(&rest, '\n', &line)) {
		bool is_denied = str_starts_with(line, "-");
		const char *entry =
			arena_bytes(&arena, line.data + is_denied, line.len - is_denied);
		network_list_add(&list, is_denied ? NETWORK_DENY : NETWORK_ALLOW, entry, NULL);
	}
	if (network_target_parse(target, host, &port, NULL) < 0)
		return 0;
	check(port && host[0] && strlen(host) < 254);
	for (const char *c = host; *c; c++)
		check((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || strchr("-_.:", *c));
	check(network_normalize(str_from(host), again, NULL) == 0 && !strcmp(host, again));
	struct network_verdict verdict = network_decide(&list, host, port);
	check(!verdict.is_allowed || verdict.rule);
	check(!verdict.is_allowed || network_is_named(&list, host));
	return 0;
}
