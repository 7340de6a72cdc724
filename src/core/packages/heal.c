/* heal.c -- environments of a workspace whose command fails as a damaged package makes it fail:
 * compared with their hashes, and built again when something was altered. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/packages/checkup.h"
#include "format/text/json_read.h"

struct core_healing {
	struct core_workspace *w; /* held */
	struct arena arena;
	core_heal_fn *done; /* NULL: nobody waits for it any more */
	void *ctx;
	size_t slot;
	int answer; /* memfd of `env verify` */
	bool was_damaged;
	struct error failure;
};

static void tell(void *ctx, struct core_workspace *w, const struct error *none)
{
	struct core_healing *h = ctx;
	if (h->done)
		h->done(h->ctx, h->was_damaged, h->failure.code ? &h->failure : NULL);
	fd_close(&h->answer);
	arena_done(&h->arena);
	core_release(h->w);
	free(h);
}

static void verify_next(struct core_healing *h);

static void on_verified(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct core_healing *h = ctx;
	if (packet && packet->head.type == LAUNCH_BUILT) {
		const struct json_value *verdict = verdict_read(h->answer, &h->arena);
		const struct json_value *repaired = json_member(verdict, "repaired");
		const char *why = json_member_text(json_member(verdict, "error"), "message");
		h->was_damaged |= repaired && repaired->boolean;
		if (why)
			fail(&h->failure, ERR_CORRUPT, "environment '%s' can't be repaired: %s",
				environment_name(h->w, h->slot), why);
	} else {
		launcher_failure(packet, &h->failure);
	}
	fd_close(&h->answer);
	h->slot++;
	verify_next(h);
}

static void verify_next(struct core_healing *h)
{
	for (; h->slot < WORKSPACE_ENVIRONMENTS && !h->failure.code; h->slot++) {
		const char *name = environment_name(h->w, h->slot);
		if (!name)
			continue;
		h->answer = memfd_create("verdict", MFD_CLOEXEC);
		if (h->answer < 0)
			fail(&h->failure, ERR_FAILED, "out of memory");
		else if (environment_verify(
				 h->w->core, name, true, h->answer, on_verified, h, &h->failure))
			return;
	}
	tell(h, h->w, NULL);
}

/* No process may use what is changed below it. */
static void on_ended(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct core_healing *h = ctx;
	if (err)
		h->failure = *err;
	verify_next(h);
}

struct core_healing *core_heal(
	const struct request *request, struct core_workspace *w, core_heal_fn *done, void *ctx)
{
	struct core_healing *h = xzalloc(sizeof *h);
	*h = (struct core_healing){ .w = w, .done = done, .ctx = ctx, .answer = -1 };
	arena_init(&h->arena);
	core_hold(w);
	if (access_check(w->core, request, VERB_WORKSPACE_REPAIR, w, &h->failure))
		core_later(w->core, tell, h, w, NULL);
	else
		core_suspend(&request_system, w, true, on_ended, h);
	return h;
}

void core_heal_forget(struct core_healing *healing)
{
	if (healing)
		healing->done = NULL;
}
