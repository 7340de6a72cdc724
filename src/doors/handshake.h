/* handshake.h -- the opening handshake of a WebSocket (RFC 6455, 4.2), by the head of a request. */
#pragma once
#include "doors/call.h"

#define HANDSHAKE_BEARER "carrel.bearer." /* and a token: the name of a subprotocol */

/* The token that a browser offers as a subprotocol, as the value of an
 * Authorization header; data NULL: none. *count grows by how many are offered. */
struct str handshake_bearer(struct http_request *r, size_t *count);
/* Checks the handshake. 0: *headers are the lines of a 101 that accepts the subprotocol. -1: *err,
 * answered with c->problem and c->problem_headers. */
int handshake_check(struct call *c, const char *protocol, const char **headers, struct error *err);
