/* tls_make.h -- a certificate for a first start: a CA of its own, and a server's certificate that
 * it has signed (ECDSA, P-256). In carreld alone. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

#define TLS_NAMES_MAX 64
struct tls_wanted {
	text_list names; /* hosts and addresses that clients connect to; the first is the subject */
	uint64_t days;	 /* that the server's certificate is valid; the CA: ten years */
	/* PEM of a CA that was made before; NULL: a new one is made. */
	const char *ca, *ca_key;
};
struct tls_made { /* PEM, in the arena */
	const char *ca, *ca_key, *certificate, *key;
};
/* ERR_INVALID: a name that is neither a host's nor an address, or a CA that can't be used. */
int tls_make(const struct tls_wanted *wanted, struct arena *arena, struct tls_made *made,
	struct error *err);
