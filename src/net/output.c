/* What goes to the client: a queue, then a file or a pipe. Nothing here calls the handler. */
#include <sys/epoll.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "format/http/http1.h"
#include "net/internal.h"

#define ROUNDS 8 /* of one file or pipe, then the others have their turn */
#define FILE_PIECE (256 << 10)

/* Bytes that were taken; 0: none now (is_blocked), or never more (is_broken). */
static size_t transmit(struct http_connection *c, struct iovec *parts, size_t count, bool more)
{
	struct exchange *x = c->exchange;
	ssize_t sent = c->stream.kind->send(
		&c->stream, parts, count, x ? x->out_fds : NULL, x ? x->out_fd_count : 0, more);
	if (sent < 0) {
		c->is_blocked = errno == EAGAIN;
		c->is_broken = !c->is_blocked;
		return 0;
	}
	for (; x && x->out_fd_count > 0; x->out_fd_count--)
		fd_close(&x->out_fds[x->out_fd_count - 1]);
	c->has_moved = true;
	return (size_t)sent;
}

void output_queue(struct http_connection *c, const void *data, size_t len)
{
	if (c->out_at >= HTTP_CHUNK) {
		buf_drop_front(&c->out, c->out_at);
		c->out_at = 0;
	}
	/* More than a buffer can be: the client won't see the end of it. */
	if (!buf_append(&c->out, data, len))
		c->is_broken = true;
}

void output_send(struct http_connection *c, struct str head, struct str body)
{
	struct iovec parts[] = { { (void *)head.data, head.len }, { (void *)body.data, body.len } };
	size_t sent = 0;
	if (!c->is_blocked && !c->is_broken && output_queued(c) == 0)
		sent = transmit(c, parts, body.len > 0 ? 2 : 1, false);
	if (c->is_broken || sent == head.len + body.len)
		return;
	if (sent < head.len) {
		output_queue(c, head.data + sent, head.len - sent);
		sent = head.len;
	}
	output_queue(c, body.data + (sent - head.len), body.len - (sent - head.len));
}

static enum flow flow_of(const struct http_connection *c)
{
	return c->is_broken ? FLOW_BROKEN : c->is_blocked ? FLOW_BLOCKED : FLOW_DONE;
}

static enum flow flush_queue(struct http_connection *c, bool more)
{
	while (output_queued(c) > 0 && flow_of(c) == FLOW_DONE) {
		struct iovec part = { c->out.data + c->out_at, output_queued(c) };
		c->out_at += transmit(c, &part, 1, more);
	}
	if (output_queued(c) == 0 && c->out.capacity > 0) {
		buf_done(&c->out);
		buf_init(&c->out, BUF_MAX_DEFAULT);
		c->out_at = 0;
	}
	return flow_of(c);
}

void output_push(struct http_connection *c)
{
	flush_queue(c, false);
}

static enum flow flush_file(struct http_connection *c, struct exchange *x)
{
	for (int i = 0; i < ROUNDS && x->file_left > 0; i++) {
		off_t at = (off_t)x->file_at;
		size_t len = x->file_left < FILE_PIECE ? (size_t)x->file_left : FILE_PIECE;
		ssize_t sent = c->stream.kind->send_file(&c->stream, x->file, &at, len);
		if (sent < 0 && errno == EAGAIN) {
			c->is_blocked = true;
			return FLOW_BLOCKED;
		}
		/* An error, or a file that has become shorter than what was promised. */
		if (sent <= 0) {
			x->is_cut = true;
			return FLOW_BROKEN;
		}
		c->has_moved = true;
		x->file_at += (uint64_t)sent;
		x->file_left -= (uint64_t)sent;
	}
	if (x->file_left == 0) {
		fd_close(&x->file);
		return FLOW_DONE;
	}
	connection_again(c);
	return FLOW_BLOCKED;
}

/* ---- pipes ---- */
static void on_pipe(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct http_connection *c = ctx;
	/* It is read where the rest is sent, now that there is something. */
	c->exchange->is_pipe_dry = false;
	c->server->now_ms = clock_monotonic_ms();
	connection_run(c);
}

static void unwatch_pipe(struct http_connection *c, struct exchange *x)
{
	if (x->is_pipe_watched)
		loop_unwatch(c->server->loop, x->pipe);
	x->is_pipe_watched = false;
}

static void end_pipe(struct http_connection *c, struct exchange *x, bool ok)
{
	unwatch_pipe(c, x);
	fd_close(&x->pipe);
	x->has_pipe_ended = true;
	x->is_pipe_ok = ok;
}

static void await_pipe(struct http_connection *c, struct exchange *x)
{
	x->is_pipe_dry = true;
	if (x->is_pipe_watched)
		return;
	x->is_pipe_watched = true;
	if (loop_watch(c->server->loop, x->pipe, EPOLLIN, on_pipe, c, NULL) < 0) {
		x->is_pipe_watched = false;
		end_pipe(c, x, false);
	}
}

/* Frames what was read, in place, and sends it. */
static void send_piece(struct http_connection *c, struct exchange *x, char *data, size_t len)
{
	struct str piece = { data, len };
	if (x->is_chunked) {
		char *frame = http1_chunk_frame(data, len);
		piece = (struct str){ frame, (size_t)(data + len + 2 - frame) };
	}
	output_send(c, piece, STR(""));
}

static enum flow flush_pipe(struct http_connection *c, struct exchange *x)
{
	char *data = c->server->out + HTTP1_CHUNK_FRAME;
	for (int i = 0; i < ROUNDS && x->pipe >= 0 && !x->is_pipe_dry; i++) {
		ssize_t got = x->has_no_body ? 0 : read(x->pipe, data, HTTP_CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN) {
			await_pipe(c, x);
			return FLOW_DONE;
		}
		if (got <= 0) {
			end_pipe(c, x, got == 0);
			return FLOW_DONE;
		}
		send_piece(c, x, data, (size_t)got);
		if (flow_of(c) != FLOW_DONE) {
			/* Its end would be told again and again while it can't be read. */
			unwatch_pipe(c, x);
			return flow_of(c);
		}
		if (got < HTTP_CHUNK) {
			await_pipe(c, x);
			return FLOW_DONE;
		}
	}
	if (x->pipe >= 0 && !x->is_pipe_dry)
		connection_again(c);
	return FLOW_DONE;
}

void output_drop_sources(struct http_connection *c, struct exchange *x)
{
	unwatch_pipe(c, x);
	fd_close(&x->pipe);
	fd_close(&x->file);
}

enum flow output_flush(struct http_connection *c)
{
	struct exchange *x = c->exchange;
	bool has_source = x && (x->file >= 0 || x->pipe >= 0);
	enum flow flow = flush_queue(c, has_source && x->file >= 0);
	if (flow != FLOW_DONE || !has_source)
		return flow;
	return x->file >= 0 ? flush_file(c, x) : flush_pipe(c, x);
}
