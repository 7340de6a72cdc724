#include "core/state/snapshots.h"

#include "base/clock.h"
#include "base/fault.h"
#include "core/state/internal.h"
#include "core/state/present.h"

#define SNAPSHOTS_MAX 10000 /* of a workspace */

/* ---- those that are known ---- */

static void add(struct core *core, const struct snapshot *model)
{
	struct core_snapshot *s = xzalloc(sizeof *s);
	s->core = core;
	arena_init(&s->arena);
	snapshot_copy_model(&s->arena, model, &s->model);
	/* Times of creation are unique: they serve as cursors. */
	if (core->state->newest_snapshot &&
		s->model.created_ms <= core->state->newest_snapshot->model.created_ms)
		s->model.created_ms = core->state->newest_snapshot->model.created_ms + 1;
	s->older = core->state->newest_snapshot;
	if (s->older)
		s->older->newer = s;
	core->state->newest_snapshot = s;
	map_add(&core->state->snapshots, str_from(s->model.id), s);
}

static void drop(struct core_snapshot *s)
{
	struct core *core = s->core;
	map_remove(&core->state->snapshots, str_from(s->model.id));
	*(s->newer ? &s->newer->older : &core->state->newest_snapshot) = s->older;
	if (s->older)
		s->older->newer = s->newer;
	arena_done(&s->arena);
	free(s);
}

void snapshot_restore(struct core *core, const struct snapshot *row)
{
	add(core, row);
}

void snapshots_done(struct core *core)
{
	while (core->state->newest_snapshot)
		drop(core->state->newest_snapshot);
}

const struct snapshot *snapshots_find(const struct core *core,
	bool (*fits)(const void *ctx, const struct snapshot *snapshot), const void *ctx)
{
	for (const struct core_snapshot *s = core->state->newest_snapshot; s; s = s->older)
		if (fits(ctx, &s->model))
			return &s->model;
	return NULL;
}

void snapshots_forget(struct core *core, const char *workspace)
{
	for (struct core_snapshot *s = core->state->newest_snapshot, *older; s; s = older) {
		older = s->older;
		bool is_gone = workspace ? !strcmp(s->model.workspace, workspace)
					 : !map_get(&core->ids, str_from(s->model.workspace));
		if (!is_gone || s->model.is_kept)
			continue;
		store_remove(core->store, &store_snapshots, s->model.id, NULL, NULL, NULL);
		drop(s);
	}
	layers_sweep(core);
}

static struct core_snapshot *find_tag(const struct core_workspace *w, const char *tag)
{
	for (struct core_snapshot *s = w->core->state->newest_snapshot; s; s = s->older)
		if (!strcmp(s->model.workspace, w->model.id) && s->model.tag &&
			!strcmp(s->model.tag, tag))
			return s;
	return NULL;
}

static struct core_snapshot *find_version(const struct core_workspace *w, uint64_t version)
{
	for (struct core_snapshot *s = w->core->state->newest_snapshot; s; s = s->older)
		if (!strcmp(s->model.workspace, w->model.id) && s->model.version == version)
			return s;
	return NULL;
}

int snapshot_of(const struct request *request, struct core_workspace *w, const char *text,
	struct core_snapshot **snapshot, struct error *err)
{
	uint64_t version;
	struct core_snapshot *s = map_get(&w->core->state->snapshots, str_from(text));
	bool is_foreign = s && strcmp(s->model.workspace, w->model.id) != 0;
	if (is_foreign && access_is_bound(request))
		s = NULL;
	else if (is_foreign)
		return fail_hint(err, ERR_CONFLICT,
			"carrel create --from SNAPSHOT makes a workspace of it",
			"'%s' is a snapshot of workspace '%s', not of '%s'", text,
			s->model.workspace_name, w->model.name);
	if (!s && str_to_u64(str_from(text), &version))
		s = find_version(w, version);
	if (!s)
		s = find_tag(w, text);
	if (!s) {
		fail(err, ERR_NOT_FOUND, "workspace '%s' has no snapshot '%s'", w->model.name,
			text);
		return error_hint(err, "carrel snapshot ls %s lists them", w->model.name);
	}
	*snapshot = s;
	return 0;
}

const struct snapshot *core_snapshot_model(const struct core_snapshot *snapshot)
{
	return &snapshot->model;
}

static struct core_workspace *workspace_of(const struct core_snapshot *s)
{
	return map_get(&s->core->ids, str_from(s->model.workspace));
}

int core_snapshot_find(const struct request *request, struct core *core, const char *id,
	struct core_snapshot **snapshot, struct error *err)
{
	struct core_snapshot *s = map_get(&core->state->snapshots, str_from(id));
	const char *tag = strrchr(id, '@');
	if (!s && tag && tag != id) {
		auto_arena struct arena arena = { 0 };
		struct core_workspace *w;
		if (core_find(
			    request, core, arena_bytes(&arena, id, (size_t)(tag - id)), &w, err) ||
			snapshot_of(request, w, tag + 1, &s, err))
			return -1;
	}
	if (!s || !access_reaches(request, workspace_of(s)))
		return fail_hint(err, ERR_NOT_FOUND, "carrel snapshot ls lists their ids",
			"there is no snapshot '%s'", id);
	if (access_check(core, request, VERB_SNAPSHOT_GET, workspace_of(s), err))
		return -1;
	*snapshot = s;
	return 0;
}

int core_snapshot_list(const struct request *request, struct core *core,
	const struct core_workspace *w, const char *cursor, size_t limit,
	void (*fn)(void *ctx, const struct snapshot *snapshot), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err)
{
	struct core_page page;
	if (access_check(
		    core, request, VERB_SNAPSHOT_LIST, w ? w : access_bound(core, request), err) ||
		core_page_begin(&page, cursor, limit, next, err))
		return -1;
	for (const struct core_snapshot *s = core->state->newest_snapshot;
		s && !core_page_is_full(&page); s = s->older)
		if ((!w || !strcmp(s->model.workspace, w->model.id)) &&
			access_reaches(request, workspace_of(s)) &&
			core_page_takes(&page, s->model.created_ms))
			fn(ctx, &s->model);
	return 0;
}

/* ---- create and roll back ---- */

struct operation {
	struct cancelable cancelable;
	struct core_workspace *w; /* held */
	struct arena arena;
	struct freeze_wanted freeze;
	struct snapshot model;	/* of the snapshot to be made; id "": none */
	struct snapshot target; /* of a rollback */
	struct {		/* of w, for when its row can't be written */
		struct snapshot state;
		const char *snapshot;
		uint64_t version;
	} before;
	struct error refused; /* code ERR_NONE: it may be done */
	core_snapshot_fn *made;
	core_workspace_fn *done; /* of a rollback, in place of made */
	void *ctx;
};

static struct operation *operation_new(
	struct core_workspace *w, enum when_busy when_busy, uint64_t timeout_ms, void *ctx)
{
	struct operation *op = xzalloc(sizeof *op);
	op->cancelable.core = w->core;
	op->freeze = (struct freeze_wanted){ when_busy, timeout_ms, &op->cancelable };
	op->w = w;
	op->ctx = ctx;
	arena_init(&op->arena);
	core_hold(w);
	return op;
}

static void finish(struct operation *op, const struct error *err)
{
	struct core_workspace *w = op->w;
	cancelable_done(&op->cancelable);
	layers_release_all(w->core, &op->target.layers);
	if (op->done)
		op->done(op->ctx, err ? NULL : w, err);
	else
		op->made(op->ctx, err ? NULL : &op->model, err);
	arena_done(&op->arena);
	free(op);
	core_release(w);
}

static void describe(struct operation *op, const struct state *state)
{
	struct workspace *w = &op->w->model;
	struct snapshot *s = &op->model;
	id_make(s->id);
	memcpy(s->workspace, w->id, sizeof s->workspace);
	s->workspace_name = w->name;
	s->version = w->snapshot_version + 1;
	s->created_ms = clock_now_ms();
	s->has_size = !state->layer[0];
	snapshot_take_state(s, w);
	s->policy = w->policy;
	s->policy.rules = (text_list){ 0 };
	s->layers = state->layers;
	snapshot_copy_model(&op->arena, s, s);
}

/* What is changed of w for a row that may not be written. */
static void keep_before(struct operation *op)
{
	const struct workspace *now = &op->w->model;
	struct snapshot state = { 0 };
	snapshot_take_state(&state, now);
	snapshot_copy_model(&op->arena, &state, &op->before.state);
	op->before.snapshot = arena_text(&op->arena, now->snapshot);
	op->before.version = now->snapshot_version;
}

static void put_back(struct operation *op)
{
	struct core_workspace *w = op->w;
	snapshot_give_state(&w->arena, &op->before.state, &w->model);
	w->model.snapshot = arena_text(&w->arena, op->before.snapshot);
	w->model.snapshot_version = op->before.version;
	workspace_tidy(w);
}

static void tell(struct operation *op)
{
	struct core_workspace *w = op->w;
	struct journal *journal = &w->core->journal;
	char version[24];
	str_format(version, sizeof version, "%llu", (unsigned long long)op->model.version);
	if (op->model.id[0])
		journal_emit(journal, "workspace.snapshot", w->model.id, w->model.name, "snapshot",
			op->model.id, "#version", version, op->model.tag ? "tag" : NULL,
			op->model.tag, NULL);
	if (op->done)
		journal_emit(journal, "workspace.rollback", w->model.id, w->model.name, "snapshot",
			op->target.id, op->model.id[0] ? "kept" : NULL, op->model.id, NULL);
}

/* The row of w and that of the snapshot are committed together. */
static int write_rows(
	struct fiber *fiber, struct operation *op, struct state *state, struct error *err)
{
	struct core_workspace *w = op->w;
	struct core *core = w->core;
	fault_point("core_snapshot_row");
	if (op->model.id[0])
		store_put(core->store, &store_snapshots, &op->model, NULL, NULL);
	workspace_save(w, fiber_continue, fiber);
	if (fiber_wait(fiber, err)) {
		put_back(op);
		freeze_dress_end(w, false);
		state_end(state, false);
		return error_context(err, "%s workspace '%s'",
			op->done ? "roll back" : "write the snapshot of", w->model.name);
	}
	if (op->model.id[0])
		add(core, &op->model);
	fault_point("core_snapshot_answer");
	tell(op);
	if (op->done)
		freeze_dress_end(w, true);
	state_end(state, true);
	snapshots_examine(core);
	layers_sweep(core);
	merges_check(core);
	return 0;
}

static int check_tag(const struct operation *op, struct error *err)
{
	const char *tag = op->model.tag;
	return tag && find_tag(op->w, tag)
		       ? fail_hint(err, ERR_CONFLICT, "choose another tag, or remove that snapshot",
				 "workspace '%s' has a snapshot with tag '%s'", op->w->model.name,
				 tag)
		       : 0;
}

static int make_snapshot(struct fiber *fiber, struct operation *op, struct error *err)
{
	struct core_workspace *w = op->w;
	struct state state;
	if (state_freeze(fiber, w, &op->freeze, &state, err))
		return -1;
	if (check_tag(op, err)) { /* another request was faster */
		state_end(&state, false);
		return -1;
	}
	keep_before(op);
	describe(op, &state);
	if (state.is_moved)
		w->model.layers = text_list_copy(&w->arena, &state.layers);
	w->model.snapshot = arena_text(&w->arena, op->model.id);
	w->model.snapshot_version = op->model.version;
	return write_rows(fiber, op, &state, err);
}

static void run_snapshot(struct fiber *fiber, void *ctx)
{
	struct operation *op = ctx;
	struct error err = op->refused;
	int failed = err.code ? fail_later(fiber, op->w->core) : make_snapshot(fiber, op, &err);
	finish(op, failed ? &err : NULL);
}

struct cancelable *core_snapshot_create(const struct request *request, struct core_workspace *w,
	const struct snapshot_wanted *wanted, core_snapshot_fn *done, void *ctx)
{
	int when = wanted->when_busy ? wanted->when_busy : WHEN_BUSY_PAUSE;
	struct operation *op = operation_new(w, (enum when_busy)when, wanted->timeout_ms, ctx);
	struct error *err = &op->refused;
	size_t count = 0;
	op->made = done;
	cancelable_use(&op->cancelable, w, "a snapshot of it is being made");
	if (wanted->tag)
		op->model.tag = arena_text(&op->arena, wanted->tag);
	if (wanted->note)
		op->model.note = arena_text(&op->arena, wanted->note);
	for (const struct core_snapshot *s = w->core->state->newest_snapshot; s; s = s->older)
		count += !strcmp(s->model.workspace, w->model.id);
	if (!access_check(w->core, request, VERB_SNAPSHOT_CREATE, w, err) && !check_tag(op, err) &&
		count >= SNAPSHOTS_MAX)
		fail_hint(err, ERR_LIMIT, "carrel snapshot rm removes old ones",
			"workspace '%s' has %zu snapshots", w->model.name, count);
	fiber_start(run_snapshot, op);
	return &op->cancelable;
}

/* ---- roll back ---- */

static bool same_layers(const text_list *a, const text_list *b)
{
	bool is_same = a->count == b->count;
	for (size_t i = 0; is_same && i < a->count; i++)
		is_same = !strcmp(a->items[i], b->items[i]);
	return is_same;
}

/* Some snapshot shows what is left: it need not be kept by another. */
static bool is_known(const struct core_workspace *w, const struct state *state)
{
	for (const struct core_snapshot *s = w->core->state->newest_snapshot; s; s = s->older)
		if (!strcmp(s->model.workspace, w->model.id) &&
			same_layers(&s->model.layers, &state->layers))
			return true;
	return false;
}

static int roll_back(struct fiber *fiber, struct operation *op, struct error *err)
{
	struct core_workspace *w = op->w;
	struct state state;
	if (state_freeze(fiber, w, &op->freeze, &state, err))
		return -1;
	keep_before(op);
	if (!is_known(w, &state)) {
		describe(op, &state);
		op->model.is_automatic = true;
		op->model.note = arena_printf(&op->arena, "before the rollback to version %llu",
			(unsigned long long)op->target.version);
		w->model.snapshot_version = op->model.version;
	}
	snapshot_give_state(&w->arena, &op->target, &w->model);
	w->model.snapshot = arena_text(&w->arena, op->target.id);
	if (freeze_dress_begin(w, err)) {
		put_back(op);
		freeze_dress_end(w, false);
		state_end(&state, false);
		return -1;
	}
	environments_release(w); /* the next start pins the one of now */
	return write_rows(fiber, op, &state, err);
}

static void run_rollback(struct fiber *fiber, void *ctx)
{
	struct operation *op = ctx;
	struct error err = op->refused;
	int failed = err.code ? fail_later(fiber, op->w->core) : roll_back(fiber, op, &err);
	finish(op, failed ? &err : NULL);
}

struct cancelable *core_rollback(const struct request *request, struct core_workspace *w,
	const struct rollback_wanted *wanted, core_workspace_fn *done, void *ctx)
{
	bool waits = wanted->when_busy == WHEN_BUSY_WAIT;
	struct operation *op =
		operation_new(w, waits ? WHEN_BUSY_WAIT : WHEN_BUSY_FAIL, wanted->timeout_ms, ctx);
	struct core_snapshot *target;
	op->done = done;
	cancelable_use(&op->cancelable, w, "it is being rolled back");
	if (!access_check(w->core, request, VERB_SNAPSHOT_ROLLBACK, w, &op->refused) &&
		!snapshot_of(request, w, wanted->snapshot, &target, &op->refused)) {
		snapshot_copy_model(&op->arena, &target->model, &op->target);
		/* The snapshot may be removed meanwhile. */
		layers_hold_all(w->core, &op->target.layers);
	}
	fiber_start(run_rollback, op);
	return &op->cancelable;
}

/* ---- remove ---- */

struct removal {
	struct core *core;
	char id[ID_LEN + 1];
	core_snapshot_fn *done;
	void *ctx;
};

static void on_removed(void *ctx, const struct error *err)
{
	struct removal *removal = ctx;
	struct core_snapshot *s = map_get(&removal->core->state->snapshots, str_from(removal->id));
	if (!err && s) {
		struct core_workspace *w = workspace_of(s);
		if (w && w->model.snapshot && !strcmp(w->model.snapshot, removal->id)) {
			w->model.snapshot = NULL;
			workspace_save(w, NULL, NULL);
		}
		drop(s);
		layers_sweep(removal->core);
	}
	removal->done(removal->ctx, NULL, err);
	free(removal);
}

void core_snapshot_remove(
	const struct request *request, struct core_snapshot *s, core_snapshot_fn *done, void *ctx)
{
	struct core *core = s->core;
	struct error err;
	if (access_check(core, request, VERB_SNAPSHOT_REMOVE, workspace_of(s), &err)) {
		done(ctx, NULL, &err);
		return;
	}
	struct removal *removal = xzalloc(sizeof *removal);
	*removal = (struct removal){ .core = core, .done = done, .ctx = ctx };
	memcpy(removal->id, s->model.id, sizeof removal->id);
	store_remove(core->store, &store_snapshots, removal->id, NULL, on_removed, removal);
}
