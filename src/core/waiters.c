/* waiters.c -- pending callbacks: in a list, or for the next turn of the loop. */
#include "core/internal.h"

struct core_waiter *waiter_new(
	core_workspace_fn *fn, void *ctx, struct core_workspace *w, const struct error *err)
{
	struct core_waiter *waiter = xzalloc(sizeof *waiter);
	*waiter = (struct core_waiter){ .fn = fn, .ctx = ctx, .w = w, .has_failed = err };
	if (err)
		waiter->err = *err;
	if (w)
		core_hold(w);
	return waiter;
}

void waiter_append(struct core_waiter **list, struct core_waiter *waiter)
{
	while (*list)
		list = &(*list)->next;
	*list = waiter;
}

void waiter_call(struct core_waiter *waiter, struct core_workspace *w, const struct error *err)
{
	if (waiter->fn)
		waiter->fn(waiter->ctx, w ? w : waiter->w, waiter->has_failed ? &waiter->err : err);
	if (waiter->w)
		core_release(waiter->w);
	free(waiter);
}

void waiters_call(struct core_waiter **list, struct core_workspace *w, const struct error *err)
{
	struct core_waiter *waiter, *next = *list;
	*list = NULL;
	while ((waiter = next)) {
		next = waiter->next;
		waiter_call(waiter, w, err);
	}
}

void waiters_forget(struct core_waiter *waiter)
{
	for (struct core_waiter *next; waiter; waiter = next) {
		next = waiter->next;
		free(waiter);
	}
}

static void on_later(struct loop *loop, void *ctx)
{
	waiter_call(ctx, NULL, NULL);
}

void core_later(struct core *core, core_workspace_fn *fn, void *ctx, struct core_workspace *w,
	const struct error *err)
{
	if (fn)
		loop_after(core->loop, 0, on_later, waiter_new(fn, ctx, w, err));
}
