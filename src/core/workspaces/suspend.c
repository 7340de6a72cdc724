/* suspend.c -- a workspace without processes and memory: suspended on demand or by its
 * idle_timeout, resumed on demand or by the next request that needs its sandbox. */
#include "core/execs/execs.h"
#include "core/files/file_servers.h"
#include "core/workspaces/internal.h"

static const char why_ended[] = "its workspace was suspended";

/* ---- what runs in it ---- */

struct use {
	size_t execs; /* that have not ended */
	const struct exec_record *one;
	bool has_transfers, has_processes;
};

static struct use find_use(const struct core_workspace *w, bool has_waiting)
{
	struct use use = { .has_transfers = file_servers_are_busy(w) };
	use.execs = execs_count_open(w, has_waiting, &use.one);
	use.has_processes = w->sandbox.state == SANDBOX_UP && sandbox_has_processes(w);
	return use;
}

static bool is_used(const struct use *use)
{
	return use->execs || use->has_transfers || use->has_processes;
}

static int fail_in_use(const struct core_workspace *w, const struct use *use, struct error *err)
{
	const char *name = w->model.name;
	char program[64];
	if (use->execs) {
		str_printable(program, sizeof program, str_from(use->one->argv.items[0]));
		if (use->execs == 1)
			fail(err, ERR_CONFLICT, "exec '%s' (%s) runs in workspace '%s'",
				use->one->id, program, name);
		else
			fail(err, ERR_CONFLICT, "exec '%s' (%s) and %zu more run in workspace '%s'",
				use->one->id, program, use->execs - 1, name);
	} else if (use->has_transfers)
		fail(err, ERR_CONFLICT, "files of workspace '%s' are being read or written", name);
	else
		fail(err, ERR_CONFLICT,
			"processes that earlier commands left run in workspace '%s'", name);
	return -1;
}

int workspace_check_unused(const struct core_workspace *w, struct error *err)
{
	struct use use = find_use(w, true);
	return is_used(&use) ? fail_in_use(w, &use, err) : 0;
}

int sandbox_check_unused(const struct core_workspace *w, struct error *err)
{
	struct use use = find_use(w, false);
	return is_used(&use) ? fail_in_use(w, &use, err) : 0;
}

/* ---- suspended ---- */

static void on_saved(void *ctx, const struct error *err)
{
	struct core_workspace *w = ctx;
	waiters_call(&w->suspenders, w, err);
	core_release(w);
}

/* The measurement of its disk usage has ended: completes the suspension. */
static void on_measured(void *ctx, struct core_workspace *w, const struct error *unused)
{
	struct error err;
	if (w->removal) {
		suspension_fail(w);
		return;
	}
	if (!w->life->is_suspending) { /* a request has resumed it since */
		waiters_call(&w->suspenders, w, NULL);
		return;
	}
	w->life->is_suspending = false;
	w->core->metrics.suspended++;
	if (w->model.is_context && tree_write_context(w, &err))
		log_record(&w->core->log, LOG_LEVEL_WARN, "'.context.json' could not be written",
			"workspace", w->model.id, "error", err.text, NULL);
	workspace_set_state(w, WORKSPACE_SUSPENDED);
	if (!w->suspenders) {
		workspace_save(w, NULL, NULL);
		return;
	}
	core_hold(w);
	workspace_save(w, on_saved, w);
}

void sandbox_suspended(struct core_workspace *w)
{
	w->life->is_suspending = true;
	if (!w->model.is_context) {
		on_measured(NULL, w, NULL);
		return;
	}
	core_measure(&request_system, w, on_measured, NULL);
}

void suspension_fail(struct core_workspace *w)
{
	struct error err;
	fail(&err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
	waiters_call(&w->suspenders, NULL, &err);
}

static int check_suspend(struct core_workspace *w, bool is_forced, struct error *err)
{
	if (w->core->is_stopping)
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	if (w->removal || w->model.state == WORKSPACE_DELETING)
		return fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
	if (w->model.state == WORKSPACE_FAILED)
		return fail(err, ERR_CONFLICT, "workspace '%s' has failed: %s", w->model.name,
			w->model.error ? w->model.error : "its files are missing");
	if (is_forced)
		return 0;
	if (!workspace_check_unused(w, err))
		return 0;
	return error_hint(err, "carrel suspend --force %s ends what runs in it", w->model.name);
}

void core_suspend(const struct request *request, struct core_workspace *w, bool is_forced,
	core_workspace_fn *done, void *ctx)
{
	struct core_sandbox *sandbox = &w->sandbox;
	struct error err;
	if (access_check(w->core, request, VERB_WORKSPACE_SUSPEND, w, &err) ||
		check_suspend(w, is_forced, &err)) {
		core_later(w->core, done, ctx, NULL, &err);
		return;
	}
	if (w->model.state == WORKSPACE_SUSPENDED && sandbox->state == SANDBOX_NONE) {
		core_later(w->core, done, ctx, w, NULL);
		return;
	}
	waiter_append(&w->suspenders, waiter_new(done, ctx, w, NULL));
	/* Those that wait for a sandbox would start another one. */
	execs_end_with(w, why_ended);
	w->life->is_suspending = true;
	if (sandbox->state == SANDBOX_NONE)
		sandbox_suspended(w);
	else /* sandbox_ended goes on */
		core_end_sandbox(w, REASON_CANCELED);
}

/* ---- and back ---- */

static void on_resumed(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct core_waiter *waiter = ctx;
	if (!err)
		core_release(w); /* the hold of core_wake; the waiter has its own */
	waiter_call(waiter, NULL, err);
}

void core_resume(
	const struct request *request, struct core_workspace *w, core_workspace_fn *done, void *ctx)
{
	struct error err;
	if (access_check(w->core, request, VERB_WORKSPACE_RESUME, w, &err)) {
		core_later(w->core, done, ctx, NULL, &err);
		return;
	}
	core_wake(w, request->id, on_resumed, waiter_new(done, ctx, w, NULL));
}

void workspace_resumed(struct core_workspace *w)
{
	bool was_suspended = w->model.state == WORKSPACE_SUSPENDED;
	workspace_set_state(w, WORKSPACE_READY);
	if (!was_suspended || w->model.state != WORKSPACE_READY)
		return;
	w->core->metrics.resumed++;
	journal_emit(&w->core->journal, "workspace.resumed", w->model.id, w->model.name, NULL);
	workspace_save(w, NULL, NULL);
}
