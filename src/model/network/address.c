#include "model/network/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

struct prefix {
	uint8_t bytes[6], bits;
};
static const struct prefix closed_ipv4[] = {
	{ { 0 }, 8 },		      /* this network, unspecified */
	{ { 10 }, 8 },		      /* private */
	{ { 100, 64 }, 10 },	      /* carrier-grade NAT, and a cloud's metadata */
	{ { 127 }, 8 },		      /* loopback */
	{ { 168, 63, 129, 16 }, 32 }, /* a cloud's metadata on a public address */
	{ { 169, 254 }, 16 },	      /* link-local, metadata */
	{ { 172, 16 }, 12 },	      /* private */
	{ { 192, 0, 0 }, 24 },	      /* protocol assignments, metadata */
	{ { 192, 88, 99 }, 24 },      /* 6to4 relays */
	{ { 192, 168 }, 16 },	      /* private */
	{ { 198, 18 }, 15 },	      /* benchmarks */
	{ { 224 }, 4 },		      /* multicast */
	{ { 240 }, 4 },		      /* reserved, broadcast */
};
/* Only 2000::/3 holds public addresses: everything outside of it (unspecified, loopback,
 * mapped, compatible, NAT64, discard, ULA, link-local, site-local, multicast) is closed as a whole.
 */
static const struct prefix closed_ipv6[] = {
	{ { 0x20, 0x01, 0x00 }, 23 }, /* protocol assignments: Teredo, ORCHID … */
	{ { 0x20, 0x02 }, 16 },	      /* 6to4 */
};

static bool is_below(const uint8_t *address, const uint8_t *prefix, unsigned bits)
{
	size_t whole = bits / 8, rest = bits % 8;
	if (memcmp(address, prefix, whole) != 0)
		return false;
	return !rest || (address[whole] ^ prefix[whole]) >> (8 - rest) == 0;
}

/* The bytes of an address; 0: neither IPv4 nor IPv6. */
static size_t bytes_of(const struct sockaddr *address, uint8_t bytes[16])
{
	if (address->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, address, sizeof in);
		memcpy(bytes, &in.sin_addr, 4);
		return 4;
	}
	if (address->sa_family == AF_INET6) {
		struct sockaddr_in6 in;
		memcpy(&in, address, sizeof in);
		memcpy(bytes, &in.sin6_addr, 16);
		return 16;
	}
	return 0;
}

static bool is_in_table(const uint8_t *address, const struct prefix *table, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_below(address, table[i].bytes, table[i].bits))
			return true;
	return false;
}

bool address_is_closed(const struct sockaddr *address)
{
	uint8_t bytes[16];
	size_t len = bytes_of(address, bytes);
	if (len == 4)
		return is_in_table(bytes, closed_ipv4, sizeof closed_ipv4 / sizeof *closed_ipv4);
	return len != 16 || bytes[0] >> 5 != 1 ||
	       is_in_table(bytes, closed_ipv6, sizeof closed_ipv6 / sizeof *closed_ipv6);
}

int address_range_parse(struct str text, struct address_range *range, struct error *err)
{
	struct address_range made = { 0 };
	char copy[INET6_ADDRSTRLEN] = "", shown[128];
	struct str address, number;
	uint64_t bits;
	bool has_bits = str_cut(text, '/', &address, &number);
	str_printable(shown, sizeof shown, text);
	if (address.len >= sizeof copy || (address.len && memchr(address.data, '\0', address.len)))
		return fail(err, ERR_INVALID, "invalid address range '%s'", shown);
	memcpy(copy, address.data, address.len);
	made.is_ipv4 = inet_pton(AF_INET, copy, made.bytes) == 1;
	if (!made.is_ipv4 && inet_pton(AF_INET6, copy, made.bytes) != 1)
		return fail(err, ERR_INVALID, "invalid address range '%s'", shown);
	bits = made.is_ipv4 ? 32 : 128;
	if (has_bits && (!str_to_u64(number, &bits) || bits > (made.is_ipv4 ? 32 : 128)))
		return fail(
			err, ERR_INVALID, "invalid prefix length in the address range '%s'", shown);
	made.bits = (uint8_t)bits;
	for (size_t i = made.bits; i < (made.is_ipv4 ? 32u : 128u); i++)
		if (made.bytes[i / 8] & 0x80 >> i % 8)
			return fail(err, ERR_INVALID,
				"the address range '%s' has bits set behind its prefix", shown);
	*range = made;
	return 0;
}

bool address_is_within(
	const struct sockaddr *address, const struct address_range *ranges, size_t count)
{
	uint8_t bytes[16];
	size_t len = bytes_of(address, bytes);
	for (size_t i = 0; len && i < count; i++)
		if (ranges[i].is_ipv4 == (len == 4) &&
			is_below(bytes, ranges[i].bytes, ranges[i].bits))
			return true;
	return false;
}
