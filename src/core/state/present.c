/* present.c -- the present state of a workspace as a list of layers: its uppers are frozen, or
 * copied while its processes are paused. */
#include "core/state/present.h"

#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "core/execs/watch.h"
#include "core/state/internal.h"

#define STOP_LOOK_MS 2 /* between two looks whether all processes have stopped */
#define STOP_MOST_MS 10000
#define STOP_LOOKS 25	 /* before all go on for one look */
#define MERGE_LOOK_MS 20 /* between two looks whether layers have been merged */

/* The workspace is there, and the freeze still wanted. */
static int check_wanted(
	const struct state *state, const struct cancelable *owner, struct error *err)
{
	const struct core_workspace *w = state->w;
	return w->removal || w->is_gone
		       ? fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name)
		       : cancelable_check(owner, err);
}

/* ---- the trees ---- */

static int take(struct fiber *fiber, struct state *state, const struct freeze_wanted *wanted,
	uint64_t until_ms, struct error *err)
{
	struct core_workspace *w = state->w;
	uint64_t now_ms = clock_monotonic_ms();
	tree_take(w, wanted->when_busy, until_ms > now_ms ? until_ms - now_ms : 1, wanted->owner,
		fiber_continue_workspace, fiber);
	if (fiber_wait(fiber, err)) {
		if (err->code == ERR_CONFLICT && !err->hint[0] &&
			wanted->when_busy == WHEN_BUSY_FAIL)
			error_hint(err, "--when-busy wait waits until nothing runs in it");
		return -1;
	}
	state->is_taken = true;
	if (w->sandbox.state == SANDBOX_NONE && environment_is_unsettled(&w->model) &&
		environment_settle(fiber, w, NULL, err))
		return -1;
	return check_wanted(state, wanted->owner, err);
}

/* With as few layers as one more needs: gives the trees back for a merge, and takes them again. */
static int take_merged(struct fiber *fiber, struct state *state, const struct freeze_wanted *wanted,
	struct error *err)
{
	struct core_workspace *w = state->w;
	uint64_t until_ms = clock_monotonic_ms() +
			    (wanted->timeout_ms ? wanted->timeout_ms : WHEN_BUSY_TIMEOUT_MS);
	for (;;) {
		if (take(fiber, state, wanted, until_ms, err))
			return -1;
		if (w->model.layers.count < WORKSPACE_LAYERS_MAX || !freeze_is_due(w))
			return 0;
		if (w->trees->unmerged_layers >= w->model.layers.count ||
			clock_monotonic_ms() >= until_ms)
			return fail_hint(err, ERR_CONFLICT,
				"the daemon's log says why layers can't be merged; carrel snapshot "
				"rollback NAME SNAPSHOT goes back to fewer",
				"workspace '%s' has %zu layers, which are not merged yet",
				w->model.name, w->model.layers.count);
		state->is_taken = false;
		merges_check(w->core);
		tree_release(w);
		wait_ms(fiber, w->core, MERGE_LOOK_MS);
	}
}

/* ---- a copy ---- */

static int copy(
	struct fiber *fiber, struct state *state, const struct cancelable *owner, struct error *err)
{
	struct core_workspace *w = state->w;
	const char *names[] = { w->model.id, state->layer };
	const struct tree_job_order order = { .verb = "copy",
		.names = names,
		.name_count = 2,
		.input = -1,
		.output = -1,
		.owner = owner };
	const struct json_value *answer;
	int failed = wait_tree_job(fiber, w->core, &order, &answer, err);
	fault_point("core_copied");
	return failed ? error_context(err, "copy the files of workspace '%s'", w->model.name)
		      : check_wanted(state, owner, err);
}

struct running {
	const struct core_workspace *w;
	unsigned count;
};

static void count_running(void *ctx, int proc, int pid)
{
	struct running *running = ctx;
	char state = pid > 1 ? view_process_state(&running->w->sandbox.view, pid) : 0;
	if (state && !strchr("TtZX", state))
		running->count++;
}

static int pause_all(struct fiber *fiber, struct core_workspace *w, struct error *err)
{
	uint64_t until_ms = clock_monotonic_ms() + STOP_MOST_MS;
	watch_pause(w, true);
	for (unsigned looks = 1;; looks++) {
		struct running running = { .w = w };
		wait_ms(fiber, w->core, STOP_LOOK_MS);
		if (w->sandbox.state == SANDBOX_UP)
			view_each_process(&w->sandbox.view, count_running, &running);
		if (!running.count)
			break;
		if (clock_monotonic_ms() >= until_ms)
			return fail_hint(err, ERR_CONFLICT,
				"try again, or use \"when_busy\": \"wait\"",
				"%u processes of workspace '%s' do not stop", running.count,
				w->model.name);
		/* Stops what was started, or has continued itself, meanwhile. A child of vfork()
		 * that was stopped before its execve() keeps its parent from stopping: now and
		 * then both go on. */
		watch_pause(w, looks % STOP_LOOKS != 0);
	}
	fault_point("core_paused");
	return 0;
}

static int copy_paused(
	struct fiber *fiber, struct state *state, const struct cancelable *owner, struct error *err)
{
	struct core_workspace *w = state->w;
	int failed = pause_all(fiber, w, err) || copy(fiber, state, owner, err);
	/* The sandbox has copies of packages whose layers the snapshot has. */
	if (!failed && environment_is_unsettled(&w->model))
		failed = environment_settle(fiber, w, state->layer, err);
	watch_pause(w, false);
	sandbox_go_on(w);
	return failed ? -1 : 0;
}

static int copy_idle(
	struct fiber *fiber, struct state *state, const struct cancelable *owner, struct error *err)
{
	if (copy(fiber, state, owner, err) || freeze_copied(state->w, state->layer, err))
		return -1;
	state->is_moved = true;
	return 0;
}

/* ---- on disk ---- */

struct sync {
	struct fiber *fiber;
	int layers;
	int sys_errno;
};

/* In a child: others may have written much to the same file system. */
static uint64_t sync_layers(void *ctx)
{
	struct sync *sync = ctx;
	fault_point("core_freeze_syncing");
	bool has_failed = fault_fails("core_freeze_sync") || syncfs(sync->layers);
	return has_failed ? (uint64_t)errno : 0;
}

static void on_synced(void *ctx, bool ok, uint64_t sys_errno)
{
	struct sync *sync = ctx;
	sync->sys_errno = ok ? (int)sys_errno : EIO;
	fiber_continue(sync->fiber, NULL);
}

/* What was frozen is on disk before a row names it: a power cut takes neither or both. */
static int sync_frozen(struct fiber *fiber, const struct state *state,
	const struct cancelable *owner, struct error *err)
{
	const struct core *core = state->w->core;
	struct sync sync = { .fiber = fiber, .layers = core->envs.layers.dir };
	struct measure child = { .loop = core->loop,
		.find = sync_layers,
		.found = on_synced,
		.ctx = &sync,
		.keep = { sync.layers },
		.keep_count = 1 };
	measure_start(&child);
	if (fiber_wait(fiber, err) || check_wanted(state, owner, err))
		return -1;
	errno = sync.sys_errno;
	return errno ? fail_errno(err, "write the files of workspace '%s' to disk",
			       state->w->model.name)
		     : 0;
}

/* ---- begin and end ---- */

static void list_layers(struct state *state)
{
	const text_list *below = &state->w->model.layers;
	if (state->layer[0])
		vec_push(&state->arena, &state->layers, (const char *)state->layer);
	for (size_t i = 0; i < below->count; i++)
		vec_push(&state->arena, &state->layers,
			(const char *)arena_text(&state->arena, below->items[i]));
	vec_push(&state->arena, &state->layers, NULL);
	state->layers.count--;
}

static int freeze(
	struct fiber *fiber, struct state *state, const struct cancelable *owner, struct error *err)
{
	struct core_workspace *w = state->w;
	struct error why;
	char id[ID_LEN + 1];
	id_make(id);
	str_format(state->layer, sizeof state->layer, LAUNCH_FROZEN "%s", id);
	layer_hold(w->core, state->layer);
	if (w->sandbox.state != SANDBOX_NONE)
		return copy_paused(fiber, state, owner, err);
	/* Through a socket in a shared directory, commands can have passed descriptors of files on
	 * to others, who would go on to write to what is frozen. */
	if (grants_are_asked(&w->model))
		return copy_idle(fiber, state, owner, err);
	if (freeze_uppers(w, state->layer, &why)) {
		if (why.sys_errno == EXDEV)
			return copy_idle(fiber, state, owner, err);
		*err = why;
		return -1;
	}
	state->is_moved = true;
	return sync_frozen(fiber, state, owner, err);
}

int state_freeze(struct fiber *fiber, struct core_workspace *w, const struct freeze_wanted *wanted,
	struct state *state, struct error *err)
{
	*state = (struct state){ .w = w };
	arena_init(&state->arena);
	core_hold(w);
	if (take_merged(fiber, state, wanted, err) ||
		(freeze_is_due(w) && freeze(fiber, state, wanted->owner, err))) {
		state_end(state, false);
		return -1;
	}
	list_layers(state);
	return 0;
}

void state_end(struct state *state, bool is_named)
{
	struct core_workspace *w = state->w;
	struct core *core = w->core;
	struct error err;
	if (state->is_moved && is_named)
		freeze_settle(core, state->layer);
	/* What is to be archived is put back, although it is being removed. */
	else if (state->is_moved && (!w->removal || w->wants_archive) &&
		 freeze_undo(w, state->layer, &err))
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
	arena_done(&state->arena);
	core_release(w);
}
