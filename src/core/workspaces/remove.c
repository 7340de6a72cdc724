/* remove.c -- a workspace goes: its sandbox, and meanwhile the name of its tree, then its row; the
 * bytes when there is time. */
#include "base/fault.h"
#include "core/access/approvals.h"
#include "core/access/tokens.h"
#include "core/execs/execs.h"
#include "core/workspaces/internal.h"

static bool has_sandbox(const struct core_workspace *w)
{
	return w->sandbox.state != SANDBOX_NONE;
}

/* Answers a removal after its files are deleted: on a full disk the client may need the room. */
static void on_clean(void *ctx, struct core_workspace *w, const struct error *none)
{
	waiters_call(&w->removal, NULL, NULL);
}

/* Both its row and its sandbox are gone. */
static void finish(struct core_workspace *w)
{
	struct core *core = w->core;
	fault_point("core_remove_answer");
	core->metrics.removes++;
	journal_emit(&core->journal, "workspace.deleted", w->model.id, w->model.name, "reason",
		w->life->removal_why, NULL);
	execs_forget(w);
	grants_revoke(w);
	core_hold(w);
	workspace_drop(w);
	spare_check(core);
	layers_sweep(core);
	trees_when_clean(w, on_clean);
	core_release(w);
}

static void write_removal(struct core_workspace *w);

/* The row had no room; now there is what the tree took. */
static void on_room(void *ctx, struct core_workspace *w, const struct error *none)
{
	write_removal(w);
}

static void on_row_gone(void *ctx, const struct error *err)
{
	struct core_workspace *w = ctx;
	if (err && err->code == ERR_DISK_FULL && !w->life->has_made_room) {
		w->life->has_made_room = true;
		w->life->needs_room = true;
		removal_go_on(w);
	} else if (err) { /* it stays `deleting`: another try, or the next start, ends it */
		log_record(&w->core->log, LOG_LEVEL_ERROR,
			"the row of a removed workspace can't be deleted", "workspace", w->model.id,
			"error", err->text, NULL);
		waiters_call(&w->removal, NULL, err);
	} else {
		w->life->has_no_row = true;
		removal_go_on(w);
	}
	core_release(w);
}

static void write_removal(struct core_workspace *w)
{
	core_hold(w);
	const struct store_gone gone = { w->model.name, w->life->removal_why };
	snapshots_forget(w->core, w->model.id);
	execs_end_asked(w->core, w);
	approvals_forget(w->core, w);
	tokens_forget(w->core, w->model.id);
	store_remove(w->core->store, &store_workspaces, w->model.id, &gone, on_row_gone, w);
}

/* The bytes of removed files are free when no overlay holds them. */
void removal_go_on(struct core_workspace *w)
{
	if (w->wants_archive) {
		/* tree_release comes back */
		if (!has_sandbox(w) && !archive_is_in_progress(w) && !tree_is_taken(w))
			archive_begin(w);
		return;
	}
	if (w->life->needs_room && !has_sandbox(w)) {
		w->life->needs_room = false;
		trees_when_clean(w, on_room);
	}
	if (w->life->has_no_row && !has_sandbox(w) && !w->is_gone)
		finish(w);
}

/* The launcher ends the sandbox while the row is deleted: each takes about as long. A command that
 * still writes meanwhile does so in a tree that has already been renamed. */
static void on_begin(void *ctx, struct core_workspace *w, const struct error *none)
{
	struct error err;
	if (w->is_gone)
		return;
	if (has_sandbox(w))
		core_end_sandbox(w, REASON_CANCELED);
	if (w->wants_archive) { /* removal_go_on begins it when the sandbox is gone */
		removal_go_on(w);
		return;
	}
	fault_point("core_remove_tree");
	if (tree_remove(w->core, w->model.id, &err)) {
		waiters_call(&w->removal, NULL, &err);
		return;
	}
	fault_point("core_remove_row");
	write_removal(w);
}

void core_remove(const struct request *request, struct core_workspace *w, const char *why,
	core_workspace_fn *done, void *ctx)
{
	struct error err;
	if (access_check(w->core, request, VERB_WORKSPACE_REMOVE, w, &err)) {
		core_later(w->core, done, ctx, NULL, &err);
		return;
	}
	bool is_first = !w->removal;
	waiter_append(&w->removal, waiter_new(done, ctx, NULL, NULL));
	w->life->removal_why = why;
	w->life->has_made_room = false;
	if (!is_first)
		return;
	lifetime_disarm(w);
	workspace_set_state(w, WORKSPACE_DELETING);
	takers_go_on(w);
	core_later(w->core, on_begin, NULL, w, NULL);
}

/* It stays: nothing of it was changed, and its row says that it is ready. */
static void keep(struct core_workspace *w, const struct error *err)
{
	w->model.state = WORKSPACE_READY;
	journal_emit(&w->core->journal, "workspace.ready", w->model.id, w->model.name, "error",
		err->text, NULL);
	log_record(&w->core->log, LOG_LEVEL_ERROR, "a workspace can't be archived", "workspace",
		w->model.id, "error", err->text, NULL);
	waiters_call(&w->removal, NULL, err);
	lifetime_postpone(w);
}

void removal_archived(
	struct core_workspace *w, const struct archive_row *row, const struct error *err)
{
	w->wants_archive = false;
	if (!err && w->archive_ctx)
		removal_note_archive(w->archive_ctx, row);
	w->archive_ctx = NULL;
	if (err)
		keep(w, err);
	else
		on_begin(NULL, w, NULL);
}

void core_cancel_created(const struct request *request, struct core *core, const char *id)
{
	struct core_workspace *w;
	struct error err;
	if (!core->is_stopping && !core_find(request, core, id, &w, &err))
		core_remove(request, w, "canceled", NULL, NULL);
}
