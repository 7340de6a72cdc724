/* apply.h -- changes of one workspace into another one.
 * 1. The source is read as core_diff reads it. What runs in it goes on: a file that changes at that
 * time is ERR_CONFLICT.
 * 2. The target is changed by a file server in its sandbox, whether something runs there or not; no
 * path leads out of its /workspace. All changes are applied or none; what a file server leaves that
 * is killed is undone by another one, after a crash at the next start.
 * 3. A change is a conflict when the target has neither what the source had before nor what it has
 * now. */
#pragma once
#include "core/core.h"

struct core_apply {
	text_list paths;      /* of the source, with all below; empty: all changes */
	const char *snapshot; /* what changed since that one; as of core_diff */
	bool is_dry;
};
struct core_applied_change {
	const char *path;
	const char *type;
	char change[2];	    /* "A", "M", "D", "T" */
	const char *result; /* "applied", "pending" (nothing was applied), "same" (it is there
			     * already), "conflict", "refused" */
	const char *reason; /* of the latter two, else NULL */
};
typedef VEC(struct core_applied_change) core_applied_changes;
struct core_applied {
	core_applied_changes changes;
	bool is_applied;
	size_t applied, conflicts; /* how many changes have that result */
};
/* done: valid during the call. Conflicts are not an error: they are in it. */
typedef void core_apply_fn(void *ctx, const struct core_applied *done, const struct error *err);
core_verb struct cancelable *core_apply(const struct request *request, struct core_workspace *from,
	struct core_workspace *to, const struct core_apply *wanted, core_apply_fn *done, void *ctx);
