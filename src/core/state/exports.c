#include "core/state/exports.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/blobs.h"
#include "core/internal.h"
#include "core/transfers.h"

const struct stored_kind stored_environments = { EXPORT_PREFIX, EXPORT_SUFFIX, "environment",
	"carrel env ls --exported lists them", VERB_ENVIRONMENT_EXPORT, VERB_ENVIRONMENT_IMPORT,
	VERB_ENVIRONMENT_LIST, VERB_ENVIRONMENT_REMOVE };
const struct stored_kind stored_packages = { PACKAGE_PREFIX, PACKAGE_SUFFIX, "package",
	"carrel package ls lists them", VERB_PACKAGE_PUT, VERB_PACKAGE_GET, VERB_PACKAGE_LIST,
	VERB_PACKAGE_REMOVE };

struct export_call {
	struct core *core;
	const struct stored_kind *kind;
	struct arena arena;
	const char *name, *key, *request_id;
	int file; /* get */
	export_fn *got;
	exports_fn *listed;
	void *ctx;
	struct error err;
};

static int make_key(const struct stored_kind *kind, const char *name, struct arena *arena,
	const char **key, struct error *err)
{
	*key = arena_printf(arena, "%s%s%s", kind->prefix, name, kind->suffix);
	return strchr(name, '/') || !blob_key_is_valid(*key)
		       ? fail(err, ERR_INVALID, "invalid name of an %s '%s'",
				 kind == &stored_packages ? "agent package" : kind->noun, name)
		       : 0;
}

int core_put_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, const char *name, const char *sha256, job_fn *done,
	void *ctx, struct upload **upload, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const char *key;
	if (access_check(core, request, kind->put, NULL, err) ||
		make_key(kind, name, &arena, &key, err))
		return -1;
	return upload_start(core, key, false, sha256, request, done, ctx, upload, err);
}

static struct export_call *call_new(const struct request *request, struct core *core,
	const struct stored_kind *kind, const char *name, void *ctx)
{
	struct export_call *call = xzalloc(sizeof *call);
	*call = (struct export_call){ .core = core, .kind = kind, .file = -1, .ctx = ctx };
	call->name = arena_text(&call->arena, name);
	call->request_id = arena_text(&call->arena, request->id);
	return call;
}

static void call_end(struct export_call *call, const export_rows *rows, const char *sha256,
	const struct error *err)
{
	struct error why;
	struct stat st;
	if (err && err->code == ERR_NOT_FOUND) {
		fail_hint(&why, ERR_NOT_FOUND, call->kind->hint, "the blob store has no %s '%s'",
			call->kind->noun, call->name);
		err = &why;
	}
	if (!err && call->got && fstat(call->file, &st)) {
		fail_errno(&why, "read %s '%s' of the blob store", call->kind->noun, call->name);
		err = &why;
	}
	if (call->listed)
		call->listed(call->ctx, err ? NULL : rows, err);
	else
		call->got(call->ctx, err ? -1 : take_fd(&call->file),
			err ? 0 : (uint64_t)st.st_size, err ? NULL : sha256, err);
	fd_close(&call->file);
	arena_done(&call->arena);
	free(call);
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	call_end(ctx, NULL, NULL, err);
}

static void refuse(struct export_call *call)
{
	core_later(call->core, on_refused, call, NULL, &call->err);
}

static void start(struct export_call *call, enum blob_verb verb, job_fn *done)
{
	struct blob_order order = { .verb = verb,
		.key = call->key,
		.words = blob_words_none(),
		.data = verb == BLOB_GET ? call->file : -1,
		.request_id = call->request_id };
	blob_job_start(call->core, &order, done, call);
}

static void on_done(void *ctx, const struct json_value *answer, const struct error *err)
{
	const char *sha256 = err ? NULL : json_member_text(answer, "sha256");
	call_end(ctx, NULL, sha256 ? sha256 : "", err);
}

/* ---- get ---- */

/* Into a file without a name: a client gets all of it, or an error. */
static void on_measured(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct export_call *call = ctx;
	uint64_t size = UINT64_MAX;
	struct error why;
	if (err) {
		call_end(call, NULL, NULL, err);
		return;
	}
	if (!json_member_u64(answer, "size", &size) || size > transfer_room(call->core))
		fail(&why, ERR_DISK_FULL, "the disk has no room for %s '%s' of the blob store",
			call->kind->noun, call->name);
	else if ((call->file = openat(call->core->workspaces, ".",
			  O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600)) < 0)
		fail_errno(&why, "make a file for %s '%s'", call->kind->noun, call->name);
	else {
		start(call, BLOB_GET, on_done);
		return;
	}
	call_end(call, NULL, NULL, &why);
}

void core_get_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, const char *name, export_fn *done, void *ctx)
{
	struct export_call *call = call_new(request, core, kind, name, ctx);
	call->got = done;
	if (access_check(core, request, kind->get, NULL, &call->err) ||
		make_key(kind, name, &call->arena, &call->key, &call->err))
		refuse(call);
	else
		start(call, BLOB_HEAD, on_measured);
}

/* ---- list ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct export_row *)a)->name, ((const struct export_row *)b)->name);
}

static void on_listed(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct export_call *call = ctx;
	const struct stored_kind *kind = call->kind;
	const size_t before = strlen(kind->prefix), after = strlen(kind->suffix);
	export_rows rows = { 0 };
	const struct json_value *items = json_member(answer, "items");
	for (const struct json_value *at = items ? items->first : NULL; at; at = at->next) {
		const char *key = json_member_text(at, "key");
		const struct json_value *modified = json_member(at, "modified_s");
		size_t len = key ? strlen(key) : 0;
		struct export_row row = { 0 };
		if (len <= before + after || memcmp(key, kind->prefix, before) != 0 ||
			strcmp(key + len - after, kind->suffix) != 0)
			continue;
		row.name = arena_bytes(&call->arena, key + before, len - before - after);
		row.created_ms = modified && modified->is_integer ? modified->integer * 1000 : 0;
		json_member_u64(at, "size", &row.size_bytes);
		vec_push(&call->arena, &rows, row);
	}
	if (rows.count)
		qsort(rows.items, rows.count, sizeof *rows.items, compare_names);
	call_end(call, &rows, NULL, err);
}

void core_list_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, exports_fn *done, void *ctx)
{
	struct export_call *call = call_new(request, core, kind, "", ctx);
	call->listed = done;
	call->key = kind->prefix;
	if (access_check(core, request, kind->list, NULL, &call->err))
		refuse(call);
	else
		start(call, BLOB_LIST, on_listed);
}

/* ---- remove ---- */

static void on_found(void *ctx, const struct json_value *answer, const struct error *err)
{
	if (err)
		call_end(ctx, NULL, NULL, err);
	else
		start(ctx, BLOB_DELETE, on_done);
}

void core_remove_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, const char *name, exports_fn *done, void *ctx)
{
	struct export_call *call = call_new(request, core, kind, name, ctx);
	call->listed = done;
	if (access_check(core, request, kind->remove, NULL, &call->err) ||
		make_key(kind, name, &call->arena, &call->key, &call->err))
		refuse(call);
	else
		start(call, BLOB_HEAD, on_found);
}

/* ---- a file of core's ---- */

static void on_kept(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct error why;
	if (err && err->code == ERR_CORRUPT) { /* the caller said another hash */
		why = *err;
		why.code = ERR_INVALID;
		err = &why;
	}
	on_done(ctx, answer, err);
}

void core_keep_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, const char *name, int fd, const char *sha256,
	export_fn *done, void *ctx)
{
	struct export_call *call = call_new(request, core, kind, name, ctx);
	call->got = done;
	if (access_check(core, request, kind->put, NULL, &call->err) ||
		make_key(kind, name, &call->arena, &call->key, &call->err)) {
		refuse(call);
		return;
	}
	call->file = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	lseek(call->file, 0, SEEK_SET);
	struct blob_order order = { .verb = BLOB_PUT,
		.key = call->key,
		.words = blob_words_none(),
		.data = call->file,
		.request_id = call->request_id };
	order.words.sha256 = sha256;
	blob_job_start(core, &order, on_kept, call);
}
