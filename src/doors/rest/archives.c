/* /v1/archives */
#include <string.h>
#include "core/state/archives.h"
#include "doors/call.h"
#include "doors/rest/body_pipe.h"
#include "doors/rest/schema.h"
#include "model/nouns/workspace.h"

struct list_operation {
	struct operation op;
	uint64_t limit;
	char cursor[BLOB_KEY_MAX]; /* name of the last one of the page before, or "" */
};

static void on_listed(void *ctx, const archive_rows *rows, const struct error *err)
{
	struct list_operation *op = ctx;
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	size_t first = 0, last;

	if (err) {
		operation_fail(&op->op, err);
		return;
	}
	for (size_t i = 0; op->cursor[0] && i < rows->count; i++)
		if (!strcmp(rows->items[i].name, op->cursor))
			first = i + 1;
	last = rows->count - first > op->limit ? first + op->limit : rows->count;
	json_object(&j, NULL);
	json_array(&j, "items");
	for (size_t i = first; i < last; i++)
		record_print(&j, NULL, &archive_record, &rows->items[i]);
	json_end(&j);
	json_text(&j, "next_cursor", last < rows->count ? rows->items[last - 1].name : NULL);
	json_end(&j);
	operation_answer(&op->op, 200, NULL, &body);
}

int api_archive_list(struct call *c, struct error *err)
{
	const struct list_query *query = c->query;
	struct list_operation *op = operation_new(c, sizeof *op);

	op->limit = query->limit ? query->limit : LIMIT_DEFAULT;
	str_copy(op->cursor, sizeof op->cursor, query->cursor ? query->cursor : "");
	core_list_archives(c->request, c->api->core, on_listed, op);
	return 0;
}

static void on_removed(void *ctx, const archive_rows *rows, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		operation_answer(ctx, 204, NULL, NULL);
}

int api_archive_delete(struct call *c, struct error *err)
{
	core_remove_archive(c->request, c->api->core, c->id, on_removed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

static void on_restored(void *ctx, struct core_workspace *w, const struct error *err)
{
	operation_answer_workspace(ctx, w, err, 201);
}

int api_archive_restore(struct call *c, struct error *err)
{
	const struct restore_wanted *wanted = c->body;
	struct operation *op = operation_new(c, sizeof *op);

	operation_cancels(op, core_restore_archive(c->request, c->api->core, c->id, wanted->name,
				      on_restored, op));
	return 0;
}

/* ---- upload ---- */

/* In the request's arena: it ends with the request. */
struct archive_upload {
	struct call *call;
	struct upload *upload; /* NULL: it has ended */
	struct body_pipe pipe;
};

static void on_read(void *ctx)
{
	struct archive_upload *u = ctx;

	if (u->upload)
		upload_end(u->upload);
}

static void on_gone(struct call *c)
{
	struct archive_upload *u = c->priv;

	body_pipe_done(&u->pipe);
	if (u->upload)
		upload_cancel(u->upload);
	u->upload = NULL;
}

static void on_stored(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct archive_upload *u = ctx;
	struct call *c = u->call;
	struct error why;

	if (err)
		why = *err;
	u->upload = NULL;
	body_pipe_stop(&u->pipe);
	call_let_go(c);
	if (err)
		call_problem(c, &why);
	else
		call_empty(c, 201);
}

static void on_piece(struct call *c, struct str data)
{
	struct archive_upload *u = c->priv;

	body_pipe_take(&u->pipe, data);
}

int call_upload(struct call *c, upload_verb *verb, struct error *err)
{
	const struct upload_query *query = c->query;
	struct archive_upload *u = arena_alloc(&c->r->arena, sizeof *u);

	u->call = c;
	if (verb(c->request, c->api->core, c->id, query->sha256, on_stored, u, &u->upload, err))
		return -1;
	body_pipe_init(&u->pipe, c, on_read, u);
	c->priv = u;
	c->gone = on_gone;
	c->piece = on_piece;
	body_pipe_open(&u->pipe, upload_fd(u->upload));
	return 0;
}

int api_archive_upload(struct call *c, struct error *err)
{
	return call_upload(c, core_upload_archive, err);
}
