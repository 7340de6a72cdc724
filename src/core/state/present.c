/* present.c -- the present state of a workspace as a list of layers: its uppers are frozen, or
 * copied while its processes are paused. */
#include "core/state/present.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "core/execs/core_exec.h"
#include "core/execs/watch.h"
#include "core/tree_jobs.h"

#define STOP_LOOK_MS 2 /* between two looks whether all processes have stopped */
#define STOP_MOST_MS 10000
#define STOP_LOOKS 25	 /* before all go on for one look */
#define MERGE_LOOK_MS 20 /* between two looks whether layers have been merged */

struct state_op {
	struct state state; /* first */
	struct arena arena;
	struct core_workspace *w;
	const struct cancelable *owner;
	bool is_paused;
	uint64_t stop_until_ms;
	unsigned stop_looks;
	enum when_busy when_busy;
	uint64_t until_ms; /* for the trees, and for a merge of their layers */
	struct measure sync;
	state_fn *done;
	void *ctx;
};

static void finish(struct state_op *op, const struct error *err);

/* ---- its layers ---- */

static void list_layers(struct state_op *op)
{
	const text_list *below = &op->w->model.layers;
	text_list *layers = &op->state.layers;
	*layers = (text_list){ 0 };
	if (op->state.layer[0])
		vec_push(&op->arena, layers, (const char *)op->state.layer);
	for (size_t i = 0; i < below->count; i++)
		vec_push(&op->arena, layers, (const char *)arena_text(&op->arena, below->items[i]));
	vec_push(&op->arena, layers, NULL);
	layers->count--;
}

/* The workspace is there, and the freeze still wanted. */
static int check_wanted(const struct state_op *op, struct error *err)
{
	const struct core_workspace *w = op->w;
	return w->removal || w->is_gone
		       ? fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name)
		       : cancelable_check(op->owner, err);
}

static void on_copy_settled(void *ctx, struct core_workspace *w, const struct error *err)
{
	finish(ctx, err);
}

static void on_copied(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct state_op *op = ctx;
	struct core_workspace *w = op->w;
	struct error failure;
	fault_point("core_copied");
	if (!err && check_wanted(op, &failure))
		err = &failure;
	else if (err) {
		failure = *err;
		error_context(&failure, "copy the files of workspace '%s'", w->model.name);
		err = &failure;
	}
	if (!err && op->is_paused && environment_is_unsettled(&w->model)) {
		/* The sandbox has copies of packages whose layers the snapshot has. */
		environment_settle(w, op->state.layer, on_copy_settled, op);
		return;
	}
	if (!err && !op->is_paused) {
		op->state.is_moved = !freeze_copied(w, op->state.layer, &failure);
		err = op->state.is_moved ? NULL : &failure;
	}
	finish(op, err);
}

static void copy(struct state_op *op)
{
	const char *names[] = { op->w->model.id, op->state.layer };
	const struct tree_job_order order = { .verb = "copy",
		.names = names,
		.name_count = 2,
		.input = -1,
		.output = -1,
		.owner = op->owner };
	tree_job_start(op->w->core, &order, on_copied, op);
}

/* ---- while commands run ---- */

static void count_running(void *ctx, int proc, int pid)
{
	struct state_op *op = ctx;
	char state = pid > 1 ? view_process_state(&op->w->sandbox.view, pid) : 0;
	if (state && !strchr("TtZX", state))
		op->state.running++;
}

static void on_stop_look(struct loop *loop, void *ctx)
{
	struct state_op *op = ctx;
	struct core_workspace *w = op->w;
	struct error err;
	op->state.running = 0;
	if (w->sandbox.state == SANDBOX_UP)
		view_each_process(&w->sandbox.view, count_running, op);
	if (!op->state.running) {
		fault_point("core_paused");
		copy(op);
		return;
	}
	if (clock_monotonic_ms() < op->stop_until_ms) {
		/* Stops what was started, or has continued itself, meanwhile. A child of vfork()
		 * that was stopped before its execve() keeps its parent from stopping: now and
		 * then both go on. */
		watch_pause(w, ++op->stop_looks % STOP_LOOKS != 0);
		loop_after(loop, STOP_LOOK_MS, on_stop_look, op);
		return;
	}
	fail_hint(&err, ERR_CONFLICT, "try again, or use \"when_busy\": \"wait\"",
		"%u processes of workspace '%s' do not stop", op->state.running, w->model.name);
	finish(op, &err);
}

static void pause_all(struct state_op *op)
{
	op->is_paused = true;
	op->stop_until_ms = clock_monotonic_ms() + STOP_MOST_MS;
	watch_pause(op->w, true);
	loop_after(op->w->core->loop, STOP_LOOK_MS, on_stop_look, op);
}

static void resume_all(struct state_op *op)
{
	watch_pause(op->w, false);
	sandbox_go_on(op->w);
}

/* ---- begin and end ---- */

static void finish(struct state_op *op, const struct error *err)
{
	struct core_workspace *w = op->w;
	if (op->is_paused)
		resume_all(op);
	if (err) {
		struct error why = *err; /* in op's memory, perhaps */
		state_fn *done = op->done;
		void *ctx = op->ctx;
		core_hold(w);
		state_end(&op->state, false);
		done(ctx, w, NULL, &why);
		core_release(w);
		return;
	}
	list_layers(op);
	op->done(op->ctx, w, &op->state, NULL);
}

/* ---- on disk ---- */

/* In a child: others may have written much to the same file system. */
static uint64_t sync_layers(void *ctx)
{
	struct state_op *op = ctx;
	bool has_failed = fault_fails("core_freeze_sync") || syncfs(op->w->core->envs.layers.dir);
	return has_failed ? (uint64_t)errno : 0;
}

/* What was frozen is on disk before a row names it: a power cut takes neither or both. */
static void on_synced(void *ctx, bool ok, uint64_t sys_errno)
{
	struct state_op *op = ctx;
	struct error err;
	int failed = check_wanted(op, &err);
	errno = ok ? (int)sys_errno : EIO;
	if (!failed && errno)
		failed = fail_errno(
			&err, "write the files of workspace '%s' to disk", op->w->model.name);
	finish(op, failed ? &err : NULL);
}

static void sync_all(struct state_op *op)
{
	op->sync = (struct measure){ .loop = op->w->core->loop,
		.find = sync_layers,
		.found = on_synced,
		.ctx = op,
		.keep = { op->w->core->envs.layers.dir },
		.keep_count = 1 };
	measure_start(&op->sync);
}

/* ---- the trees ---- */

static void take(struct state_op *op);

static void on_merge_look(struct loop *loop, void *ctx)
{
	take(ctx);
}

/* 1: the trees were given back for a merge of their layers, and are taken again. */
static int await_merge(struct state_op *op, struct error *err)
{
	struct core_workspace *w = op->w;
	if (w->model.layers.count < WORKSPACE_LAYERS_MAX || !freeze_is_due(w))
		return 0;
	if (w->unmerged_layers >= w->model.layers.count || clock_monotonic_ms() >= op->until_ms)
		return fail_hint(err, ERR_CONFLICT,
			"the daemon's log says why layers can't be merged; carrel snapshot "
			"rollback NAME SNAPSHOT goes back to fewer",
			"workspace '%s' has %zu layers, which are not merged yet", w->model.name,
			w->model.layers.count);
	op->state.is_taken = false;
	loop_after(w->core->loop, MERGE_LOOK_MS, on_merge_look, op);
	merges_check(w->core);
	tree_release(w);
	return 1;
}

static void on_settled(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct state_op *op = ctx;
	struct error failure;
	char id[ID_LEN + 1];
	if (!err && check_wanted(op, &failure))
		err = &failure;
	int waits = err ? 0 : await_merge(op, &failure);
	if (waits > 0)
		return;
	if (waits < 0)
		err = &failure;
	if (err || !freeze_is_due(w)) {
		finish(op, err);
		return;
	}
	id_make(id);
	str_format(op->state.layer, sizeof op->state.layer, LAUNCH_FROZEN "%s", id);
	layer_hold(w->core, op->state.layer);
	if (w->sandbox.state != SANDBOX_NONE)
		pause_all(op);
	else if (grants_are_asked(&w->model))
		/* Through a socket in a shared directory, commands can have passed descriptors of
		 * files on to others, who would go on to write to what is frozen. */
		copy(op);
	else if (!freeze_uppers(w, op->state.layer, &failure)) {
		op->state.is_moved = true;
		sync_all(op);
	} else if (failure.sys_errno == EXDEV)
		copy(op);
	else
		finish(op, &failure);
}

static void on_taken(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct state_op *op = ctx;
	struct error busy;
	if (err && err->code == ERR_CONFLICT && !err->hint[0] && op->when_busy == WHEN_BUSY_FAIL) {
		busy = *err;
		error_hint(&busy, "--when-busy wait waits until nothing runs in it");
		err = &busy;
	}
	op->state.is_taken = !err;
	if (!err && w->sandbox.state == SANDBOX_NONE && environment_is_unsettled(&w->model))
		environment_settle(w, NULL, on_settled, op);
	else
		on_settled(op, w, err);
}

static void take(struct state_op *op)
{
	uint64_t now_ms = clock_monotonic_ms();
	tree_take(op->w, op->when_busy, op->until_ms > now_ms ? op->until_ms - now_ms : 1,
		op->owner, on_taken, op);
}

void state_freeze(struct core_workspace *w, enum when_busy when_busy, uint64_t timeout_ms,
	const struct cancelable *owner, state_fn *done, void *ctx)
{
	struct state_op *op = xzalloc(sizeof *op);
	*op = (struct state_op){ .w = w,
		.owner = owner,
		.when_busy = when_busy,
		.until_ms = clock_monotonic_ms() + (timeout_ms ? timeout_ms : WHEN_BUSY_TIMEOUT_MS),
		.done = done,
		.ctx = ctx };
	arena_init(&op->arena);
	core_hold(w);
	take(op);
}

void state_end(struct state *state, bool is_named)
{
	struct state_op *op = (struct state_op *)state;
	struct core_workspace *w = op->w;
	struct core *core = w->core;
	struct error err;
	if (state->is_moved && is_named)
		freeze_settle(core, state->layer);
	else if (state->is_moved && !w->removal && freeze_undo(w, state->layer, &err))
		log_record(&core->log, LOG_LEVEL_ERROR, "a freeze can't be undone", "workspace",
			w->model.id, "error", err.text, NULL);
	if (state->layer[0])
		layer_release(core, state->layer);
	if (state->layer[0] && !is_named)
		layers_sweep(core);
	if (state->is_moved && is_named) { /* the uppers are empty */
		w->model.disk_usage_bytes = 0;
		w->is_dirty = true;
	}
	if (state->is_taken)
		tree_release(w);
	arena_done(&op->arena);
	free(op);
	core_release(w);
}
