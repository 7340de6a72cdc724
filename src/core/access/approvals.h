/* approvals.h -- the noun `approval`: what waits for a person, and the answers.
 * 1. An approval has a row before `approval.requested` is told; an answer has its row before the
 * exec that waits is told, and before the reviewer is.
 * 2. A pending approval becomes approved, denied or expired once. Of two reviewers one wins, and
 * the other is told who.
 * 3. Only a principal with the scope `review` answers, never the one that asked (unless the
 * operator allows that), and never a sandbox.
 * 4. What waits is bounded in number and bytes; what has ended is kept for a while, the newest
 * first. */
#pragma once
#include "core/core.h"
#include "model/nouns/approval.h"

#define APPROVALS_PENDING_MAX 256 /* of all workspaces */
#define APPROVALS_WAITING_MAX 32  /* of one workspace */
#define APPROVALS_SHARE_MAX 64	  /* of one principal */
#define APPROVALS_ENDED_MAX 1000
#define APPROVALS_BYTES_MAX (64u << 20) /* of all of them */
#define APPROVALS_KEPT_MS (30ll * 24 * 3600 * 1000)

/* ---- for execs ---- */
struct approval_question {
	const char *exec; /* its id */
	const struct exec_spec *spec;
	const struct policy_verdict *verdict;
	/* A background exec, which waits on when core is started again: approval_await. Else the
	 * approval expires then. */
	bool is_kept;
};
/* state: pending when its row is there, then approved, denied or expired. *approval is valid during
 * the call. */
typedef void approval_fn(void *ctx, enum approval_state state, const struct approval *approval);
/* Asks. Continues VERB_EXEC_START, which was granted to the principal `requested_by`
 * (access_name). done is called with each of the two,
 * from the loop.
 * ERR_LIMIT: too many wait, or the command is too long to be shown. */
int approval_ask(const char *requested_by, struct core_workspace *w,
	const struct approval_question *question, approval_fn *done, void *ctx, char id[ID_LEN + 1],
	struct error *err);
/* The exec doesn't wait any more: done is not called, and a pending approval expires. */
void approval_withdraw(struct core *core, const char *id);
/* Of an approval that is known; NULL: it isn't. Valid until the next turn of the loop. */
const struct approval *approval_of(const struct core *core, const char *id);
/* It was approved, but a policy that was changed since denies it: noted in the approval. */
void approval_overrule(struct core *core, const char *id, const char *note);
/* After a start, before approvals_settle: the approval of an exec that was kept, whose done is
 * called with its end, soon if it was answered before. approval_read_spec has what is to be run.
 * NULL: there is none. */
const struct approval *approval_await(
	struct core *core, const char *exec, approval_fn *done, void *ctx);
/* Called when the row of the exec says that it has begun: removes what was kept to run it. */
void approval_begun(struct core *core, const char *id);

/* ---- verbs ---- */
/* ERR_NOT_FOUND. *approval is valid until the next turn of the loop. */
core_verb int core_approval_find(const struct request *request, struct core *core, const char *id,
	const struct approval **approval, struct error *err);
/* Newest first. w: of one workspace, or NULL; state: -1 is any. `cursor` and `next` as in
 * core_list. */
struct approval_filter {
	const struct core_workspace *w;
	int state;
	const char *cursor;
	size_t limit;
};
core_verb int core_approval_list(const struct request *request, struct core *core,
	const struct approval_filter *filter,
	void (*fn)(void *ctx, const struct approval *approval), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err);
typedef void approval_answered_fn(
	void *ctx, const struct approval *approval, const struct error *err);
/* The same answer again by the same principal is the same. ERR_CONFLICT: it was answered otherwise,
 * or has expired; the text says who and why. ERR_DENIED: by the principal that asked. ERR_INVALID:
 * `always`, and no rule says just this, or the rules would not allow it. A command that the policy
 * denies by now is not approved: the approval ends denied, by "policy". */
core_verb void core_approval_answer(const struct request *request, struct core *core,
	const char *id, const struct approval_answer *answer, approval_answered_fn *done,
	void *ctx);

/* ---- for core itself ---- */
void approval_restore(struct core *core, const struct approval *row);
/* Execs that were kept have called approval_await: the other pending ones expire, and time runs. */
void approvals_settle(struct core *core);
/* The workspace is removed: what is pending there expires, and no done is called. */
void approvals_forget(struct core *core, const struct core_workspace *w);
/* Core ends: nobody is called any more; and, after the store is closed, frees all. */
void approvals_quiet(struct core *core);
void approvals_done(struct core *core);
