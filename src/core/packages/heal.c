/* heal.c -- environments of a workspace whose command fails as a damaged package makes it fail:
 * compared with their hashes, and built again when something was altered. */
#include "core/packages/checkup.h"
#include "core/waits.h"
#include "format/text/json_read.h"

struct core_healing {
	struct core_workspace *w; /* held */
	core_heal_fn *done;	  /* NULL: the caller has canceled it */
	void *ctx;
	struct error failure;
};

/* Whether something was damaged; h->failure: it could not be repaired. */
static bool verify(struct fiber *fiber, struct core_healing *h, size_t slot)
{
	auto_arena struct arena arena = { 0 };
	const char *name = arena_text(&arena, h->w->model.environments.of[slot]);
	const struct json_value *verdict;
	if (!name)
		return false;
	if (wait_verify(fiber, h->w->core, name, true, &arena, &verdict, &h->failure))
		return false;
	const struct json_value *repaired = json_member(verdict, "repaired");
	const char *why = json_member_text(json_member(verdict, "error"), "message");
	if (why)
		fail(&h->failure, ERR_CORRUPT, "environment '%s' can't be repaired: %s", name, why);
	return repaired && repaired->boolean;
}

static void heal(struct fiber *fiber, void *ctx)
{
	struct core_healing *h = ctx;
	struct core_workspace *w = h->w;
	bool was_damaged = false;
	if (h->failure.code) {
		wait_turn(fiber, w->core);
	} else { /* no process may use what is changed below it */
		core_suspend(&request_system, w, true, fiber_continue_workspace, fiber);
		fiber_wait(fiber, &h->failure);
	}
	for (size_t slot = 0; slot < ENV_KINDS && !h->failure.code; slot++)
		was_damaged |= verify(fiber, h, slot);
	if (h->done)
		h->done(h->ctx, was_damaged, h->failure.code ? &h->failure : NULL);
	core_release(w);
	free(h);
}

struct core_healing *core_heal(
	const struct request *request, struct core_workspace *w, core_heal_fn *done, void *ctx)
{
	struct core_healing *h = xzalloc(sizeof *h);
	*h = (struct core_healing){ .w = w, .done = done, .ctx = ctx };
	core_hold(w);
	access_check(w->core, request, VERB_WORKSPACE_REPAIR, w, &h->failure);
	fiber_start(heal, h);
	return h;
}

void core_heal_forget(struct core_healing *healing)
{
	if (healing)
		healing->done = NULL;
}
