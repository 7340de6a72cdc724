#include "core/exports.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/blobs.h"
#include "core/internal.h"
#include "core/transfers.h"

struct export_call {
	struct core *core;
	struct arena arena;
	const char *name, *key, *request_id;
	int file; /* get */
	export_fn *got;
	exports_fn *listed;
	void *ctx;
	struct error err;
};

static int make_key(const char *name, struct arena *arena, const char **key, struct error *err)
{
	*key = arena_printf(arena, EXPORT_PREFIX "%s" EXPORT_SUFFIX, name);
	return strchr(name, '/') || !blob_key_is_valid(*key)
		       ? fail(err, ERR_INVALID, "invalid name of an environment '%s'", name)
		       : 0;
}

int core_put_export(const struct request *request, struct core *core, const char *name,
	const char *sha256, job_fn *done, void *ctx, struct upload **upload, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const char *key;
	if (access_check(core, request, VERB_ENVIRONMENT_EXPORT, NULL, err) ||
		make_key(name, &arena, &key, err))
		return -1;
	return upload_start(core, key, false, sha256, request->id, done, ctx, upload, err);
}

static struct export_call *call_new(
	const struct request *request, struct core *core, const char *name, void *ctx)
{
	struct export_call *call = xzalloc(sizeof *call);
	*call = (struct export_call){ .core = core, .file = -1, .ctx = ctx };
	call->name = arena_text(&call->arena, name);
	call->request_id = request->id ? arena_text(&call->arena, request->id) : NULL;
	return call;
}

static void call_end(struct export_call *call, const export_rows *rows, const struct error *err)
{
	struct error why;
	struct stat st;
	if (err && err->code == ERR_NOT_FOUND) {
		fail_hint(&why, ERR_NOT_FOUND, "carrel env ls --exported lists them",
			"the blob store has no environment '%s'", call->name);
		err = &why;
	}
	if (!err && call->got && fstat(call->file, &st)) {
		fail_errno(&why, "read environment '%s' of the blob store", call->name);
		err = &why;
	}
	if (call->listed)
		call->listed(call->ctx, err ? NULL : rows, err);
	else
		call->got(call->ctx, err ? -1 : take_fd(&call->file),
			err ? 0 : (uint64_t)st.st_size, err);
	fd_close(&call->file);
	arena_done(&call->arena);
	free(call);
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	call_end(ctx, NULL, err);
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
	call_end(ctx, NULL, err);
}

/* ---- get ---- */

/* Into a file without a name: a client gets all of it, or an error. */
static void on_measured(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct export_call *call = ctx;
	uint64_t size = UINT64_MAX;
	struct error why;
	if (err) {
		call_end(call, NULL, err);
		return;
	}
	if (!json_member_u64(answer, "size", &size) || size > transfer_room(call->core))
		fail(&why, ERR_DISK_FULL,
			"the disk has no room for environment '%s' of the blob store", call->name);
	else if ((call->file = openat(call->core->workspaces, ".",
			  O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600)) < 0)
		fail_errno(&why, "make a file for environment '%s'", call->name);
	else {
		start(call, BLOB_GET, on_done);
		return;
	}
	call_end(call, NULL, &why);
}

void core_get_export(const struct request *request, struct core *core, const char *name,
	export_fn *done, void *ctx)
{
	struct export_call *call = call_new(request, core, name, ctx);
	call->got = done;
	if (access_check(core, request, VERB_ENVIRONMENT_IMPORT, NULL, &call->err) ||
		make_key(name, &call->arena, &call->key, &call->err))
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
	const size_t before = sizeof EXPORT_PREFIX - 1, after = sizeof EXPORT_SUFFIX - 1;
	struct export_call *call = ctx;
	export_rows rows = { 0 };
	const struct json_value *items = json_member(answer, "items");
	for (const struct json_value *at = items ? items->first : NULL; at; at = at->next) {
		const char *key = json_member_text(at, "key");
		const struct json_value *modified = json_member(at, "modified_s");
		size_t len = key ? strlen(key) : 0;
		struct export_row row = { 0 };
		if (len <= before + after || memcmp(key, EXPORT_PREFIX, before) != 0 ||
			strcmp(key + len - after, EXPORT_SUFFIX) != 0)
			continue;
		row.name = arena_bytes(&call->arena, key + before, len - before - after);
		row.created_ms = modified && modified->is_integer ? modified->integer * 1000 : 0;
		json_member_u64(at, "size", &row.size_bytes);
		vec_push(&call->arena, &rows, row);
	}
	if (rows.count)
		qsort(rows.items, rows.count, sizeof *rows.items, compare_names);
	call_end(call, &rows, err);
}

void core_list_exports(
	const struct request *request, struct core *core, exports_fn *done, void *ctx)
{
	struct export_call *call = call_new(request, core, "", ctx);
	call->listed = done;
	call->key = EXPORT_PREFIX;
	if (access_check(core, request, VERB_ENVIRONMENT_LIST, NULL, &call->err))
		refuse(call);
	else
		start(call, BLOB_LIST, on_listed);
}

/* ---- remove ---- */

static void on_found(void *ctx, const struct json_value *answer, const struct error *err)
{
	if (err)
		call_end(ctx, NULL, err);
	else
		start(ctx, BLOB_DELETE, on_done);
}

void core_remove_export(const struct request *request, struct core *core, const char *name,
	exports_fn *done, void *ctx)
{
	struct export_call *call = call_new(request, core, name, ctx);
	call->listed = done;
	if (access_check(core, request, VERB_ENVIRONMENT_REMOVE, NULL, &call->err) ||
		make_key(name, &call->arena, &call->key, &call->err))
		refuse(call);
	else
		start(call, BLOB_HEAD, on_found);
}
