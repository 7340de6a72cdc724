/* approvals_internal.h -- what the files behind approvals.h share. */
#pragma once
#include "core/access/approvals.h"
#include "core/access/internal.h"

struct approval_waiter { /* a reviewer's answer that is not written yet */
	approval_answered_fn *fn;
	void *ctx;
	struct approval_waiter *next;
};
struct core_approval {
	struct core *core;
	struct approval model;
	struct arena arena;   /* of the model's texts */
	struct arena answers; /* of those that `next` has of its own */
	size_t bytes;	      /* about, of them */
	approval_fn *done;    /* of the exec that waits; NULL: none does */
	void *ctx;
	uint64_t until_ms; /* monotonic, of a pending one */
	struct loop_timer *timer;
	bool is_ending;	      /* its next state is being written: nobody else may end it */
	struct approval next; /* while is_ending: what is written */
	struct approval_waiter *waiters;
	struct core_approval *newer, *older;
};
static inline struct core_workspace *approval_workspace(const struct core_approval *a)
{
	return map_get(&a->core->ids, str_from(a->model.workspace));
}
struct core_approval *approval_lookup(const struct core *core, const char *id);
/* a->next, which the caller has filled in, is written; then it is a's model, and all are told. On a
 * failure the approval is as it was, and its waiters are told. */
void approval_end(struct core_approval *a);
/* It could not be ended: its waiters are told, and it expires at its time. */
void approval_fail(struct core_approval *a, const struct error *err);
/* Fills in a->next. by, note: or NULL. */
void approval_prepare(
	struct core_approval *a, enum approval_state state, const char *by, const char *note);
