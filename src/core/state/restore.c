/* restore.c -- makes a workspace of an archive: the blob store decompresses it into a tree job,
 * which unpacks it into a layer; then a workspace is created on that layer. Until its row is
 * written nothing names the layer, and it goes, at the next start at the latest. */
#include <sys/mman.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "core/internal.h"
#include "core/state/archives.h"
#include "core/waits.h"

struct restoring {
	struct cancelable cancelable;
	struct core *core;
	struct fiber *fiber;
	struct arena arena;
	struct archive_row row;
	const char *key, *name;
	char layer[LAUNCH_FROZEN_LEN + 1];
	char request_id[ID_LEN + 1];
	uint64_t size;			 /* of the object */
	char sha256[2 * SHA256_LEN + 1]; /* "": none is known */
	struct error refused;		 /* code ERR_NONE: it may be restored */
	struct workspace model;
	struct core_workspace *made; /* or is being created, held; or NULL */
	core_workspace_fn *done;
	void *ctx;
};

static struct blob_order operation_on(
	const struct restoring *restoring, enum blob_verb verb, const char *key)
{
	return blob_order_make(verb, key, restoring->request_id, &restoring->cancelable);
}

static int find_archive(struct restoring *restoring, struct error *err)
{
	const struct blob_order order = operation_on(restoring, BLOB_HEAD, restoring->key);
	const struct json_value *answer;
	if (wait_blob_job(restoring->fiber, restoring->core, &order, &answer, err))
		return -1;
	return json_member_u64(answer, "size", &restoring->size)
		       ? 0
		       : fail(err, ERR_FAILED, "the answer of the blob store is incomplete");
}

/* What the object with its hash holds. */
static int read_sum(struct restoring *restoring, struct error *err)
{
	auto_close int sum = memfd_create("sum", MFD_CLOEXEC);
	struct blob_order order = operation_on(restoring, BLOB_GET,
		arena_printf(&restoring->arena, "%s" ARCHIVE_SUM, restoring->key));
	char *sha256 = restoring->sha256;
	const ssize_t len = sizeof restoring->sha256 - 1;
	if (sum < 0)
		return fail_errno(err, "keep the hash of an archive in memory");
	order.data = sum;
	order.words.len = 4096;
	if (wait_blob_job(restoring->fiber, restoring->core, &order, NULL, err))
		return err->code == ERR_NOT_FOUND ? 0 : -1; /* made before there were any, or by
							     * others */
	if (pread(sum, sha256, (size_t)len, 0) != len)
		return fail(err, ERR_CORRUPT, "its SHA-256 can't be read");
	return strspn(sha256, "0123456789abcdef") != 2 * SHA256_LEN
		       ? fail(err, ERR_CORRUPT, "its SHA-256 is damaged")
		       : 0;
}

static int unpack(struct restoring *restoring, struct error *err)
{
	const struct json_value *tree_answer, *blob_answer;
	uint64_t size = 0;
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
	struct blob_order blob = operation_on(restoring, BLOB_GET, restoring->key);
	blob.words.is_plain = true;
	blob.words.sha256 = restoring->sha256[0] ? restoring->sha256 : NULL;
	fault_point("core_restore_begin");
	if (wait_transfer(restoring->fiber, restoring->core, &tree, &blob, &tree_answer,
		    &blob_answer, err))
		return -1;
	if (!json_member_u64(blob_answer, "size", &size) || size != restoring->size)
		return fail(err, ERR_CORRUPT, "it has %llu bytes instead of %llu",
			(unsigned long long)size, (unsigned long long)restoring->size);
	return archive_workspace_read(json_member(tree_answer, "record"), &restoring->arena,
		       &restoring->model, err) ||
			       cancelable_check(&restoring->cancelable, err)
		       ? -1
		       : 0;
}

static int create(struct restoring *restoring, struct error *err)
{
	struct workspace *model = &restoring->model;
	model->name = restoring->name;
	vec_push(&restoring->arena, &model->layers, (const char *)restoring->layer);
	fault_point("core_restore_unpacked");
	restoring->made = workspace_create(&request_system, restoring->core, model, true, -1, NULL,
		fiber_continue_workspace, restoring->fiber);
	if (restoring->made)
		core_hold(restoring->made);
	return fiber_wait(restoring->fiber, err);
}

/* An environment may have to be built for it. */
static void cut(struct cancelable *c)
{
	struct restoring *restoring = (struct restoring *)c;
	if (restoring->made)
		core_cancel_create(restoring->made);
}

static int restore(struct restoring *restoring, struct error *err)
{
	if (find_archive(restoring, err)) {
		if (err->code == ERR_NOT_FOUND)
			return fail_hint(err, ERR_NOT_FOUND, "carrel archive ls lists them",
				"there is no archive '%s'", restoring->row.name);
	} else if (!read_sum(restoring, err) && !unpack(restoring, err) &&
		   !create(restoring, err)) {
		const struct workspace *made = &restoring->made->model;
		journal_emit(&restoring->core->journal, "workspace.restored", made->id, made->name,
			"archive", restoring->row.name, NULL);
		fault_point("core_restore_created");
		return 0;
	}
	return error_context(err, "restore archive '%s'", restoring->row.name);
}

static void run_restore(struct fiber *fiber, void *ctx)
{
	struct restoring *restoring = ctx;
	struct core *core = restoring->core;
	struct error err = restoring->refused;
	restoring->fiber = fiber;
	int failed = err.code ? fail_later(fiber, core) : restore(restoring, &err);
	restoring->done(restoring->ctx, failed ? NULL : restoring->made, failed ? &err : NULL);
	if (restoring->made)
		core_release(restoring->made);
	if (restoring->layer[0]) {
		layer_release(core, restoring->layer);
		layers_sweep(core);
	}
	arena_done(&restoring->arena);
	free(restoring);
}

struct cancelable *core_restore_archive(const struct request *request, struct core *core,
	const char *name, const char *wanted, core_workspace_fn *done, void *ctx)
{
	struct restoring *restoring = xzalloc(sizeof *restoring);
	struct error *err = &restoring->refused;
	*restoring = (struct restoring){
		.cancelable = { .core = core, .cut = cut }, .core = core, .done = done, .ctx = ctx
	};
	str_copy(restoring->request_id, sizeof restoring->request_id, request->id);
	int failed = access_check(core, request, VERB_ARCHIVE_RESTORE, NULL, err) ||
		     access_check(core, request, VERB_WORKSPACE_CREATE, NULL, err) ||
		     archive_name_read(name, &restoring->arena, &restoring->row, err);
	if (!failed) {
		restoring->key =
			arena_printf(&restoring->arena, ARCHIVE_PREFIX "%s", restoring->row.name);
		restoring->name =
			wanted ? arena_text(&restoring->arena, wanted) : restoring->row.workspace;
		if (!workspace_check_name(restoring->name, err))
			create_check_name(core, restoring->name, err);
	}
	fiber_start(run_restore, restoring);
	return &restoring->cancelable;
}
