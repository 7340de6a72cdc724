/* /v1/exports: exported environments in the blob store */
#include <string.h>
#include "api/body_pipe.h"
#include "api/call.h"
#include "api/schema.h"
#include "core/exports.h"

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

int api_export_list(struct call *c, struct error *err)
{
	const struct list_query *query = c->query;
	struct list_operation *op = operation_new(c, sizeof *op);

	op->limit = query->limit ? query->limit : LIMIT_DEFAULT;
	str_copy(op->cursor, sizeof op->cursor, query->cursor ? query->cursor : "");
	core_list_exports(c->request, c->api->core, on_listed, op);
	return 0;
}

static void on_removed(void *ctx, const export_rows *rows, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		operation_answer(ctx, 204, NULL, NULL);
}

int api_export_delete(struct call *c, struct error *err)
{
	core_remove_export(c->request, c->api->core, c->id, on_removed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

static void on_got(void *ctx, int fd, uint64_t size, const struct error *err)
{
	operation_answer_file(ctx, "application/x-tar", fd, size, err);
}

int api_export_get(struct call *c, struct error *err)
{
	core_get_export(c->request, c->api->core, c->id, on_got,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

int api_export_put(struct call *c, struct error *err)
{
	return call_upload(c, core_put_export, err);
}
