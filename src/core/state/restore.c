/* restore.c -- makes a workspace of an archive: the blob store decompresses it into a tree job,
 * which unpacks it into a layer; then a workspace is created on that layer. Until its row is
 * written nothing names the layer, and it goes, at the next start at the latest. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "core/internal.h"
#include "core/state/archives.h"
#include "core/transfers.h"

struct restoring {
	struct cancelable cancelable;
	struct core *core;
	struct arena arena;
	struct archive_row row;
	const char *key, *name;
	char layer[LAUNCH_FROZEN_LEN + 1];
	char request_id[ID_LEN + 1];
	uint64_t size;			 /* of the object */
	int sum;			 /* what the object with its hash holds, or -1 */
	char sha256[2 * SHA256_LEN + 1]; /* "": none is known */
	struct error err;
	struct workspace model;
	struct core_workspace *made; /* while it is created, held; or NULL */
	core_workspace_fn *done;
	void *ctx;
};

/* w: NULL with an error. */
static void finish(struct restoring *restoring, struct core_workspace *w, const struct error *err)
{
	struct core *core = restoring->core;
	restoring->done(restoring->ctx, w, err);
	if (restoring->made)
		core_release(restoring->made);
	if (restoring->layer[0]) {
		layer_release(core, restoring->layer);
		layers_sweep(core);
	}
	fd_close(&restoring->sum);
	arena_done(&restoring->arena);
	free(restoring);
}

static void fail_with(struct restoring *restoring, const struct error *err)
{
	struct error why = *err;
	error_context(&why, "restore archive '%s'", restoring->row.name);
	finish(restoring, NULL, &why);
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	finish(ctx, NULL, err);
}

static void on_created(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct restoring *restoring = ctx;
	if (err) {
		fail_with(restoring, err);
		return;
	}
	journal_emit(&restoring->core->journal, "workspace.restored", w->model.id, w->model.name,
		"archive", restoring->row.name, NULL);
	fault_point("core_restore_created");
	finish(restoring, w, NULL);
}

static void create(struct restoring *restoring)
{
	struct workspace *model = &restoring->model;
	model->name = restoring->name;
	vec_push(&restoring->arena, &model->layers, (const char *)restoring->layer);
	fault_point("core_restore_unpacked");
	restoring->made = workspace_create(
		&request_system, restoring->core, model, true, -1, NULL, on_created, restoring);
	if (restoring->made)
		core_hold(restoring->made);
}

/* An environment may have to be built for it. */
static void cut(struct cancelable *c)
{
	struct restoring *restoring = (struct restoring *)c;
	if (restoring->made)
		core_cancel_create(restoring->made);
}

static void on_unpacked(void *ctx, const struct json_value *tree, const struct json_value *blob,
	const struct error *err)
{
	struct restoring *restoring = ctx;
	uint64_t size = 0;
	struct error why;
	if (!err && (!json_member_u64(blob, "size", &size) || size != restoring->size)) {
		fail(&why, ERR_CORRUPT, "it has %llu bytes instead of %llu",
			(unsigned long long)size, (unsigned long long)restoring->size);
		err = &why;
	}
	if (!err && archive_workspace_read(json_member(tree, "record"), &restoring->arena,
			    &restoring->model, &why))
		err = &why;
	if (!err && cancelable_check(&restoring->cancelable, &why))
		err = &why;
	if (err)
		fail_with(restoring, err);
	else
		create(restoring);
}

static void unpack(struct restoring *restoring)
{
	char id[ID_LEN + 1];
	id_make(id);
	str_format(restoring->layer, sizeof restoring->layer, LAUNCH_FROZEN "%s", id);
	layer_hold(restoring->core, restoring->layer);
	const char *names[] = { restoring->layer, "archive",
		arena_printf(&restoring->arena, "%llu",
			(unsigned long long)transfer_room(restoring->core)) };
	const struct tree_job_order tree = { .verb = "unpack",
		.names = names,
		.name_count = 3,
		.output = -1,
		.request_id = restoring->request_id,
		.owner = &restoring->cancelable };
	struct blob_order blob = { .verb = BLOB_GET,
		.key = restoring->key,
		.words = blob_words_none(),
		.request_id = restoring->request_id,
		.owner = &restoring->cancelable };
	blob.words.is_plain = true;
	blob.words.sha256 = restoring->sha256[0] ? restoring->sha256 : NULL;
	fault_point("core_restore_begin");
	transfer_start(restoring->core, &tree, &blob, on_unpacked, restoring);
}

static void on_sum(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct restoring *restoring = ctx;
	struct error why;
	if (err && err->code == ERR_NOT_FOUND) { /* made before there were any, or by others */
		unpack(restoring);
		return;
	}
	if (!err && pread(restoring->sum, restoring->sha256, sizeof restoring->sha256 - 1, 0) !=
			    (ssize_t)sizeof restoring->sha256 - 1) {
		fail(&why, ERR_CORRUPT, "its SHA-256 can't be read");
		err = &why;
	}
	if (!err && strspn(restoring->sha256, "0123456789abcdef") != 2 * SHA256_LEN) {
		fail(&why, ERR_CORRUPT, "its SHA-256 is damaged");
		err = &why;
	}
	if (err)
		fail_with(restoring, err);
	else
		unpack(restoring);
}

static void on_found(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct restoring *restoring = ctx;
	struct error why;
	if (err && err->code == ERR_NOT_FOUND) {
		fail_hint(&why, ERR_NOT_FOUND, "carrel archive ls lists them",
			"there is no archive '%s'", restoring->row.name);
		finish(restoring, NULL, &why);
		return;
	}
	if (!err && !json_member_u64(answer, "size", &restoring->size)) {
		fail(&why, ERR_FAILED, "the answer of the blob store is incomplete");
		err = &why;
	}
	if (!err && (restoring->sum = memfd_create("sum", MFD_CLOEXEC)) < 0) {
		fail_errno(&why, "keep the hash of an archive in memory");
		err = &why;
	}
	if (err) {
		fail_with(restoring, err);
		return;
	}
	struct blob_order order = { .verb = BLOB_GET,
		.key = arena_printf(&restoring->arena, "%s" ARCHIVE_SUM, restoring->key),
		.words = blob_words_none(),
		.data = restoring->sum,
		.request_id = restoring->request_id,
		.owner = &restoring->cancelable };
	order.words.len = 4096;
	blob_job_start(restoring->core, &order, on_sum, restoring);
}

struct cancelable *core_restore_archive(const struct request *request, struct core *core,
	const char *name, const char *wanted, core_workspace_fn *done, void *ctx)
{
	struct restoring *restoring = xzalloc(sizeof *restoring);
	*restoring = (struct restoring){ .cancelable = { .core = core, .cut = cut },
		.core = core,
		.sum = -1,
		.done = done,
		.ctx = ctx };
	struct error *err = &restoring->err;
	str_copy(restoring->request_id, sizeof restoring->request_id, request->id);
	int failed = access_check(core, request, VERB_ARCHIVE_RESTORE, NULL, err) ||
		     access_check(core, request, VERB_WORKSPACE_CREATE, NULL, err) ||
		     archive_name_read(name, &restoring->arena, &restoring->row, err);
	if (!failed) {
		restoring->name =
			wanted ? arena_text(&restoring->arena, wanted) : restoring->row.workspace;
		failed = workspace_check_name(restoring->name, err) ||
			 create_check_name(core, restoring->name, err);
	}
	if (failed) {
		core_later(core, on_refused, restoring, NULL, err);
		return &restoring->cancelable;
	}
	restoring->key = arena_printf(&restoring->arena, ARCHIVE_PREFIX "%s", restoring->row.name);
	struct blob_order order = { .verb = BLOB_HEAD,
		.key = restoring->key,
		.words = blob_words_none(),
		.data = -1,
		.request_id = restoring->request_id,
		.owner = &restoring->cancelable };
	blob_job_start(core, &order, on_found, restoring);
	return &restoring->cancelable;
}
