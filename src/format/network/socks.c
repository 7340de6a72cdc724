#include "format/network/socks.h"

#include <arpa/inet.h>

enum { COMMAND_CONNECT = 1, TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4, METHOD_NONE = 0 };

int socks_parse_greeting(struct str bytes, size_t *len, bool *is_open)
{
	const unsigned char *data = (const unsigned char *)bytes.data;
	if (bytes.len && data[0] != SOCKS_VERSION)
		return -1;
	if (bytes.len < 2)
		return 0;
	if (!data[1])
		return -1;
	if (bytes.len < 2u + data[1])
		return 0;
	*len = 2u + data[1];
	*is_open = memchr(data + 2, METHOD_NONE, data[1]) != NULL;
	return 1;
}

static int socks_refuse(
	enum socks_reply *reply, enum socks_reply value, struct error *err, const char *why)
{
	*reply = value;
	return fail(err, ERR_INVALID, "%s", why);
}

int socks_parse_request(
	struct str bytes, struct socks_request *out, enum socks_reply *reply, struct error *err)
{
	const unsigned char *data = (const unsigned char *)bytes.data;
	struct socks_request made = { 0 };
	size_t at = 4, len;
	if ((bytes.len > 0 && data[0] != SOCKS_VERSION) || (bytes.len > 2 && data[2] != 0))
		return socks_refuse(reply, SOCKS_FAILED, err, "not a request of SOCKS5");
	if (bytes.len > 1 && data[1] != COMMAND_CONNECT)
		return socks_refuse(
			reply, SOCKS_BAD_COMMAND, err, "a SOCKS5 command that isn't CONNECT");
	if (bytes.len < 5)
		return 0;
	if (data[3] != TYPE_IPV4 && data[3] != TYPE_NAME && data[3] != TYPE_IPV6)
		return socks_refuse(
			reply, SOCKS_BAD_ADDRESS, err, "an unknown SOCKS5 address type");
	len = data[3] == TYPE_IPV4 ? 4 : data[3] == TYPE_IPV6 ? 16 : data[at++];
	if (bytes.len < at + len + 2)
		return 0;
	made.is_address = data[3] != TYPE_NAME;
	if (data[3] == TYPE_NAME) {
		if (!len || memchr(data + at, '\0', len))
			return socks_refuse(
				reply, SOCKS_NOT_ALLOWED, err, "an empty name or a NUL in a name");
		memcpy(made.host, data + at, len);
	} else {
		inet_ntop(data[3] == TYPE_IPV4 ? AF_INET : AF_INET6, data + at, made.host,
			sizeof made.host);
	}
	made.port = (uint16_t)(data[at + len] << 8 | data[at + len + 1]);
	if (!made.port)
		return socks_refuse(reply, SOCKS_NOT_ALLOWED, err, "port 0");
	made.len = at + len + 2;
	*out = made;
	return 1;
}

void socks_write_reply(enum socks_reply reply, unsigned char out[SOCKS_REPLY_LEN])
{
	memset(out, 0, SOCKS_REPLY_LEN);
	out[0] = SOCKS_VERSION;
	out[1] = (unsigned char)reply;
	out[3] = TYPE_IPV4;
}
