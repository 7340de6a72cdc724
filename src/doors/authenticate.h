/* authenticate.h -- the principal of a request, by the listener that it came in on. Private to this
 * room.
 * 1. On a unix socket it is the uid of the peer, or the bearer of a token when one is sent. On TCP
 * it is never a uid.
 * 2. A wrong token is refused, never replaced by another credential of its bearer. */
#pragma once
#include "doors/call.h"

/* As http_listener.authenticate; ctx is the struct api. */
int authenticate_unix(
	void *ctx, struct http_request *r, const struct principal **principal, struct error *err);
int authenticate_tcp(
	void *ctx, struct http_request *r, const struct principal **principal, struct error *err);
/* By TCP: by a token, or else by the subject of its certificate. */
int authenticate_credential(struct api *api, struct http_request *r,
	const struct principal **principal, struct error *err);
