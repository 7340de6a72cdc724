/* network.h -- which hosts may be reached: lists, and the one decision on them. Pure, on bytes,
 * before a name is resolved.
 * 1. An entry is `host`, `*.host` (every name below host, not host itself) or `*` (public names),
 * each with or without `:port`, or an address (`192.0.2.1`, `2001:db8::1`, `[2001:db8::1]:443`).
 * URLs, paths, user names and a star inside a label make a list invalid.
 * 2. An allow entry without a port holds for the default ports, a deny entry for all. Deny wins.
 * 3. Names are compared in their normal form: lower case, without the dot at the end, A-labels.
 * 4. An address is reached only by the entry that names it, in the one spelling of inet_ntop. `*`
 * and `*.host` don't hold for it, and its other spellings (127.1, 0x7f.1, 017700000001) are refused
 * before they are looked up. `*` doesn't hold for names that only a private network has either:
 * those without a dot, below localhost, localdomain, local, internal and home.arpa, unless the
 * operator's configuration answers them.
 * 5. A list may have bounds: what it allows is reached only if each of them allows it, too. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/network/address.h"

#define NETWORK_HOST_SIZE 256	  /* of a host in its normal form with its NUL */
#define NETWORK_ENTRIES_MAX 65536 /* of one list */
#define NETWORK_PORTS_MAX 64

enum network_mode {
	NETWORK_NONE, /* nothing may be reached, whatever is listed */
	NETWORK_LIST,
	NETWORK_OPEN, /* as if `*` were listed, too */
	NETWORK_MODE_COUNT
};
/* "none", "list", "open". */
const char *network_mode_name(enum network_mode mode);
int network_mode_parse(const char *text, enum network_mode *mode, struct error *err);

enum network_effect {
	NETWORK_ALLOW,
	NETWORK_DENY,
	NETWORK_TRUST /* allow, whatever address the host has: the operator wrote this entry */
};
struct network_rule {
	struct network_rule *next; /* of the same host */
	const char *text;	   /* as it was written */
	uint16_t port;		   /* 0: not written */
	enum network_effect effect;
};
struct network_list {
	enum network_mode mode;
	struct arena *arena;
	struct map rules; /* "host", ".host" for *.host, "*" */
	size_t count;
	uint16_t ports[NETWORK_PORTS_MAX]; /* of entries without a port */
	size_t port_count;
	struct map known; /* hosts that the operator's configuration answers */
	/* Of a bound: an entry without a port holds for all, and `*` for every host. */
	bool is_bound;
	struct network_list *bound; /* the next one of this list, or NULL */
};
/* What a policy lets be reached at most. */
struct network_bound {
	const char *by; /* "sources of the template: web_access" */
	bool has_allow; /* only what is listed there; false: all but `deny` */
	text_list allow, deny;
};
#define NETWORK_BOUNDS_MAX 8 /* of one list */
typedef VEC(struct network_bound) network_bounds;
/* Whether they leave nothing to be reached, whatever a list says. */
bool network_bounds_close(const network_bounds *bounds);
/* How many bytes one connection may bring, from hosts that `of` lists and `but` doesn't. */
struct network_meter {
	uint64_t bytes; /* 0: any number */
	text_list of, but;
};
/* What the operator has configured; zero: ports 80 and 443. */
struct network_defaults {
	const uint16_t *ports;
	size_t port_count;
	const text_list *hosts; /* in their normal form: `*` holds for them, too. NULL: none */
};
/* An empty list in *arena. ERR_LIMIT: more than NETWORK_PORTS_MAX ports. defaults may be NULL. */
int network_list_init(struct network_list *list, struct arena *arena, enum network_mode mode,
	const struct network_defaults *defaults, struct error *err);
/* Adds an entry. ERR_INVALID names it. */
int network_list_add(struct network_list *list, enum network_effect effect, const char *entry,
	struct error *err);
/* Adds a bound, which lives in the list's arena. Its own entries are added to *added. ERR_LIMIT:
 * more than NETWORK_BOUNDS_MAX. */
int network_list_bind(
	struct network_list *list, bool has_allow, struct network_list **added, struct error *err);
/* What is wrong with an entry: ERR_INVALID names it. */
int network_check_entry(enum network_effect effect, const char *entry, struct error *err);
/* A list of the mode NETWORK_LIST from its entries; `deny` and `defaults` may be NULL. */
int network_list_parse(struct arena *arena, const text_list *allow, const text_list *deny,
	const struct network_defaults *defaults, struct network_list *out, struct error *err);

enum network_reason {
	NETWORK_REASON_LISTED,
	NETWORK_REASON_DENIED,	 /* by `rule` */
	NETWORK_REASON_UNLISTED, /* no entry names the host */
	NETWORK_REASON_PORT,	 /* `rule` names the host, but not for this port */
	NETWORK_REASON_NONE,	 /* the mode is NETWORK_NONE */
	NETWORK_REASON_BOUND,	 /* `rule` allows it, but a bound of the list doesn't */
	NETWORK_REASON_ADDRESS,	 /* `rule` allows it, but its address isn't public */
};
struct network_verdict {
	bool is_allowed;
	enum network_reason reason;
	const char *rule;    /* the entry as written, "open" for the mode, or NULL; the list's */
	bool has_named_port; /* the entry says this port: any protocol may be spoken on it */
	bool is_trusted;     /* NETWORK_TRUST */
};
/* `host`: in its normal form (network_normalize); another form is not listed. */
struct network_verdict network_decide(
	const struct network_list *list, const char *host, uint16_t port);
/* What the operator opens of addresses that aren't public; hosts: names with an address of their
 * own, as keys, or NULL. */
struct network_opened {
	const struct address_range *ranges;
	size_t range_count;
	const struct map *hosts;
};
/* Whether the host is known, without a resolver, to have an address that isn't public and isn't
 * opened: such an address itself, or a name of the local machine. opened may be NULL. */
bool network_host_is_closed(const char *host, const struct network_opened *opened);
/* network_decide, and network_host_is_closed for what isn't trusted: all that is known of a
 * connection before its name is resolved. */
struct network_verdict network_judge(const struct network_list *list, const char *host,
	uint16_t port, const struct network_opened *opened);
/* Whether some port of the host may be reached: for resolvers. */
bool network_is_named(const struct network_list *list, const char *host);
/* One sentence without the host: "isn't in the list of this sandbox". */
const char *network_reason_text(enum network_reason reason);

/* A name or an address (IPv6 with or without brackets) in its normal form. ERR_INVALID: control
 * characters, NUL, '%', '\', '@', blanks, empty or long labels, letters that have no clear A-label,
 * an address in another spelling than inet_ntop's (IPv6: than inet_pton takes). */
int network_normalize(struct str name, char out[NETWORK_HOST_SIZE], struct error *err);
/* Whether a host in its normal form is an address. */
bool network_host_is_address(const char *host);
/* "host", "host:port", "[IPv6]:port". default_port 0: the port must be written. A port has one
 * spelling, too: 1 to 65535 without leading zeros. */
int network_authority_parse(struct str text, uint16_t default_port, char host[NETWORK_HOST_SIZE],
	uint16_t *port, struct error *err);
/* A URL (http, https, ws, wss; other schemes with a port), "host:port", or "host" for port 443. No
 * user name. */
int network_target_parse(
	struct str target, char host[NETWORK_HOST_SIZE], uint16_t *port, struct error *err);
