/* visits.h -- how many connections by TCP each address and principal has, and how often a principal
 * asks. Private to this room.
 * 1. A connection is its address's until its first request is authenticated, then its principal's.
 * Before that, connections of all addresses together are bounded too: handshakes that are under way
 * are among them.
 * 2. What was counted for a connection is given back when it ends, or is upgraded. */
#pragma once
#include "api/door.h"
#include "base/map.h"

#define VISITS_PENDING_MAX 1024	       /* connections whose principal isn't known yet */
#define VISITS_PENDING_ADDRESS_MAX 256 /* of one address; listed proxies have all of them */

struct visits {
	const struct front_door *door;
	struct map visitors; /* by their names */
	unsigned pending;
};
void visits_init(struct visits *visits, const struct front_door *door);
void visits_done(struct visits *visits);

struct visitor;
/* A connection from `address`. NULL: it is one too many. */
struct visitor *visits_come(struct visits *visits, const char *address);
/* A request on the connection of *visitor, which is that principal's from now on. ERR_LIMIT: it has
 * too many connections, or asks too often. */
int visits_ask(struct visits *visits, struct visitor **visitor, const char *principal,
	uint64_t now_ms, struct error *err);
void visits_leave(struct visits *visits, struct visitor *visitor);
