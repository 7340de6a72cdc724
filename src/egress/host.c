/* Names and addresses of hosts, and which of them a policy allows. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include "egress/internal.h"
#include "format/uri.h"

#define NAME_MAX_LEN 253
#define LABEL_MAX_LEN 63

static int parse_name(struct str name, char out[HOST_SIZE], struct error *err)
{
	size_t label = 0;

	if (name.len && name.data[name.len - 1] == '.')
		name.len--;
	if (!name.len || name.len > NAME_MAX_LEN)
		return fail(err, ERR_INVALID, "a host's name has 1 to %d bytes", NAME_MAX_LEN);
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		bool is_word =
			(c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
		if (!is_word && c != '.')
			return fail(
				err, ERR_INVALID, "byte 0x%02x in a host's name", (unsigned char)c);
		if (c == '.' ? label == 0 : label == LABEL_MAX_LEN)
			return fail(err, ERR_INVALID, "a label of a host's name has 1 to %d bytes",
				LABEL_MAX_LEN);
		label = c == '.' ? 0 : label + 1;
		out[i] = c;
	}
	out[name.len] = '\0';
	/* "a.." has lost one dot and still ends in one. */
	return label ? 0 : fail(err, ERR_INVALID, "a host's name ends in an empty label");
}

/* One spelling an address, or two spellings of one would be judged differently. */
static int parse_ipv6(struct str text, char out[HOST_SIZE], struct error *err)
{
	char copy[INET6_ADDRSTRLEN] = { 0 };
	struct in6_addr address;

	if (text.len >= sizeof copy || memchr(text.data, '\0', text.len))
		return fail(err, ERR_INVALID, "not an IPv6 address");
	memcpy(copy, text.data, text.len);
	if (inet_pton(AF_INET6, copy, &address) != 1 ||
		!inet_ntop(AF_INET6, &address, out, HOST_SIZE))
		return fail(err, ERR_INVALID, "not an IPv6 address");
	return 0;
}

int host_parse_authority(struct str text, uint16_t default_port, char host[HOST_SIZE],
	uint16_t *port, struct error *err)
{
	bool is_ipv6 = text.len && text.data[0] == '[';
	uint16_t number;
	struct str name;
	char parsed[HOST_SIZE];

	if (!uri_parse_host(text, &name, &number))
		return fail(err, ERR_INVALID, "invalid host or port");
	/* One spelling a port, too. */
	if (number && name.data[name.len + is_ipv6 + 1] == '0')
		return fail(err, ERR_INVALID, "a port that begins with 0");
	if (!number && !default_port)
		return fail(err, ERR_INVALID, "a host without its port");
	if (is_ipv6 ? parse_ipv6(name, parsed, err) : parse_name(name, parsed, err))
		return -1;
	memcpy(host, parsed, sizeof parsed);
	*port = number ? number : default_port;
	return 0;
}

int host_check(const struct forward_host *host, struct error *err)
{
	struct str text = str_from(host->host ? host->host : "");
	char parsed[HOST_SIZE];
	int status = text.len && memchr(text.data, ':', text.len) ? parse_ipv6(text, parsed, err)
								  : parse_name(text, parsed, err);
	char shown[128];

	if (!status && strcmp(parsed, text.data) != 0)
		status = fail(err, ERR_INVALID, "not in its normal form");
	if (!status && !host->port)
		status = fail(err, ERR_INVALID, "a host without its port");
	if (!status)
		return 0;
	str_printable(shown, sizeof shown, text);
	return error_context(err, "allow '%s'", shown);
}

const struct forward_host *forward_decide(
	const forward_hosts *hosts, const struct forward_request *request)
{
	const struct forward_host *found = NULL;

	for (size_t i = 0; i < hosts->count; i++) {
		const struct forward_host *host = &hosts->items[i];
		if (host->port != request->port || strcmp(host->host, request->host) != 0)
			continue;
		if (!found || host->is_named)
			found = host;
	}
	return found;
}

int forward_host_from_url(
	const char *url, struct arena *arena, struct forward_host *host, struct error *err)
{
	/* Neither the URL nor what may be a password is shown in an error. */
	struct str text = str_from(url), authority;
	uint16_t port = 0;
	char name[HOST_SIZE];

	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] <= ' ' || text.data[i] == 0x7f)
			return fail(err, ERR_INVALID, "a blank or control byte in a URL");
	if (!strncasecmp(url, "https://", 8))
		authority = str_from(url + 8), port = 443;
	else if (!strncasecmp(url, "http://", 7))
		authority = str_from(url + 7), port = 80;
	else
		return fail(
			err, ERR_INVALID, "a URL that begins with neither https:// nor http://");
	authority.len = strcspn(authority.data, "/?#");
	/* Some readers end the authority at a backslash, and some take the first of several '@':
	 * the program that connects may find another host there. */
	if (memchr(authority.data, '\\', authority.len))
		return fail(err, ERR_INVALID, "a backslash in a URL's host");
	const char *at = memchr(authority.data, '@', authority.len);
	if (at) {
		authority.len -= (size_t)(at + 1 - authority.data);
		authority.data = at + 1;
	}
	if (host_parse_authority(authority, port, name, &port, err) < 0)
		return error_context(err, "a URL's host");
	*host = (struct forward_host){ .host = arena_text(arena, name), .port = port };
	return 0;
}

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

static bool is_within(const uint8_t *address, const struct prefix *prefix)
{
	size_t whole = prefix->bits / 8, rest = prefix->bits % 8;

	if (memcmp(address, prefix->bytes, whole) != 0)
		return false;
	return !rest || (address[whole] ^ prefix->bytes[whole]) >> (8 - rest) == 0;
}

static bool is_in_table(const uint8_t *address, const struct prefix *table, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_within(address, &table[i]))
			return true;
	return false;
}

bool forward_address_is_closed(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, address, sizeof in);
		return is_in_table((const uint8_t *)&in.sin_addr, closed_ipv4,
			sizeof closed_ipv4 / sizeof *closed_ipv4);
	}
	if (address->sa_family == AF_INET6) {
		struct sockaddr_in6 in;
		memcpy(&in, address, sizeof in);
		return in.sin6_addr.s6_addr[0] >> 5 != 1 ||
		       is_in_table(in.sin6_addr.s6_addr, closed_ipv6,
			       sizeof closed_ipv6 / sizeof *closed_ipv6);
	}
	return true;
}
