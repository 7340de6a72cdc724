/* GET /v1/audit: lines of the audit log, as they are, or as server-sent events; now or as they
 * come. */
#include "base/clock.h"
#include "core/access/audit.h"
#include "doors/rest/handlers.h"

#define TURN_BYTES (512u << 10) /* then the other clients have their turn */
#define HEARTBEAT_MS 15000

/* One reader; in the request's arena. */
struct lines {
	struct call *call;
	struct stream stream;
	struct audit_reading reading;
	struct loop_timer *later, *heartbeat; /* or NULL */
	bool is_events, follows, is_full, is_at_end;
	struct buf text, events;
};

static void on_gone(struct call *c)
{
	struct lines *l = c->priv;
	audit_read_end(&l->reading);
	stream_remove(&l->stream);
	loop_cancel(c->api->loop, l->later);
	loop_cancel(c->api->loop, l->heartbeat);
	l->later = l->heartbeat = NULL;
	buf_done(&l->text);
	buf_done(&l->events);
}

static void print_events(struct lines *l)
{
	struct str rest = { l->text.data, l->text.len }, line;
	while (str_next(&rest, '\n', &line)) {
		struct str digits, behind;
		uint64_t seq = 0;
		str_cut((struct str){ line.data + 7, line.len - 7 }, ',', &digits, &behind);
		str_to_u64(digits, &seq);
		sse_print(&l->events, seq, "audit", line);
	}
}

static void go_on(struct lines *l);

static void on_later(struct loop *loop, void *ctx)
{
	struct lines *l = ctx;
	l->later = NULL;
	go_on(l);
}

/* Sends the lines that are available, until the client has enough or its turn is over. */
static void go_on(struct lines *l)
{
	struct error err;
	int got = 1;
	if (l->is_full || l->later)
		return;
	for (size_t sent = 0; got == 1 && !l->is_full && sent < TURN_BYTES; sent += 65536) {
		struct buf *out = l->is_events ? &l->events : &l->text;
		buf_clear(&l->text);
		buf_clear(&l->events);
		got = audit_reader_next(l->reading.reader, &l->text, &err);
		if (l->is_events)
			print_events(l);
		sent += out->len;
		if (out->len)
			l->is_full = !http_write(l->call->r, (struct str){ out->data, out->len });
	}
	if (got == 1 && !l->is_full)
		l->later = loop_after(l->call->api->loop, 0, on_later, l);
	else if (got < 0 || (got == 0 && !l->follows))
		call_end(l->call);
}

static void on_ready(void *ctx)
{
	struct lines *l = ctx;
	if (l->follows)
		audit_read_follow(&l->reading);
	/* Not from inside of what core is doing. */
	if (!l->later && !l->is_full)
		l->later = loop_after(l->call->api->loop, 0, on_later, l);
}

static void on_writable(struct call *c)
{
	struct lines *l = c->priv;
	l->is_full = false;
	go_on(l);
}

static void on_heartbeat(struct loop *loop, void *ctx)
{
	struct lines *l = ctx;
	l->heartbeat = loop_after(loop, HEARTBEAT_MS, on_heartbeat, l);
	if (!l->is_full)
		http_write(l->call->r, STR(":\n\n"));
}

static int read_filter(struct call *c, struct audit_filter *filter, struct error *err)
{
	const struct audit_query *query = c->query;
	struct str last = http_header(c->r, "last-event-id");
	*filter = (struct audit_filter){ .workspace = query->workspace, .type = query->type };
	if (query->since && audit_time_parse(query->since, clock_now_ms(), &filter->since_ms, err))
		return error_context(err, "since");
	if (query->until && audit_time_parse(query->until, clock_now_ms(), &filter->until_ms, err))
		return error_context(err, "until");
	if (last.data && (!str_to_u64(last, &filter->after) || filter->after > INT64_MAX))
		return fail(err, ERR_INVALID, "Last-Event-ID is not the seq of a line");
	return 0;
}

static int api_audit(struct call *c, struct error *err)
{
	const struct audit_query *query = c->query;
	struct lines *l = arena_alloc(&c->r->arena, sizeof *l);
	struct audit_filter filter;
	l->call = c;
	l->follows = query->follow;
	l->is_events = call_wants_events(c);
	l->reading.ready = on_ready;
	l->reading.ctx = l;
	if (read_filter(c, &filter, err) ||
		audit_read_begin(c->request, c->api->core, &filter, &l->reading, err))
		return -1;
	buf_init(&l->text, BUF_MAX_DEFAULT);
	buf_init(&l->events, BUF_MAX_DEFAULT);
	call_begin(c, 200, l->is_events ? "text/event-stream" : "application/x-ndjson",
		"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
	c->priv = l;
	c->gone = on_gone;
	c->writable = on_writable;
	stream_add(c, &l->stream);
	if (str_is(c->r->method, "HEAD")) {
		call_end(c);
		return 0;
	}
	if (l->follows && l->is_events) {
		http_write(c->r, STR(":\n\n")); /* the head is sent at once */
		l->heartbeat = loop_after(c->api->loop, HEARTBEAT_MS, on_heartbeat, l);
	}
	if (audit_read_is_ready(&l->reading))
		on_ready(l);
	return 0;
}

const struct handler audit_handlers[] = { { "audit", api_audit }, { 0 } };
