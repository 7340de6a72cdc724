#include "doors/rest/exec_socket.h"
#include "doors/rest/handlers.h"

#include "core/access/approvals.h"
#include "doors/handshake.h"

#define START_TICKS 3  /* pings without a message `start` */
#define TEXTS_MAX 4000 /* text messages between two pings: signals are recorded, each of them */

/* ---- the end ---- */

static void free_socket(struct exec_socket *s)
{
	if (s->at) {
		*s->at = s->next;
		if (s->next)
			s->next->at = s->at;
		journal_unlisten(s->journal, &s->listener);
	}
	if (s->is_awaiting)
		exec_unawait_stdin(s->exec, &s->writer);
	if (s->attachment)
		attachment_free(s);
	else if (s->exec)
		exec_detach(s->exec);
	buf_done(&s->input);
	share_release(&s->share);
	arena_done(&s->arena);
	free(s);
}

static void end(struct exec_socket *s, enum websocket_code code, const char *reason)
{
	websocket_close(s->ws, code, reason);
	free_socket(s);
}

static void send_error(struct exec_socket *s, int status, const struct error *err)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	json_object(&j, NULL);
	json_text(&j, "type", "error");
	problem_print(
		&j, status, err, access_id(s->request), s->request, access_is_cli(s->request));
	json_end(&j);
	websocket_send_text(s->ws, (struct str){ text.data, text.len });
}

void exec_socket_refuse(struct exec_socket *s, const struct error *err)
{
	int status = problem_status(err->code);
	send_error(s, status, err);
	end(s, status < 500 ? WEBSOCKET_REFUSED : WEBSOCKET_FAILED, error_code_name(err->code));
}

void exec_socket_exit(struct exec_socket *s, struct str message)
{
	websocket_send_text(s->ws, message);
	end(s, WEBSOCKET_NORMAL, "");
}

void exec_sockets_stop(struct api *api)
{
	struct error err;
	fail(&err, ERR_UNAVAILABLE, "the daemon is stopping");
	for (struct exec_socket *s = api->exec_sockets, *next; s; s = next) {
		next = s->next;
		send_error(s, problem_status(err.code), &err);
		end(s, WEBSOCKET_GOING_AWAY, err.text);
	}
}

/* false: the token of the client was removed or has expired; s is gone. */
static bool check_holds(struct exec_socket *s)
{
	struct error err;
	if (access_holds(s->api->core, s->request))
		return true;
	fail(&err, ERR_UNAUTHENTICATED, "the token was removed or has expired");
	exec_socket_refuse(s, &err);
	return false;
}

/* ---- to the command ---- */

static void on_drained(void *ctx);

/* ERR_CONFLICT isn't told: the command has ended, or has closed its stdin, which the client
 * couldn't know. false: s is gone. */
static bool feed(struct exec_socket *s)
{
	struct str data = { s->input.data, s->input.len };
	struct error err;
	size_t taken = 0;
	if (!s->is_told || s->is_awaiting) {
		websocket_pause(s->ws, s->is_awaiting || s->input.len >= EXEC_MESSAGE_STDIN_MAX);
		return true;
	}
	if (!s->exec || s->is_input_over) {
		buf_clear(&s->input);
	} else if (data.len || s->ends_input) {
		if (exec_write_stdin(s->request, s->exec, data, s->ends_input, &taken, &err)) {
			if (err.code != ERR_CONFLICT) {
				exec_socket_refuse(s, &err);
				return false;
			}
			taken = data.len;
			s->is_input_over = true;
		}
		buf_drop_front(&s->input, taken);
		s->is_input_over |= s->ends_input && !s->input.len;
	}
	if (s->input.len) {
		s->is_awaiting = true;
		exec_await_stdin(s->exec, &s->writer);
	}
	websocket_pause(s->ws, s->is_awaiting);
	return true;
}

static void on_drained(void *ctx)
{
	struct exec_socket *s = ctx;
	s->is_awaiting = false;
	feed(s);
}

/* One signal, or a size: what can't be done before the start is done then; what can't be done any
 * more is nothing. false: s is gone. */
static bool settle(struct exec_socket *s, int failed, const struct error *err)
{
	if (!failed || err->code == ERR_CONFLICT || err->code == ERR_UNAVAILABLE)
		return true;
	exec_socket_refuse(s, err);
	return false;
}

static bool send_signal(struct exec_socket *s, int signo)
{
	struct error err;
	int failed = s->exec ? exec_signal(s->request, s->exec, signo, &err) : 0;
	if (failed && err.code == ERR_UNAVAILABLE)
		s->signals |= 1ull << (signo - 1);
	return settle(s, failed, &err);
}

static bool resize(struct exec_socket *s, uint64_t rows, uint64_t columns)
{
	struct error err;
	if (s->exec && !s->is_told) {
		s->rows = rows;
		s->columns = columns;
	}
	return settle(s,
		s->exec ? exec_resize(s->request, s->exec, (uint16_t)rows, (uint16_t)columns, &err)
			: 0,
		&err);
}

void exec_socket_leave(struct exec_socket *s)
{
	if (s->is_awaiting)
		exec_unawait_stdin(s->exec, &s->writer);
	s->is_awaiting = false;
	s->exec = NULL;
}

/* ---- from the command ---- */

static void tell(struct exec_socket *s, const char *type, const char *exec, const char *approval)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	json_object(&j, NULL);
	json_text(&j, "type", type);
	json_text(&j, "exec", exec);
	if (approval)
		json_text(&j, "approval", approval);
	json_end(&j);
	websocket_send_text(s->ws, (struct str){ text.data, text.len });
}

bool exec_socket_started(struct exec_socket *s, const struct core_exec *e)
{
	uint64_t signals = s->signals;
	if (s->is_told)
		return true;
	s->is_told = true;
	tell(s, "started", exec_record_of(e)->id, NULL);
	if (s->rows && !resize(s, s->rows, s->columns))
		return false;
	s->signals = 0;
	for (int signo = 1; signals; signo++, signals >>= 1)
		if ((signals & 1) && !send_signal(s, signo))
			return false;
	return feed(s);
}

void exec_socket_waiting(struct exec_socket *s, const struct core_exec *e)
{
	tell(s, "waiting", exec_record_of(e)->id, exec_approval(e)->id);
}

bool exec_socket_output(struct exec_socket *s, int stream, struct str data)
{
	return websocket_send_binary(
		s->ws, stream == 2 ? EXEC_STREAM_STDERR : EXEC_STREAM_STDOUT, data);
}

static void on_started(void *ctx, struct core_exec *e)
{
	exec_socket_started(ctx, e);
}

/* Output may come before core is told of the start. */
static void on_output(void *ctx, struct core_exec *e, int stream, struct str data)
{
	struct exec_socket *s = ctx;
	if (exec_socket_started(s, e) && !exec_socket_output(s, stream, data))
		exec_pause(e, true);
}

/* With `approval: return` it has become a background one, which its client doesn't wait for. */
static void on_waiting(void *ctx, struct core_exec *e)
{
	struct exec_socket *s = ctx;
	if (!exec_record_of(e)->background) {
		exec_socket_waiting(s, e);
		return;
	}
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	json_object(&j, NULL);
	json_text(&j, "type", "error");
	exec_print_required(&j, e, s->request);
	json_end(&j);
	websocket_send_text(s->ws, (struct str){ text.data, text.len });
	end(s, WEBSOCKET_REFUSED, error_code_name(ERR_APPROVAL_REQUIRED));
}

static void on_ended(void *ctx, struct core_exec *e, const struct error *err)
{
	struct exec_socket *s = ctx;
	exec_socket_leave(s);
	if (err) {
		exec_socket_refuse(s, err);
		return;
	}
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	exec_print_exit(&j, exec_record_of(e), exec_limiter(e));
	exec_socket_exit(s, (struct str){ text.data, text.len });
}

/* ---- messages ---- */

static int check_start(const struct exec_spec *spec, struct error *err)
{
	if (spec->background)
		return fail_hint(err, ERR_INVALID,
			"POST /v1/workspaces/{id}/exec starts it, GET /v1/execs/{id}/attach "
			"attaches to it",
			"a socket can't start a command in the background");
	if (spec->policy == EXEC_POLICY_LEARN)
		return fail_hint(err, ERR_INVALID,
			"POST /v1/workspaces/{id}/exec with Accept: text/event-stream",
			"'policy: learn' can't be used on a socket");
	return 0;
}

static int start(struct exec_socket *s, struct exec_spec *spec, struct error *err)
{
	const struct exec_listener listener = { on_started, on_output, on_ended, s, on_waiting };
	struct core_workspace *w;
	exec_spec_expand(spec, &s->arena);
	spec->open_stdin = !spec->has_stdin_text;
	if (check_start(spec, err) || core_find(s->request, s->api->core, s->id, &w, err))
		return -1;
	return exec_start(s->request, w, spec, EXEC_STREAMED, NULL, &listener, &s->exec, err);
}

static void on_text(struct exec_socket *s, struct str data)
{
	auto_arena struct arena scratch = { 0 };
	/* What the exec is started with stays while it waits. */
	struct arena *arena = s->has_begun ? &scratch : &s->arena;
	struct exec_message message;
	struct error err;
	if (exec_message_read(data, arena, &message, &err)) {
		exec_socket_refuse(s, &err);
		return;
	}
	if ((message.kind == EXEC_MESSAGE_START) == s->has_begun) {
		end(s, WEBSOCKET_PROTOCOL,
			s->has_begun ? "there is an exec already"
				     : "the first message isn't start");
		return;
	}
	switch (message.kind) {
	case EXEC_MESSAGE_START:
		s->has_begun = true;
		websocket_set_max(s->ws, EXEC_MESSAGE_TEXT_MAX, EXEC_MESSAGE_STDIN_MAX + 1);
		if (start(s, &message.spec, &err))
			exec_socket_refuse(s, &err);
		break;
	case EXEC_MESSAGE_RESIZE:
		resize(s, message.rows, message.columns);
		break;
	case EXEC_MESSAGE_SIGNAL:
		send_signal(s, message.signal);
		break;
	}
}

static void on_stdin(struct exec_socket *s, struct str data)
{
	if (!s->has_begun) {
		end(s, WEBSOCKET_PROTOCOL, "the first message isn't start");
		return;
	}
	if (!data.len || data.data[0] != EXEC_STREAM_STDIN) {
		end(s, WEBSOCKET_PROTOCOL, "a binary message begins with the byte 0, for stdin");
		return;
	}
	s->ends_input |= data.len == 1;
	buf_append(&s->input, data.data + 1, data.len - 1);
	feed(s);
}

static void on_message(void *ctx, bool is_text, struct str data)
{
	struct exec_socket *s = ctx;
	if (!check_holds(s))
		return;
	if (is_text && ++s->texts > TEXTS_MAX)
		end(s, WEBSOCKET_REFUSED, "too many text messages");
	else if (is_text)
		on_text(s, data);
	else
		on_stdin(s, data);
}

static void on_writable(void *ctx)
{
	struct exec_socket *s = ctx;
	if (s->attachment)
		attachment_writable(s);
	else if (s->exec)
		exec_pause(s->exec, false);
}

static void on_tick(void *ctx)
{
	struct exec_socket *s = ctx;
	s->texts = 0;
	if (!check_holds(s) || s->has_begun || ++s->ticks < START_TICKS)
		return;
	end(s, WEBSOCKET_REFUSED, "no message start came in time");
}

static void on_closed(void *ctx)
{
	free_socket(ctx);
}

/* The removal of a token is an event. */
static void on_event(void *ctx, const struct event *event)
{
	check_holds(ctx);
}

/* ---- the handshake ---- */

/* After an upgrade the socket goes on without the call. */
static void on_gone(struct call *c)
{
	if (c->is_aborted)
		free_socket(c->priv);
}

static void on_upgraded(void *ctx, struct net_stream *stream, struct str early)
{
	struct exec_socket *s = ctx;
	struct websocket_handler handler = { on_message, on_writable, on_tick, on_closed, s };
	s->ws = websocket_new(s->api->websockets, stream, early, &handler);
	websocket_set_max(s->ws, EXEC_MESSAGE_START_MAX, EXEC_MESSAGE_STDIN_MAX + 1);
	s->next = s->api->exec_sockets;
	s->at = &s->api->exec_sockets;
	if (s->next)
		s->next->at = &s->next;
	s->api->exec_sockets = s;
	journal_listen(s->journal, &s->listener, 0);
	if (s->opened)
		s->opened(s);
}

static int check_room(struct call *c, struct error *err)
{
	/* Those that are being closed are still counted there. */
	if (websocket_count(c->api->websockets) >= EXEC_SOCKETS_MAX)
		return fail_hint(err, ERR_LIMIT, "try again later", "%d WebSockets are open",
			EXEC_SOCKETS_MAX);
	return shares_check(&c->api->exec_shares, c->r->holder, 1, err);
}

int exec_socket_open(struct call *c, const struct core_workspace *w,
	void (*opened)(struct exec_socket *s), struct exec_socket **socket, struct error *err)
{
	struct journal *journal;
	const char *headers;
	if (handshake_check(c, EXEC_SOCKET_PROTOCOL, &headers, err) ||
		core_events(c->request, c->api->core, w, &journal, err) || check_room(c, err))
		return -1;
	struct exec_socket *s = xzalloc(sizeof *s);
	*s = (struct exec_socket){ .api = c->api, .journal = journal, .opened = opened };
	s->request = access_keep(c->request, &s->arena);
	share_join(&c->api->exec_shares, c->r->holder, &s->share);
	share_add(&s->share, 1);
	s->id = arena_text(&s->arena, c->id);
	s->listener = (struct journal_listener){ on_event, s, NULL };
	s->writer = (struct exec_writer){ .drained = on_drained, .ctx = s };
	buf_init(&s->input, BUF_MAX_DEFAULT);
	c->priv = s;
	c->gone = on_gone;
	c->status = 101;
	http_upgrade(c->r, "websocket", headers, on_upgraded, s);
	*socket = s;
	return 0;
}

static int api_exec_socket(struct call *c, struct error *err)
{
	struct exec_socket *s;
	if (exec_socket_open(c, c->workspace, NULL, &s, err))
		return -1;
	/* Its name may be another's by the time of `start`. */
	s->id = arena_text(&s->arena, core_model(c->workspace)->id);
	return 0;
}

const struct handler exec_socket_handlers[] = { { "execSocket", api_exec_socket }, { 0 } };
