/* approval_answers.c -- who may answer an approval, and what an answer does. */
#include <stdlib.h>
#include <string.h>
#include "base/fault.h"
#include "core/access/approvals_internal.h"
#include "core/access/policies.h"
#include "core/execs/execs.h"

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

struct later {
	struct core *core;
	approval_answered_fn *done;
	void *ctx;
	char id[ID_LEN + 1];
	bool has_failed;
	struct error err;
};

static void on_later(struct loop *loop, void *ctx)
{
	struct later *later = ctx;
	struct core_approval *a = approval_lookup(later->core, later->id);
	if (!later->has_failed && !a)
		later->has_failed = fail(&later->err, ERR_NOT_FOUND, "there is no approval '%s'",
					    later->id) != 0;
	later->done(later->ctx, later->has_failed ? NULL : &a->model,
		later->has_failed ? &later->err : NULL);
	free(later);
}

/* Not from inside the call that asked. err NULL: as it is. */
static void tell_later(struct core *core, const char *id, approval_answered_fn *done, void *ctx,
	const struct error *err)
{
	struct later *later = xzalloc(sizeof *later);
	*later = (struct later){ .core = core, .done = done, .ctx = ctx };
	str_copy(later->id, sizeof later->id, id);
	if (err) {
		later->has_failed = true;
		later->err = *err;
	}
	loop_after(core->loop, 0, on_later, later);
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

struct addition {
	struct core *core;
	char id[ID_LEN + 1];
	size_t at; /* the rule that is being added */
};

static void add_next(struct addition *addition);

/* The rules that were added stay: the reviewer wanted them, and an answer that is given again finds
 * them there. */
static void stop(struct addition *addition, struct core_approval *a, const struct error *err)
{
	a->is_ending = false;
	approval_fail(a, err);
	free(addition);
}

static void on_added(void *ctx, const struct error *err)
{
	struct addition *addition = ctx;
	struct core_approval *a = approval_lookup(addition->core, addition->id);
	if (err) {
		stop(addition, a, err);
		return;
	}
	fault_point("core_approval_rule");
	addition->at++;
	add_next(addition);
}

static void add_next(struct addition *addition)
{
	struct core_approval *a = approval_lookup(addition->core, addition->id);
	struct core_workspace *w = approval_workspace(a);
	struct error err;
	if (!w || w->removal || w->is_gone) {
		fail(&err, ERR_CONFLICT, "the workspace '%s' of approval '%s' is removed",
			a->model.workspace_name, a->model.id);
		stop(addition, a, &err);
	} else if (addition->at < a->model.suggested.count) {
		policies_add_rule(w, a->model.suggested.items[addition->at], on_added, addition);
	} else {
		a->next.rules = a->model.suggested;
		approval_end(a);
		free(addition);
	}
}

static void add_rules(struct core_approval *a)
{
	struct addition *addition = xzalloc(sizeof *addition);
	addition->core = a->core;
	memcpy(addition->id, a->model.id, sizeof addition->id);
	add_next(addition);
}

/* ---- the verb ---- */

void core_approval_answer(const struct request *request, struct core *core, const char *id,
	const struct approval_answer *answer, approval_answered_fn *done, void *ctx)
{
	const struct approval *model;
	struct error err;
	char name[PRINCIPAL_NAME_SIZE];
	if (core_approval_find(request, core, id, &model, &err)) {
		tell_later(core, "", done, ctx, &err);
		return;
	}
	struct core_approval *a = approval_lookup(core, id);
	access_name(request->principal, name);
	if (access_check(core, request, VERB_APPROVAL_ANSWER, approval_workspace(a), &err) ||
		check_reviewer(a, name, &err) || check_answer(a, answer, &err)) {
		tell_later(core, "", done, ctx, &err);
		return;
	}
	if (is_same(a, name, answer)) {
		if (a->is_ending)
			await(a, done, ctx);
		else
			tell_later(core, id, done, ctx, NULL);
		return;
	}
	if (check_open(a, &err)) {
		tell_later(core, "", done, ctx, &err);
		return;
	}
	auto_arena struct arena arena = { 0 };
	const char *denial = answer->decision == APPROVAL_APPROVED ? denial_of(a, &arena) : NULL;
	if (!denial && answer->always && check_rules(a, &err)) {
		tell_later(core, "", done, ctx, &err);
		return;
	}
	await(a, done, ctx);
	if (denial)
		approval_prepare(a, APPROVAL_DENIED, "policy", denial);
	else
		approval_prepare(a, (enum approval_state)answer->decision, name, answer->note);
	fault_point("core_approval_answer");
	if (answer->always && !denial)
		add_rules(a);
	else
		approval_end(a);
}
