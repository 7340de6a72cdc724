/* door.h -- what is asked of a request by TCP before its principal is looked for: a name that the
 * daemon is known by, a page that may ask, the address of its client. Private to this room; the
 * checks are pure.
 * 1. A page of another site can make a browser send requests, by its own name (DNS rebinding: Host)
 * or by ours (Origin). Neither is answered unless the configuration lists it.
 * 2. X-Forwarded-* counts only when the connection comes from a listed proxy. */
#pragma once
#include "model/serve_settings.h"
#include "model/token.h"
#include "net/http.h"

struct front_door {
	struct serve_settings settings;
	VEC(struct address_range) proxies;
	struct arena arena;
};
int door_init(struct front_door *door, const char *settings, struct error *err);
void door_done(struct front_door *door);

/* Whether `host`, as the header has it, names this daemon; local: its address on the connection. */
bool door_knows_host(const struct front_door *door, struct str host, const char *local);
bool door_allows_origin(const struct front_door *door, struct str origin);
bool door_is_proxy(const struct front_door *door, const char *address);
/* The address of the client of a connection from `address`, whose X-Forwarded-For is `list` (data
 * NULL: none): of the list the last one that is not a proxy's. Lives in `arena`. */
const char *door_client(
	const struct front_door *door, const char *address, struct str list, struct arena *arena);

/* Sets r->peer (address, and by a proxy host and is_tls) and the CORS headers of the response. 0:
 * its principal may be looked for; 1: it is a preflight request, which is allowed; -1: refused. */
int door_check(const struct front_door *door, struct http_request *r, struct error *err);
/* What the configuration lets the bearer of a client certificate with that subject do. false:
 * nothing. */
bool door_knows_subject(
	const struct front_door *door, const char *subject, enum token_scope *scope);
bool door_has_token_in_url(struct http_request *r);
/* A page in a browser sent it, and no listed one, which would name itself (Origin): a page that a
 * server in a workspace has written, perhaps. Browsers add the certificate of a client to such a
 * request as well, but never a token. */
bool door_is_of_page(const struct http_request *r);
/* Header lines of the response to a preflight request, besides the common ones. */
extern const char door_preflight_headers[];
