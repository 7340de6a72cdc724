/* tls.h -- TLS over a socket as a stream of net/stream.h (OpenSSL 3), for listeners. In carreld
 * alone.
 * 1. TLS 1.2 and 1.3, HTTP/1.1 by ALPN. No renegotiation, no early data, no compression.
 * 2. The handshake is a part of the first receive. Nothing is sent before it, and a client that
 * doesn't end it has the time of its first request for it (net/http.h).
 * 3. New certificates are for new connections; those that are open go on with theirs. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "net/stream.h"

struct tls_files {		/* PEM */
	struct str certificate; /* with what is between it and its root, if anything is */
	struct str key;
	struct str
		client_ca; /* clients must have a certificate of one of these; "": they need none */
};
struct tls;
/* ERR_INVALID: says which of them can't be used. */
int tls_new(const struct tls_files *files, struct tls **tls, struct error *err);
/* On failure everything stays as it is. */
int tls_renew(struct tls *tls, const struct tls_files *files, struct error *err);
void tls_free(struct tls *tls);

/* As http_listener.open; ctx is the struct tls. Takes fd. */
void tls_open(void *ctx, int fd, struct net_stream *stream);
