/* case_remove.c -- the removal of a case: its jobs are canceled, then its workspaces and rows go.
 */
#include "services/cases_internal.h"

/* Its fiber has a copy. */
struct removal {
	struct cases *cases;
	struct case_entry *c; /* NULL: it was refused */
	struct bell bell;
	case_fn *done; /* or NULL */
	void *ctx;
	struct error err;
};

void case_unhold(struct case_entry *c)
{
	if (--c->jobs)
		return;
	if (c->removal)
		bell_ring(&c->removal->bell);
	else
		cases_arm_sweep(c->cases);
}

static void on_part_removed(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct case_entry *c = ctx;
	if (err)
		c->removal->err = *err;
	case_unhold(c);
}

static void begin_removal(struct case_entry *c, const char *workspace)
{
	struct core_workspace *w;
	struct error ignored;
	if (core_find(core_system(), c->cases->base.core, workspace, &w, &ignored))
		return;
	c->jobs++;
	core_remove(core_system(), w, "removed", on_part_removed, c);
}

static void await_jobs(struct removal *removal)
{
	struct error never;
	while (removal->c->jobs)
		bell_wait(&removal->bell, BELL_NO_TIME, &never);
}

/* Its own workspace goes last, unless an install runs, which ends with it: on a full disk its row
 * can be deleted when those of the cells have made room. */
static void remove_workspaces(struct removal *removal)
{
	struct case_entry *c = removal->c;
	struct cell_entry *next;
	for (struct cell_entry *cell = c->cells; cell; cell = next) {
		next = cell->next;
		if (!cell_has_ended(cell->model.state))
			cell_cancel(cell, "removed");
		else if (cell->model.workspace)
			begin_removal(c, cell->model.workspace);
	}
	case_prepare_cancel(c);
	bool is_last = !c->prepare;
	if (!is_last)
		begin_removal(c, c->model.workspace);
	await_jobs(removal);
	if (is_last)
		begin_removal(c, c->model.workspace);
	await_jobs(removal);
}

/* Nothing of it runs any more, and its workspaces are gone. */
static void end_case(struct removal *removal)
{
	struct case_entry *c = removal->c;
	struct core *core = c->cases->base.core;
	c->removal = NULL;
	if (removal->err.code != ERR_NONE) {
		/* The case stays: the next sweep tries again. */
		c->is_removed = false;
		c->model.keep = false;
		c->model.last_used_ms = 0;
		return;
	}
	for (struct cell_entry *cell = c->cells; cell; cell = cell->next)
		core_drop(core, &store_cells, cell->model.id, NULL, NULL);
	core_drop(core, &store_cases, c->model.id, NULL, NULL);
	case_emit(c, "case.removed");
	case_drop(c);
}

static void remove_case(struct fiber *fiber, void *ctx)
{
	struct removal removal = *(const struct removal *)ctx;
	removal.bell = (struct bell){ .fiber = fiber, .loop = removal.cases->base.loop };
	if (removal.c) {
		removal.c->is_removed = true;
		removal.c->removal = &removal;
	}
	wait_turn(fiber, removal.cases->base.core); /* callbacks come from the loop */
	if (removal.c) {
		remove_workspaces(&removal);
		end_case(&removal);
	}
	if (removal.done)
		removal.done(removal.ctx, NULL, removal.err.code ? &removal.err : NULL);
}

void case_remove(const struct request *request, struct cases *cases, const char *id, case_fn *done,
	void *ctx)
{
	struct removal removal = { .cases = cases, .done = done, .ctx = ctx };
	if (!core_check(request, cases->base.core, VERB_CASE_REMOVE, NULL, &removal.err))
		case_find(cases, id, &removal.c, &removal.err);
	if (removal.err.code)
		removal.c = NULL;
	fiber_start(remove_case, &removal);
}

void case_expire(struct case_entry *c)
{
	struct removal removal = { .cases = c->cases, .c = c };
	fiber_start(remove_case, &removal);
}
