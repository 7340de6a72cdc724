/* inet_address.h -- "ADDRESS:PORT" as text and as a socket address. Names are not resolved. Pure.
 */
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>
#include "base/str.h"

union inet_address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};
#define INET_ADDRESS_TEXT_SIZE (INET6_ADDRSTRLEN + 8)

/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080" and ":8080", which both are 127.0.0.1. false:
 * neither. */
bool inet_address_parse(struct str text, union inet_address *address);
/* One address without a port: "10.1.2.3", "fe80::1" or "[fe80::1]". */
bool inet_address_parse_host(struct str text, union inet_address *address);
socklen_t inet_address_len(const union inet_address *address);
/* With the port; _host: without, and an IPv4 address that is mapped into IPv6 as itself. */
void inet_address_print(const union inet_address *address, char out[INET_ADDRESS_TEXT_SIZE]);
void inet_address_print_host(const union inet_address *address, char out[INET6_ADDRSTRLEN]);
/* The network that one user of it may have to himself, without the port: "192.0.2.0/24",
 * "2001:db8:0:1::/64"; IPv4 mapped into IPv6 is IPv4. */
void inet_address_print_range(const union inet_address *address, char out[INET_ADDRESS_TEXT_SIZE]);
/* Whether only this host reaches it. */
bool inet_address_is_loopback(const union inet_address *address);
