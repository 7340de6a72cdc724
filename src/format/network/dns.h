/* dns.h -- one query of a DNS client (RFC 1035, EDNS of RFC 6891), and answers of a resolver that
 * knows addresses alone. Pure. */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#define DNS_NAME_SIZE 256
#define DNS_QUERY_MAX 1232 /* bytes of a query; a longer one is malformed */
#define DNS_ANSWER_MAX 512 /* no answer is longer: none has to be cut off for UDP */

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };
enum dns_code {
	DNS_OK = 0,
	DNS_MALFORMED = 1, /* FORMERR */
	DNS_FAILED = 2,	   /* SERVFAIL */
	DNS_NO_NAME = 3,   /* NXDOMAIN */
	DNS_UNKNOWN = 4,   /* NOTIMP: another operation or class */
	DNS_VERSION = 16,  /* BADVERS: an unknown version of EDNS */
};
struct dns_query {
	uint16_t id, type;
	/* Lower case, no dot at the end. "": the root, or a name that no host has. */
	char name[DNS_NAME_SIZE];
	uint16_t flags;	     /* of the header */
	struct str question; /* as it was sent; a view of the packet. Empty: could not be read */
	bool has_edns;
};
/* One packet, exactly: one question without compression, and at most EDNS behind it. DNS_OK: *out
 * is set. Another code: answer with it; *out is set as far as the packet could be read. -1: there
 * is nothing to answer, the packet is a response or has no whole header. */
int dns_parse(struct str packet, struct dns_query *out);
/* Appends the answer to a query: `code`, and with DNS_OK one address, 4 bytes for DNS_A and 16 for
 * DNS_AAAA. address NULL: the name has no record of this type (NODATA). */
void dns_write(const struct dns_query *query, enum dns_code code, const uint8_t *address,
	uint32_t ttl_s, struct buf *out);

/* Over TCP each message comes behind its length. 1: *message is the first one; it ends where *rest
 * begins. 0: more bytes are needed. -1: a length that no query has. */
int dns_take_frame(struct str bytes, struct str *message, struct str *rest);
void dns_put_frame(struct str message, struct buf *out);
