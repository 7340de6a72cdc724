/* /v1/execs: what runs and what ran; signals, sizes, input. */
#include "core/execs/execs.h"
#include "doors/rest/handlers.h"

static int find(struct call *c, struct core_exec **e, struct error *err)
{
	return exec_find(c->request, c->api->core, c->id, e, err);
}

/* ---- lists ---- */

struct exec_page {
	struct json *j;
	const char *cursor; /* not seen yet, or NULL */
	size_t left;
	char last[ID_LEN + 1];
	bool has_more;
};

static void print_item(void *ctx, struct core_exec *e)
{
	struct exec_page *page = ctx;
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
	exec_print(page->j, NULL, exec_record_of(e));
}

static int api_exec_list(struct call *c, struct error *err)
{
	const struct page_query *query = c->query;
	struct exec_page page = { .j = call_print_list(c),
		.cursor = query->cursor,
		.left = query->limit ? query->limit : LIMIT_DEFAULT };
	if (exec_list(c->request, c->api->core, c->workspace, print_item, &page, err))
		return -1;
	if (page.cursor)
		return fail_hint(err, ERR_INVALID, "list again without a cursor",
			"cursor: '%s' is invalid or expired", query->cursor);
	call_send_list(c, page.has_more ? page.last : NULL);
	return 0;
}

/* ---- one ---- */

/* A client that waits for the end; in the request's arena. */
struct waiting {
	struct call *call;
	struct stream stream;
	struct exec_follower follower;
	struct core_exec *exec; /* that is followed, or NULL */
};

static void on_waiting_gone(struct call *c)
{
	struct waiting *waiting = c->priv;
	stream_remove(&waiting->stream);
	if (waiting->exec)
		exec_unfollow(waiting->exec, &waiting->follower);
	waiting->exec = NULL;
}

static void on_more(void *ctx, bool has_ended)
{
	struct waiting *waiting = ctx;
	struct call *c = waiting->call;
	struct core_exec *e = waiting->exec;
	if (!has_ended)
		return;
	call_let_go(c);
	exec_print(call_print(c), NULL, exec_record_of(e));
	call_send(c, 200, NULL);
}

static void wait_for(struct call *c, struct core_exec *e)
{
	struct waiting *waiting = arena_alloc(&c->r->arena, sizeof *waiting);
	waiting->call = c;
	waiting->exec = e;
	waiting->follower = (struct exec_follower){ .more = on_more, .ctx = waiting };
	c->priv = waiting;
	c->gone = on_waiting_gone;
	stream_add(c, &waiting->stream);
	exec_follow(e, &waiting->follower);
}

static int api_exec_get(struct call *c, struct error *err)
{
	const struct exec_query *query = c->query;
	struct core_exec *e;
	if (find(c, &e, err))
		return -1;
	if (query->wait && exec_record_of(e)->state != EXEC_ENDED) {
		wait_for(c, e);
		return 0;
	}
	exec_print(call_print(c), NULL, exec_record_of(e));
	call_send(c, 200, NULL);
	return 0;
}

static int api_exec_signal(struct call *c, struct error *err)
{
	const struct signal_body *body = c->body;
	struct core_exec *e;
	if (find(c, &e, err) || (body->reason ? exec_end_for(c->request, e, body->signal,
							(enum reason)body->reason, err)
					      : exec_signal(c->request, e, body->signal, err)))
		return -1;
	call_empty(c, 204);
	return 0;
}

static int api_exec_resize(struct call *c, struct error *err)
{
	const struct resize_body *body = c->body;
	struct core_exec *e;
	if (find(c, &e, err) ||
		exec_resize(c->request, e, (uint16_t)body->rows, (uint16_t)body->columns, err))
		return -1;
	call_empty(c, 204);
	return 0;
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

/* Writes the received input; what the exec doesn't accept yet is kept, and reading from the client
 * pauses. */
static void feed_on(struct feed *feed)
{
	struct call *c = feed->call;
	bool ends = feed->is_last && ((const struct stdin_query *)c->query)->eof;
	struct core_exec *e;
	struct error err;
	size_t taken = 0;
	if (find(c, &e, &err) || ((feed->rest.len || ends) &&
					 exec_write_stdin(c->request, e,
						 (struct str){ feed->rest.data, feed->rest.len },
						 ends, &taken, &err))) {
		feed->is_answered = true;
		call_problem(c, &err);
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
	struct feed *feed = c->priv;
	if (feed->is_answered)
		return;
	buf_append(&feed->rest, data.data, data.len);
	feed->is_last |= data.len == 0;
	if (!feed->waits_for)
		feed_on(feed);
}

static void on_gone(struct call *c)
{
	struct feed *feed = c->priv;
	if (feed->waits_for)
		exec_unawait_stdin(feed->waits_for, &feed->writer);
	buf_done(&feed->rest);
}

static int api_exec_stdin(struct call *c, struct error *err)
{
	struct feed *feed = arena_alloc(&c->r->arena, sizeof *feed);
	struct core_exec *e;
	size_t taken;
	/* A refusal costs no body. */
	if (find(c, &e, err) || exec_write_stdin(c->request, e, STR(""), false, &taken, err))
		return -1;
	feed->call = c;
	feed->writer = (struct exec_writer){ .drained = on_drained, .ctx = feed };
	buf_init(&feed->rest, BUF_MAX_DEFAULT);
	c->priv = feed;
	c->gone = on_gone;
	c->piece = on_piece;
	http_stream_body(c->r);
	return 0;
}

const struct handler execs_handlers[] = { { "listExecs", api_exec_list },
	{ "listAllExecs", api_exec_list }, { "getExec", api_exec_get },
	{ "signalExec", api_exec_signal }, { "writeStdin", api_exec_stdin },
	{ "resizeTerminal", api_exec_resize }, { 0 } };
