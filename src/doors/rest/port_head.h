/* port_head.h -- heads of requests and responses that pass through /ports/{port}/…: what a server
 * in a workspace sees of a request, and what a client sees of the response. Pure.
 * 1. Headers that are about one connection stay there (RFC 9110, 7.6.1). The server sees neither
 * the credentials of the client for this daemon nor forged X-Forwarded headers, and is called
 * localhost:PORT.
 * 2. Paths of the server that a client follows (Location, the path of a cookie) get the prefix of
 * the port, so that a cookie of one workspace is not sent to another. */
#pragma once
#include "base/buf.h"
#include "format/http/http_response.h"
#include "net/http.h"

struct port_head {
	uint16_t port;
	struct str prefix;   /* "/v1/workspaces/NAME/ports/8000", as the client sent it */
	struct str rest;     /* the path behind it and its slash, as sent */
	struct str protocol; /* the client wants to change to it; data NULL: to none */
	bool is_chunked;     /* the body of the request is passed on so */
};
/* Appends the head for the server. */
void port_head_request(const struct port_head *head, const struct http_request *r, struct buf *out);
/* Appends the header lines for the client, without those of framing and of the connection, and
 * without those that a browser would keep for all of the daemon. */
void port_head_response(
	const struct port_head *head, const struct http_response *response, struct buf *out);
