/* turns.h -- requests whose work is long, one in a turn of the loop: core has one thread, and what
 * asks whether it lives is answered between them, however many a client sends at once.
 * 1. A request is served at once, unless those of this turn have taken TURN_NS already or others
 * wait: then it waits.
 * 2. Those that wait are served in rounds, one of each holder in a round: however many one has, the
 * next of another waits for one of each. */
#pragma once
#include "proc/loop.h"

#define TURN_NS (20 * UINT64_C(1000000))

struct turn { /* of a request */
	void (*serve)(void *ctx);
	void *ctx;
	const char *holder;	 /* its principal, or NULL; lives as long as the turn */
	uint64_t round;		 /* private */
	struct turn *next, **at; /* private; at NULL: it doesn't wait */
};
struct turns {
	struct loop *loop;
	struct turn *first; /* in the order of their rounds */
	uint64_t round;	    /* of the last one that was served */
	struct loop_timer *timer;
	uint64_t taken_ns; /* in this turn */
};

void turns_init(struct turns *turns, struct loop *loop);
void turns_done(struct turns *turns); /* those that wait are not served */
/* Calls turn->serve now or later, which may end the memory of the turn. */
void turns_take(struct turns *turns, struct turn *turn);
void turns_leave(struct turns *turns, struct turn *turn); /* twice is nothing */
