/* state.c -- the present state of a workspace as a list of layers: its uppers are frozen, or copied
 * while its processes are paused. */
#include "core/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/fault.h"
#include "core/exec_internal.h"
#include "core/tree_jobs.h"
#include "core/watch.h"

#define STOP_LOOK_MS 2 /* between two looks whether all processes have stopped */
#define STOP_MOST_MS 2000

struct state_op {
	struct state state; /* first */
	struct arena arena;
	struct core_workspace *w;
	bool is_paused;
	uint64_t stop_until_ms;
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

static void on_copied(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct state_op *op = ctx;
	struct core_workspace *w = op->w;
	struct error failure;
	fault_point("core_copied");
	if (!err && (w->removal || w->is_gone)) {
		fail(&failure, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
		err = &failure;
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
	const struct tree_job_order order = {
		.verb = "copy", .names = names, .name_count = 2, .input = -1, .output = -1
	};
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
		loop_after(loop, STOP_LOOK_MS, on_stop_look, op);
		return;
	}
	fail_hint(&err, ERR_CONFLICT, "try again, or use \"when_busy\": \"wait\"",
		"%u processes of workspace '%s' can't be stopped", op->state.running,
		w->model.name);
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

static void on_taken(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct state_op *op = ctx;
	struct error failure;
	char id[ID_LEN + 1];
	op->state.is_taken = !err;
	if (!err && freeze_is_due(w) && w->model.layers.count >= WORKSPACE_LAYERS_MAX) {
		fail_hint(&failure, ERR_CONFLICT, "try again when they are merged",
			"workspace '%s' has %zu layers", w->model.name, w->model.layers.count);
		err = &failure;
	}
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
		finish(op, NULL);
	} else if (failure.sys_errno == EXDEV)
		copy(op);
	else
		finish(op, &failure);
}

void state_freeze(struct core_workspace *w, enum when_busy when_busy, uint64_t timeout_ms,
	state_fn *done, void *ctx)
{
	struct state_op *op = xzalloc(sizeof *op);
	*op = (struct state_op){ .w = w, .done = done, .ctx = ctx };
	arena_init(&op->arena);
	core_hold(w);
	tree_take(w, when_busy, timeout_ms, on_taken, op);
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
