/* exec_asks.c -- execs whose policy asks a person: they wait for an approval
 * (core/access/approvals.h), and then run the copy of what was asked for, or end `denied`.
 * 1. The approval's row comes before the exec's: one that waits has an approval, or is lost.
 * 2. What runs after a restart is read back from the approval: the bytes that were shown. */
#include "base/clock.h"
#include "base/fault.h"
#include "core/access/approvals.h"
#include "core/access/policies.h"
#include "core/execs/internal.h"

void exec_unask(struct core_exec *e)
{
	char id[ID_LEN + 1];
	memcpy(id, e->approval, sizeof id);
	e->approval[0] = 0;
	if (id[0])
		approval_withdraw(e->core, id);
}

static void deny(struct core_exec *e, const struct approval *approval)
{
	const char *note = approval->note ? approval->note : "";
	const char *why = approval->state == APPROVAL_DENIED
				  ? arena_printf(&e->arena, "denied by %s%s%s",
					    approval->answered_by, note[0] ? ": " : "", note)
				  : arena_printf(&e->arena, "not approved: %s", note);
	exec_lost(e, REASON_DENIED, why);
}

static void tell_waiting(struct core_exec *e)
{
	if (!e->listener.ended)
		return;
	if (e->listener.waiting)
		e->listener.waiting(e->listener.ctx, e);
	else if (e->record.background && e->listener.started)
		e->listener.started(e->listener.ctx, e);
}

/* The answer was judged too, but a core that was started again may have another policy. */
static bool is_overruled(struct core_exec *e, const char *id)
{
	auto_arena struct arena arena = { 0 };
	struct policy_verdict verdict;
	policies_judge_with(e->workspace, e->spec, &(text_list){ 0 }, &arena, &verdict);
	if (verdict.decision != POLICY_DENY)
		return false;
	const char *why = arena_printf(&arena, "approved, but the policy denies it now: %s",
		policy_explain(&verdict, &arena));
	approval_overrule(e->core, id, why);
	exec_lost(e, REASON_DENIED, why);
	return true;
}

static void on_decided(void *ctx, enum approval_state state, const struct approval *approval)
{
	struct core_exec *e = ctx;
	struct core *core = e->core;
	char id[ID_LEN + 1];
	if (state == APPROVAL_PENDING) {
		/* A background one has a row of its own: on_row. */
		if (!e->record.background)
			tell_waiting(e);
		return;
	}
	memcpy(id, approval->id, sizeof id);
	e->approval[0] = 0;
	if (state != APPROVAL_APPROVED) {
		deny(e, approval);
		return;
	}
	if (is_overruled(e, id))
		return;
	exec_move(e, STAGE_WAITING);
	exec_begin(e);
	/* Behind the row that says that it has begun. */
	approval_begun(core, id);
}

/* The client of a background one is answered: it waits. */
static void on_row(void *ctx, const struct error *err)
{
	struct core_exec *e = ctx;
	if (!exec_came_back(e) || e->stage != STAGE_ASKED)
		return;
	if (err) {
		exec_unask(e);
		exec_failed(e, err);
		return;
	}
	fault_point("core_exec_asked");
	tell_waiting(e);
}

const struct approval *exec_approval(const struct core_exec *e)
{
	return e->approval[0] ? approval_of(e->core, e->approval) : NULL;
}

static int ask(struct core_exec *e, const char *requested_by, const struct policy_verdict *verdict,
	struct error *err)
{
	const struct approval_question question = { e->record.id, e->spec, verdict,
		e->record.background };
	if ((e->mode == EXEC_SPOOLED && spool_make(e, err)) ||
		approval_ask(
			requested_by, e->workspace, &question, on_decided, e, e->approval, err)) {
		if (e->mode == EXEC_SPOOLED)
			spool_remove(e);
		return -1;
	}
	if (e->stage != STAGE_ASKED)
		exec_move(e, STAGE_ASKED);
	if (e->mode == EXEC_SPOOLED) {
		e->awaited++;
		store_put(e->core->store, &store_execs, &e->record, on_row, e);
	}
	return 0;
}

int exec_ask(const struct request *request, struct core_exec *e, const struct exec_spec *spec,
	const int fds[3], const struct policy_verdict *verdict, struct error *err)
{
	char name[PRINCIPAL_NAME_SIZE];
	if (e->mode == EXEC_HANDED && streams_keep(e, fds, err))
		return -1;
	exec_keep_spec(e, spec);
	return ask(e, access_name(request->principal, name), verdict, err);
}

int exec_ask_later(struct core_exec *e, const char *requested_by,
	const struct policy_verdict *verdict, struct error *err)
{
	if (e->spec->approval == EXEC_APPROVAL_RETURN && e->mode != EXEC_SPOOLED) {
		streams_close(e); /* its streams are a background one's */
		exec_make_background(e);
	}
	return ask(e, requested_by, verdict, err);
}

bool exec_ask_again(struct core_exec *e)
{
	auto_arena struct arena arena = { 0 };
	struct exec_spec spec;
	struct error err;
	const struct approval *approval = approval_await(e->core, e->record.id, on_decided, e);
	if (!approval)
		return false;
	memcpy(e->approval, approval->id, sizeof e->approval);
	if (approval_read_spec(approval, &arena, &spec, &err)) {
		log_record(&e->core->log, LOG_LEVEL_WARN, "a command that waited can't be run",
			"exec", e->record.id, "error", err.text, NULL);
		exec_unask(e);
		return false;
	}
	exec_keep_spec(e, &spec);
	exec_move(e, STAGE_ASKED);
	core_hold(e->workspace);
	e->began_ns = clock_monotonic_ns();
	return true;
}
