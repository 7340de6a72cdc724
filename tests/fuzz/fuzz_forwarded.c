/* X-Forwarded-For: every step takes something off the list, and an address has a text that is read
 * again as the same one. */
#include "format/http/forwarded.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str list = { (const char *)data, size }, rest;
	union inet_address address, again;
	char text[INET6_ADDRSTRLEN], second[INET6_ADDRSTRLEN];

	while (forwarded_last(list, &address, &rest)) {
		check(rest.len < list.len && rest.data == list.data);
		inet_address_print_host(&address, text);
		check(inet_address_parse_host(str_from(text), &again));
		inet_address_print_host(&again, second);
		check(!strcmp(text, second));
		list = rest;
	}
	return 0;
}
