/* waits.h -- what jobs on fibers wait for besides the steps over a workspace (desk.h) and what core
 * has for its own jobs (core/waits.h): a time, another job. A canceled wait for a time or a bell
 * ends at once. */
#pragma once
#include "core/nouns.h"
#include "core/waits.h"

/* A fiber waits until a callback rings, or a time has passed. The callback stores what has happened
 * before it rings; the fiber reads that after each wait, and may wait again. */
struct bell {
	struct fiber *fiber;
	struct loop *loop;
	struct loop_timer *timer;
	bool is_waiting;
	bool is_rung; /* while the fiber did not wait: its next wait ends at once */
};
#define BELL_NO_TIME UINT64_MAX
/* Returns when the bell is rung, or ms have passed. -1: canceled. */
int bell_wait(struct bell *bell, uint64_t ms, struct error *err);
/* Continues the fiber before it returns, if the fiber waits. */
void bell_ring(struct bell *bell);
/* Continues it in a later turn of the loop: for a caller that the fiber may end. */
void bell_ring_later(struct bell *bell);
/* Before the bell goes away. */
void bell_done(struct bell *bell);

/* Waits for all of that time. -1: canceled. */
int pause_wait(struct fiber *fiber, struct loop *loop, uint64_t ms, struct error *err);
