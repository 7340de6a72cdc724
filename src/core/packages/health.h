/* health.h -- whether a workspace works, and the repair of what doesn't.
 * 1. A check changes nothing but what starting a sandbox changes. A workspace that was suspended is
 * suspended again afterwards, unless somebody uses it by then.
 * 2. What is found inside comes from processes of the sandbox, which a command there could fake:
 * it is shown, bounded and checked to be text, and decides about nothing but this workspace. */
#pragma once
#include "core/core.h"
#include "model/nouns/health.h"

typedef void core_health_fn(void *ctx, const struct health *health, const struct error *err);
/* is_deep: also compares every file of its layers with its hash. *health is valid until done
 * returns. */
core_verb int core_health(const struct request *request, struct core_workspace *w, bool is_deep,
	core_health_fn *done, void *ctx, struct error *err);

/* One layer of its isolation. */
struct core_check {
	const char *name, *detail;
	bool ok, is_outside; /* read by core from the kernel: nothing inside can fake it */
};
struct core_verdict {
	const char *workspace, *name;
	bool ok; /* all are */
	/* No command ran beside the process inside: nobody could have faked what it says. */
	bool is_inside_trusted;
	VEC(struct core_check) checks;
};
typedef void core_verify_fn(void *ctx, const struct core_verdict *verdict, const struct error *err);
/* Checks the isolation of its sandbox, which is started if it has none. */
core_verb int core_verify(const struct request *request, struct core_workspace *w,
	core_verify_fn *done, void *ctx, struct error *err);

typedef void core_repair_fn(void *ctx, const struct repair *repair, const struct error *err);
/* Repairs what core_health finds, and checks again. done gets ERR_CONFLICT when its sandbox would
 * have to be ended for the repair, and something runs in it. */
core_verb int core_repair(const struct request *request, struct core_workspace *w, bool is_deep,
	core_repair_fn *done, void *ctx, struct error *err);

struct core_healing;
/* was_damaged: an environment was, and is built again. err: it can't be told, or not be built. */
typedef void core_heal_fn(void *ctx, bool was_damaged, const struct error *err);
/* Ends its sandbox with all that runs in it, compares the layers of its environments with their
 * hashes, and builds those again that are damaged. done: once, from the loop. */
core_verb struct core_healing *core_heal(
	const struct request *request, struct core_workspace *w, core_heal_fn *done, void *ctx);
/* NULL: nothing. Before done, which isn't called any more. */
void core_heal_forget(struct core_healing *healing);
