/* Queries of DNS: whatever comes in, an answer is short, has the id of the query, and is not taken
 * for a query itself. */
#include <string.h>
#include "format/network/dns.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str packet = { (const char *)data, size }, message, rest = packet;
	auto_buf struct buf out = buf_empty(DNS_ANSWER_MAX);
	struct dns_query query, other;
	int code = dns_parse(packet, &query);

	check(strlen(query.name) < sizeof query.name);
	if (code >= 0) {
		dns_write(
			&query, (enum dns_code)code, (const uint8_t *)"0123456789abcdef", 60, &out);
		check(!out.overflow && out.len >= 12 && !memcmp(out.data, data, 2));
		check(dns_parse((struct str){ out.data, out.len }, &other) == -1);
	}
	if (code == DNS_OK)
		check(size <= DNS_QUERY_MAX && query.question.len >= 5 &&
			!memchr(query.name, '\xc0', strlen(query.name)));
	while (dns_take_frame(rest, &message, &rest) == 1)
		check(message.len >= 12 && message.data + message.len == rest.data);
	return 0;
}
