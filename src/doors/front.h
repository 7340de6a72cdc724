/* front.h -- what is asked of a request by TCP before its principal is looked for: a name that the
 * daemon is known by, a page that may ask, the address of its client. Private to this room; the
 * checks are pure.
 * 1. A page of another site can make a browser send requests, by its own name (DNS rebinding: Host)
 * or by ours (Origin). Neither is answered unless the configuration lists it.
 * 2. X-Forwarded-* counts only when the connection comes from a listed proxy. */
#pragma once
#include "model/nouns/token.h"
#include "model/settings/serve_settings.h"
#include "net/http.h"

struct front {
	struct serve_settings settings;
	VEC(struct address_range) proxies;
	struct arena arena;
};
/* settings: NULL: the defaults; its texts live as long as the front. */
int front_init(struct front *front, const struct serve_settings *settings, struct error *err);
void front_done(struct front *front);

/* Whether `host`, as the header has it, names this daemon; local: its address on the connection. */
bool front_knows_host(const struct front *front, struct str host, const char *local);
bool front_allows_origin(const struct front *front, struct str origin);
bool front_is_proxy(const struct front *front, const char *address);
/* The address of the client of a connection from `address`, whose X-Forwarded-For is `list` (data
 * NULL: none): of the list the last one that is not a proxy's. Lives in `arena`. */
const char *front_client(
	const struct front *front, const char *address, struct str list, struct arena *arena);

/* Sets r->peer (address, and by a proxy host and is_tls) and the CORS headers of the response. 0:
 * its principal may be looked for; 1: it is a preflight request, which is allowed; -1: refused. */
int front_check(const struct front *front, struct http_request *r, struct error *err);
/* What the configuration lets the bearer of a client certificate with that subject do. false:
 * nothing. */
bool front_knows_subject(const struct front *front, const char *subject, enum token_scope *scope);
bool front_has_token_in_url(struct http_request *r);
/* A page in a browser sent it, and no listed one, which would name itself (Origin): a page that a
 * server in a workspace has written, perhaps. Browsers add the certificate of a client to such a
 * request as well, but never a token. */
bool front_is_of_page(const struct http_request *r);
/* Header lines of the response to a preflight request, besides the common ones. */
extern const char front_preflight_headers[];
