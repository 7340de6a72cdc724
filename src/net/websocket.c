/* wslay reads: frames, masks, fragments, UTF-8, and its own answers to Ping and Close. What it has
 * to send goes into `out` at once, so that our own frames, which need no mask, can be written there
 * too. */
#include "net/websocket.h"

#include <sys/epoll.h>
#include <wslay/wslay.h>
#include "base/arena.h"
#include "base/buf.h"
#include "format/http/websocket.h"

#define CHUNK 65536
#define ROUNDS 8			   /* reads in a turn of the loop */
#define UNREAD_OUT (2u * WEBSOCKET_ENOUGH) /* bytes in `out`: nothing is read meanwhile */
#define UNWATCHED UINT32_MAX

const struct websocket_times websocket_times_default = { 20000, 600000, 5000 };

enum state {
	STATE_OPEN,
	STATE_CLOSING,	 /* Close is in `out` */
	STATE_LINGERING, /* and was sent: input is discarded until its end */
	STATE_BROKEN,
};
struct websocket {
	struct websocket_group *group;
	struct websocket *next, **at;
	struct net_stream stream;
	struct websocket_handler handler; /* closed NULL: it isn't called any more */
	wslay_event_context_ptr parser;
	enum state state;
	uint32_t events;
	struct buf out;	   /* frames that the client hasn't taken */
	struct buf kept;   /* received, and not parsed yet */
	struct str unread; /* while it is run: the rest of kept, or of the group's chunk */
	struct buf message;
	size_t text_max, binary_max;
	unsigned unanswered; /* pings */
	unsigned waited;     /* pings since a message began, which isn't whole yet */
	struct loop_timer *timer, *later;
	bool is_partial;    /* a message has begun, and is not whole yet */
	bool is_data;	    /* the frame that is being read isn't a control frame */
	bool is_too_long;   /* its message is */
	bool is_unfinished; /* its turn ended before all was read */
	bool is_paused, is_blocked, is_running, wants_writable;
};
struct websocket_group {
	struct loop *loop;
	struct websocket_times times;
	struct websocket *first;
	size_t count;
	char chunk[CHUNK];
};

static void on_websocket_event(struct loop *loop, int fd, uint32_t events, void *ctx);

/* ---- what is sent ---- */

static void websocket_flush(struct websocket *ws)
{
	size_t done = 0;
	while (done < ws->out.len && !ws->is_blocked && ws->state != STATE_BROKEN) {
		struct iovec part = { ws->out.data + done, ws->out.len - done };
		ssize_t sent = ws->stream.kind->send(&ws->stream, &part, 1, NULL, 0, false);
		if (sent >= 0)
			done += (size_t)sent;
		else if (errno == EAGAIN)
			ws->is_blocked = true;
		else if (errno != EINTR)
			ws->state = STATE_BROKEN;
	}
	if (done && done == ws->out.len) {
		buf_done(&ws->out); /* an idle connection keeps no memory for it */
		buf_init(&ws->out, BUF_MAX_DEFAULT);
	} else {
		buf_drop_front(&ws->out, done);
	}
}

static void websocket_put(
	struct websocket *ws, enum websocket_opcode opcode, struct str first, struct str rest)
{
	unsigned char head[WEBSOCKET_HEAD_MAX];
	size_t len = websocket_put_head(head, opcode, first.len + rest.len);
	buf_append(&ws->out, head, len);
	buf_append(&ws->out, first.data, first.len);
	buf_append(&ws->out, rest.data, rest.len);
}

static void set_timer(struct websocket *ws, uint64_t delay_ms, loop_timer_fn *fn)
{
	loop_cancel(ws->group->loop, ws->timer);
	ws->timer = loop_after(ws->group->loop, delay_ms, fn, ws);
}

static void on_overdue(struct loop *loop, void *ctx);

static void begin_close(struct websocket *ws)
{
	ws->state = STATE_CLOSING;
	set_timer(ws, ws->group->times.flush_ms, on_overdue);
}

static void put_close(struct websocket *ws, enum websocket_code code, const char *reason)
{
	char bytes[] = { (char)(code >> 8), (char)code };
	struct str text = str_from(reason);
	if (text.len > WEBSOCKET_REASON_MAX)
		text.len = str_utf8_prefix(text.data, WEBSOCKET_REASON_MAX);
	websocket_put(ws, WEBSOCKET_CLOSE, (struct str){ bytes, sizeof bytes }, text);
	begin_close(ws);
}

/* ---- what wslay calls ---- */

static bool wants_input(const struct websocket *ws)
{
	return ws->state == STATE_OPEN && !ws->is_paused && ws->out.len < UNREAD_OUT;
}

static ssize_t on_receive(
	wslay_event_context_ptr parser, uint8_t *data, size_t size, int flags, void *ctx)
{
	struct websocket *ws = ctx;
	size_t len = ws->unread.len < size ? ws->unread.len : size;
	if (!len || !wants_input(ws)) {
		wslay_event_set_error(parser, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(data, ws->unread.data, len);
	ws->unread = (struct str){ ws->unread.data + len, ws->unread.len - len };
	return (ssize_t)len;
}

static ssize_t on_send(
	wslay_event_context_ptr parser, const uint8_t *data, size_t len, int flags, void *ctx)
{
	struct websocket *ws = ctx;
	buf_append(&ws->out, data, len);
	return (ssize_t)len;
}

static void on_frame(wslay_event_context_ptr parser,
	const struct wslay_event_on_frame_recv_start_arg *frame, void *ctx)
{
	struct websocket *ws = ctx;
	ws->is_data = !wslay_is_ctrl_frame(frame->opcode);
	if (!ws->is_data)
		return;
	if (frame->opcode != WSLAY_CONTINUATION_FRAME) {
		ws->message.max = frame->opcode == WSLAY_TEXT_FRAME ? ws->text_max : ws->binary_max;
		ws->is_partial = true;
		ws->waited = 0;
	}
	/* Here, not when the bytes have come: a frame that is too long isn't awaited. */
	if (frame->payload_length > ws->message.max - ws->message.len) {
		ws->is_too_long = true;
		wslay_event_shutdown_read(parser);
	}
}

static void on_piece(wslay_event_context_ptr parser,
	const struct wslay_event_on_frame_recv_chunk_arg *piece, void *ctx)
{
	struct websocket *ws = ctx;
	if (ws->is_data && !ws->is_too_long)
		buf_append(&ws->message, piece->data, piece->data_length);
}

static void on_message(
	wslay_event_context_ptr parser, const struct wslay_event_on_msg_recv_arg *arg, void *ctx)
{
	struct websocket *ws = ctx;
	bool is_text = arg->opcode == WSLAY_TEXT_FRAME;
	if (arg->opcode == WSLAY_PONG)
		ws->unanswered = 0;
	if (wslay_is_ctrl_frame(arg->opcode) || ws->is_too_long)
		return;
	auto_buf struct buf message = ws->message;
	buf_init(&ws->message, BUF_MAX_DEFAULT);
	ws->is_partial = false;
	/* Drop messages that follow the one after which the handler closed. */
	if (ws->state == STATE_OPEN && ws->handler.closed)
		ws->handler.message(
			ws->handler.ctx, is_text, (struct str){ message.data, message.len });
}

/* ---- what is received ---- */

/* The parser has stopped: the client has closed, or broke the protocol. */
static void stop_reading(struct websocket *ws, int failure)
{
	if (ws->is_too_long) {
		put_close(ws, WEBSOCKET_TOO_LONG, "the message is too long");
		return;
	}
	/* A malformed head: wslay has no close code for it. */
	if (failure) {
		put_close(ws, WEBSOCKET_PROTOCOL, "malformed frame");
		return;
	}
	wslay_event_send(ws->parser); /* Close, with its code */
	begin_close(ws);
}

static void websocket_parse(struct websocket *ws)
{
	int failure = wslay_event_recv(ws->parser);
	if (failure == WSLAY_ERR_NOMEM)
		abort();
	if (ws->state != STATE_OPEN)
		return;
	if (failure || !wslay_event_get_read_enabled(ws->parser))
		stop_reading(ws, failure);
	else
		wslay_event_send(ws->parser); /* pongs */
}

/* One read, into the group's chunk. false: there is nothing. */
static bool websocket_fill(struct websocket *ws)
{
	struct fd_message message;
	ssize_t got = ws->stream.kind->receive(&ws->stream, ws->group->chunk, CHUNK, &message);
	if (got < 0) {
		if (errno != EAGAIN && errno != EINTR)
			ws->state = STATE_BROKEN;
		return errno == EINTR;
	}
	fd_message_close(&message, 0);
	if (got == 0)
		ws->state = STATE_BROKEN;
	ws->unread = (struct str){ ws->group->chunk, (size_t)got };
	return got > 0;
}

static void read_on(struct websocket *ws)
{
	auto_buf struct buf kept = ws->kept;
	buf_init(&ws->kept, BUF_MAX_DEFAULT);
	ws->unread = (struct str){ kept.data, kept.len };
	ws->is_unfinished = true;
	for (int i = 0; i < ROUNDS && ws->is_unfinished && wants_input(ws); i++) {
		if (ws->unread.len || websocket_fill(ws))
			websocket_parse(ws);
		else
			ws->is_unfinished = false;
	}
	if (ws->unread.len && ws->state == STATE_OPEN)
		buf_append(&ws->kept, ws->unread.data, ws->unread.len);
	ws->unread = (struct str){ 0 };
}

static void discard(struct websocket *ws)
{
	for (int i = 0; i < ROUNDS && ws->state == STATE_LINGERING; i++)
		if (!websocket_fill(ws))
			break;
	ws->unread = (struct str){ 0 };
}

/* ---- running ---- */

static void free_websocket(struct websocket *ws)
{
	struct loop *loop = ws->group->loop;
	*ws->at = ws->next;
	if (ws->next)
		ws->next->at = ws->at;
	ws->group->count--;
	loop_cancel(loop, ws->timer);
	loop_cancel(loop, ws->later);
	if (ws->events != UNWATCHED)
		loop_unwatch(loop, ws->stream.fd);
	ws->stream.kind->close(&ws->stream);
	wslay_event_context_free(ws->parser);
	buf_done(&ws->out);
	buf_done(&ws->kept);
	buf_done(&ws->message);
	free(ws);
}

static void tell_closed(struct websocket *ws)
{
	void (*closed)(void *ctx) = ws->handler.closed;
	ws->handler.closed = NULL;
	if (closed)
		closed(ws->handler.ctx);
}

static void update_watch(struct websocket *ws)
{
	struct loop *loop = ws->group->loop;
	bool reads = wants_input(ws) || ws->state == STATE_LINGERING;
	bool is_held = !reads && ws->state == STATE_OPEN;
	uint32_t events = (reads ? EPOLLIN : 0u) | (is_held ? EPOLLRDHUP : 0u) |
			  (ws->is_blocked || ws->stream.wants_output ? EPOLLOUT : 0u);
	if (events == ws->events)
		return;
	if (ws->events == UNWATCHED
			? loop_watch(loop, ws->stream.fd, events, on_websocket_event, ws, NULL)
			: loop_change(loop, ws->stream.fd, events, NULL))
		ws->state = STATE_BROKEN;
	else
		ws->events = events;
}

static void run_later(struct websocket *ws);

static void websocket_run(struct websocket *ws)
{
	ws->is_running = true;
	read_on(ws);
	websocket_flush(ws);
	if (ws->state != STATE_OPEN)
		tell_closed(ws);
	else if (ws->wants_writable && ws->out.len < WEBSOCKET_ENOUGH / 4) {
		ws->wants_writable = false;
		if (ws->handler.closed)
			ws->handler.writable(ws->handler.ctx);
	}
	if (ws->state == STATE_CLOSING && !ws->out.len) {
		ws->stream.kind->end(&ws->stream);
		ws->state = STATE_LINGERING;
		set_timer(ws, ws->group->times.linger_ms, on_overdue);
	}
	discard(ws);
	update_watch(ws);
	ws->is_running = false;
	if (ws->state == STATE_BROKEN) {
		tell_closed(ws);
		free_websocket(ws);
		return;
	}
	/* The stream may hold bytes that epoll doesn't know of, as TLS does. */
	if (wants_input(ws) && ws->is_unfinished)
		run_later(ws);
}

static void on_websocket_later(struct loop *loop, void *ctx)
{
	struct websocket *ws = ctx;
	ws->later = NULL;
	websocket_run(ws);
}

static void run_later(struct websocket *ws)
{
	if (!ws->later)
		ws->later = loop_after(ws->group->loop, 0, on_websocket_later, ws);
}

static void on_websocket_event(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct websocket *ws = ctx;
	if (events & EPOLLOUT)
		ws->is_blocked = false;
	/* One that isn't read shows its end only so. */
	if ((events & EPOLLERR) || ((events & (EPOLLHUP | EPOLLRDHUP)) && !wants_input(ws)))
		ws->state = STATE_BROKEN;
	websocket_run(ws);
}

static void on_overdue(struct loop *loop, void *ctx)
{
	struct websocket *ws = ctx;
	ws->timer = NULL;
	ws->state = STATE_BROKEN;
	websocket_run(ws);
}

static void on_ping(struct loop *loop, void *ctx)
{
	struct websocket *ws = ctx;
	bool is_heard = wants_input(ws) && !ws->out.len;
	ws->timer = NULL;
	ws->unanswered = is_heard ? ws->unanswered + 1 : 0;
	ws->waited = is_heard && ws->is_partial ? ws->waited + 1 : 0;
	if (ws->unanswered > WEBSOCKET_PINGS)
		ws->state = STATE_BROKEN;
	else if (ws->waited > WEBSOCKET_PINGS)
		put_close(ws, WEBSOCKET_REFUSED, "the message did not arrive in time");
	if (ws->state == STATE_OPEN) {
		set_timer(ws, ws->group->times.ping_ms, on_ping);
		websocket_put(ws, WEBSOCKET_PING, STR(""), STR(""));
		ws->handler.tick(ws->handler.ctx);
	}
	websocket_run(ws);
}

/* ---- for the owner ---- */

struct websocket_group *websocket_group_new(struct loop *loop, const struct websocket_times *times)
{
	struct websocket_group *group = xzalloc(sizeof *group);
	group->loop = loop;
	group->times = *times;
	return group;
}

void websocket_group_free(struct websocket_group *group)
{
	while (group && group->first) {
		tell_closed(group->first);
		free_websocket(group->first);
	}
	free(group);
}

size_t websocket_count(const struct websocket_group *group)
{
	return group->count;
}

static wslay_event_context_ptr new_parser(struct websocket *ws)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_receive,
		.send_callback = on_send,
		.on_frame_recv_start_callback = on_frame,
		.on_frame_recv_chunk_callback = on_piece,
		.on_msg_recv_callback = on_message,
	};
	wslay_event_context_ptr parser;
	if (wslay_event_context_server_init(&parser, &callbacks, ws))
		abort();
	/* Its own buffers cost a piece of memory for every fragment, however short. */
	wslay_event_config_set_no_buffering(parser, 1);
	return parser;
}

struct websocket *websocket_new(struct websocket_group *group, struct net_stream *stream,
	struct str early, const struct websocket_handler *handler)
{
	struct websocket *ws = xzalloc(sizeof *ws);
	*ws = (struct websocket){ .group = group,
		.next = group->first,
		.at = &group->first,
		.stream = *stream,
		.handler = *handler,
		.events = UNWATCHED };
	if (ws->next)
		ws->next->at = &ws->next;
	group->first = ws;
	group->count++;
	ws->parser = new_parser(ws);
	buf_init(&ws->out, BUF_MAX_DEFAULT);
	buf_init(&ws->message, BUF_MAX_DEFAULT);
	buf_init(&ws->kept, BUF_MAX_DEFAULT);
	buf_append(&ws->kept, early.data, early.len);
	set_timer(ws, group->times.ping_ms, on_ping);
	run_later(ws);
	return ws;
}

void websocket_set_max(struct websocket *ws, size_t text_max, size_t binary_max)
{
	ws->text_max = text_max;
	ws->binary_max = binary_max;
}

void websocket_pause(struct websocket *ws, bool paused)
{
	if (ws->is_paused == paused)
		return;
	ws->is_paused = paused;
	if (!ws->is_running)
		run_later(ws);
}

/* What the stream doesn't take now is sent when it has room; an error is seen then, too. */
static void send_on(struct websocket *ws)
{
	websocket_flush(ws);
	if (!ws->is_running && (ws->out.len || ws->state != STATE_OPEN))
		run_later(ws);
}

void websocket_send_text(struct websocket *ws, struct str text)
{
	websocket_put(ws, WEBSOCKET_TEXT, text, STR(""));
	send_on(ws);
}

bool websocket_send_binary(struct websocket *ws, unsigned char first, struct str data)
{
	websocket_put(ws, WEBSOCKET_BINARY, (struct str){ (const char *)&first, 1 }, data);
	send_on(ws);
	ws->wants_writable |= ws->out.len >= WEBSOCKET_ENOUGH;
	return ws->out.len < WEBSOCKET_ENOUGH;
}

void websocket_close(struct websocket *ws, enum websocket_code code, const char *reason)
{
	ws->handler.closed = NULL;
	if (ws->state == STATE_OPEN)
		put_close(ws, code, reason);
	send_on(ws);
}
