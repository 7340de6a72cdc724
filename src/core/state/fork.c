/* fork.c -- new workspaces with the state of another one, or of a snapshot: they share its layers.
 */
#include "base/fault.h"
#include "core/state/internal.h"
#include "core/state/present.h"
#include "core/state/snapshots.h"

struct fork {
	struct cancelable cancelable;
	struct core *core;
	struct core_workspace *w; /* whose state it is, held; NULL: a snapshot's whose is gone */
	const struct request *request; /* of its caller, in the arena */
	struct arena arena;
	struct workspace model; /* of the new ones, but for the name */
	bool is_of_snapshot;	/* its layers are known */
	struct freeze_wanted freeze;
	size_t count, pending;
	struct core_workspace **made; /* held */
	struct fiber *fiber;
	struct error err; /* the first one; code ERR_NONE: none */
	core_fork_fn *done;
	core_workspace_fn *created; /* of a creation, in place of done */
	void *ctx;
};

static struct fork *fork_new(const struct request *request, struct core *core,
	struct core_workspace *w, size_t count, void *ctx)
{
	struct fork *fork = xzalloc(sizeof *fork);
	*fork = (struct fork){ .cancelable.core = core,
		.core = core,
		.w = w,
		.freeze = { WHEN_BUSY_PAUSE, 0, &fork->cancelable },
		.count = count,
		.ctx = ctx };
	arena_init(&fork->arena);
	fork->request = access_keep(request, &fork->arena);
	fork->made = arena_array(&fork->arena, count, sizeof(struct core_workspace *));
	memset(fork->made, 0, count * sizeof(struct core_workspace *));
	if (w) {
		core_hold(w);
		cancelable_use(&fork->cancelable, w, "a fork of it is being made");
	}
	return fork;
}

static void finish(struct fork *fork)
{
	struct core_workspace *w = fork->w;
	const struct error *err = fork->err.code ? &fork->err : NULL;
	if (fork->created)
		fork->created(fork->ctx, err ? NULL : fork->made[0], err);
	else
		fork->done(fork->ctx, err ? NULL : fork->made, fork->count, err);
	cancelable_done(&fork->cancelable);
	for (size_t i = 0; i < fork->count; i++) {
		if (fork->made[i] && err) /* all or none */
			core_remove(&request_system, fork->made[i], "canceled", NULL, NULL);
		if (fork->made[i])
			core_release(fork->made[i]);
	}
	layers_sweep(fork->core);
	merges_check(fork->core);
	arena_done(&fork->arena);
	free(fork);
	if (w)
		core_release(w);
}

/* ---- the new ones ---- */

static void on_made(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct fork *fork = ctx;
	if (!err) {
		core_hold(w);
		fork->made[fork->count - fork->pending] = w;
	} else if (!fork->err.code)
		fork->err = *err;
	if (--fork->pending == 0)
		fiber_continue(fork->fiber, NULL);
}

static const char *name_of(struct fork *fork, size_t i)
{
	const char *name = fork->model.name;
	return name && fork->count > 1 ? arena_printf(&fork->arena, "%s-%zu", name, i + 1) : name;
}

/* fork->err says what has failed. */
static void make_all(struct fork *fork)
{
	struct create_group *group = create_group_new(fork->count);
	struct error none;
	fork->pending = fork->count;
	fault_point("core_fork");
	for (size_t i = 0; i < fork->count; i++) {
		struct workspace wanted = fork->model;
		wanted.name = name_of(fork, i);
		workspace_create(fork->request, fork->core, &wanted, fork->model.layers.count, -1,
			group, on_made, fork);
	}
	fiber_wait(fork->fiber, &none);
	if (!fork->err.code)
		cancelable_check(&fork->cancelable, &fork->err);
}

/* The row of the source names what was frozen. */
static int save_source(struct fork *fork, const struct state *state, struct error *err)
{
	struct core_workspace *w = fork->w;
	text_list *layers = &w->model.layers;
	if (!state->is_moved)
		return 0;
	*layers = text_list_copy(&w->arena, &state->layers);
	workspace_save(w, fiber_continue, fork->fiber);
	if (!fiber_wait(fork->fiber, err))
		return 0;
	/* Without the layer that was just frozen. */
	*layers = (text_list){ layers->items + 1, layers->count - 1, layers->count - 1 };
	return error_context(err, "fork workspace '%s'", w->model.name);
}

static void fork_present(struct fork *fork)
{
	struct snapshot now = { 0 };
	struct state state;
	struct error err;
	if (state_freeze(fork->fiber, fork->w, &fork->freeze, &state, &err)) {
		fork->err = err;
		return;
	}
	/* An install may have ended since the fork was asked for. */
	snapshot_take_state(&now, &fork->w->model);
	snapshot_give_state(&fork->arena, &now, &fork->model);
	fork->model.layers = text_list_copy(&fork->arena, &state.layers);
	int failed = save_source(fork, &state, &err);
	if (failed)
		fork->err = err;
	else
		make_all(fork);
	state_end(&state, !failed);
}

static void run_fork(struct fiber *fiber, void *ctx)
{
	struct fork *fork = ctx;
	fork->fiber = fiber;
	if (fork->err.code)
		wait_turn(fiber, fork->core);
	else if (fork->is_of_snapshot)
		make_all(fork);
	else
		fork_present(fork);
	fault_point("core_forked");
	finish(fork);
}

/* ---- what they inherit ---- */

static void take_snapshot(struct fork *fork, const struct snapshot *s)
{
	snapshot_give_state(&fork->arena, s, &fork->model);
	fork->model.snapshot = arena_text(&fork->arena, s->id);
	fork->is_of_snapshot = true;
}

static void take_workspace(struct fork *fork, const struct workspace *from)
{
	struct arena *arena = &fork->arena;
	struct workspace *model = &fork->model;
	text_list dropped = { 0 };
	struct snapshot state = { 0 };
	snapshot_take_state(&state, from);
	snapshot_give_state(arena, &state, model);
	model->snapshot = arena_text(arena, from->snapshot);
	model->template = arena_text(arena, from->template);
	model->attach = text_list_copy(arena, &from->attach);
	model->limits = from->limits;
	workspace_copy_network(arena, &from->network, &model->network);
	model->ttl_ms = from->ttl_ms;
	model->idle_timeout_ms = from->idle_timeout_ms;
	model->ptrace = from->ptrace;
	model->view = from->view;
	model->is_context = from->is_context;
	model->env = pair_list_copy(arena, &from->env);
	model->policy = workspace_copy_policy(arena, &from->policy);
	model->labels = pair_list_copy(arena, &from->labels);
	workspace_drop_labels(model, arena, &dropped);
	workspace_copy_owner(arena, from, &model->owner);
}

static int check_names(struct fork *fork, struct error *err)
{
	for (size_t i = 0; fork->model.name && i < fork->count; i++) {
		const char *name = name_of(fork, i);
		if (workspace_check_name(name, err) || create_check_name(fork->core, name, err))
			return -1;
	}
	return 0;
}

struct cancelable *core_fork(const struct request *request, struct core_workspace *w,
	const struct fork_wanted *wanted, core_fork_fn *done, void *ctx)
{
	struct core *core = w->core;
	struct fork *fork = fork_new(request, core, w, wanted->count ? wanted->count : 1, ctx);
	struct core_snapshot *snapshot = NULL;
	struct error *err = &fork->err;
	fork->done = done;
	if (wanted->when_busy)
		fork->freeze.when_busy = (enum when_busy)wanted->when_busy;
	fork->freeze.timeout_ms = wanted->timeout_ms;
	take_workspace(fork, &w->model);
	fork->model.name = arena_text(&fork->arena, wanted->name);
	if (wanted->owner)
		fork->model.owner = workspace_keep_owner(&fork->arena, wanted->owner);
	int failed =
		access_check(core, request, VERB_SNAPSHOT_FORK, w, err) ||
		access_check(core, request, VERB_WORKSPACE_CREATE, NULL, err) ||
		check_names(fork, err) ||
		(wanted->snapshot && snapshot_of(request, w, wanted->snapshot, &snapshot, err));
	if (!failed && snapshot)
		take_snapshot(fork, &snapshot->model);
	fiber_start(run_fork, fork);
	return &fork->cancelable;
}

/* ---- a creation from another one ---- */

/* In `pairs`, each of `changes` takes the place of the pair with its key. */
static void set_pairs(struct arena *arena, pair_list *pairs, const pair_list *changes)
{
	const pair_list copies = pair_list_copy(arena, changes);
	for (size_t i = 0; i < copies.count; i++) {
		size_t at = 0;
		while (at < pairs->count && strcmp(pairs->items[at].key, copies.items[i].key) != 0)
			at++;
		if (at < pairs->count)
			pairs->items[at] = copies.items[i];
		else
			vec_push(arena, pairs, copies.items[i]);
	}
}

/* What the request says goes before what is inherited. */
static int take_request(
	struct fork *fork, const struct workspace *asked, bool is_snapshot, struct error *err)
{
	struct arena *arena = &fork->arena;
	struct workspace *model = &fork->model;
	if (asked->dir || asked->mounts.count || asked->attach.count)
		return fail(err, ERR_INVALID,
			"'from' can't be combined with 'dir', 'mounts' or 'attach'");
	if (asked->template || asked->is_context || asked->environments.of[ENV_KIND_NODE] ||
		asked->node.version || asked->node.package_json || asked->node.packages.count)
		return fail(err, ERR_INVALID,
			"'from' can't be combined with 'template', 'node' or 'context'");
	bool has_python = asked->environments.of[ENV_KIND_PYTHON] || asked->python ||
			  asked->requirements || asked->packages.count ||
			  asked->build_options.count;
	if (has_python && (!is_snapshot || model->environments.of[ENV_KIND_PYTHON]))
		return fail(err, ERR_INVALID,
			"'environment' and 'python' can't be combined with 'from', unless that is "
			"a snapshot without an environment");
	if (has_python) {
		model->environments.of[ENV_KIND_PYTHON] =
			arena_text(arena, asked->environments.of[ENV_KIND_PYTHON]);
		model->python = arena_text(arena, asked->python);
		model->requirements = arena_text(arena, asked->requirements);
		model->packages = text_list_copy(arena, &asked->packages);
		model->build_options = text_list_copy(arena, &asked->build_options);
	}
	memcpy(model->id, asked->id, sizeof model->id);
	if (asked->owner.service)
		model->owner = workspace_keep_owner(arena, &asked->owner);
	model->name = arena_text(arena, asked->name);
	if (asked->ttl_ms)
		model->ttl_ms = asked->ttl_ms;
	if (asked->idle_timeout_ms)
		model->idle_timeout_ms = asked->idle_timeout_ms;
	if (asked->policy.settings)
		model->policy.settings = arena_text(arena, asked->policy.settings);
	if (asked->policy.sources)
		model->policy.sources = arena_text(arena, asked->policy.sources);
	model->ptrace |= asked->ptrace;
	if (asked->network.mode || asked->network.allow.count || asked->network.deny.count)
		workspace_copy_network(arena, &asked->network, &model->network);
	if (asked->has_view)
		model->view = asked->view;
	set_pairs(arena, &model->env, &asked->env);
	set_pairs(arena, &model->labels, &asked->labels);
	return limits_change(&model->limits, &asked->limits, err);
}

void create_from(const struct request *request, struct core *core, const struct workspace *asked,
	core_workspace_fn *done, void *ctx)
{
	struct core_snapshot *snapshot = NULL;
	struct core_workspace *w = NULL;
	struct error err;
	int failed = map_get(&core->state->snapshots, str_from(asked->from))
			     ? core_snapshot_find(request, core, asked->from, &snapshot, &err)
			     : core_find(request, core, asked->from, &w, &err);
	if (!failed && snapshot)
		w = map_get(&core->ids, str_from(snapshot->model.workspace));
	struct fork *fork = fork_new(request, core, w, 1, ctx);
	fork->created = done;
	if (!failed && w)
		take_workspace(fork, &w->model);
	if (!failed && snapshot)
		take_snapshot(fork, &snapshot->model);
	/* That of a workspace which is there may have been tightened since. */
	if (!failed && snapshot && !w)
		fork->model.policy = workspace_copy_policy(&fork->arena, &snapshot->model.policy);
	failed = failed || access_check(core, request, VERB_SNAPSHOT_FORK, w, &err) ||
		 take_request(fork, asked, snapshot, &err) || check_names(fork, &err);
	if (failed && err.code == ERR_NOT_FOUND)
		fail_hint(&err, ERR_NOT_FOUND,
			"carrel snapshot ls and carrel ls list what there is",
			"'%s' is neither a snapshot nor a workspace", asked->from);
	if (failed)
		fork->err = err;
	fiber_start(run_fork, fork);
}
