/* /v1/workspaces/{id}/archive: whole trees, in constant memory: others pack and unpack, a pipe
 * leads to them. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "api/call.h"
#include "api/schema.h"
#include "base/fd.h"
#include "core/archive.h"

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
	bool is_watched, is_last;
	struct buf rest; /* that the pipe hasn't taken */
};

static const char *path_of(struct call *c)
{
	const struct archive_query *query = c->query;

	return query->path ? query->path : "";
}

static struct transfer *transfer_new(struct call *c, struct core_workspace *w)
{
	struct transfer *t = arena_alloc(&c->r->arena, sizeof *t);

	t->call = c;
	t->w = w;
	t->fd = -1;
	buf_init(&t->rest, BUF_MAX_DEFAULT);
	core_hold(w);
	return t;
}

static void close_in(struct transfer *t)
{
	if (t->is_watched)
		loop_unwatch(t->call->api->loop, t->fd);
	t->is_watched = false;
	fd_close(&t->fd);
}

static void on_gone(struct call *c)
{
	struct transfer *t = c->priv;

	/* Before its pipe is closed: the end of that would be the end of the archive. */
	if (t->job)
		archive_cancel(t->job);
	t->job = NULL;
	close_in(t);
	buf_done(&t->rest);
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
	const struct archive_query *query = c->query;

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

int api_archive_get(struct call *c, struct error *err)
{
	const struct archive_query *query = c->query;
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	struct transfer *t = transfer_new(c, w);
	struct archive_listener listener = { on_packing, on_packed, t };
	c->priv = t;
	c->gone = on_gone;
	t->job = archive_out(c->request, w, path_of(c),
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

static void on_pipe(struct loop *loop, int fd, uint32_t events, void *ctx);

static void watch(struct transfer *t, bool wanted)
{
	struct loop *loop = t->call->api->loop;
	struct error err;

	if (wanted == t->is_watched)
		return;
	if (!wanted)
		loop_unwatch(loop, t->fd);
	else if (loop_watch(loop, t->fd, EPOLLOUT, on_pipe, t, &err)) {
		call_let_go(t->call);
		call_problem(t->call, &err);
		return;
	}
	t->is_watched = wanted;
	http_pause_body(t->call->r, wanted);
}

/* Passes received bytes on; reading from the client pauses while the pipe is full. */
static void pump(struct transfer *t)
{
	while (t->rest.len && t->fd >= 0) {
		ssize_t done = write(t->fd, t->rest.data, t->rest.len);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EAGAIN) {
			watch(t, true);
			return;
		}
		if (done < 0) { /* it was refused: `done` says why */
			close_in(t);
			break;
		}
		buf_drop_front(&t->rest, (size_t)done);
	}
	buf_clear(&t->rest);
	if (t->fd >= 0)
		watch(t, false);
	if (t->is_last)
		close_in(t);
}

static void on_pipe(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	pump(ctx);
}

static void on_piece(struct call *c, struct str data)
{
	struct transfer *t = c->priv;

	t->is_last |= data.len == 0;
	if (t->fd < 0)
		return;
	buf_append(&t->rest, data.data, data.len);
	if (!t->is_watched)
		pump(t);
}

static void on_unpacking(void *ctx, int fd)
{
	struct transfer *t = ctx;
	struct call *c = t->call;

	t->fd = fd;
	c->piece = on_piece;
	http_stream_body(c->r);
}

int api_archive_put(struct call *c, struct error *err)
{
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	if (call_measure_first(c, w))
		return 0;
	struct transfer *t = transfer_new(c, w);
	struct archive_listener listener = { on_unpacking, on_unpacked, t };
	c->priv = t;
	c->gone = on_gone;
	t->job = archive_in(c->request, w, path_of(c), &listener);
	return 0;
}
