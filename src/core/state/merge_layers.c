/* merge_layers.c -- workspaces with many frozen layers get one in place of several, so that any
 * number of snapshots can be made of one. A job on trees makes it in the background, one at a time.
 * 1. The topmost layer stays: the content id of a snapshot is that of its topmost layer. The lowest
 * one stays too: a template, or what the workspace began with, is most often the largest. So does
 * the base of the workspace, which differences are found by.
 * 2. Lists are changed while the workspace has no sandbox: its own, and those of its snapshots that
 * contain what was merged. All are committed together, then layers that nothing names go.
 * 3. Whatever changed meanwhile (a rollback, another environment): the merged layer is discarded.
 */
#include "base/fault.h"
#include "core/state/internal.h"
#include "core/tree_jobs.h"
#include "envs/kind.h"

#define LAYERS_MANY 8 /* more are merged */

/* A list that was changed, as it was. */
struct changed {
	char id[ID_LEN + 1]; /* of a snapshot */
	text_list before;
};

struct layer_merge {
	struct core *core;
	struct arena arena;
	char workspace[ID_LEN + 1];
	char layer[LAUNCH_FROZEN_LEN + 1]; /* in place of: */
	text_list range;
	text_list below; /* the layers under it: marks that hide nothing of them were left out */
	struct environment_names environments; /* the same holds for these */
	struct core_workspace *w;	       /* held while its trees are taken, or asked for */
	text_list before;		       /* of the workspace */
	VEC(struct changed) snapshots;
};

static void merge_free(struct layer_merge *merge)
{
	layer_release(merge->core, merge->layer);
	arena_done(&merge->arena);
	free(merge);
}

static void end(struct core_workspace *w)
{
	merge_free(w->trees->merge);
	w->trees->merge = NULL;
	layers_sweep(w->core);
	merges_check(w->core);
}

void merge_forget(struct core_workspace *w)
{
	if (w->trees->merge)
		merge_free(w->trees->merge);
	w->trees->merge = NULL;
}

void merges_done(struct core *core)
{
	if (core->state->merge)
		merge_free(core->state->merge);
}

/* ---- put in place ---- */

/* Where the range begins in `layers`, above the same layers as before; 0: it does not. */
static size_t find_range(const struct layer_merge *merge, const text_list *layers)
{
	size_t count = merge->range.count + merge->below.count;
	if (layers->count <= count)
		return 0;
	size_t at = layers->count - count;
	for (size_t i = 0; i < count; i++) {
		const char *name = i < merge->range.count
					   ? merge->range.items[i]
					   : merge->below.items[i - merge->range.count];
		if (strcmp(layers->items[at + i], name) != 0)
			return 0;
	}
	return at;
}

static text_list replace_range(
	const struct layer_merge *merge, struct arena *arena, const text_list *layers)
{
	size_t at = find_range(merge, layers);
	text_list shorter = { 0 };
	for (size_t i = 0; i < layers->count; i++)
		if (i < at || i >= at + merge->range.count)
			vec_push(arena, &shorter, layers->items[i]);
		else if (i == at)
			vec_push(arena, &shorter, (const char *)merge->layer);
	return text_list_copy(arena, &shorter);
}

static bool still_fits(const struct layer_merge *merge, const struct core_workspace *w)
{
	return !w->removal && !w->is_gone && w->model.state != WORKSPACE_DELETING &&
	       find_range(merge, &w->model.layers) &&
	       environment_names_are_same(&merge->environments, &w->model.environments);
}

static void change_snapshots(struct layer_merge *merge)
{
	struct core *core = merge->core;
	for (struct core_snapshot *s = core->state->newest_snapshot; s; s = s->older) {
		struct changed changed = { .before = s->model.layers };
		if (strcmp(s->model.workspace, merge->workspace) != 0 ||
			!find_range(merge, &s->model.layers) ||
			!environment_names_are_same(&merge->environments, &s->model.environments))
			continue;
		memcpy(changed.id, s->model.id, sizeof changed.id);
		vec_push(&merge->arena, &merge->snapshots, changed);
		s->model.layers = replace_range(merge, &s->arena, &s->model.layers);
		store_put(core->store, &store_snapshots, &s->model, NULL, NULL);
	}
}

static void put_back(struct layer_merge *merge, struct core_workspace *w)
{
	w->model.layers = text_list_copy(&w->arena, &merge->before);
	workspace_tidy(w);
	for (size_t i = 0; i < merge->snapshots.count; i++) {
		const struct changed *changed = &merge->snapshots.items[i];
		struct core_snapshot *s =
			map_get(&merge->core->state->snapshots, str_from(changed->id));
		if (s)
			s->model.layers = changed->before;
	}
}

static void release(struct layer_merge *merge, bool is_over)
{
	struct core_workspace *w = merge->w;
	merge->w = NULL;
	if (is_over)
		end(w);
	core_release(w);
}

static void on_saved(void *ctx, const struct error *err)
{
	struct layer_merge *merge = ctx;
	struct core_workspace *w = merge->w;
	fault_point("core_merge_saved");
	layers_release_all(w->core, &merge->range);
	if (err) {
		put_back(merge, w);
		w->trees->unmerged_layers = w->model.layers.count;
		log_record(&w->core->log, LOG_LEVEL_WARN, "merged layers can't be used",
			"workspace", w->model.id, "error", err->text, NULL);
	}
	tree_release(w);
	release(merge, true);
}

static void on_taken(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct layer_merge *merge = ctx;
	if (err) { /* it waits for the end of the sandbox, or of the workspace */
		release(merge, false);
		return;
	}
	if (!still_fits(merge, w)) {
		tree_release(w);
		release(merge, true);
		return;
	}
	layers_hold_all(merge->core, &merge->range); /* until the rows are committed */
	merge->before = text_list_copy(&merge->arena, &w->model.layers);
	w->model.layers = replace_range(merge, &w->arena, &w->model.layers);
	fault_point("core_merge_row");
	change_snapshots(merge);
	workspace_save(w, on_saved, merge);
}

void merge_go_on(struct core_workspace *w)
{
	struct layer_merge *merge = w->trees->merge;
	if (!merge || merge->w || w->sandbox.state != SANDBOX_NONE)
		return;
	if (!still_fits(merge, w)) {
		end(w);
		return;
	}
	merge->w = w;
	core_hold(w);
	tree_take(w, WHEN_BUSY_FAIL, 0, NULL, on_taken, merge);
}

/* ---- merge ---- */

static void on_merged(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct layer_merge *merge = ctx;
	struct core *core = merge->core;
	struct core_workspace *w = map_get(&core->ids, str_from(merge->workspace));
	core->state->merge = NULL;
	if (err)
		log_record(&core->log, LOG_LEVEL_WARN, "layers can't be merged", "workspace",
			merge->workspace, "error", err->text, NULL);
	if (err && w)
		w->trees->unmerged_layers = w->model.layers.count;
	if (err || !w)
		merge_free(merge);
	else {
		fault_point("core_merged");
		w->trees->merge = merge;
		merge_go_on(w);
		takers_go_on(w);
	}
	merges_check(core);
}

/* Of the layers in [first, last), the longer part above or below the base. */
static void leave_base(const struct workspace *model, size_t *first, size_t *last)
{
	for (size_t i = *first; model->base && i < *last; i++)
		if (!strcmp(model->layers.items[i], model->base)) {
			if (i - *first > *last - i - 1)
				*last = i;
			else
				*first = i + 1;
			return;
		}
}

static void begin(struct core_workspace *w)
{
	struct core *core = w->core;
	struct layer_merge *merge = xzalloc(sizeof *merge);
	struct arena *arena = &merge->arena;
	text_list layers, names = { 0 };
	char id[ID_LEN + 1];
	core->state->merge = merge;
	merge->core = core;
	arena_init(arena);
	id_make(id);
	memcpy(merge->workspace, w->model.id, sizeof merge->workspace);
	str_format(merge->layer, sizeof merge->layer, LAUNCH_FROZEN "%s", id);
	layer_hold(core, merge->layer);
	layers = text_list_copy(arena, &w->model.layers);
	size_t first = 1, last = layers.count - 1;
	leave_base(&w->model, &first, &last);
	for (size_t i = first; i < layers.count; i++)
		vec_push(arena, i < last ? &merge->range : &merge->below, layers.items[i]);
	environment_names_copy(arena, &w->model.environments, &merge->environments);
	vec_push(arena, &names, (const char *)merge->layer);
	parts_add_list(arena, &names, &merge->range);
	parts_add_list(arena, &names, &merge->below);
	parts_add_packages(w, arena, &names);
	const struct tree_job_order order = { .verb = "merge",
		.names = names.items,
		.name_count = names.count,
		.input = -1,
		.output = -1 };
	tree_job_start(core, &order, on_merged, merge);
}

/* Its environments, if it has any, are known: which marks are needed depends on them. */
static bool may_begin(struct core_workspace *w)
{
	const struct workspace *model = &w->model;
	if (model->layers.count <= LAYERS_MANY ||
		model->layers.count <= w->trees->unmerged_layers || w->trees->merge || w->removal ||
		w->is_spare || environment_is_unsettled(model))
		return false;
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (model->environments.of[i] && !environment_layers(w, env_kinds[i]))
			return false;
	return true;
}

void merges_check(struct core *core)
{
	for (struct core_workspace *w = core->newest;
		w && !core->state->merge && !core->is_stopping; w = w->older)
		if (may_begin(w))
			begin(w);
}
