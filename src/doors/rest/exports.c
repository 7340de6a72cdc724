/* /v1/exports, /v1/packages: exported environments and agent packages in the blob store */
#include <string.h>
#include "core/state/exports.h"
#include "doors/call.h"
#include "doors/rest/body_pipe.h"
#include "doors/rest/schema.h"

struct list_operation {
	struct operation op;
	uint64_t limit;
	char cursor[BLOB_KEY_MAX]; /* the last name of the page before, or "" */
};

static void on_listed(void *ctx, const export_rows *rows, const struct error *err)
{
	struct list_operation *op = ctx;
	size_t at = 0;
	uint64_t shown = 0;
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);

	if (err) {
		operation_fail(&op->op, err);
		return;
	}
	while (at < rows->count && strcmp(rows->items[at].name, op->cursor) <= 0)
		at++;
	json_object(&j, NULL);
	json_array(&j, "items");
	for (; at < rows->count && shown < op->limit; at++, shown++)
		record_print(&j, NULL, &export_record, &rows->items[at]);
	json_end(&j);
	json_text(&j, "next_cursor", at < rows->count ? rows->items[at - 1].name : NULL);
	json_end(&j);
	operation_answer(&op->op, 200, NULL, &body);
}

static int list(struct call *c, const struct stored_kind *kind)
{
	const struct list_query *query = c->query;
	struct list_operation *op = operation_new(c, sizeof *op);

	op->limit = query->limit ? query->limit : LIMIT_DEFAULT;
	str_copy(op->cursor, sizeof op->cursor, query->cursor ? query->cursor : "");
	core_list_stored(c->request, c->api->core, kind, on_listed, op);
	return 0;
}

int api_export_list(struct call *c, struct error *err)
{
	return list(c, &stored_environments);
}

int api_package_list(struct call *c, struct error *err)
{
	return list(c, &stored_packages);
}

static void on_removed(void *ctx, const export_rows *rows, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		operation_answer(ctx, 204, NULL, NULL);
}

static int remove_one(struct call *c, const struct stored_kind *kind)
{
	core_remove_stored(c->request, c->api->core, kind, c->id, on_removed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

int api_export_delete(struct call *c, struct error *err)
{
	return remove_one(c, &stored_environments);
}

int api_package_delete(struct call *c, struct error *err)
{
	return remove_one(c, &stored_packages);
}

static void on_got(void *ctx, int fd, uint64_t size, const char *sha256, const struct error *err)
{
	operation_answer_file(ctx, "application/x-tar", fd, size, err);
}

static void on_package(
	void *ctx, int fd, uint64_t size, const char *sha256, const struct error *err)
{
	operation_answer_file(ctx, "application/octet-stream", fd, size, err);
}

int api_export_get(struct call *c, struct error *err)
{
	core_get_stored(c->request, c->api->core, &stored_environments, c->id, on_got,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

int api_package_get(struct call *c, struct error *err)
{
	core_get_stored(c->request, c->api->core, &stored_packages, c->id, on_package,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

static int put_environment(const struct request *request, struct core *core, const char *name,
	const char *sha256, job_fn *done, void *ctx, struct upload **upload, struct error *err)
{
	return core_put_stored(
		request, core, &stored_environments, name, sha256, done, ctx, upload, err);
}

static int put_package(const struct request *request, struct core *core, const char *name,
	const char *sha256, job_fn *done, void *ctx, struct upload **upload, struct error *err)
{
	return core_put_stored(
		request, core, &stored_packages, name, sha256, done, ctx, upload, err);
}

int api_export_put(struct call *c, struct error *err)
{
	return call_upload(c, put_environment, err);
}

int api_package_put(struct call *c, struct error *err)
{
	return call_upload(c, put_package, err);
}
