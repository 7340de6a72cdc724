/* /v1/workspaces/{id}/archive: whole trees, in constant memory: others pack and unpack, a pipe
 * leads to them. */
#include <unistd.h>
#include "base/fd.h"
#include "core/files/tree_archive.h"
#include "doors/rest/handlers.h"
#include "doors/rest/body_pipe.h"

/* One transfer; in the request's arena: it ends with the request. */
struct transfer {
	struct call *call;
	struct core_workspace *w; /* held */
	struct archive_job *job;  /* NULL: done was called */
	struct error err;
	bool has_failed;
	/* out */
	bool has_begun;
	bool is_piped; /* the pipe has come to its end */
	bool is_cut;
	/* in */
	int fd; /* the pipe, or -1 */
	struct body_pipe pipe;
};

static const char *path_of(struct call *c)
{
	const struct tree_query *query = c->query;
	return query->path ? query->path : "";
}

static void close_in(void *ctx)
{
	struct transfer *t = ctx;
	body_pipe_stop(&t->pipe);
	fd_close(&t->fd);
}

static struct transfer *transfer_new(struct call *c, struct core_workspace *w)
{
	struct transfer *t = arena_alloc(&c->r->arena, sizeof *t);
	t->call = c;
	t->w = w;
	t->fd = -1;
	body_pipe_init(&t->pipe, c, close_in, t);
	core_hold(w);
	return t;
}

static void on_gone(struct call *c)
{
	struct transfer *t = c->priv;
	/* Before its pipe is closed: the end of that would be the end of the archive. */
	if (t->job)
		archive_cancel(t->job);
	t->job = NULL;
	close_in(t);
	body_pipe_done(&t->pipe);
	core_release(t->w);
}

static void note_end(struct transfer *t, const struct error *err)
{
	t->job = NULL;
	t->has_failed = err != NULL;
	if (err)
		t->err = *err;
}

/* ---- out ---- */

static void end_out(struct transfer *t)
{
	struct call *c = t->call;
	bool is_whole = !t->has_failed && !t->is_cut;
	if (t->job || !t->is_piped)
		return;
	if (t->has_failed)
		log_record(c->api->options.log, LOG_LEVEL_WARN, "an archive could not be packed",
			"request_id", c->r->id, "error", t->err.text, NULL);
	call_let_go(c);
	if (is_whole)
		http_end(c->r);
	else
		http_abort(c->r);
}

static void on_packed(void *ctx, const struct error *err)
{
	struct transfer *t = ctx;
	struct call *c = t->call;
	note_end(t, err);
	if (t->has_begun) {
		end_out(t);
		return;
	}
	struct error why = t->err;
	call_let_go(c);
	call_problem(c, &why);
}

static void on_piped(void *ctx, struct http_request *r, bool ok)
{
	struct transfer *t = ctx;
	t->is_piped = true;
	t->is_cut = !ok;
	end_out(t);
}

static void on_packing(void *ctx, int fd)
{
	struct transfer *t = ctx;
	struct call *c = t->call;
	const struct tree_query *query = c->query;
	t->has_begun = true;
	call_begin(c, 200, query->format ? "application/zstd" : "application/x-tar",
		"X-Content-Type-Options: nosniff\r\n");
	if (str_is(c->r->method, "HEAD")) {
		fd_close(&fd);
		call_end(c);
		return;
	}
	http_pipe(c->r, fd, on_piped, t);
}

static int api_archive_get(struct call *c, struct error *err)
{
	const struct tree_query *query = c->query;
	struct transfer *t = transfer_new(c, c->workspace);
	struct archive_listener listener = { on_packing, on_packed, t };
	c->priv = t;
	c->gone = on_gone;
	t->job = archive_out(c->request, c->workspace, path_of(c),
		query->format ? ARCHIVE_TAR_ZST : ARCHIVE_TAR, &listener);
	return 0;
}

/* ---- in ---- */

static void on_unpacked(void *ctx, const struct error *err)
{
	struct transfer *t = ctx;
	struct call *c = t->call;
	note_end(t, err);
	struct error why = t->err;
	call_let_go(c);
	c->problem = why.code == ERR_LIMIT ? 507 : 0;
	if (!err)
		call_empty(c, 204);
	else
		call_problem(c, &why);
}

static void on_piece(struct call *c, struct str data)
{
	struct transfer *t = c->priv;
	body_pipe_take(&t->pipe, data);
}

static void on_unpacking(void *ctx, int fd)
{
	struct transfer *t = ctx;
	struct call *c = t->call;
	t->fd = fd;
	c->piece = on_piece;
	body_pipe_open(&t->pipe, fd);
}

static int api_archive_put(struct call *c, struct error *err)
{
	if (call_measure_first(c, c->workspace))
		return 0;
	struct transfer *t = transfer_new(c, c->workspace);
	struct archive_listener listener = { on_unpacking, on_unpacked, t };
	c->priv = t;
	c->gone = on_gone;
	t->job = archive_in(c->request, c->workspace, path_of(c), &listener);
	return 0;
}

const struct handler tree_archive_handlers[] = { { "packTree", api_archive_get },
	{ "unpackTree", api_archive_put }, { 0 } };
