/* tls_hello.h -- the ClientHello at the beginning of a TLS connection (RFC 8446, 6066), which may
 * be split over any number of records and packets. Pure and strict: what two readers may read in
 * two ways is refused, because the server has another reader. */
#pragma once
#include "base/error.h"
#include "base/str.h"

#define TLS_HELLO_MAX 16384	/* bytes with the headers of the records */
#define TLS_HELLO_NAME_SIZE 256 /* of a server's name with its NUL */

struct tls_hello {
	char sni[TLS_HELLO_NAME_SIZE]; /* the server's name: lower case, no dot at the end; "": none
					*/
	bool has_ech; /* encrypted: the name that counts can't be read. Clients that offer it
		       * without a key (GREASE) can't be told from others. */
	size_t len;   /* bytes of its records; what follows them is not part of the hello */
};
/* 1: whole and valid. 0: more bytes are needed (never for TLS_HELLO_MAX or more). -1: not a valid
 * ClientHello, *err says why (ERR_INVALID; ERR_LIMIT: longer than TLS_HELLO_MAX). *out is set for 1
 * alone. Refused as well: an extension that comes twice, several names or one of another kind, a
 * name that no host has, empty records, and bytes behind the hello in its last record. */
int tls_hello_parse(struct str bytes, struct tls_hello *out, struct error *err);
