#include "services/probe.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "base/foreign.h"
#include "core/nouns.h"
#include "format/http/grpc_health.h"
#include "format/http/http_response.h"

#define TIMEOUT_MS 5000
#define PIECE 4096

static void on_event(struct loop *loop, int fd, uint32_t events, void *ctx);

void probe_stop(struct probe *probe)
{
	struct loop *loop = core_loop(probe->core);
	if (!probe->is_running)
		return;
	probe->is_running = false;
	loop_cancel(loop, probe->timer);
	probe->timer = NULL;
	if (probe->connecting)
		port_cancel(probe->connecting);
	probe->connecting = NULL;
	if (probe->fd >= 0)
		loop_unwatch(loop, probe->fd);
	foreign_close(&probe->fd);
	buf_done(&probe->out);
	buf_done(&probe->in);
}

static void finish(struct probe *probe, const struct error *err)
{
	struct error why;
	if (err)
		why = *err;
	probe_stop(probe);
	probe->done(probe->ctx, err ? &why : NULL);
}

static void fail_probe(struct probe *probe, const char *why)
{
	struct error err;
	fail(&err, ERR_UNAVAILABLE, "port %u %s", probe->port, why);
	finish(probe, &err);
}

static void on_late(struct loop *loop, void *ctx)
{
	struct probe *probe = ctx;
	probe->timer = NULL;
	fail_probe(probe, "does not answer in time");
}

static void judge_grpc(struct probe *probe, bool has_ended)
{
	enum grpc_health health;
	struct error err;
	if (grpc_health_read((struct str){ probe->in.data, probe->in.len }, &health, &err)) {
		fail_probe(probe, "does not answer in HTTP/2");
		return;
	}
	if (health == GRPC_HEALTH_SERVING || (health == GRPC_HEALTH_NO_SERVICE && !probe->health))
		finish(probe, NULL);
	else if (health == GRPC_HEALTH_NOT_SERVING)
		fail_probe(probe, "says by grpc.health.v1 that it is not serving");
	else if (health == GRPC_HEALTH_NO_SERVICE)
		fail_probe(probe, "has no service grpc.health.v1");
	else if (has_ended)
		fail_probe(probe, "closed the connection before its answer");
}

static void judge_http(struct probe *probe, bool has_ended)
{
	struct http_response response;
	struct error err;
	char why[64];
	size_t used;
	int got = http_response_parse(
		(struct str){ probe->in.data, probe->in.len }, false, &used, &response, &err);
	int most = probe->health ? 399 : 499;
	if (got < 0)
		fail_probe(probe, "does not answer in HTTP");
	else if (got && response.status <= most && (!probe->health || response.status >= 200))
		finish(probe, NULL);
	else if (got) {
		str_format(why, sizeof why, "answers with status %d", response.status);
		fail_probe(probe, why);
	} else if (has_ended)
		fail_probe(probe, "closed the connection before its answer");
}

static void receive(struct probe *probe)
{
	char *room = buf_reserve(&probe->in, PIECE);
	if (!room) {
		fail_probe(probe, "sends too much");
		return;
	}
	ssize_t got = recv(probe->fd, room, PIECE, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0)
		buf_grew(&probe->in, (size_t)got);
	(probe->is_grpc ? judge_grpc : judge_http)(probe, got <= 0);
}

static void push(struct probe *probe)
{
	while (probe->out.len) {
		ssize_t sent = send(
			probe->fd, probe->out.data, probe->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			break;
		buf_drop_front(&probe->out, (size_t)sent);
	}
	loop_change(core_loop(probe->core), probe->fd,
		EPOLLIN | (probe->out.len ? (uint32_t)EPOLLOUT : 0u), NULL);
}

static void on_event(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct probe *probe = ctx;
	if (events & EPOLLOUT)
		push(probe);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(probe);
}

static void on_connected(void *ctx, int fd, const struct error *err)
{
	struct probe *probe = ctx;
	probe->connecting = NULL;
	if (err) {
		finish(probe, err);
		return;
	}
	probe->fd = fd;
	if (probe->health && !strcmp(probe->health, "tcp")) {
		finish(probe, NULL);
		return;
	}
	if (probe->is_grpc)
		grpc_health_request(&probe->out);
	else
		buf_printf(&probe->out,
			"GET %s HTTP/1.1\r\nHost: localhost:%u\r\nUser-Agent: carrel\r\n"
			"Accept: */*\r\nConnection: close\r\n\r\n",
			probe->health ? probe->health : "/", probe->port);
	struct error why;
	if (loop_watch(core_loop(probe->core), fd, EPOLLIN | EPOLLOUT, on_event, probe, &why)) {
		finish(probe, &why);
		return;
	}
}

static void on_refused(struct loop *loop, void *ctx)
{
	struct probe *probe = ctx;
	probe->timer = NULL;
	fail_probe(probe, "is in a workspace that has no sandbox");
}

void probe_start(struct probe *probe, struct core_workspace *w)
{
	struct loop *loop = core_loop(probe->core);
	struct error err;
	probe->is_running = true;
	probe->fd = -1;
	buf_init(&probe->out, 8192);
	buf_init(&probe->in, GRPC_HEALTH_MAX);
	if (core_connect_port(
		    core_system(), w, probe->port, on_connected, probe, &probe->connecting, &err)) {
		probe->connecting = NULL;
		probe->timer = loop_after(loop, 0, on_refused, probe);
		return;
	}
	probe->timer = loop_after(loop, TIMEOUT_MS, on_late, probe);
}
