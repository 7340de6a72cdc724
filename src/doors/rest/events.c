/* /v1/events: what happens, as server-sent events. The journal's ring is the buffer of a slow
 * client: it leaves, and comes back where it was. */
#include "base/clock.h"
#include "doors/rest/handlers.h"

#define HEARTBEAT_MS 15000

/* One listener; in the request's arena. */
struct subscriber {
	struct call *call;
	struct stream stream;
	struct journal *journal;
	struct journal_listener listener;
	bool is_listening;
	uint64_t last;		    /* id seen, or passed over */
	char workspace[ID_LEN + 1]; /* only of this one, or "" */
	bool ends_with_it;
	struct loop_timer *heartbeat;
};

static void leave(struct subscriber *s)
{
	if (s->is_listening)
		journal_unlisten(s->journal, &s->listener);
	s->is_listening = false;
}

static void on_gone(struct call *c)
{
	struct subscriber *s = c->priv;
	leave(s);
	stream_remove(&s->stream);
	loop_cancel(c->api->loop, s->heartbeat);
	s->heartbeat = NULL;
}

static void on_event(void *ctx, const struct event *event)
{
	struct subscriber *s = ctx;
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	/* The removal of a token is an event, too: its streams end with it. */
	if (!access_holds(s->call->api->core, s->call->request)) {
		call_end(s->call);
		return;
	}
	s->last = event->id;
	if (s->workspace[0] && strcmp(s->workspace, event->workspace))
		return;
	sse_print(&text, event->id, event->type, event->json);
	if (!http_write(s->call->r, (struct str){ text.data, text.len }))
		leave(s);
	if (s->ends_with_it && !strcmp(event->type, "workspace.deleted"))
		call_end(s->call);
}

/* Resumes from its position; reports events that the ring has lost meanwhile. */
static void listen(struct subscriber *s)
{
	struct journal *journal = s->journal;
	if (s->last && s->last + 1 < journal->first) {
		char range[128];
		auto_buf struct buf text = buf_empty(1024);
		str_format(range, sizeof range, "{\"type\":\"missed\",\"from\":%llu,\"to\":%llu}",
			(unsigned long long)s->last + 1, (unsigned long long)journal->first - 1);
		sse_print(&text, journal->first - 1, "missed", str_from(range));
		http_write(s->call->r, (struct str){ text.data, text.len });
	}
	s->is_listening = true;
	journal_listen(journal, &s->listener, s->last);
	/* From now on it is known what was seen last, also when that is nothing. */
	if (s->is_listening && !s->last)
		s->last = journal->next - 1;
}

static void on_writable(struct call *c)
{
	struct subscriber *s = c->priv;
	if (!s->is_listening)
		listen(s);
}

static void on_heartbeat(struct loop *loop, void *ctx)
{
	struct subscriber *s = ctx;
	s->heartbeat = NULL;
	if (!access_holds(s->call->api->core, s->call->request)) {
		call_end(s->call);
		return;
	}
	s->heartbeat = loop_after(loop, HEARTBEAT_MS, on_heartbeat, s);
	if (s->is_listening)
		http_write(s->call->r, STR(":\n\n"));
}

/* w: only of this one, or NULL. */
static int subscribe(
	struct call *c, const struct core_workspace *w, bool ends_with_it, struct error *err)
{
	struct subscriber *s = arena_alloc(&c->r->arena, sizeof *s);
	const struct events_query *query = c->query;
	struct str last = http_header(c->r, "last-event-id");
	bool resumes = last.len || query->has_after;
	s->call = c;
	s->listener = (struct journal_listener){ on_event, s, NULL };
	s->ends_with_it = ends_with_it;
	str_copy(s->workspace, sizeof s->workspace, w ? core_model(w)->id : "");
	if (core_events(c->request, c->api->core, w, &s->journal, err))
		return -1;
	if (last.data && last.len && (!str_to_u64(last, &s->last) || s->last > INT64_MAX))
		return fail(err, ERR_INVALID, "Last-Event-ID is not the id of an event");
	/* A client that comes back says where it was in the header. */
	if (!last.len && query->has_after)
		s->last = query->after;
	/* `last` is 0 for a client that wants no earlier events. From the beginning: with the
	 * oldest one that is kept, and none is missed. */
	if (resumes && !s->last)
		s->last = s->journal->first - 1;
	call_begin(c, 200, "text/event-stream", "Cache-Control: no-store\r\n");
	if (str_is(c->r->method, "HEAD")) {
		http_end(c->r);
		return 0;
	}
	c->priv = s;
	c->gone = on_gone;
	c->writable = on_writable;
	stream_add(c, &s->stream);
	/* The head is sent at once, with the current position: a client that is disconnected before
	 * the first event can resume there without missing one. */
	char begin[64];
	str_format(begin, sizeof begin, "id: %llu\n\n",
		(unsigned long long)(s->last ? s->last : s->journal->next - 1));
	http_write(c->r, str_from(begin));
	s->heartbeat = loop_after(c->api->loop, HEARTBEAT_MS, on_heartbeat, s);
	listen(s);
	return 0;
}

static int api_workspace_events(struct call *c, struct error *err)
{
	return subscribe(c, c->workspace, true, err) ? -1 : 0;
}

static int api_events(struct call *c, struct error *err)
{
	const struct events_query *query = c->query;
	struct core_workspace *w = NULL;
	if (query->workspace && core_find(c->request, c->api->core, query->workspace, &w, err))
		return -1;
	return subscribe(c, w, false, err);
}

const struct handler events_handlers[] = { { "workspaceEvents", api_workspace_events },
	{ "events", api_events }, { 0 } };
