/* /v1/archives */
#include "core/state/archives.h"
#include "doors/rest/handlers.h"
#include "doors/rest/body_pipe.h"
#include "model/nouns/workspace.h"

static void on_listed(void *ctx, const archive_rows *rows, const struct error *err)
{
	struct call *c = pending_end(ctx);
	if (c && err)
		call_problem(c, err);
	else if (c)
		call_send_array(
			c, &archive_record, rows->items, rows->count, sizeof *rows->items, false);
}

static int api_archive_list(struct call *c, struct error *err)
{
	core_list_archives(c->request, c->api->core, on_listed, pending_begin(c));
	return 0;
}

static void on_removed(void *ctx, const archive_rows *rows, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int api_archive_delete(struct call *c, struct error *err)
{
	core_remove_archive(c->request, c->api->core, c->id, on_removed, pending_begin(c));
	return 0;
}

static void on_restored(void *ctx, struct core_workspace *w, const struct error *err)
{
	pending_answer_workspace(ctx, w, err, 201);
}

static int api_archive_restore(struct call *c, struct error *err)
{
	const struct restore_wanted *wanted = c->body;
	struct pending *op = pending_begin(c);
	pending_cancels(op, core_restore_archive(c->request, c->api->core, c->id, wanted->name,
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
	if (verb(c, query->sha256, on_stored, u, &u->upload, err))
		return -1;
	body_pipe_init(&u->pipe, c, on_read, u);
	c->priv = u;
	c->gone = on_gone;
	c->piece = on_piece;
	body_pipe_open(&u->pipe, upload_fd(u->upload));
	return 0;
}

static int put(struct call *c, const char *sha256, job_fn *done, void *ctx, struct upload **upload,
	struct error *err)
{
	return core_upload_archive(c->request, c->api->core, c->id, sha256, done, ctx, upload, err);
}

static int api_archive_upload(struct call *c, struct error *err)
{
	return call_upload(c, put, err);
}

const struct handler archives_handlers[] = { { "listArchives", api_archive_list },
	{ "removeArchive", api_archive_delete }, { "uploadArchive", api_archive_upload },
	{ "restoreArchive", api_archive_restore }, { 0 } };
