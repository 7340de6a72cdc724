/* pull.c -- snapshots from the blob store. Pulls run one after the other: two that need the same
 * layer would both make it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/internal.h"
#include "core/state/push.h"
#include "core/transfers.h"

struct pull {
	struct cancelable cancelable;
	struct core *core;
	struct arena arena;
	const char *workspace, *wanted, *key;
	char request_id[ID_LEN + 1];
	int manifest;
	struct snapshot model;
	pushed_layers layers;
	text_list held;	 /* layers */
	text_list names; /* of the layers here, topmost first; "": to be fetched */
	size_t at;
	struct error err;
	core_snapshot_fn *done;
	void *ctx;
	struct pull *next; /* that waits */
};

static void begin(struct pull *pull);

static void pull_free(struct pull *pull)
{
	fd_close(&pull->manifest);
	arena_done(&pull->arena);
	free(pull);
}

static void finish(struct pull *pull, const struct snapshot *made, const struct error *err)
{
	struct core *core = pull->core;
	bool was_first = core->pulls == pull;
	if (was_first)
		core->pulls = pull->next;
	pull->done(pull->ctx, made, err);
	layers_release_all(core, &pull->held);
	layers_sweep(core);
	pull_free(pull);
	if (was_first && core->pulls)
		begin(core->pulls);
}

static void fail_with(struct pull *pull, const struct error *err)
{
	struct error why = *err;
	error_context(&why, "pull snapshot '%s' of '%s'", pull->wanted, pull->workspace);
	finish(pull, NULL, &why);
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	finish(ctx, NULL, err);
}

void pulls_done(struct core *core)
{
	while (core->pulls) {
		struct pull *pull = core->pulls;
		core->pulls = pull->next;
		pull_free(pull);
	}
}

/* ---- the row ---- */

static void on_row(void *ctx, const struct error *err)
{
	struct pull *pull = ctx;
	struct core *core = pull->core;
	if (err) {
		fail_with(pull, err);
		return;
	}
	snapshot_restore(core, &pull->model);
	journal_emit(&core->journal, "snapshot.pulled", pull->model.workspace,
		pull->model.workspace_name, "snapshot", pull->model.id, NULL);
	fault_point("core_pull_answer");
	snapshots_examine(core);
	finish(pull, &pull->model, NULL);
}

static void write_row(struct pull *pull)
{
	struct core *core = pull->core;
	struct snapshot *s = &pull->model;
	struct error err;
	if (cancelable_check(&pull->cancelable, &err)) {
		fail_with(pull, &err);
		return;
	}
	s->layers = pull->names;
	s->is_kept = true;
	s->created_ms = clock_now_ms(); /* here: lists are in that order */
	if (core->newest_snapshot && s->created_ms <= core->newest_snapshot->model.created_ms)
		s->created_ms = core->newest_snapshot->model.created_ms + 1;
	fault_point("core_pull_row");
	store_put(core->store, &store_snapshots, s, on_row, pull);
}

/* ---- layers, the lowest first ---- */

static void fetch_next(struct pull *pull);

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

static void on_fetched(void *ctx, const struct json_value *tree, const struct json_value *blob,
	const struct error *err)
{
	struct pull *pull = ctx;
	const struct pushed_layer *layer = &pull->layers.items[pull->at];
	struct error why;
	if (err) {
		why = *err;
		if (why.code == ERR_NOT_FOUND)
			why.code = ERR_CORRUPT; /* there is a manifest that names it */
		if (why.code == ERR_CORRUPT)
			error_hint(&why, "send it again where it is whole: carrel snapshot push "
					 "--force");
		error_context(&why, "layer %.12s", layer->content_id);
		fail_with(pull, &why);
		return;
	}
	pull->names.items[pull->at] = name_of(pull, layer->content_id);
	fault_point("core_pull_layer");
	fetch_next(pull);
}

static void fetch(struct pull *pull, const struct pushed_layer *layer)
{
	const char *names[] = { name_of(pull, layer->content_id), "layer",
		arena_printf(&pull->arena, "%llu", (unsigned long long)transfer_room(pull->core)),
		layer->content_id };
	const struct tree_job_order tree = { .verb = "unpack",
		.names = names,
		.name_count = 4,
		.output = -1,
		.request_id = pull->request_id,
		.owner = &pull->cancelable };
	struct blob_order blob = { .verb = BLOB_GET,
		.key = pushed_layer_key(layer->content_id, &pull->arena),
		.words = blob_words_none(),
		.request_id = pull->request_id,
		.owner = &pull->cancelable };
	blob.words.is_plain = true;
	hold(pull, names[0]);
	transfer_start(pull->core, &tree, &blob, on_fetched, pull);
}

static void fetch_next(struct pull *pull)
{
	while (pull->at > 0) {
		pull->at--;
		if (pull->names.items[pull->at][0])
			continue;
		fetch(pull, &pull->layers.items[pull->at]);
		return;
	}
	write_row(pull);
}

/* ---- those that are here ---- */

static void on_known(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct pull *pull = ctx;
	const struct json_value *layers = json_member(answer, "layers");
	struct error why;
	for (const struct json_value *at = layers ? layers->first : NULL; !err && at;
		at = at->next) {
		const char *name = json_member_text(at, "name"),
			   *id = json_member_text(at, "content_id");
		for (size_t i = 0; name && id && i < pull->layers.count; i++) {
			const char *content_id = pull->layers.items[i].content_id;
			if (strcmp(name, name_of(pull, content_id)) != 0)
				continue;
			if (!strcmp(id, content_id))
				pull->names.items[i] = name_of(pull, content_id);
			else {
				fail(&why, ERR_CORRUPT,
					"layer '%s' of this home is not the one of its name", name);
				err = &why;
			}
		}
	}
	if (err) {
		fail_with(pull, err);
		return;
	}
	fault_point("core_pull_begin");
	pull->at = pull->layers.count;
	fetch_next(pull);
}

/* The layer of that content that a snapshot of this home has on top; NULL: none has. */
static const char *find_top(const struct core *core, const char *content_id)
{
	for (const struct core_snapshot *s = core->newest_snapshot; s; s = s->older)
		if (s->model.content_id && s->model.layers.count &&
			!strcmp(s->model.content_id, content_id))
			return s->model.layers.items[0];
	return NULL;
}

static void find_layers(struct pull *pull)
{
	text_list asked = { 0 };
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
	tree_job_start(pull->core, &order, on_known, pull);
}

/* ---- the manifest ---- */

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
	*known = map_get(&pull->core->snapshots, str_from(s->id));
	if (*known) {
		const char *id = (*known)->model.content_id;
		return id && s->content_id && strcmp(id, s->content_id) != 0
			       ? fail_hint(err, ERR_CONFLICT, "carrel snapshot rm removes it",
					 "this home has another snapshot '%s'", s->id)
			       : 0;
	}
	for (const struct core_snapshot *at = pull->core->newest_snapshot; at; at = at->older)
		if (!strcmp(at->model.workspace, s->workspace) &&
			(at->model.version == s->version ||
				(s->tag && at->model.tag && !strcmp(s->tag, at->model.tag))))
			return fail_hint(err, ERR_CONFLICT, "carrel snapshot rm removes it",
				"this home has snapshot '%s' of that workspace with the same %s",
				at->model.id, at->model.version == s->version ? "version" : "tag");
	return 0;
}

static void on_manifest(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct pull *pull = ctx;
	const struct core_snapshot *known;
	struct error why;
	struct str text;
	if (!err && (lseek(pull->manifest, 0, SEEK_SET) < 0 ||
			    file_read(pull->manifest, PUSHED_MANIFEST_MAX, &pull->arena, &text))) {
		fail_errno(&why, "read manifest '%s'", pull->key);
		err = &why;
	}
	if (!err && pushed_read(text, pull->key, &pull->arena, &pull->model, &pull->layers, &why)) {
		error_context(&why, "manifest '%s'", pull->key);
		err = &why;
	}
	if (!err && check_taken(pull, &known, &why))
		err = &why;
	if (err)
		fail_with(pull, err);
	else if (known)
		finish(pull, &known->model, NULL);
	else
		find_layers(pull);
}

/* The one that is wanted, of those that the store has. */
static int choose(struct pull *pull, const struct json_value *answer, struct error *err)
{
	const struct json_value *items = json_member(answer, "items");
	for (const struct json_value *at = items ? items->first : NULL; at; at = at->next) {
		const char *key = json_member_text(at, "key");
		struct pushed_row row;
		if (!key || !pushed_key_read(key, &pull->arena, &row) ||
			!pushed_is_named(&row, pull->wanted))
			continue;
		if (pull->key)
			return fail_hint(err, ERR_CONFLICT, "give the id of the one you mean",
				"the blob store has several snapshots '%s' of '%s'", pull->wanted,
				pull->workspace);
		pull->key = row.key;
	}
	return pull->key ? 0
			 : fail_hint(err, ERR_NOT_FOUND, "carrel snapshot push sends one",
				   "the blob store has no snapshot '%s' of a workspace '%s'",
				   pull->wanted, pull->workspace);
}

static void on_listed(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct pull *pull = ctx;
	struct error why;
	if (!err && choose(pull, answer, &why)) {
		finish(pull, NULL, &why);
		return;
	}
	if (!err && (pull->manifest = memfd_create("manifest", MFD_CLOEXEC)) < 0) {
		fail_errno(&why, "keep a manifest in memory");
		err = &why;
	}
	if (err) {
		fail_with(pull, err);
		return;
	}
	struct blob_order order = { .verb = BLOB_GET,
		.key = pull->key,
		.words = blob_words_none(),
		.data = pull->manifest,
		.request_id = pull->request_id,
		.owner = &pull->cancelable };
	order.words.len = PUSHED_MANIFEST_MAX + 1;
	blob_job_start(pull->core, &order, on_manifest, pull);
}

static void begin(struct pull *pull)
{
	struct blob_order order = { .verb = BLOB_LIST,
		.key = arena_printf(&pull->arena, PUSHED_PREFIX "%s/", pull->workspace),
		.words = blob_words_none(),
		.data = -1,
		.request_id = pull->request_id,
		.owner = &pull->cancelable };
	blob_job_start(pull->core, &order, on_listed, pull);
}

struct cancelable *core_snapshot_pull(const struct request *request, struct core *core,
	const struct pull_wanted *wanted, core_snapshot_fn *done, void *ctx)
{
	struct pull *pull = xzalloc(sizeof *pull);
	struct pull **last = &core->pulls;
	*pull = (struct pull){
		.cancelable.core = core, .core = core, .manifest = -1, .done = done, .ctx = ctx
	};
	str_copy(pull->request_id, sizeof pull->request_id, request->id);
	pull->workspace = arena_text(&pull->arena, wanted->workspace);
	pull->wanted = arena_text(&pull->arena, wanted->snapshot);
	if (access_check(core, request, VERB_SNAPSHOT_PULL, NULL, &pull->err)) {
		core_later(core, on_refused, pull, NULL, &pull->err);
		return &pull->cancelable;
	}
	while (*last)
		last = &(*last)->next;
	*last = pull;
	if (core->pulls == pull)
		begin(pull);
	return &pull->cancelable;
}
