/* visits.h -- how many connections each address, range of addresses, uid and principal has, and how
 * often a principal asks by TCP. Private to this room.
 * 1. A connection is pending until its first request is authenticated, handshakes that are under
 * way among them; then it is its principal's.
 * 2. Pending connections are bounded: those of an address, of its range (an IPv4 /24, an IPv6 /64)
 * and of all addresses; and those of a uid on unix sockets and of all uids. A new one is always
 * taken. Where it is one too many, the oldest pending one of the same address, range or uid is
 * dropped for it, or else the oldest of the range or uid that has the most: idle connections keep
 * no client out that logs in, and least of all one from elsewhere. A principal's are never dropped.
 * 3. What was counted for a connection is released when it ends, or is upgraded. */
#pragma once
#include "base/map.h"
#include "doors/front.h"

#define VISITS_TCP_MAX 1024    /* pending ones by TCP; listed proxies may have all of them */
#define VISITS_ADDRESS_MAX 256 /* of one address */
#define VISITS_RANGE_MAX 512   /* of one range of addresses */
#define VISITS_UNIX_MAX 2048   /* pending ones on unix sockets */
#define VISITS_UID_MAX 1024    /* of one uid */
#define VISITS_PEER_MAX 4096   /* connections on unix sockets of one principal */

struct visit; /* a connection */
struct visits {
	const struct front *front;
	struct map visitors; /* by their names */
	struct visit_list {
		struct visit *oldest, *newest;
		unsigned count;
	} pending[2]; /* by enum http_peer_kind */
	void (*drop)(struct http_connection *connection);
};
/* drop: http_drop. */
void visits_init(struct visits *visits, const struct front *front,
	void (*drop)(struct http_connection *connection));
void visits_done(struct visits *visits);

/* A connection of that peer. Never NULL. */
struct visit *visits_come(
	struct visits *visits, const struct http_peer *peer, struct http_connection *connection);
/* An authenticated request on it: from now on it is that principal's. ERR_LIMIT: it has too many
 * connections, or asks too often. */
int visits_ask(struct visits *visits, struct visit *visit, const char *principal, uint64_t now_ms,
	struct error *err);
void visits_leave(struct visits *visits, struct visit *visit);
