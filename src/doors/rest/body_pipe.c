#include "doors/rest/body_pipe.h"

#include <sys/epoll.h>
#include <unistd.h>

void body_pipe_init(struct body_pipe *pipe, struct call *call, void (*ended)(void *), void *ctx)
{
	*pipe = (struct body_pipe){ .call = call, .fd = -1, .ended = ended, .ctx = ctx };
	buf_init(&pipe->rest, BUF_MAX_DEFAULT);
}

void body_pipe_stop(struct body_pipe *pipe)
{
	if (pipe->is_watched)
		loop_unwatch(pipe->call->api->loop, pipe->fd);
	pipe->is_watched = false;
	pipe->fd = -1;
}

void body_pipe_done(struct body_pipe *pipe)
{
	body_pipe_stop(pipe);
	buf_done(&pipe->rest);
}

static void end(struct body_pipe *pipe)
{
	body_pipe_stop(pipe);
	pipe->ended(pipe->ctx);
}

static void on_pipe(struct loop *loop, int fd, uint32_t events, void *ctx);

static void watch(struct body_pipe *pipe, bool wanted)
{
	struct loop *loop = pipe->call->api->loop;
	struct error err;
	if (wanted == pipe->is_watched)
		return;
	if (!wanted)
		loop_unwatch(loop, pipe->fd);
	else if (loop_watch(loop, pipe->fd, EPOLLOUT, on_pipe, pipe, &err)) {
		call_let_go(pipe->call);
		call_problem(pipe->call, &err);
		return;
	}
	pipe->is_watched = wanted;
	http_pause_body(pipe->call->r, wanted);
}

static void pump(struct body_pipe *pipe)
{
	while (pipe->rest.len && pipe->fd >= 0) {
		ssize_t done = write(pipe->fd, pipe->rest.data, pipe->rest.len);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EAGAIN) {
			watch(pipe, true);
			return;
		}
		if (done < 0) { /* it was refused: the reader's result says why */
			end(pipe);
			break;
		}
		buf_drop_front(&pipe->rest, (size_t)done);
	}
	buf_clear(&pipe->rest);
	if (pipe->fd >= 0)
		watch(pipe, false);
	if (pipe->is_last && pipe->fd >= 0)
		end(pipe);
}

static void on_pipe(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	pump(ctx);
}

void body_pipe_take(struct body_pipe *pipe, struct str data)
{
	pipe->is_last |= data.len == 0;
	if (pipe->fd < 0)
		return;
	buf_append(&pipe->rest, data.data, data.len);
	if (!pipe->is_watched)
		pump(pipe);
}

void body_pipe_open(struct body_pipe *pipe, int fd)
{
	pipe->fd = fd;
	http_stream_body(pipe->call->r);
}
