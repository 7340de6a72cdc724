/* restore.c -- makes a workspace of an archive: the blob store decompresses it into a tree job,
 * which unpacks it into a layer; then a workspace is created on that layer. Until its row is
 * written nothing names the layer, and it goes, at the next start at the latest. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "core/archives.h"
#include "core/blobs.h"
#include "core/internal.h"
#include "core/tree_jobs.h"

#define PIPE_BYTES (1 << 20)
#define ROOM_KEPT ((uint64_t)256 << 20) /* on the disk, for others */

struct restoring {
	struct core *core;
	struct arena arena;
	struct archive_row row;
	const char *key, *name;
	char layer[LAUNCH_FROZEN_LEN + 1];
	char request_id[ID_LEN + 1];
	uint64_t size; /* of the object */
	bool is_fetching, is_unpacking;
	struct error fetch_err, unpack_err, err; /* code ERR_NONE: none */
	struct workspace model;
	core_workspace_fn *done;
	void *ctx;
};

/* w: NULL with an error. */
static void finish(struct restoring *restoring, struct core_workspace *w, const struct error *err)
{
	struct core *core = restoring->core;
	restoring->done(restoring->ctx, w, err);
	if (restoring->layer[0]) {
		layer_release(core, restoring->layer);
		layers_sweep(core);
	}
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
	workspace_create(
		&request_system, restoring->core, model, true, -1, NULL, on_created, restoring);
}

/* Which of two failures is the reason of the other: one process that ends cuts the archive, or
 * breaks the pipe, for the other. */
static const struct error *reason_of(const struct restoring *restoring)
{
	const struct error *fetch = &restoring->fetch_err, *unpack = &restoring->unpack_err;
	if (!unpack->code)
		return fetch->code ? fetch : NULL;
	bool is_cut =
		unpack->code == ERR_CORRUPT && fetch->code && !strstr(fetch->text, strerror(EPIPE));
	return is_cut ? fetch : unpack;
}

static void go_on(struct restoring *restoring)
{
	if (restoring->is_fetching || restoring->is_unpacking)
		return;
	const struct error *err = reason_of(restoring);
	if (err)
		fail_with(restoring, err);
	else
		create(restoring);
}

static void on_fetched(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct restoring *restoring = ctx;
	uint64_t size = 0;
	restoring->is_fetching = false;
	if (err)
		restoring->fetch_err = *err;
	else if (!json_member_u64(answer, "size", &size) || size != restoring->size)
		fail(&restoring->fetch_err, ERR_CORRUPT, "it has %llu bytes instead of %llu",
			(unsigned long long)size, (unsigned long long)restoring->size);
	go_on(restoring);
}

static void on_unpacked(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct restoring *restoring = ctx;
	restoring->is_unpacking = false;
	if (err)
		restoring->unpack_err = *err;
	else
		archive_workspace_read(json_member(answer, "record"), &restoring->arena,
			&restoring->model, &restoring->unpack_err);
	go_on(restoring);
}

static uint64_t room_of(const struct core *core)
{
	struct statvfs fs;
	if (fstatvfs(core->envs.layers.dir, &fs))
		return 0;
	uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
	return room > 2 * ROOM_KEPT ? room - ROOM_KEPT : room / 2;
}

static void start_unpacking(struct restoring *restoring, int input)
{
	char id[ID_LEN + 1];
	id_make(id);
	str_format(restoring->layer, sizeof restoring->layer, LAUNCH_FROZEN "%s", id);
	layer_hold(restoring->core, restoring->layer);
	const char *names[] = { restoring->layer, "archive",
		arena_printf(
			&restoring->arena, "%llu", (unsigned long long)room_of(restoring->core)) };
	struct tree_job_order order = { .verb = "unpack",
		.names = names,
		.name_count = 3,
		.input = input,
		.output = -1,
		.request_id = restoring->request_id };
	restoring->is_unpacking = true;
	tree_job_start(restoring->core, &order, on_unpacked, restoring);
}

static void on_found(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct restoring *restoring = ctx;
	struct error why;
	int ends[2];
	if (err && err->code == ERR_NOT_FOUND) {
		fail_hint(&why, ERR_NOT_FOUND, "carrel archive ls", "there is no archive '%s'",
			restoring->row.name);
		finish(restoring, NULL, &why);
		return;
	}
	if (!err && !json_member_u64(answer, "size", &restoring->size)) {
		fail(&why, ERR_FAILED, "the answer of the blob store is incomplete");
		err = &why;
	}
	if (!err && pipe2(ends, O_CLOEXEC)) {
		fail_errno(&why, "make a pipe");
		err = &why;
	}
	if (err) {
		fail_with(restoring, err);
		return;
	}
	auto_close int from = ends[0], to = ends[1];
	fcntl(to, F_SETPIPE_SZ, PIPE_BYTES);
	struct blob_order order = { .verb = BLOB_GET,
		.key = restoring->key,
		.words = blob_words_none(),
		.data = to,
		.request_id = restoring->request_id };
	order.words.is_plain = true;
	fault_point("core_restore_begin");
	start_unpacking(restoring, from);
	restoring->is_fetching = true;
	blob_job_start(restoring->core, &order, on_fetched, restoring);
}

void core_restore_archive(const struct request *request, struct core *core, const char *name,
	const char *wanted, core_workspace_fn *done, void *ctx)
{
	struct restoring *restoring = xzalloc(sizeof *restoring);
	*restoring = (struct restoring){ .core = core, .done = done, .ctx = ctx };
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
		return;
	}
	restoring->key = arena_printf(&restoring->arena, ARCHIVE_PREFIX "%s", restoring->row.name);
	struct blob_order order = { .verb = BLOB_HEAD,
		.key = restoring->key,
		.words = blob_words_none(),
		.data = -1,
		.request_id = restoring->request_id };
	blob_job_start(core, &order, on_found, restoring);
}
