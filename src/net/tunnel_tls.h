/* tunnel_tls.h -- the client's side of TLS for net/tunnel.c, by OpenSSL. */
#pragma once
#include "base/error.h"
#include "format/http/uri.h"

struct tunnel_tls;
/* Reads the authorities. ERR_INVALID, ERR_NOT_FOUND …: ca can't be used. */
int tunnel_tls_new(
	const struct uri_base *base, const char *ca, struct tunnel_tls **tls, struct error *err);
void tunnel_tls_free(struct tunnel_tls *tls); /* NULL: nothing */
/* The handshake, on a connected socket that doesn't block. ERR_DENIED: the certificate is not
 * accepted; ERR_UNAVAILABLE: no TLS there. */
int tunnel_tls_connect(struct tunnel_tls *tls, int fd, const char *authority, struct error *err);
/* As read(2) and write(2), on a socket that doesn't block. */
ssize_t tunnel_tls_read(struct tunnel_tls *tls, void *data, size_t size);
ssize_t tunnel_tls_write(struct tunnel_tls *tls, const void *data, size_t len);
void tunnel_tls_end(struct tunnel_tls *tls);	       /* nothing more will be written */
bool tunnel_tls_pending(const struct tunnel_tls *tls); /* a read needs no more bytes */
/* What the last read or write waits for, beside bytes to read, or room to write, of its own. */
short tunnel_tls_events(const struct tunnel_tls *tls);
