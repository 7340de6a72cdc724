/* approval_answers.c -- who may answer an approval, and what an answer does. */
#include "base/fault.h"
#include "core/access/approvals_internal.h"
#include "core/access/policies.h"
#include "core/execs/execs.h"
#include "core/waits.h"

#define REVIEWER_HINT                                                                              \
	"carrel token create --scope reviewer makes a token for another person, who uses it as "   \
	"CARREL_TOKEN"

/* Whether `name` asked, itself or through an agent that acts for it (access_agent_of). A name that
 * was cut may be anybody's that begins so. */
static bool has_asked(const char *requested_by, const char *name)
{
	bool is_cut = strlen(requested_by) == PRINCIPAL_NAME_SIZE - 1;
	for (const char *asker = requested_by; asker;) {
		if (is_cut ? !strncmp(asker, name, strlen(asker)) : !strcmp(asker, name))
			return true;
		asker = strstr(asker, ACCESS_FOR);
		asker = asker ? asker + strlen(ACCESS_FOR) : NULL;
	}
	return false;
}

/* Invariant 3. The scope is the table's matter (access.c). */
static int check_reviewer(const struct core_approval *a, const char *name, struct error *err)
{
	if (!a->core->access->approvals_self && has_asked(a->model.requested_by, name))
		return fail_hint(err, ERR_DENIED, REVIEWER_HINT,
			"%s asked for approval '%s', and can't answer it", name, a->model.id);
	return 0;
}

static const char *past(enum approval_state state)
{
	return approval_state_names[state];
}

/* The state that holds, or is being written. */
static const struct approval *latest(const struct core_approval *a)
{
	return a->is_ending ? &a->next : &a->model;
}

static bool is_same(
	const struct core_approval *a, const char *name, const struct approval_answer *answer)
{
	const struct approval *now = latest(a);
	return now->answered_by && !strcmp(now->answered_by, name) &&
	       (int)now->state == answer->decision &&
	       (!answer->always || now->rules.count || a->is_ending);
}

static int check_open(const struct core_approval *a, struct error *err)
{
	const struct approval *now = latest(a);
	if (now->state == APPROVAL_EXPIRED)
		return fail_hint(err, ERR_CONFLICT, "run the command again to ask again",
			"approval '%s' has expired: %s", now->id, now->note ? now->note : "");
	if (now->state != APPROVAL_PENDING)
		return fail(err, ERR_CONFLICT, "approval '%s' was %s by %s already", now->id,
			past(now->state), now->answered_by);
	const struct core_workspace *w = approval_workspace(a);
	if (!w || w->removal || w->is_gone)
		return fail(err, ERR_CONFLICT, "the workspace '%s' of approval '%s' is removed",
			now->workspace_name, now->id);
	return 0;
}

static void await(struct core_approval *a, approval_answered_fn *done, void *ctx)
{
	struct approval_waiter *waiter = xzalloc(sizeof *waiter), **at = &a->waiters;
	*waiter = (struct approval_waiter){ done, ctx, NULL };
	while (*at)
		at = &(*at)->next;
	*at = waiter;
}

/* An answer whose end is known at once. */
struct settled {
	struct core *core;
	approval_answered_fn *done;
	void *ctx;
	char id[ID_LEN + 1];
	struct error err; /* code ERR_NONE: as it is */
};

/* Not from inside the call that asked. */
static void tell_settled(struct fiber *fiber, void *ctx)
{
	struct settled settled = *(const struct settled *)ctx;
	struct error *err = &settled.err;
	wait_turn(fiber, settled.core);
	const struct core_approval *a = approval_lookup(settled.core, settled.id);
	if (!err->code && !a)
		fail(err, ERR_NOT_FOUND, "there is no approval '%s'", settled.id);
	settled.done(settled.ctx, err->code ? NULL : &a->model, err->code ? err : NULL);
}

/* ERR_INVALID: `always` of a denial, or of what rules can't say. */
static int check_answer(
	const struct core_approval *a, const struct approval_answer *answer, struct error *err)
{
	if (!answer->always)
		return 0;
	if (answer->decision != APPROVAL_APPROVED)
		return fail(err, ERR_INVALID, "'always' is for approve, not for deny");
	if (!a->model.suggested.count)
		return fail_hint(err, ERR_INVALID, "approve it this once, without 'always'",
			"no rule is added for approval '%s': %s", a->model.id,
			a->model.always_refused ? a->model.always_refused : "");
	return 0;
}

/* ---- the policy, as it is now ---- */

/* Why it can't be approved any more; NULL: it can. */
static const char *denial_of(const struct core_approval *a, struct arena *arena)
{
	struct policy_verdict verdict;
	if (!execs_judge_asked(a->core, &a->model, &(text_list){ 0 }, arena, &verdict) ||
		verdict.decision != POLICY_DENY)
		return NULL;
	return arena_printf(arena, "the policy denies it now: %s", policy_explain(&verdict, arena));
}

/* The rules of `always` have to allow the same command next time. */
static int check_rules(const struct core_approval *a, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct policy_verdict verdict;
	if (!execs_judge_asked(a->core, &a->model, &a->model.suggested, &arena, &verdict) ||
		verdict.decision == POLICY_ALLOW)
		return 0;
	return fail_hint(err, ERR_INVALID, "approve it this once, without 'always'",
		"no rule is added for approval '%s': with the suggested rules the policy still "
		"says %s: %s",
		a->model.id, policy_decision_name(verdict.decision),
		policy_explain(&verdict, &arena));
}

/* ---- rules ---- */

static int add_rules(struct fiber *fiber, struct core_approval *a, struct error *err)
{
	for (size_t i = 0;; i++) {
		struct core_workspace *w = approval_workspace(a);
		if (!w || w->removal || w->is_gone)
			return fail(err, ERR_CONFLICT,
				"the workspace '%s' of approval '%s' is removed",
				a->model.workspace_name, a->model.id);
		if (i == a->model.suggested.count)
			return 0;
		policies_add_rule(w, a->model.suggested.items[i], fiber_continue, fiber);
		if (fiber_wait(fiber, err))
			return -1;
		fault_point("core_approval_rule");
	}
}

/* An approval that is being ended stays. After a failure the rules that were added stay too: the
 * reviewer wanted them, and an answer that is given again finds them there. */
static void run_addition(struct fiber *fiber, void *ctx)
{
	struct core_approval *a = ctx;
	struct error err;
	if (add_rules(fiber, a, &err)) {
		a->is_ending = false;
		approval_fail(a, &err);
	} else {
		a->next.rules = a->model.suggested;
		approval_end(a);
	}
}

/* ---- the verb ---- */

void core_approval_answer(const struct request *request, struct core *core, const char *id,
	const struct approval_answer *answer, approval_answered_fn *done, void *ctx)
{
	struct settled settled = { .core = core, .done = done, .ctx = ctx };
	struct error *err = &settled.err;
	const struct approval *model;
	char name[PRINCIPAL_NAME_SIZE];
	if (core_approval_find(request, core, id, &model, err)) {
		fiber_start(tell_settled, &settled);
		return;
	}
	struct core_approval *a = approval_lookup(core, id);
	access_name(request->principal, name);
	if (access_check(core, request, VERB_APPROVAL_ANSWER, approval_workspace(a), err) ||
		check_reviewer(a, name, err) || check_answer(a, answer, err)) {
		fiber_start(tell_settled, &settled);
		return;
	}
	if (is_same(a, name, answer) && a->is_ending) {
		await(a, done, ctx);
		return;
	}
	if (is_same(a, name, answer)) {
		str_copy(settled.id, sizeof settled.id, id);
		fiber_start(tell_settled, &settled);
		return;
	}
	auto_arena struct arena arena = { 0 };
	const char *denial = NULL;
	bool failed = check_open(a, err);
	if (!failed && answer->decision == APPROVAL_APPROVED)
		denial = denial_of(a, &arena);
	if (failed || (!denial && answer->always && check_rules(a, err))) {
		fiber_start(tell_settled, &settled);
		return;
	}
	await(a, done, ctx);
	if (denial)
		approval_prepare(a, APPROVAL_DENIED, "policy", denial);
	else
		approval_prepare(a, (enum approval_state)answer->decision, name, answer->note);
	fault_point("core_approval_answer");
	if (answer->always && !denial)
		fiber_start(run_addition, a);
	else
		approval_end(a);
}
