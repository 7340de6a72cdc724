/* /v1/execs: what runs and what ran; signals, sizes, input. */
#include "api/call.h"
#include "api/schema.h"
#include "core/execs.h"

/* The exec that c->id names. -1: the problem is answered. */
static int find(struct call *c, struct core_exec **e)
{
	struct error err;

	if (!exec_find(c->request, c->api->core, c->id, e, &err))
		return 0;
	call_problem(c, &err);
	return -1;
}

/* ---- lists ---- */

struct page {
	struct json j;
	const char *cursor; /* not seen yet, or NULL */
	size_t left;
	char last[ID_LEN + 1];
	bool has_more;
};

static void print_item(void *ctx, struct core_exec *e)
{
	struct page *page = ctx;

	if (page->cursor) {
		if (!strcmp(page->cursor, exec_record_of(e)->id))
			page->cursor = NULL;
		return;
	}
	if (!page->left) {
		page->has_more = true;
		return;
	}
	page->left--;
	str_copy(page->last, sizeof page->last, exec_record_of(e)->id);
	exec_print(&page->j, NULL, exec_record_of(e));
}

static void list(struct call *c, struct core_workspace *w)
{
	const struct list_query *query = c->query;
	struct page page = { .cursor = query->cursor,
		.left = query->limit ? query->limit : LIMIT_DEFAULT };
	struct error err;

	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	page.j = json_to(&body, false);
	json_object(&page.j, NULL);
	json_array(&page.j, "items");
	if (exec_list(c->request, c->api->core, w, print_item, &page, &err)) {
		call_problem(c, &err);
		return;
	}
	if (page.cursor) {
		fail_hint(&err, ERR_INVALID, "list again without a cursor",
			"cursor: '%s' is invalid or expired", query->cursor);
		call_problem(c, &err);
		return;
	}
	json_end(&page.j);
	json_text(&page.j, "next_cursor", page.has_more ? page.last : NULL);
	json_end(&page.j);
	call_json(c, 200, NULL, &body);
}

void api_exec_list(struct call *c)
{
	struct core_workspace *w;

	if (!call_workspace(c, &w))
		list(c, w);
}

void api_exec_list_all(struct call *c)
{
	list(c, NULL);
}

/* ---- one ---- */

void api_exec_get(struct call *c)
{
	struct core_exec *e;

	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	if (find(c, &e))
		return;
	struct json j = json_to(&body, false);
	exec_print(&j, NULL, exec_record_of(e));
	call_json(c, 200, NULL, &body);
}

void api_exec_signal(struct call *c)
{
	const struct signal_body *body = c->body;
	struct core_exec *e;
	struct error err;

	if (find(c, &e))
		return;
	int failed = body->reason ? exec_end_for(c->request, e, body->signal,
					    (enum reason)body->reason, &err)
				  : exec_signal(c->request, e, body->signal, &err);
	if (failed)
		call_problem(c, &err);
	else
		call_empty(c, 204);
}

void api_exec_resize(struct call *c)
{
	const struct resize_body *body = c->body;
	struct core_exec *e;
	struct error err;

	if (find(c, &e))
		return;
	if (exec_resize(c->request, e, (uint16_t)body->rows, (uint16_t)body->columns, &err))
		call_problem(c, &err);
	else
		call_empty(c, 204);
}

/* ---- stdin ---- */

/* A body on its way into a command; in the request's arena. */
struct feed {
	struct call *call;
	struct exec_writer writer;
	struct core_exec *waits_for; /* drained of it is awaited */
	struct buf rest;	     /* of the piece that wasn't taken whole */
	bool is_last;
	bool is_answered;
};

static void feed_fail(struct feed *feed, const struct error *err)
{
	feed->is_answered = true;
	call_problem(feed->call, err);
}

/* Writes what is there; what isn't taken waits, and the client with it. */
static void feed_on(struct feed *feed)
{
	struct call *c = feed->call;
	bool ends = feed->is_last && ((const struct stdin_query *)c->query)->eof;
	struct core_exec *e;
	struct error err;
	size_t taken = 0;

	if (exec_find(c->request, c->api->core, c->id, &e, &err)) {
		feed_fail(feed, &err);
		return;
	}
	if ((feed->rest.len || ends) &&
		exec_write_stdin(c->request, e, (struct str){ feed->rest.data, feed->rest.len },
			ends, &taken, &err)) {
		feed_fail(feed, &err);
		return;
	}
	buf_drop_front(&feed->rest, taken);
	if (feed->rest.len) {
		http_pause_body(c->r, true);
		feed->waits_for = e;
		exec_await_stdin(e, &feed->writer);
	} else if (feed->is_last) {
		feed->is_answered = true;
		call_empty(c, 204);
	} else {
		http_pause_body(c->r, false);
	}
}

static void on_drained(void *ctx)
{
	struct feed *feed = ctx;

	feed->waits_for = NULL;
	feed_on(feed);
}

static void on_piece(struct call *c, struct str data)
{
	struct feed *feed = c->own;

	if (feed->is_answered)
		return;
	buf_append(&feed->rest, data.data, data.len);
	feed->is_last |= data.len == 0;
	if (!feed->waits_for)
		feed_on(feed);
}

static void on_gone(struct call *c)
{
	struct feed *feed = c->own;

	if (feed->waits_for)
		exec_unawait_stdin(feed->waits_for, &feed->writer);
	buf_done(&feed->rest);
}

void api_exec_stdin(struct call *c)
{
	struct feed *feed = arena_alloc(&c->r->arena, sizeof *feed);
	struct core_exec *e;
	struct error err;
	size_t taken;

	/* A refusal costs no body. */
	if (find(c, &e))
		return;
	if (exec_write_stdin(c->request, e, STR(""), false, &taken, &err)) {
		call_problem(c, &err);
		return;
	}
	feed->call = c;
	feed->writer = (struct exec_writer){ .drained = on_drained, .ctx = feed };
	buf_init(&feed->rest, BUF_MAX_DEFAULT);
	c->own = feed;
	c->gone = on_gone;
	c->piece = on_piece;
	http_stream_body(c->r);
}
