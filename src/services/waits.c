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

int fail_later(struct fiber *fiber, struct core *core)
{
	struct error ignored;
	pause_wait(fiber, core_loop(core), 0, &ignored);
	return -1;
}

int put_wait(struct fiber *fiber, struct core *core, const struct store_table *table,
	const void *object, struct error *err)
{
	core_put(core, table, object, fiber_continue, fiber);
	return fiber_wait(fiber, err);
}

int drop_wait(struct fiber *fiber, struct core *core, const struct store_table *table,
	const char *id, struct error *err)
{
	core_drop(core, table, id, fiber_continue, fiber);
	return fiber_wait(fiber, err);
}
