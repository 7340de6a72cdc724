/* waits.h -- what jobs on fibers wait for besides the verbs over a workspace (desk.h): a time,
 * another job, the store. A canceled wait for a time or a bell ends at once. */
#pragma once
#include "core/nouns.h"
#include "proc/fiber.h"

/* One fiber waits for whatever comes first. Who rings says elsewhere what has happened: the fiber
 * looks, and waits again. */
struct bell {
	struct fiber *fiber;
	struct loop *loop;
	struct loop_timer *timer;
	bool is_waiting, is_rung; /* rung: nobody waited then, the next wait ends at once */
};
#define BELL_NO_TIME UINT64_MAX
/* Until it is rung, or ms have passed. -1: canceled. */
int bell_wait(struct bell *bell, uint64_t ms, struct error *err);
void bell_ring(struct bell *bell);
/* In a turn of the loop of its own: by a job that must not be ended in the middle of a step. */
void bell_ring_later(struct bell *bell);
/* Before the bell goes away. */
void bell_done(struct bell *bell);

/* All of that time. */
int pause_wait(struct fiber *fiber, struct loop *loop, uint64_t ms, struct error *err);
/* core_put and core_drop. */
int put_wait(struct fiber *fiber, struct core *core, const struct store_table *table,
	const void *object, struct error *err);
int drop_wait(struct fiber *fiber, struct core *core, const struct store_table *table,
	const char *id, struct error *err);
