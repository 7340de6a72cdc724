#include "services/probe.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "base/foreign.h"
#include "format/http/grpc_health.h"
#include "format/http/http_response.h"

#define TIMEOUT_MS 5000
#define PIECE 4096
#define UNDECIDED 1

static int fail_probe(const struct probe *probe, const char *why, struct error *err)
{
	return fail(err, ERR_UNAVAILABLE, "port %u %s", probe->port, why);
}

static int wait_on(struct probe *probe, struct error *err)
{
	uint64_t now_ms = clock_monotonic_ms();
	if (now_ms >= probe->deadline_ms)
		return fail_probe(probe, "does not answer in time", err);
	if (bell_wait(probe->bell, probe->deadline_ms - now_ms, err))
		return -1;
	return *probe->is_over ? fail_probe(probe, "is of a server that has ended", err) : 0;
}

static void on_connected(void *ctx, int fd, const struct error *err)
{
	struct probe *probe = ctx;
	probe->connecting = NULL;
	probe->fd = fd;
	if (err)
		probe->refusal = *err;
	bell_ring(probe->bell);
}

static int connect_inside(struct probe *probe, struct core_workspace *w, struct error *err)
{
	if (core_connect_port(
		    core_system(), w, probe->port, on_connected, probe, &probe->connecting, err)) {
		probe->connecting = NULL;
		return fail_probe(probe, "is in a workspace that has no sandbox", err);
	}
	while (probe->connecting)
		if (wait_on(probe, err))
			return -1;
	if (!probe->refusal.code)
		return 0;
	*err = probe->refusal;
	return -1;
}

/* ---- the answer: 0, -1 or UNDECIDED ---- */

static int judge_grpc(struct probe *probe, bool has_ended, struct error *err)
{
	enum grpc_health health;
	if (grpc_health_read((struct str){ probe->in.data, probe->in.len }, &health, err))
		return fail_probe(probe, "does not answer in HTTP/2", err);
	if (health == GRPC_HEALTH_SERVING || (health == GRPC_HEALTH_NO_SERVICE && !probe->health))
		return 0;
	if (health == GRPC_HEALTH_NOT_SERVING)
		return fail_probe(probe, "says by grpc.health.v1 that it is not serving", err);
	if (health == GRPC_HEALTH_NO_SERVICE)
		return fail_probe(probe, "has no service grpc.health.v1", err);
	return has_ended ? fail_probe(probe, "closed the connection before its answer", err)
			 : UNDECIDED;
}

static int judge_http(struct probe *probe, bool has_ended, struct error *err)
{
	struct http_response response;
	char why[64];
	size_t used;
	int got = http_response_parse(
		(struct str){ probe->in.data, probe->in.len }, false, &used, &response, err);
	int most = probe->health ? 399 : 499;
	if (got < 0)
		return fail_probe(probe, "does not answer in HTTP", err);
	if (!got)
		return has_ended ? fail_probe(probe, "closed the connection before its answer", err)
				 : UNDECIDED;
	if (response.status <= most && (!probe->health || response.status >= 200))
		return 0;
	str_format(why, sizeof why, "answers with status %d", response.status);
	return fail_probe(probe, why, err);
}

static int receive(struct probe *probe, struct error *err)
{
	char *room = buf_reserve(&probe->in, PIECE);
	if (!room)
		return fail_probe(probe, "sends too much", err);
	ssize_t got = recv(probe->fd, room, PIECE, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return UNDECIDED;
	if (got > 0)
		buf_grew(&probe->in, (size_t)got);
	return (probe->is_grpc ? judge_grpc : judge_http)(probe, got <= 0, err);
}

/* ---- the question ---- */

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
	probe->events = events;
	bell_ring(probe->bell);
}

static int ask(struct probe *probe, struct error *err)
{
	int verdict = UNDECIDED;
	if (probe->is_grpc)
		grpc_health_request(&probe->out);
	else
		buf_printf(&probe->out,
			"GET %s HTTP/1.1\r\nHost: localhost:%u\r\nUser-Agent: carrel\r\n"
			"Accept: */*\r\nConnection: close\r\n\r\n",
			probe->health ? probe->health : "/", probe->port);
	if (loop_watch(core_loop(probe->core), probe->fd, EPOLLIN | EPOLLOUT, on_event, probe, err))
		return -1;
	while (verdict == UNDECIDED) {
		probe->events = 0;
		if (wait_on(probe, err))
			verdict = -1;
		else if (probe->events & EPOLLOUT)
			push(probe);
		if (verdict == UNDECIDED && probe->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			verdict = receive(probe, err);
	}
	loop_unwatch(core_loop(probe->core), probe->fd);
	return verdict;
}

int probe_run(struct probe *probe, struct core_workspace *w, struct error *err)
{
	probe->deadline_ms = clock_monotonic_ms() + TIMEOUT_MS;
	probe->fd = -1;
	buf_init(&probe->out, 8192);
	buf_init(&probe->in, GRPC_HEALTH_MAX);
	int failed = connect_inside(probe, w, err);
	if (!failed && (!probe->health || strcmp(probe->health, "tcp") != 0))
		failed = ask(probe, err);
	if (probe->connecting)
		port_cancel(probe->connecting);
	foreign_close(&probe->fd);
	buf_done(&probe->out);
	buf_done(&probe->in);
	return failed;
}
