/* socks.h -- what a client of a SOCKS5 proxy sends (RFC 1928), and the answers. Pure. */
#pragma once
#include "base/error.h"
#include "base/str.h"

#define SOCKS_VERSION 5
#define SOCKS_REPLY_LEN 10

enum socks_reply {
	SOCKS_SUCCEEDED = 0,
	SOCKS_FAILED = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_BAD_COMMAND = 7,
	SOCKS_BAD_ADDRESS = 8,
};

/* The greeting: which methods of authentication the client offers. 1: whole; *len bytes;
 * *is_open: "none" is among them. 0: more bytes are needed. -1: not a greeting of SOCKS5. */
int socks_parse_greeting(struct str bytes, size_t *len, bool *is_open);

struct socks_request {
	char host[256]; /* the name as it was sent, or the address as text */
	bool is_address;
	uint16_t port;
	size_t len; /* bytes of the request */
};
/* 1: whole, and CONNECT. 0: more bytes are needed. -1: refused with *reply; *err says why. A name
 * with a NUL in it is refused. */
int socks_parse_request(
	struct str bytes, struct socks_request *out, enum socks_reply *reply, struct error *err);
/* The answer; the address in it, which clients ignore, is 0.0.0.0:0. */
void socks_write_reply(enum socks_reply reply, unsigned char out[SOCKS_REPLY_LEN]);
