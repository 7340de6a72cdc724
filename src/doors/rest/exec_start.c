/* POST /v1/workspaces/{id}/exec: captured, as events, handed over, or in the background. */
#include "base/fd.h"
#include "core/access/approvals.h"
#include "core/execs/execs.h"
#include "doors/rest/handlers.h"

#define EXECS "/v1/execs/"

struct pending_exec {
	struct pending op;
	struct core_exec *exec;
	bool is_waiting; /* the event `waiting` was sent, and `start` wasn't */
	bool is_started; /* `start` was */
	struct sse_tail tails[2];
	struct buf events;
	bool returns; /* it doesn't wait for an approval with its client */
};

/* ---- it waits for an approval ---- */

static const char *approval_path(struct arena *arena, const struct approval *approval)
{
	return arena_printf(arena, "/v1/approvals/%s", approval->id);
}

void exec_print_required(struct json *j, const struct core_exec *e, const struct request *request)
{
	const struct approval *approval = exec_approval(e);
	auto_arena struct arena arena = { 0 };
	json_text(j, "title", http_status_title(202));
	json_i64(j, "status", 202);
	json_text(j, "code", error_code_name(ERR_APPROVAL_REQUIRED));
	json_text(j, "detail",
		arena_printf(&arena, "exec '%s' waits for approval '%s'", exec_record_of(e)->id,
			approval->id));
	json_text(j, "hint",
		hint_of(arena_printf(&arena, "carrel approval show %s shows it", approval->id),
			request && access_is_cli(request), &arena));
	json_text(j, "request_id", request ? access_id(request) : "");
	json_i64(j, "exit_code", error_exit_code(ERR_APPROVAL_REQUIRED));
	json_text(j, "exec", exec_record_of(e)->id);
	record_print(j, "approval", &approval_record, approval);
}

/* 202: like a problem, with the approval. The exec goes on without this client. */
static void answer_waiting(struct pending_exec *op, struct core_exec *e)
{
	const struct approval *approval = exec_approval(e);
	struct call *c = op->op.call;
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	json_object(&j, NULL);
	json_text(&j, "type", "about:blank");
	exec_print_required(&j, e, c ? c->request : NULL);
	json_end(&j);
	exec_detach(e);
	buf_done(&op->events);
	pending_answer(&op->op, 202, approval_path(&arena, approval), &body);
}

/* The client reads nothing before the end, unless it is one that handed in its streams. */
static void on_captured_waiting(void *ctx, struct core_exec *e)
{
	struct pending_exec *op = ctx;
	struct call *c = op->op.call;
	if (exec_record_of(e)->background)
		answer_waiting(op, e);
	else if (c && http_header(c->r, "carrel-streams").data)
		http_inform(c->r, approval_path(&c->r->arena, exec_approval(e)));
}

/* ---- it has ended, and that is the answer ---- */

static void on_captured(void *ctx, struct core_exec *e, const struct error *err)
{
	struct pending_exec *op = ctx;
	buf_done(&op->events);
	if (err)
		pending_fail(&op->op, err);
	else
		result_answer(&op->op, e);
}

/* The client of a foreground exec disconnected: don't report the end of the exec. */
static void on_foreground_gone(struct call *c)
{
	struct pending_exec *op = c->priv;
	exec_detach(op->exec);
	buf_done(&op->events);
	free(op);
}

/* ---- as events ---- */

static void send_events(struct pending_exec *op)
{
	if (op->events.len &&
		!http_write(op->op.call->r, (struct str){ op->events.data, op->events.len }))
		exec_pause(op->exec, true);
	buf_clear(&op->events);
}

static void on_writable(struct call *c)
{
	struct pending_exec *op = c->priv;
	exec_pause(op->exec, false);
}

static void begin_stream(struct pending_exec *op, struct core_exec *e)
{
	static const char headers[] = "Cache-Control: no-store\r\n";
	struct call *c = op->op.call;
	if (c->status)
		return;
	int terminal = exec_terminal(e);
	if (terminal >= 0) {
		c->status = 200;
		http_begin_fds(c->r, 200, "text/event-stream", headers, &terminal, 1);
	} else {
		call_begin(c, 200, "text/event-stream", headers);
	}
	c->writable = on_writable;
}

static void print_event(
	struct buf *out, const char *event, const struct core_exec *e, const char *approval)
{
	struct json j;
	sse_begin(out, event, &j);
	json_object(&j, NULL);
	json_text(&j, "type", event);
	json_text(&j, "id", exec_record_of(e)->id);
	if (approval)
		json_text(&j, "approval", approval);
	json_end(&j);
	sse_end(out);
}

/* Sends the head and the first events, once: output may arrive before core is told of the start. */
static void begin_events(struct pending_exec *op, struct core_exec *e)
{
	const char *learned = access_learned(op->op.call->request);
	if (op->is_started)
		return;
	op->is_started = true;
	op->is_waiting = false;
	begin_stream(op, e);
	if (learned)
		sse_print(&op->events, 0, "learned", str_from(learned));
	print_event(&op->events, "start", e, NULL);
}

static void on_streamed_waiting(void *ctx, struct core_exec *e)
{
	struct pending_exec *op = ctx;
	struct call *c = op->op.call;
	if (exec_record_of(e)->background || http_header(c->r, "carrel-streams").data) {
		on_captured_waiting(ctx, e);
		return;
	}
	op->is_waiting = true;
	begin_stream(op, e);
	print_event(&op->events, "waiting", e, exec_approval(e)->id);
	send_events(op);
}

static void on_started(void *ctx, struct core_exec *e)
{
	struct pending_exec *op = ctx;
	begin_events(op, e);
	send_events(op);
}

static void on_output(void *ctx, struct core_exec *e, int stream, struct str data)
{
	struct pending_exec *op = ctx;
	begin_events(op, e);
	sse_print_output(&op->events, stream == 2 ? "stderr" : "stdout", &op->tails[stream == 2],
		data, false);
	send_events(op);
}

/* It was approved, and could not be started. */
static void print_failure(struct json *j, struct call *c, const struct error *err)
{
	json_object(j, NULL);
	json_text(j, "type", "error");
	json_text(j, "code", error_code_name(err->code));
	json_text(j, "detail", err->text);
	json_text(j, "hint", hint_of(err->hint, call_is_cli(c), &c->r->arena));
	json_i64(j, "exit_code", error_exit_code(err->code));
	json_end(j);
}

static void on_streamed(void *ctx, struct core_exec *e, const struct error *err)
{
	struct pending_exec *op = ctx;
	struct call *c = op->op.call;
	struct json j;
	if (err && !c->status) {
		buf_done(&op->events);
		pending_fail(&op->op, err);
		return;
	}
	/* One that was denied has not started. */
	if (!op->is_waiting)
		begin_events(op, e);
	sse_print_output(&op->events, "stdout", &op->tails[0], STR(""), true);
	sse_print_output(&op->events, "stderr", &op->tails[1], STR(""), true);
	sse_begin(&op->events, err ? "error" : "exit", &j);
	if (err)
		print_failure(&j, c, err);
	else
		result_print(&j, "exit", e, NULL, NULL);
	sse_end(&op->events);
	http_write(c->r, (struct str){ op->events.data, op->events.len });
	http_end(c->r);
	buf_done(&op->events);
	pending_end(&op->op);
}

/* ---- in the background ---- */

static void on_background_started(void *ctx, struct core_exec *e)
{
	struct pending_exec *op = ctx;
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	exec_print(&j, NULL, exec_record_of(e));
	exec_detach(e);
	buf_done(&op->events);
	const char *location = arena_printf(&arena, EXECS "%s", exec_record_of(e)->id);
	pending_answer(&op->op, 201, location, &body);
}

static void on_background_waiting(void *ctx, struct core_exec *e)
{
	struct pending_exec *op = ctx;
	if (op->returns)
		answer_waiting(op, e);
	else
		on_background_started(ctx, e);
}

static void on_background_ended(void *ctx, struct core_exec *e, const struct error *err)
{
	struct pending_exec *op = ctx;
	struct error canceled;
	if (!err) {
		fail(&canceled, ERR_CANCELED, "the command was canceled before it started");
		err = &canceled;
	}
	buf_done(&op->events);
	pending_fail(&op->op, err);
}

/* ---- the start ---- */

/* How its output goes; -1: Carrel-Streams is unknown. */
static int mode_of(struct call *c)
{
	const struct exec_spec *body = c->body;
	struct str streams = http_header(c->r, "carrel-streams");
	if (body->background)
		return EXEC_SPOOLED;
	if (!streams.data)
		return call_wants_events(c) ? EXEC_STREAMED : EXEC_CAPTURED;
	return str_is(streams, "handed") ? EXEC_HANDED
	       : str_is(streams, "pty")	 ? EXEC_HANDED_PTY
					 : -1;
}

static void fill_spec(struct call *c, enum exec_mode mode, const char *id, struct exec_spec *spec)
{
	struct arena *arena = &c->r->arena;
	*spec = *(const struct exec_spec *)c->body;
	spec->id = id[0] ? id : NULL;
	spec->tty |= mode == EXEC_HANDED_PTY;
	exec_spec_expand(spec, arena);
}

static const struct exec_listener *listener_of(enum exec_mode mode)
{
	static const struct exec_listener captured = { .ended = on_captured,
		.waiting = on_captured_waiting },
					  streamed = { on_started, on_output, on_streamed, NULL,
						  on_streamed_waiting },
					  background = { .started = on_background_started,
						  .ended = on_background_ended,
						  .waiting = on_background_waiting };
	if (mode == EXEC_SPOOLED)
		return &background;
	return mode == EXEC_STREAMED || mode == EXEC_HANDED_PTY ? &streamed : &captured;
}

static int check(struct call *c, int mode, struct error *err)
{
	const struct exec_spec *body = c->body;
	const char *id = call_header(c, "carrel-exec-id");
	bool is_named;
	if (mode < 0)
		return fail(err, ERR_INVALID, "Carrel-Streams must be 'handed' or 'pty'");
	if (mode == EXEC_HANDED && c->r->fd_count != 3)
		return fail(err, ERR_INVALID,
			"Carrel-Streams: handed needs three descriptors, not %d", c->r->fd_count);
	if (exec_is_handed(mode) && (body->stdin_text.data || body->open_stdin))
		return fail(
			err, ERR_INVALID, "'stdin' can't be combined with Carrel-Streams: handed");
	if (body->policy == EXEC_POLICY_LEARN && mode != EXEC_STREAMED)
		return fail_hint(err, ERR_INVALID, "send Accept: text/event-stream",
			"'policy: learn' is only for streamed output: the event 'learned' has the "
			"rules");
	if (id && !id_is_valid(id))
		return fail(err, ERR_INVALID, "Carrel-Exec-Id is not an id");
	if (!call_accepts(c, "application/json", &is_named) &&
		!call_accepts(c, "text/event-stream", &is_named)) {
		c->problem = 406;
		return fail(err, ERR_INVALID,
			"the response can only be application/json or text/event-stream");
	}
	return 0;
}

static void start(struct call *c, struct pending *base)
{
	struct pending_exec *op = (struct pending_exec *)base;
	enum exec_mode mode = (enum exec_mode)mode_of(c);
	struct exec_listener listener = *listener_of(mode);
	struct core_workspace *w;
	struct exec_spec spec;
	struct error err;
	/* A client that wants to send signals before the response chooses the id itself. */
	const char *id = call_header(c, "carrel-exec-id");
	if (id && !base->id[0])
		str_copy(base->id, sizeof base->id, id);
	listener.ctx = op;
	buf_init(&op->events, BUF_MAX_DEFAULT);
	fill_spec(c, mode, base->id, &spec);
	op->returns = spec.approval == EXEC_APPROVAL_RETURN;
	int failed = call_workspace(c, &w, &err) ||
		     exec_start(c->request, w, &spec, mode, mode == EXEC_HANDED ? c->r->fds : NULL,
			     &listener, &op->exec, &err);
	/* Close core's copies of the streams, so that only the command holds them open. */
	for (int i = 0; i < c->r->fd_count; i++)
		fd_close(&c->r->fds[i]);
	/* Who gave a key may come back for the answer: its command isn't ended with the client. */
	if (failed)
		pending_fail(base, &err);
	else if (mode != EXEC_SPOOLED && !base->entry)
		c->gone = on_foreground_gone;
}

static bool find(struct call *c, const char *id, struct json *j)
{
	struct core_exec *e;
	struct error err;
	if (exec_find(c->request, c->api->core, id, &e, &err))
		return false;
	exec_print(j, NULL, exec_record_of(e));
	return true;
}

static int api_exec_start(struct call *c, struct error *err)
{
	bool is_background = ((const struct exec_spec *)c->body)->background;
	int mode = mode_of(c);
	struct core_workspace *w;
	if (check(c, mode, err))
		return -1;
	if (!is_background && !http_header(c->r, "idempotency-key").data) {
		start(c, pending_new(c, sizeof(struct pending_exec)));
		return 0;
	}
	if (mode != EXEC_SPOOLED && mode != EXEC_CAPTURED)
		return fail_hint(err, ERR_INVALID, "request application/json, or set background",
			"Idempotency-Key can't be used with streamed output, which is sent only "
			"once");
	if (call_workspace(c, &w, err))
		return -1;
	struct once *once = arena_alloc(&c->r->arena, sizeof *once);
	*once = (struct once){ arena_printf(&c->r->arena, "POST /v1/workspaces/%s/exec",
				       core_model(w)->id),
		sizeof(struct pending_exec), start, is_background ? find : NULL, EXECS };
	return call_once(c, once, err);
}

const struct handler exec_start_handlers[] = { { "exec", api_exec_start }, { 0 } };
