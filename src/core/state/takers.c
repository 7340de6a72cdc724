/* takers.c -- the trees of a workspace for one operation at a time, while it has no sandbox: to
 * freeze them, or to put others in their place. Requests that need the sandbox meanwhile wait. */
#include "base/clock.h"
#include "core/state/internal.h"

#define LOOK_MS 50 /* between two looks at a workspace that is in use */

struct tree_taker {
	core_workspace_fn *taken;
	void *ctx;
	enum when_busy when_busy;
	uint64_t until_ms; /* monotonic */
	const struct cancelable *owner;
	struct tree_taker *next;
};

/* The first of the queue gets an error, or the trees. */
static void call_first(struct core_workspace *w, const struct error *err)
{
	struct tree_taker *taker = w->trees->takers;
	w->trees->takers = taker->next;
	taker->taken(taker->ctx, w, err);
	free(taker);
}

static int check(const struct core_workspace *w, struct error *err)
{
	if (w->removal || w->is_gone || w->model.state == WORKSPACE_DELETING)
		return fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
	if (w->core->is_stopping)
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	if (w->model.dir)
		return fail(err, ERR_CONFLICT,
			"the files of workspace '%s' lie in a directory of the host, '%s'",
			w->model.name, w->model.dir);
	if (w->model.state == WORKSPACE_FAILED)
		return fail(err, ERR_CONFLICT, "workspace '%s' has failed: %s", w->model.name,
			w->model.error ? w->model.error : "its files are missing");
	return 0;
}

static void on_look(struct loop *loop, void *ctx)
{
	struct core_workspace *w = ctx;
	w->trees->look = NULL;
	takers_go_on(w);
	core_release(w);
}

static void end_unused(struct core_workspace *w)
{
	struct tree_taker *taker = w->trees->takers;
	struct error err;
	if (!workspace_check_unused(w, &err)) {
		core_end_sandbox(w, REASON_CANCELED); /* sandbox_ended goes on */
		return;
	}
	if (taker->when_busy == WHEN_BUSY_PAUSE) {
		w->trees->is_taken = true;
		call_first(w, NULL);
		return;
	}
	if (taker->when_busy != WHEN_BUSY_WAIT || (taker->owner && taker->owner->is_canceled) ||
		clock_monotonic_ms() >= taker->until_ms) {
		call_first(w, &err);
		takers_go_on(w);
		return;
	}
	core_hold(w);
	w->trees->look = loop_after(w->core->loop, LOOK_MS, on_look, w);
}

void takers_go_on(struct core_workspace *w)
{
	struct error err;
	while (w->trees->takers && !w->trees->is_taken && !w->trees->look) {
		if (check(w, &err)) {
			call_first(w, &err);
			continue;
		}
		if (w->sandbox.state == SANDBOX_NONE) {
			w->trees->is_taken = true;
			call_first(w, NULL);
			return;
		}
		if (w->sandbox.state == SANDBOX_UP)
			end_unused(w);
		return; /* a sandbox that starts or ends goes on when it has */
	}
}

static void on_begin(void *ctx, struct core_workspace *w, const struct error *none)
{
	takers_go_on(w);
}

void tree_take(struct core_workspace *w, enum when_busy when_busy, uint64_t timeout_ms,
	const struct cancelable *owner, core_workspace_fn *taken, void *ctx)
{
	struct tree_taker *taker = xzalloc(sizeof *taker), **last = &w->trees->takers;
	*taker = (struct tree_taker){ .taken = taken,
		.ctx = ctx,
		.when_busy = when_busy,
		.owner = owner,
		.until_ms =
			clock_monotonic_ms() + (timeout_ms ? timeout_ms : WHEN_BUSY_TIMEOUT_MS) };
	while (*last)
		last = &(*last)->next;
	*last = taker;
	core_later(w->core, on_begin, NULL, w, NULL);
}

bool tree_take_now(struct core_workspace *w)
{
	if (w->sandbox.state != SANDBOX_NONE || w->trees->is_taken)
		return false;
	w->trees->is_taken = true;
	return true;
}

void tree_release(struct core_workspace *w)
{
	w->trees->is_taken = false;
	packages_go_on(w); /* before the next operation, so that it can't be kept waiting */
	takers_go_on(w);
	if (!w->trees->is_taken)
		sandbox_go_on(w);
	if (!w->trees->is_taken && w->wants_archive)
		removal_go_on(w);
}

bool tree_is_taken(const struct core_workspace *w)
{
	return w->trees->is_taken;
}

bool tree_is_awaited(const struct core_workspace *w)
{
	return w->trees->takers;
}

void takers_forget(struct core_workspace *w)
{
	struct tree_taker *taker;
	while ((taker = w->trees->takers)) {
		w->trees->takers = taker->next;
		free(taker);
	}
	if (w->trees->look)
		loop_cancel(w->core->loop, w->trees->look);
	w->trees->look = NULL;
}
