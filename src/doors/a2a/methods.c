/* What A2A can do, for both bindings. */
#include <time.h>
#include "doors/a2a/a2a.h"

#define HEARTBEAT_MS 15000
#define QUEUE_MAX ((size_t)4 << 20) /* of events for a slow client, which is cut off then */
#define PAGE_DEFAULT 50
#define PAGE_MOST 100

/* ---- what was asked ---- */

/* A whole number of the params; false: it isn't one, and that was answered. */
static bool read_count(struct a2a *a, const struct json_value *of, const char *name, uint64_t most,
	uint64_t *value)
{
	const struct json_value *member = json_member(of, name);
	if (!member || member->kind == JSON_NULL)
		return true;
	/* A query has texts. */
	if ((member->kind == JSON_STRING && str_to_u64(member->string, value) && *value <= most) ||
		(json_member_u64(of, name, value) && *value <= most))
		return true;
	a2a_fail(a, A2A_PARAMS,
		arena_printf(&a->call->r->arena, "'%s' must be a whole number up to %llu", name,
			(unsigned long long)most));
	return false;
}

static const char *text_of(struct a2a *a, const char *name)
{
	const char *text = json_member_text(a->params, name);
	return text && text[0] ? text : NULL;
}

/* ---- waiting for a task, and following it ---- */

enum wait_kind { WAIT_ROW, WAIT_END, WAIT_STREAM };
struct wait {
	struct a2a a;
	struct task_listener listener;
	struct agent_task *task; /* NULL: it has ended */
	enum wait_kind kind;
	size_t history;
	bool is_task; /* the result is the task itself, not {"task"} */
	/* of a stream */
	struct stream stream;
	bool is_begun, is_slow;
	struct buf queue;
	struct loop_timer *heartbeat;
};

static void leave(struct wait *w)
{
	if (w->task)
		task_unlisten(w->task, &w->listener);
	w->task = NULL;
}

static void on_gone(struct call *c)
{
	struct wait *w = c->priv;
	leave(w);
	stream_remove(&w->stream);
	loop_cancel(c->api->loop, w->heartbeat);
	w->heartbeat = NULL;
	buf_done(&w->queue);
}

static void answer_task(struct wait *w, struct agent_task *task)
{
	const struct task *model = task_model(task);
	const char *key;
	struct json *j = a2a_begin(&w->a, &key);
	bool is_wrapped = !w->is_task && !w->a.is_old;
	if (is_wrapped)
		json_object(j, key);
	if (!w->is_task && task_is_reply(task))
		a2a_print_message(j, is_wrapped ? "message" : key, model->message, w->a.is_old);
	else
		a2a_print_task(j, is_wrapped ? "task" : key, model, w->a.is_old, w->history, true);
	if (is_wrapped)
		json_end(j);
	leave(w);
	call_let_go(w->a.call);
	a2a_send(&w->a);
}

static void write_out(struct wait *w, struct str data)
{
	if (w->is_slow) {
		buf_append(&w->queue, data.data, data.len);
		return;
	}
	w->is_slow = !http_write(w->a.call->r, data);
}

static void on_writable(struct call *c)
{
	struct wait *w = c->priv;
	w->is_slow = false;
	if (w->queue.len)
		w->is_slow = !http_write(c->r, (struct str){ w->queue.data, w->queue.len });
	buf_clear(&w->queue);
	if (!w->task && !w->is_slow)
		call_end(c);
}

static void on_heartbeat(struct loop *loop, void *ctx)
{
	struct wait *w = ctx;
	w->heartbeat = loop_after(loop, HEARTBEAT_MS, on_heartbeat, w);
	if (!w->is_slow)
		http_write(w->a.call->r, STR(":\n\n"));
}

static void send_event(struct wait *w, struct agent_task *task, const struct task_event *event)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	const struct task *model = task_model(task);
	buf_text(&out, "data: ");
	struct json j = json_to(&out, false);
	if (!w->a.is_http) {
		json_object(&j, NULL);
		json_text(&j, "jsonrpc", "2.0");
		json_raw(&j, "id", w->a.id ? w->a.id : "null");
	}
	const char *key = w->a.is_http ? NULL : "result";
	if (event) {
		a2a_print_event(&j, key, model, event, w->a.is_old);
	} else if (w->a.is_old) {
		a2a_print_task(&j, key, model, true, w->history, true);
	} else {
		json_object(&j, key);
		a2a_print_task(&j, "task", model, false, w->history, true);
		json_end(&j);
	}
	if (!w->a.is_http)
		json_end(&j);
	buf_text(&out, "\n\n");
	write_out(w, (struct str){ out.data, out.len });
}

/* The task as it is now, then what happens to it: nothing is told twice. */
static void begin_stream(struct wait *w, struct agent_task *task)
{
	struct call *c = w->a.call;
	w->is_begun = true;
	call_begin(c, 200, "text/event-stream", "Cache-Control: no-store\r\n");
	c->writable = on_writable;
	stream_add(c, &w->stream);
	w->heartbeat = loop_after(c->api->loop, HEARTBEAT_MS, on_heartbeat, w);
	send_event(w, task, NULL);
}

static void follow(struct wait *w, struct agent_task *task, const struct task_event *event)
{
	struct call *c = w->a.call;
	bool is_settled = task_state_is_settled(task_model(task)->state);
	if (!access_holds(c->api->core, c->request)) {
		leave(w);
		call_end(c);
		return;
	}
	if (!w->is_begun)
		begin_stream(w, task);
	else
		send_event(w, task, event);
	if (w->queue.len > QUEUE_MAX) { /* it may resubscribe */
		leave(w);
		call_let_go(c);
		http_abort(c->r);
		return;
	}
	if (!is_settled || event->kind != TASK_EVENT_STATUS)
		return;
	leave(w);
	if (!w->is_slow)
		call_end(c);
}

static void on_told(void *ctx, struct agent_task *task, const struct task_event *event)
{
	struct wait *w = ctx;
	bool is_settled =
		event->kind == TASK_EVENT_STATUS && task_state_is_settled(task_model(task)->state);
	if (w->kind == WAIT_STREAM)
		follow(w, task, event);
	else if (is_settled || (w->kind == WAIT_ROW && event->kind == TASK_EVENT_KEPT))
		answer_task(w, task);
}

static struct wait *wait_for(struct a2a *a, struct agent_task *task, enum wait_kind kind)
{
	struct call *c = a->call;
	struct wait *w = arena_alloc(&c->r->arena, sizeof *w);
	w->a = *a;
	w->a.agent = NULL; /* may be gone by then */
	w->kind = kind;
	w->task = task;
	w->history = A2A_ALL;
	w->listener = (struct task_listener){ .told = on_told, .ctx = w };
	buf_init(&w->queue, BUF_MAX_DEFAULT);
	task_listen(task, &w->listener);
	c->priv = w;
	c->gone = on_gone;
	return w;
}

/* ---- messages ---- */

/* Whether the client takes what an agent makes. */
static bool accepts(const struct json_value *configuration)
{
	static const char *const made[] = { "text", "text/plain", "application/json", "*/*",
		"text/*", "application/octet-stream" };
	const struct json_value *modes = json_member(configuration, "acceptedOutputModes");
	if (!modes || !modes->count)
		return true;
	for (const struct json_value *mode = modes->first; mode; mode = mode->next)
		for (size_t i = 0; i < sizeof made / sizeof *made; i++)
			if (mode->kind == JSON_STRING && media_type_is(mode->string, made[i]))
				return true;
	return false;
}

/* Reads the message; false: it can't be sent, and that was answered. */
static bool read_send(struct a2a *a, struct task_send *send)
{
	struct arena *arena = &a->call->r->arena;
	const struct json_value *message = json_member(a->params, "message");
	const struct json_value *configuration = json_member(a->params, "configuration");
	struct error err;
	if (a->is_old)
		message = a2a_read_old(message, arena, &err);
	if ((a->is_old && !message) ||
		task_read_message(message, true, arena, &send->message, &err)) {
		a2a_fail_with(a, &err, A2A_UNSUPPORTED);
		return false;
	}
	send->task = json_member_text(message, "taskId");
	send->context = json_member_text(message, "contextId");
	if (send->task && !send->task[0])
		send->task = NULL;
	if (send->context && !send->context[0])
		send->context = NULL;
	const struct json_value *push = json_member(
		configuration, a->is_old ? "pushNotificationConfig" : "taskPushNotificationConfig");
	if (push && push->kind != JSON_NULL) {
		struct push_config *config = arena_alloc(arena, sizeof *config);
		if (a2a_refuses_push(a))
			return false;
		if (push_config_read(push, a->is_old, config, &err)) {
			a2a_fail_with(a, &err, A2A_UNSUPPORTED);
			return false;
		}
		send->push = config;
	}
	if (!accepts(configuration) ||
		(a->agent->kind == AGENT_SHELL && !send->task && !send->message.is_text)) {
		a2a_fail(a, A2A_CONTENT,
			accepts(configuration)
				? "this agent runs text: every part of a message must be text"
				: "this agent answers with text/plain and application/json");
		return false;
	}
	return true;
}

static bool wants_wait(const struct a2a *a)
{
	const struct json_value *configuration = json_member(a->params, "configuration");
	const struct json_value *flag =
		json_member(configuration, a->is_old ? "blocking" : "returnImmediately");
	bool is_set = flag && flag->kind == JSON_BOOL;
	return a->is_old ? !is_set || flag->boolean : !is_set || !flag->boolean;
}

/* What was read of a message that is sent. */
struct sending {
	struct pending op; /* of one that waits for its push notification config */
	struct a2a a;
	struct task_send send;
	bool is_stream;
	size_t history;
};

static void begin_send(const struct sending *s)
{
	struct a2a a = s->a;
	struct agent_task *task;
	struct error err;
	if (task_send(a.call->request, a.agents, a.name, &s->send, &task, &err)) {
		a2a_fail_with(&a, &err, A2A_UNSUPPORTED);
		return;
	}
	struct wait *w = wait_for(&a, task,
		s->is_stream	? WAIT_STREAM
		: s->send.waits ? WAIT_END
				: WAIT_ROW);
	w->history = s->history;
	/* One that goes on has its row already. */
	if (s->send.task && w->kind == WAIT_STREAM)
		begin_stream(w, task);
	else if (s->send.task && w->kind == WAIT_ROW)
		answer_task(w, task);
}

/* The config of a task that goes on is kept: now its message is sent. */
static void on_config(void *ctx, const struct push_config *config, const struct error *err)
{
	struct sending *kept = ctx, s = *kept;
	if (!pending_end(&kept->op))
		return;
	if (err)
		a2a_fail_with(&s.a, err, A2A_UNSUPPORTED);
	else
		begin_send(&s);
}

static void send_or_stream(struct a2a *a, bool is_stream)
{
	struct sending s = { .a = *a, .is_stream = is_stream };
	uint64_t history = A2A_ALL;
	if (!read_send(a, &s.send) || !read_count(a, json_member(a->params, "configuration"),
					      "historyLength", INT32_MAX, &history))
		return;
	s.history = history;
	s.send.waits = !is_stream && wants_wait(a);
	if (!s.send.task || !s.send.push) {
		begin_send(&s);
		return;
	}
	struct sending *kept = pending_new(a->call, sizeof *kept);
	s.op = kept->op;
	*kept = s;
	push_config_set(
		a->call->request, a->agents, a->name, s.send.task, s.send.push, on_config, kept);
}

void a2a_send_message(struct a2a *a)
{
	send_or_stream(a, false);
}

void a2a_stream_message(struct a2a *a)
{
	send_or_stream(a, true);
}

/* ---- tasks ---- */

static bool find(struct a2a *a, struct agent_task **task)
{
	const char *id = text_of(a, "id");
	struct error err;
	if (!id) {
		a2a_fail(a, A2A_PARAMS, "'id' must be the id of a task");
		return false;
	}
	if (!task_get(a->call->request, a->agents, a->name, id, task, &err))
		return true;
	a2a_fail_with(a, &err, A2A_UNSUPPORTED);
	return false;
}

void a2a_get_task(struct a2a *a)
{
	struct agent_task *task;
	uint64_t history = A2A_ALL;
	const char *key;
	if (!read_count(a, a->params, "historyLength", INT32_MAX, &history) || !find(a, &task))
		return;
	struct json *j = a2a_begin(a, &key);
	a2a_print_task(j, key, task_model(task), a->is_old, history, true);
	a2a_send(a);
}

void a2a_cancel_task(struct a2a *a)
{
	const char *id = text_of(a, "id");
	struct agent_task *task;
	struct error err;
	if (!id)
		a2a_fail(a, A2A_PARAMS, "'id' must be the id of a task");
	else if (task_cancel(a->call->request, a->agents, a->name, id, &task, &err))
		a2a_fail_with(a, &err, A2A_NOT_CANCELABLE);
	else
		wait_for(a, task, WAIT_END)->is_task = true;
}

void a2a_subscribe(struct a2a *a)
{
	struct agent_task *task;
	if (!find(a, &task))
		return;
	if (task_state_is_final(task_model(task)->state)) {
		a2a_fail(a, A2A_UNSUPPORTED, "the task has ended: nothing more happens to it");
		return;
	}
	begin_stream(wait_for(a, task, WAIT_STREAM), task);
}

/* RFC 3339; false: it isn't. */
static bool read_time(const char *text, int64_t *ms)
{
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t fraction = 0, unit = 100;
	if (!rest)
		return false;
	if (*rest == '.')
		for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
			fraction += (*rest - '0') * unit;
	if (*rest == 'Z' && !rest[1])
		tm.tm_gmtoff = 0;
	else if (!(rest = strptime(rest, "%z", &tm)) || *rest)
		return false;
	long offset = tm.tm_gmtoff;
	*ms = ((int64_t)timegm(&tm) - offset) * 1000 + fraction;
	return true;
}

struct listing {
	struct json *j;
	size_t history;
	bool has_artifacts;
};

static void print_item(void *ctx, struct agent_task *task)
{
	struct listing *listing = ctx;
	a2a_print_task(listing->j, NULL, task_model(task), false, listing->history,
		listing->has_artifacts);
}

void a2a_list_tasks(struct a2a *a)
{
	const char *state = text_of(a, "status"), *after = text_of(a, "statusTimestampAfter");
	const struct json_value *artifacts = json_member(a->params, "includeArtifacts");
	uint64_t limit = PAGE_DEFAULT, history = 0;
	struct task_filter filter = {
		.context = text_of(a, "contextId"), .state = -1, .cursor = text_of(a, "pageToken")
	};
	char next[CORE_CURSOR_SIZE] = "";
	size_t total = 0;
	struct error err;
	if (!read_count(a, a->params, "pageSize", PAGE_MOST, &limit) ||
		!read_count(a, a->params, "historyLength", INT32_MAX, &history))
		return;
	if (state && strcmp(state, "TASK_STATE_UNSPECIFIED") != 0 &&
		(filter.state = task_state_find(a2a_state_names, state)) < 0) {
		a2a_fail(a, A2A_PARAMS, "'status' is not a state of a task");
		return;
	}
	if (after && !read_time(after, &filter.after_ms)) {
		a2a_fail(a, A2A_PARAMS, "'statusTimestampAfter' is not a time");
		return;
	}
	filter.limit = limit ? limit : PAGE_DEFAULT;
	const char *key;
	struct json *j = a2a_begin(a, &key);
	struct listing listing = { j, history,
		artifacts && (artifacts->boolean || (artifacts->kind == JSON_STRING &&
							    str_is(artifacts->string, "true"))) };
	json_object(j, key);
	json_array(j, "tasks");
	if (task_list(a->call->request, a->agents, a->name, &filter, print_item, &listing, next,
		    &total, &err)) {
		buf_done(&a->call->out);
		a2a_fail_with(a, &err, A2A_UNSUPPORTED);
		return;
	}
	json_end(j);
	json_text(j, "nextPageToken", next);
	json_u64(j, "pageSize", filter.limit);
	json_u64(j, "totalSize", total);
	json_end(j);
	a2a_send(a);
}
