/* address.h -- addresses that no name may lead to, and the ranges that an operator opens. Pure. */
#pragma once
#include "base/error.h"
#include "base/str.h"

struct sockaddr;

/* Whether an address isn't one of the public Internet: loopback, private, link-local, metadata,
 * carrier-grade NAT, multicast, unspecified, reserved, mapped, NAT64, 6to4, Teredo. */
bool address_is_closed(const struct sockaddr *address);

struct address_range {
	uint8_t bytes[16]; /* IPv4: the first four */
	uint8_t bits;
	bool is_ipv4;
};
/* "10.0.0.0/8", "fd00::/8", or one address. Bits behind the prefix must be 0. */
int address_range_parse(struct str text, struct address_range *range, struct error *err);
bool address_is_within(
	const struct sockaddr *address, const struct address_range *ranges, size_t count);
