#include "format/network/inet_address.h"

#include <arpa/inet.h>

static bool is_mapped(const union inet_address *address)
{
	return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&address->ipv6.sin6_addr);
}

bool inet_address_parse_host(struct str text, union inet_address *address)
{
	char host[INET6_ADDRSTRLEN + 2];
	if (text.len > 2 && text.data[0] == '[' && text.data[text.len - 1] == ']') {
		text = (struct str){ text.data + 1, text.len - 2 };
		if (memchr(text.data, '.', text.len) && !memchr(text.data, ':', text.len))
			return false;
	}
	if (memchr(text.data ? text.data : "", 0, text.len) ||
		!str_format(host, sizeof host, "%.*s", (int)text.len, text.data))
		return false;
	*address = (union inet_address){ 0 };
	address->ipv4.sin_family = AF_INET;
	if (inet_pton(AF_INET, host, &address->ipv4.sin_addr) == 1)
		return true;
	*address = (union inet_address){ 0 };
	address->ipv6.sin6_family = AF_INET6;
	return inet_pton(AF_INET6, host, &address->ipv6.sin6_addr) == 1;
}

bool inet_address_parse(struct str text, union inet_address *address)
{
	const char *colon = text.len ? memrchr(text.data, ':', text.len) : NULL;
	uint64_t port;
	if (!colon)
		return false;
	struct str host = { text.data, (size_t)(colon - text.data) };
	struct str number = { colon + 1, text.len - host.len - 1 };
	bool has_brackets = host.len && host.data[0] == '[';
	if (!host.len || str_is(host, "localhost"))
		host = STR("127.0.0.1");
	if (!str_to_u64(number, &port) || port > UINT16_MAX ||
		!inet_address_parse_host(host, address) ||
		has_brackets != (address->any.sa_family == AF_INET6))
		return false;
	if (has_brackets)
		address->ipv6.sin6_port = htons((uint16_t)port);
	else
		address->ipv4.sin_port = htons((uint16_t)port);
	return true;
}

socklen_t inet_address_len(const union inet_address *address)
{
	return address->any.sa_family == AF_INET ? sizeof address->ipv4 : sizeof address->ipv6;
}

void inet_address_print_host(const union inet_address *address, char out[INET6_ADDRSTRLEN])
{
	out[0] = 0;
	if (address->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &address->ipv4.sin_addr, out, INET6_ADDRSTRLEN);
	else if (is_mapped(address))
		inet_ntop(AF_INET, address->ipv6.sin6_addr.s6_addr + 12, out, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, &address->ipv6.sin6_addr, out, INET6_ADDRSTRLEN);
}

void inet_address_print_range(const union inet_address *address, char out[INET_ADDRESS_TEXT_SIZE])
{
	union inet_address network = *address;
	bool is_ipv4 = address->any.sa_family == AF_INET;
	char host[INET6_ADDRSTRLEN];
	if (is_ipv4)
		network.ipv4.sin_addr.s_addr &= htonl(0xffffff00);
	else if (is_mapped(address))
		network.ipv6.sin6_addr.s6_addr[15] = 0;
	else
		memset(network.ipv6.sin6_addr.s6_addr + 8, 0, 8);
	inet_address_print_host(&network, host);
	str_format(out, INET_ADDRESS_TEXT_SIZE, "%s/%d", host,
		is_ipv4 || is_mapped(address) ? 24 : 64);
}

void inet_address_print(const union inet_address *address, char out[INET_ADDRESS_TEXT_SIZE])
{
	char host[INET6_ADDRSTRLEN] = "";
	bool is_ipv4 = address->any.sa_family == AF_INET;
	inet_ntop(address->any.sa_family,
		is_ipv4 ? (const void *)&address->ipv4.sin_addr : &address->ipv6.sin6_addr, host,
		sizeof host);
	str_format(out, INET_ADDRESS_TEXT_SIZE, is_ipv4 ? "%s:%u" : "[%s]:%u", host,
		ntohs(is_ipv4 ? address->ipv4.sin_port : address->ipv6.sin6_port));
}

bool inet_address_is_loopback(const union inet_address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->ipv4.sin_addr.s_addr) >> 24 == 127;
	if (is_mapped(address))
		return address->ipv6.sin6_addr.s6_addr[12] == 127;
	return IN6_IS_ADDR_LOOPBACK(&address->ipv6.sin6_addr);
}
