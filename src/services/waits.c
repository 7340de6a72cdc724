#include "services/waits.h"

static void go_on(struct bell *bell)
{
	loop_cancel(bell->loop, bell->timer);
	bell->timer = NULL;
	bell->is_waiting = false;
	fiber_continue(bell->fiber, NULL);
}

static void on_due(struct loop *loop, void *ctx)
{
	struct bell *bell = ctx;
	bell->timer = NULL;
	bell_ring(bell);
}

static void cut(void *ctx)
{
	go_on(ctx);
}

int bell_wait(struct bell *bell, uint64_t ms, struct error *err)
{
	if (!bell->is_rung) {
		if (ms != BELL_NO_TIME && !bell->timer)
			bell->timer = loop_after(bell->loop, ms, on_due, bell);
		bell->is_waiting = true;
	} else {
		bell->is_rung = false;
		fiber_continue(bell->fiber, NULL);
	}
	return fiber_wait_or_cut(bell->fiber, cut, bell, err);
}

void bell_ring(struct bell *bell)
{
	if (bell->is_waiting)
		go_on(bell);
	else
		bell->is_rung = true;
}

void bell_ring_later(struct bell *bell)
{
	loop_cancel(bell->loop, bell->timer);
	bell->timer = loop_after(bell->loop, 0, on_due, bell);
}

void bell_done(struct bell *bell)
{
	loop_cancel(bell->loop, bell->timer);
	bell->timer = NULL;
}

int pause_wait(struct fiber *fiber, struct loop *loop, uint64_t ms, struct error *err)
{
	struct bell bell = { .fiber = fiber, .loop = loop };
	return bell_wait(&bell, ms, err);
}
