/* pull.c -- snapshots from the blob store. Pulls run one after the other: two that need the same
 * layer would both make it. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/state/internal.h"
#include "core/state/push.h"
#include "core/waits.h"

struct pull {
	struct cancelable cancelable;
	struct core *core;
	struct arena arena;
	const char *workspace, *wanted;
	char request_id[ID_LEN + 1];
	struct snapshot model;
	pushed_layers layers;
	text_list held;	      /* layers */
	text_list names;      /* of the layers here, topmost first; "": to be fetched */
	struct error refused; /* code ERR_NONE: it may be made */
	core_snapshot_fn *done;
	void *ctx;
	struct pull *next; /* that waits */
};

static struct blob_order operation_on(const struct pull *pull, enum blob_verb verb, const char *key)
{
	return blob_order_make(verb, key, pull->request_id, &pull->cancelable);
}

/* ---- the manifest ---- */

/* The requested snapshot, among those in the store. */
static int choose(
	struct pull *pull, const struct json_value *answer, const char **chosen, struct error *err)
{
	*chosen = NULL;
	const struct json_value *items = json_member(answer, "items");
	for (const struct json_value *at = items ? items->first : NULL; at; at = at->next) {
		const char *key = json_member_text(at, "key");
		struct pushed_row row;
		if (!key || !pushed_key_read(key, &pull->arena, &row) ||
			!pushed_is_named(&row, pull->wanted))
			continue;
		if (*chosen)
			return fail_hint(err, ERR_CONFLICT, "give the id of the one you mean",
				"the blob store has several snapshots '%s' of '%s'", pull->wanted,
				pull->workspace);
		*chosen = row.key;
	}
	return *chosen ? 0
		       : fail_hint(err, ERR_NOT_FOUND, "carrel snapshot push sends one",
				 "the blob store has no snapshot '%s' of a workspace '%s'",
				 pull->wanted, pull->workspace);
}

static int find_key(struct fiber *fiber, struct pull *pull, const char **key, struct error *err)
{
	const char *prefix = arena_printf(&pull->arena, PUSHED_PREFIX "%s/", pull->workspace);
	const struct blob_order order = operation_on(pull, BLOB_LIST, prefix);
	const struct json_value *answer;
	if (wait_blob_job(fiber, pull->core, &order, &answer, err))
		return error_context(
			err, "pull snapshot '%s' of '%s'", pull->wanted, pull->workspace);
	return choose(pull, answer, key, err);
}

static int read_manifest(struct fiber *fiber, struct pull *pull, const char *key, struct error *err)
{
	auto_close int manifest = memfd_create("manifest", MFD_CLOEXEC);
	struct blob_order order = operation_on(pull, BLOB_GET, key);
	const struct json_value *answer;
	struct str text;
	if (manifest < 0)
		return fail_errno(err, "keep a manifest in memory");
	order.data = manifest;
	order.words.len = PUSHED_MANIFEST_MAX + 1;
	if (wait_blob_job(fiber, pull->core, &order, &answer, err))
		return -1;
	if (lseek(manifest, 0, SEEK_SET) < 0 ||
		file_read(manifest, PUSHED_MANIFEST_MAX, &pull->arena, &text))
		return fail_errno(err, "read manifest '%s'", key);
	return pushed_read(text, key, &pull->arena, &pull->model, &pull->layers, err)
		       ? error_context(err, "manifest '%s'", key)
		       : 0;
}

static int check_taken(struct pull *pull, const struct core_snapshot **known, struct error *err)
{
	const struct snapshot *s = &pull->model;
	const struct core_workspace *w = map_get(&pull->core->ids, str_from(s->workspace));
	/* Else it would be a snapshot of any workspace that the manifest names. */
	if (w && strcmp(w->model.name, s->workspace_name) != 0)
		return fail(err, ERR_CONFLICT,
			"its manifest says that it is of workspace '%s' named '%s', but here that "
			"is '%s'",
			s->workspace, s->workspace_name, w->model.name);
	*known = map_get(&pull->core->state->snapshots, str_from(s->id));
	if (*known) {
		const char *id = (*known)->model.content_id;
		return id && s->content_id && strcmp(id, s->content_id) != 0
			       ? fail_hint(err, ERR_CONFLICT, "carrel snapshot rm removes it",
					 "this home has another snapshot '%s'", s->id)
			       : 0;
	}
	for (const struct core_snapshot *at = pull->core->state->newest_snapshot; at;
		at = at->older)
		if (!strcmp(at->model.workspace, s->workspace) &&
			(at->model.version == s->version ||
				(s->tag && at->model.tag && !strcmp(s->tag, at->model.tag))))
			return fail_hint(err, ERR_CONFLICT, "carrel snapshot rm removes it",
				"this home has snapshot '%s' of that workspace with the same %s",
				at->model.id, at->model.version == s->version ? "version" : "tag");
	return 0;
}

/* ---- layers ---- */

/* A layer that came from a store is called after its content id: a later pull finds it. */
static const char *name_of(struct pull *pull, const char *content_id)
{
	return arena_printf(&pull->arena, LAUNCH_FROZEN "%.*s", ID_LEN, content_id);
}

static void hold(struct pull *pull, const char *name)
{
	layer_hold(pull->core, name);
	vec_push(&pull->arena, &pull->held, name);
}

/* The layer of that content that a snapshot of this home has on top; NULL: none has. */
static const char *find_top(const struct core *core, const char *content_id)
{
	for (const struct core_snapshot *s = core->state->newest_snapshot; s; s = s->older)
		if (s->model.content_id && s->model.layers.count &&
			!strcmp(s->model.content_id, content_id))
			return s->model.layers.items[0];
	return NULL;
}

static int note_known(
	struct pull *pull, const char *name, const char *content_id, struct error *err)
{
	for (size_t i = 0; name && content_id && i < pull->layers.count; i++) {
		const char *wanted = pull->layers.items[i].content_id;
		if (strcmp(name, name_of(pull, wanted)) != 0)
			continue;
		if (strcmp(content_id, wanted) != 0)
			return fail(err, ERR_CORRUPT,
				"layer '%s' of this home is not the one of its name", name);
		pull->names.items[i] = name_of(pull, wanted);
	}
	return 0;
}

/* Those that are here have a name. */
static int find_layers(struct fiber *fiber, struct pull *pull, struct error *err)
{
	text_list asked = { 0 };
	const struct json_value *answer;
	for (size_t i = 0; i < pull->layers.count; i++) {
		const char *content_id = pull->layers.items[i].content_id;
		const char *top = find_top(pull->core, content_id);
		const char *name = top ? arena_text(&pull->arena, top) : name_of(pull, content_id);
		vec_push(&pull->arena, &pull->names, top ? name : "");
		if (top)
			hold(pull, name);
		else if (!faccessat(pull->core->envs.layers.dir, name, F_OK, AT_SYMLINK_NOFOLLOW)) {
			hold(pull, name);
			vec_push(&pull->arena, &asked, name);
		}
	}
	const struct tree_job_order order = { .verb = "hash",
		.names = asked.items,
		.name_count = asked.count,
		.input = -1,
		.output = -1,
		.request_id = pull->request_id,
		.owner = &pull->cancelable };
	if (wait_tree_job(fiber, pull->core, &order, &answer, err))
		return -1;
	const struct json_value *layers = json_member(answer, "layers");
	for (const struct json_value *at = layers ? layers->first : NULL; at; at = at->next)
		if (note_known(pull, json_member_text(at, "name"),
			    json_member_text(at, "content_id"), err))
			return -1;
	return 0;
}

static int fetch_layer(
	struct fiber *fiber, struct pull *pull, const char *content_id, struct error *err)
{
	const char *names[] = { name_of(pull, content_id), "layer",
		arena_printf(&pull->arena, "%llu", (unsigned long long)transfer_room(pull->core)),
		content_id };
	const struct tree_job_order tree = { .verb = "unpack",
		.names = names,
		.name_count = 4,
		.output = -1,
		.request_id = pull->request_id,
		.owner = &pull->cancelable };
	struct blob_order blob =
		operation_on(pull, BLOB_GET, pushed_layer_key(content_id, &pull->arena));
	blob.words.is_plain = true;
	hold(pull, names[0]);
	if (wait_transfer(fiber, pull->core, &tree, &blob, NULL, NULL, err)) {
		if (err->code == ERR_NOT_FOUND)
			err->code = ERR_CORRUPT; /* there is a manifest that names it */
		if (err->code == ERR_CORRUPT)
			error_hint(err, "send it again where it is whole: carrel snapshot push "
					"--force");
		return error_context(err, "layer %.12s", content_id);
	}
	fault_point("core_pull_layer");
	return 0;
}

static int fetch_layers(struct fiber *fiber, struct pull *pull, struct error *err)
{
	fault_point("core_pull_begin");
	for (size_t i = pull->layers.count; i-- > 0;) { /* the lowest first */
		const char *content_id = pull->layers.items[i].content_id;
		if (pull->names.items[i][0])
			continue;
		if (fetch_layer(fiber, pull, content_id, err))
			return -1;
		pull->names.items[i] = name_of(pull, content_id);
	}
	return 0;
}

/* ---- the job ---- */

static int write_row(struct fiber *fiber, struct pull *pull, struct error *err)
{
	struct core *core = pull->core;
	struct snapshot *s = &pull->model;
	if (cancelable_check(&pull->cancelable, err))
		return -1;
	s->layers = pull->names;
	s->is_kept = true;
	s->created_ms = clock_now_ms(); /* here: lists are in that order */
	if (core->state->newest_snapshot &&
		s->created_ms <= core->state->newest_snapshot->model.created_ms)
		s->created_ms = core->state->newest_snapshot->model.created_ms + 1;
	fault_point("core_pull_row");
	if (wait_put(fiber, core, &store_snapshots, s, err))
		return -1;
	snapshot_restore(core, s);
	journal_emit(&core->journal, "snapshot.pulled", s->workspace, s->workspace_name, "snapshot",
		s->id, NULL);
	fault_point("core_pull_answer");
	snapshots_examine(core);
	return 0;
}

/* known: the snapshot is here already, and nothing was made. */
static int pull_snapshot(struct fiber *fiber, struct pull *pull, const char *key,
	const struct core_snapshot **known, struct error *err)
{
	if (read_manifest(fiber, pull, key, err) || check_taken(pull, known, err))
		return -1;
	if (*known)
		return 0;
	return find_layers(fiber, pull, err) || fetch_layers(fiber, pull, err) ||
			       write_row(fiber, pull, err)
		       ? -1
		       : 0;
}

static void pull_free(struct pull *pull)
{
	arena_done(&pull->arena);
	free(pull);
}

static void run_pull(struct fiber *fiber, void *ctx)
{
	struct pull *pull = ctx;
	struct core *core = pull->core;
	const struct core_snapshot *known = NULL;
	const char *key = NULL;
	struct error err = pull->refused;
	int failed = err.code ? fail_later(fiber, core) : find_key(fiber, pull, &key, &err);
	if (!failed && pull_snapshot(fiber, pull, key, &known, &err))
		failed = error_context(
			&err, "pull snapshot '%s' of '%s'", pull->wanted, pull->workspace);
	bool was_first = core->state->pulls == pull;
	if (was_first)
		core->state->pulls = pull->next;
	pull->done(pull->ctx,
		failed	? NULL
		: known ? &known->model
			: &pull->model,
		failed ? &err : NULL);
	layers_release_all(core, &pull->held);
	layers_sweep(core);
	pull_free(pull);
	if (was_first && core->state->pulls)
		fiber_start(run_pull, core->state->pulls);
}

void pulls_done(struct core *core)
{
	while (core->state->pulls) {
		struct pull *pull = core->state->pulls;
		core->state->pulls = pull->next;
		pull_free(pull);
	}
}

struct cancelable *core_snapshot_pull(const struct request *request, struct core *core,
	const struct pull_wanted *wanted, core_snapshot_fn *done, void *ctx)
{
	struct pull *pull = xzalloc(sizeof *pull);
	struct pull **last = &core->state->pulls;
	*pull = (struct pull){ .cancelable.core = core, .core = core, .done = done, .ctx = ctx };
	str_copy(pull->request_id, sizeof pull->request_id, request->id);
	pull->workspace = arena_text(&pull->arena, wanted->workspace);
	pull->wanted = arena_text(&pull->arena, wanted->snapshot);
	bool is_refused = access_check(core, request, VERB_SNAPSHOT_PULL, NULL, &pull->refused);
	while (!is_refused && *last)
		last = &(*last)->next;
	if (!is_refused)
		*last = pull;
	if (is_refused || core->state->pulls == pull)
		fiber_start(run_pull, pull);
	return &pull->cancelable;
}
