/* uri.h -- percent-encoding, query strings and the authority of a request. Pure. */
#pragma once
#include "base/arena.h"
#include "base/str.h"

/* Decodes %XX; with is_query '+' is a blank. false: malformed, or a NUL in it. The result is
 * NUL-terminated. */
bool uri_decode(struct arena *arena, struct str text, bool is_query, struct str *out);
/* Everything but [A-Za-z0-9._~-] (and '/' when keep_slashes) becomes %XX. */
char *uri_encode(struct arena *arena, struct str text, bool keep_slashes);
/* The next parameter of a query, undecoded; empty ones ("a&&b") are passed over. false at the end.
 * One without '=' has the value "". */
bool uri_next_parameter(struct str *rest, struct str *name, struct str *value);
/* host or host:port, as it may stand in a Host header (which may be empty): letters, digits and
 * "-._~%!$&'()*+;=", or [IPv6]. No userinfo, no blank, no comma. */
bool uri_is_authority(struct str text);

/* host, host:port, [IPv6] or [IPv6]:port, as a URL has it: a name of letters, digits and "-._".
 * *name is without brackets; *port is 0 when there is none. */
bool uri_parse_host(struct str text, struct str *name, uint16_t *port);

struct uri {		   /* views into "scheme://user:password@host:port/path" */
	struct str scheme; /* with "://" */
	struct str user;   /* with the password, without '@'; may be empty */
	struct str host;   /* with the port; not checked. The rest of the URL follows it. */
};
/* false: it has no "://". */
bool uri_split(const char *url, struct uri *parts);

struct uri_base {	      /* of a server: views into "https://host:port" */
	bool is_tls;	      /* https */
	struct str authority; /* "host:port", as a Host header has it */
	struct str name;      /* without brackets */
	uint16_t port;	      /* 443 or 80 when the URL has none */
};
/* http or https, a host, perhaps a port, perhaps one '/' behind it, and nothing else. */
bool uri_parse_base(const char *url, struct uri_base *base);
