#include "core/state/archives.h"

#include <fcntl.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/state/internal.h"
#include "core/uploads.h"
#include "core/waits.h"

#define RECORD_MAX ((size_t)4 << 20)
#define PIPE_BYTES (1 << 20)

/* ---- making one ---- */

/* Packing, storing and reading back the archive of one workspace. */
struct archiving {
	struct core_workspace *w; /* held */
	struct fiber *fiber;
	struct arena arena;
	struct archive_row row;
	const char *key;
	char sha256[2 * SHA256_LEN + 1];
	struct core_job *packing; /* while it runs */
	struct core_job *storing;
	struct error err; /* of these, the first one; code ERR_NONE: none */
};

/* The other one ends too; the job goes on after both. */
static void go_on(struct archiving *archiving)
{
	if (archiving->err.code && archiving->packing)
		job_cancel(archiving->packing);
	if (archiving->err.code && archiving->storing)
		job_cancel(archiving->storing);
	if (!archiving->packing && !archiving->storing)
		fiber_continue(archiving->fiber, archiving->err.code ? &archiving->err : NULL);
}

static void on_packed(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct archiving *archiving = ctx;
	struct core_workspace *w = archiving->w;
	uint64_t left_out = 0;
	archiving->packing = NULL;
	if (err && !archiving->err.code)
		archiving->err = *err;
	else if (!err && json_member_u64(answer, "over_limits", &left_out) && left_out)
		journal_emit(&w->core->journal, "workspace.warning", w->model.id, w->model.name,
			"warning",
			arena_printf(&archiving->arena,
				"its archive is not complete: %llu of its directories and files "
				"pass a limit of archives",
				(unsigned long long)left_out),
			NULL);
	go_on(archiving);
}

static void on_stored(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct archiving *archiving = ctx;
	const char *sha256 = json_member_text(answer, "sha256");
	archiving->storing = NULL;
	if (!err && sha256 && json_member_u64(answer, "size", &archiving->row.size_bytes))
		str_copy(archiving->sha256, sizeof archiving->sha256, sha256);
	else if (err && !archiving->err.code)
		archiving->err = *err;
	else if (!err)
		fail(&archiving->err, ERR_FAILED, "the answer of the blob store is incomplete");
	go_on(archiving);
}

static void print_record(const struct core_workspace *w, struct buf *out)
{
	auto_buf struct buf kept = buf_empty(RECORD_MAX);
	auto_arena struct arena arena = { 0 };
	const struct workspace model = workspace_unowned(&w->model, &arena);
	struct json j = json_to(out, false);
	char now[32];
	record_print_kept(&workspace_record, &model, &kept);
	clock_format_now(now);
	json_object(&j, NULL);
	json_u64(&j, "version", 1);
	json_text(&j, "name", w->model.name);
	json_text(&j, "archived_at", now);
	json_raw(&j, "workspace", kept.data);
	json_end(&j);
}

static void start_packing(struct archiving *archiving, int output)
{
	struct core_workspace *w = archiving->w;
	auto_buf struct buf record = buf_empty(RECORD_MAX);
	text_list names = { 0 };
	vec_push(&archiving->arena, &names, w->model.id);
	for (size_t i = 0; i < w->model.layers.count; i++)
		vec_push(&archiving->arena, &names, w->model.layers.items[i]);
	vec_push(&archiving->arena, &names, "");
	parts_add_packages(w, &archiving->arena, &names);
	if (w->archive_is_partial)
		vec_push(&archiving->arena, &names, "partial");
	print_record(w, &record);
	struct tree_job_order order = { .verb = "archive",
		.names = names.items,
		.name_count = names.count,
		.options = { record.data, record.len },
		.input = -1,
		.output = output };
	archiving->packing = tree_job_start(w->core, &order, on_packed, archiving);
}

static int pack_and_store(struct archiving *archiving, enum blob_pack pack, struct error *err)
{
	struct blob_order order = blob_order_make(BLOB_PUT, archiving->key, NULL, NULL);
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return fail_errno(err, "make a pipe");
	auto_close int from = ends[0], to = ends[1];
	fcntl(to, F_SETPIPE_SZ, PIPE_BYTES);
	order.data = from;
	order.words.only_new = true;
	order.words.is_zstd = pack == BLOB_PACK_ZSTD;
	order.words.is_gzip = pack == BLOB_PACK_GZIP;
	fault_point("core_archive_begin");
	start_packing(archiving, to);
	archiving->storing = blob_job_start(archiving->w->core, &order, on_stored, archiving);
	fd_close(&from);
	fd_close(&to);
	if (fiber_wait(archiving->fiber, err))
		return error_context(err, "archive workspace '%s'", archiving->w->model.name);
	fault_point("core_archive_stored");
	return 0;
}

static int read_back(struct archiving *archiving, struct error *err)
{
	struct core_workspace *w = archiving->w;
	struct blob_order order = blob_order_make(BLOB_GET, archiving->key, w->start_request, NULL);
	order.words.sha256 = archiving->sha256;
	int failed = wait_blob_job(archiving->fiber, w->core, &order, NULL, err);
	fault_point("core_archive_verified");
	return failed ? error_context(err, "read archive '%s' back", archiving->row.name) : 0;
}

/* As sha256sum prints it, so that a copy can be checked anywhere. */
static int store_sum(struct archiving *archiving, struct error *err)
{
	const char *text =
		arena_printf(&archiving->arena, "%s  %s\n", archiving->sha256, archiving->row.name);
	auto_close int memory = file_in_memory("sum", str_from(text));
	struct blob_order order = blob_order_make(BLOB_PUT,
		arena_printf(&archiving->arena, "%s" ARCHIVE_SUM, archiving->key), NULL, NULL);
	if (memory < 0)
		return fail_errno(err, "keep the hash of an archive in memory");
	order.data = memory;
	return wait_blob_job(archiving->fiber, archiving->w->core, &order, NULL, err)
		       ? error_context(err, "archive workspace '%s'", archiving->w->model.name)
		       : 0;
}

static int make_archive(struct archiving *archiving, struct error *err)
{
	struct core_workspace *w = archiving->w;
	enum blob_pack pack = w->core->state->archives_gzip ? BLOB_PACK_GZIP : BLOB_PACK_ZSTD;
	struct error ignored;
	if (environment_is_unsettled(&w->model) &&
		environment_settle(archiving->fiber, w, NULL, err))
		return -1;
	const char *name =
		archive_name_make(w->model.name, clock_now_ms(), pack, &archiving->arena);
	if (archive_name_read(name, &archiving->arena, &archiving->row, err))
		return -1;
	archiving->key = arena_printf(&archiving->arena, ARCHIVE_PREFIX "%s", name);
	if (pack_and_store(archiving, pack, err))
		return -1;
	if (!read_back(archiving, err) && !store_sum(archiving, err))
		return 0;
	/* One that can't be read is removed, so that no list shows it. */
	struct blob_order order = blob_order_make(BLOB_DELETE, archiving->key, NULL, NULL);
	wait_blob_job(archiving->fiber, w->core, &order, NULL, &ignored);
	return -1;
}

static void run_archiving(struct fiber *fiber, void *ctx)
{
	struct archiving *archiving = ctx;
	struct core_workspace *w = archiving->w;
	struct error err;
	char size[24];
	archiving->fiber = fiber;
	int failed = make_archive(archiving, &err);
	w->trees->archiving = NULL;
	str_format(size, sizeof size, "%llu", (unsigned long long)archiving->row.size_bytes);
	if (!failed)
		journal_emit(&w->core->journal, "workspace.archived", w->model.id, w->model.name,
			"archive", archiving->row.name, "#size_bytes", size, NULL);
	removal_archived(w, failed ? NULL : &archiving->row, failed ? &err : NULL);
	arena_done(&archiving->arena);
	free(archiving);
	core_release(w);
}

bool archive_is_in_progress(const struct core_workspace *w)
{
	return w->trees->archiving;
}

bool archives_keep_expired(const struct core *core)
{
	return core->state->archives_expired;
}

void archive_begin(struct core_workspace *w)
{
	struct archiving *archiving = xzalloc(sizeof *archiving);
	*archiving = (struct archiving){ .w = w };
	core_hold(w);
	w->trees->archiving = archiving;
	fiber_start(run_archiving, archiving);
}

/* ---- removal ---- */

struct removal {
	archive_removed_fn *done;
	void *ctx;
	struct archive_row row;
	struct arena arena;
	bool has_row;
};

static void on_removed(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct removal *removal = ctx;
	removal->done(removal->ctx, removal->has_row ? &removal->row : NULL, err);
	arena_done(&removal->arena);
	free(removal);
}

void removal_note_archive(void *ctx, const struct archive_row *row)
{
	struct removal *removal = ctx;
	struct error ignored;
	removal->has_row = !archive_name_read(row->name, &removal->arena, &removal->row, &ignored);
	removal->row.size_bytes = row->size_bytes;
}

void core_remove_as(const struct request *request, struct core_workspace *w, enum archive_wish wish,
	archive_removed_fn *done, void *ctx)
{
	struct core *core = w->core;
	bool archives = wish == ARCHIVE_ALWAYS ||
			(wish == ARCHIVE_AS_CONFIGURED && core->state->archives_removed);
	struct removal *removal = xzalloc(sizeof *removal);
	*removal = (struct removal){ .done = done, .ctx = ctx };
	struct error err;
	/* The files of a host directory stay where they are: nothing of them would be archived. */
	if (wish == ARCHIVE_ALWAYS && workspace_check_own_tree(w, "archived", &err)) {
		core_later(core, on_removed, removal, NULL, &err);
		return;
	}
	/* One that failed to be made has nothing to keep. */
	archives &= !w->model.dir && !w->removal && w->model.state != WORKSPACE_FAILED;
	core_remove(request, w, "removed", on_removed, removal);
	/* Only a removal that was granted decides that: one that was refused is freed. */
	if (archives && w->removal) {
		w->wants_archive = true;
		w->archive_is_partial = false;
		w->archive_ctx = removal;
	}
}

/* ---- list ---- */

struct archives_call {
	struct core *core;
	archives_fn *done;
	void *ctx;
	struct arena arena;
	const char *key, *request; /* to be removed, for this request */
	struct error err;
};

static struct archives_call *call_new(struct core *core, archives_fn *done, void *ctx)
{
	struct archives_call *call = xzalloc(sizeof *call);
	*call = (struct archives_call){ .core = core, .done = done, .ctx = ctx };
	return call;
}

static void call_end(struct archives_call *call, const archive_rows *rows, const struct error *err)
{
	call->done(call->ctx, rows, err);
	arena_done(&call->arena);
	free(call);
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	call_end(ctx, NULL, err);
}

static int compare_newest(const void *a, const void *b)
{
	const struct archive_row *left = a, *right = b;
	if (left->created_ms != right->created_ms)
		return left->created_ms < right->created_ms ? 1 : -1;
	return strcmp(left->name, right->name);
}

static void on_listed(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct archives_call *call = ctx;
	archive_rows rows = { 0 };
	const struct json_value *items = json_member(answer, "items");
	for (const struct json_value *at = items ? items->first : NULL; at; at = at->next) {
		const char *key = json_member_text(at, "key");
		struct archive_row row;
		struct error ignored;
		if (!key || strncmp(key, ARCHIVE_PREFIX, sizeof ARCHIVE_PREFIX - 1) != 0 ||
			archive_name_read(
				key + sizeof ARCHIVE_PREFIX - 1, &call->arena, &row, &ignored))
			continue;
		json_member_u64(at, "size", &row.size_bytes);
		vec_push(&call->arena, &rows, row);
	}
	if (rows.count)
		qsort(rows.items, rows.count, sizeof *rows.items, compare_newest);
	call_end(call, err ? NULL : &rows, err);
}

void core_list_archives(
	const struct request *request, struct core *core, archives_fn *done, void *ctx)
{
	struct archives_call *call = call_new(core, done, ctx);
	const struct blob_order order =
		blob_order_make(BLOB_LIST, ARCHIVE_PREFIX, request->id, NULL);
	if (access_check(core, request, VERB_ARCHIVE_LIST, NULL, &call->err))
		core_later(core, on_refused, call, NULL, &call->err);
	else
		blob_job_start(core, &order, on_listed, call);
}

/* ---- remove ---- */

static int delete (
	struct fiber *fiber, struct archives_call *call, const char *key, struct error *err)
{
	const struct blob_order order = blob_order_make(BLOB_DELETE, key, NULL, NULL);
	return wait_blob_job(fiber, call->core, &order, NULL, err);
}

static int remove_archive(struct fiber *fiber, struct archives_call *call, struct error *err)
{
	const struct blob_order order = blob_order_make(BLOB_HEAD, call->key, call->request, NULL);
	if (wait_blob_job(fiber, call->core, &order, NULL, err))
		return err->code == ERR_NOT_FOUND
			       ? fail_hint(err, ERR_NOT_FOUND, "carrel archive ls lists them",
					 "there is no archive '%s'",
					 call->key + sizeof ARCHIVE_PREFIX - 1)
			       : -1;
	/* The archive last: while it is there it can be removed again. */
	const char *sum = arena_printf(&call->arena, "%s" ARCHIVE_SUM, call->key);
	return delete (fiber, call, sum, err) || delete (fiber, call, call->key, err) ? -1 : 0;
}

static void run_removal(struct fiber *fiber, void *ctx)
{
	struct archives_call *call = ctx;
	struct error err;
	call_end(call, NULL, remove_archive(fiber, call, &err) ? &err : NULL);
}

void core_remove_archive(const struct request *request, struct core *core, const char *name,
	archives_fn *done, void *ctx)
{
	struct archives_call *call = call_new(core, done, ctx);
	struct archive_row row;
	if (access_check(core, request, VERB_ARCHIVE_REMOVE, NULL, &call->err) ||
		archive_name_read(name, &call->arena, &row, &call->err)) {
		core_later(core, on_refused, call, NULL, &call->err);
		return;
	}
	call->key = arena_printf(&call->arena, ARCHIVE_PREFIX "%s", name);
	call->request = arena_text(&call->arena, request->id);
	fiber_start(run_removal, call);
}

/* ---- from outside ---- */

int core_upload_archive(const struct request *request, struct core *core, const char *name,
	const char *sha256, archive_stored_fn *done, void *ctx, struct upload **upload,
	struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct archive_row row;
	if (access_check(core, request, VERB_ARCHIVE_UPLOAD, NULL, err) ||
		archive_name_read(name, &arena, &row, err))
		return -1;
	return upload_start(core, arena_printf(&arena, ARCHIVE_PREFIX "%s", row.name), true, sha256,
		request, done, ctx, upload, err);
}
