/* fiber.h -- a slow job as straight code: a function on a stack of its own, which the callbacks of
 * the loop continue.
 * 1. A fiber waits for one operation at a time: it starts the operation with fiber_continue as its
 * callback and itself as ctx, then calls fiber_wait. A callback that comes before fiber_wait counts
 * too.
 * 2. Every wait can fail. fiber_cancel makes exactly one wait fail with ERR_CANCELED: the present
 * one, or else the next. The waits after it work, so that the job can clean up.
 * 3. Objects that may go away during a wait are held by id and found again after it. errno does not
 * survive a wait.
 * 4. Nobody waits for a person in a fiber. A fiber lasts as long as its function. */
#pragma once
#include "base/error.h"

struct fiber;
typedef void fiber_fn(struct fiber *fiber, void *ctx);

/* Calls fn(fiber, ctx) on a new stack; returns at its first wait, or at its end. `fiber` is valid
 * until fn returns. */
void fiber_start(fiber_fn *fn, void *ctx);

/* The callback of the operation that `fiber` waits for, or is about to; err NULL: it succeeded. The
 * error is copied. */
void fiber_continue(void *fiber, const struct error *err);
/* Waits for fiber_continue; returns -1 with its error. */
int fiber_wait(struct fiber *fiber, struct error *err);
/* The same. cut(ctx) is called if the wait is canceled: it ends the operation early, so that
 * fiber_continue is called soon. Without it a canceled wait lasts until the operation has ended. */
int fiber_wait_or_cut(struct fiber *fiber, void (*cut)(void *ctx), void *ctx, struct error *err);
/* Once; a second call changes nothing. */
void fiber_cancel(struct fiber *fiber);
/* The clean-up of the job begins: from now on no wait is canceled. */
void fiber_end_cancellation(struct fiber *fiber);
