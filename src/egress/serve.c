/* The loop of the role: its service socket, the channels and listeners of policies, and what
 * becomes of a request. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "egress/internal.h"
#include "linux/fd_message.h"

#define PAUSE_MS 200	     /* after accept has failed */
#define TUNNEL_MS 30000	     /* for a proxy to connect */
#define TUNNEL_HEAD_MAX 8192 /* of its answer */
/* Together policies hold at most so many connections; beyond, each may still have its share, so
 * that no policy is kept out by others. */
#define CONNECTIONS_MAX 1024
#define CONNECTIONS_SHARE 16

static void watch_listeners(struct policy *policy, bool is_wanted);

static void answer_host(struct connection *c, int code, const char *title, const char *why)
{
	char text[640];

	str_format(text, sizeof text, "carrel: %s:%u %s", c->request.host, c->request.port, why);
	connection_answer(c, code, title, text);
}

static void refuse_host(struct connection *c, const char *why)
{
	struct egress_status *status = &c->policy->status;

	status->refused++;
	str_format(status->last_refused, sizeof status->last_refused, "%s:%u", c->request.host,
		c->request.port);
	answer_host(c, 403, "Forbidden", why);
}

/* Not reached: the reason is told to the client and, for messages, to the holder of the policy. */
static void fail_host(struct connection *c, int code, const char *title, const char *reason)
{
	struct egress_status *status = &c->policy->status;
	char why[400];

	if (c->proxy)
		str_format(why, sizeof why, "the proxy %s:%u: %s", c->proxy->host, c->proxy->port,
			reason);
	else
		str_copy(why, sizeof why, reason);
	str_format(status->last_failure, sizeof status->last_failure, "%s:%u: %s", c->request.host,
		c->request.port, why);
	answer_host(c, code, title, why);
}

static void set_no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* 0: connected. 1: under way. -1: not this address. */
static int connect_address(struct connection *c, union address address)
{
	bool is_ipv4 = address.any.sa_family == AF_INET;
	uint16_t port = htons(c->proxy ? c->proxy->port : c->request.port);
	auto_close int fd = socket(
		address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

	if (fd < 0)
		return -1;
	*(is_ipv4 ? &address.ipv4.sin_port : &address.ipv6.sin6_port) = port;
	int status = connect(fd, &address.any, is_ipv4 ? sizeof address.ipv4 : sizeof address.ipv6);
	if (status < 0 && errno != EINPROGRESS)
		return -1;
	set_no_delay(fd);
	c->fds[UPSTREAM] = take_fd(&fd);
	return status < 0 ? 1 : 0;
}

/* The host is asked for by CONNECT, also for http://: the proxy sees nothing of the request. */
static void begin_tunnel(struct connection *c)
{
	bool is_v6 = strchr(c->request.host, ':') != NULL;
	const char *open = is_v6 ? "[" : "", *close = is_v6 ? "]" : "";

	auto_buf struct buf head = buf_empty(4096);
	buf_printf(&head, "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n", open,
		c->request.host, close, c->request.port, open, c->request.host, close,
		c->request.port);
	if (c->proxy->authorization[0])
		buf_printf(&head, "Proxy-Authorization: %s\r\n", c->proxy->authorization);
	buf_text(&head, "\r\n");
	/* The first bytes of a connection: the socket takes them at once. */
	if (send(c->fds[UPSTREAM], head.data, head.len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		(ssize_t)head.len) {
		fail_host(c, 502, "Bad Gateway", "it accepts no request");
		return;
	}
	c->state = TUNNELING;
	connection_set_timer(c, TUNNEL_MS);
	connection_watch(c, UPSTREAM, EPOLLIN);
}

static void judge_tunnel(struct connection *c, struct str head)
{
	char why[128];

	if (head.len >= 12 &&
		(str_starts_with(head, "HTTP/1.1 2") || str_starts_with(head, "HTTP/1.0 2"))) {
		connection_relay(c);
		return;
	}
	if (str_starts_with(head, "HTTP/1.1 407") || str_starts_with(head, "HTTP/1.0 407")) {
		fail_host(c, 502, "Bad Gateway",
			"it rejects the credentials (HTTPS_PROXY=http://user:password@...)");
		return;
	}
	head.len = head.len < 12 ? head.len : 12;
	str_printable(why, sizeof why - 32, head);
	str_format(why + strlen(why), 32, " was its response");
	fail_host(c, 502, "Bad Gateway", why);
}

/* Reads byte by byte near the end of the head, so that nothing after it is consumed: the first
 * bytes of the tunnel belong to the client. */
static void read_tunnel(struct connection *c)
{
	for (;;) {
		char *room = buf_reserve(&c->tunnel, 1);
		ssize_t got = room ? recv(c->fds[UPSTREAM], room, 1, MSG_DONTWAIT) : 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			fail_host(c, 502, "Bad Gateway", "it closed the connection");
			return;
		}
		buf_grew(&c->tunnel, 1);
		if (c->tunnel.len >= 4 &&
			memcmp(c->tunnel.data + c->tunnel.len - 4, "\r\n\r\n", 4) == 0)
			break;
	}
	judge_tunnel(c, (struct str){ c->tunnel.data, c->tunnel.len });
}

static void on_connected(struct connection *c)
{
	if (c->proxy)
		begin_tunnel(c);
	else
		connection_relay(c);
}

static void connect_next(struct connection *c)
{
	connection_close_side(c, UPSTREAM);
	while (c->next_address < c->lookup->found.count) {
		union address address = c->lookup->found.items[c->next_address++];
		if (!c->is_named && !c->proxy && forward_address_is_closed(&address.any))
			continue;
		int status = connect_address(c, address);
		if (status == 0) {
			on_connected(c);
			return;
		}
		if (status > 0) {
			c->state = CONNECTING;
			connection_set_timer(c, c->policy->given.limits.connect_ms);
			connection_watch(c, UPSTREAM, EPOLLOUT);
			return;
		}
		c->reason = errno;
	}
	if (!c->reason)
		refuse_host(c, "is at an address that isn't public");
	else if (c->reason == ETIMEDOUT)
		fail_host(c, 504, "Gateway Timeout", "doesn't answer");
	else
		fail_host(c, 502, "Bad Gateway", strerror(c->reason));
}

static void use_lookup(struct connection *c, const struct lookup *lookup)
{
	if (lookup->state == LOOKUP_FOUND) {
		connect_next(c);
		return;
	}
	char why[256];
	str_format(why, sizeof why, "can't be resolved: %s", lookup->reason);
	/* The title is all that clients show of the answer to a CONNECT; index.py looks for it. */
	fail_host(c, lookup->is_timeout ? 504 : 502, "Name Not Resolved", why);
}

static void on_lookup(struct lookup *lookup, void *ctx)
{
	struct policy *policy = ctx;

	for (struct connection *c = policy->server->connections; c; c = c->next)
		if (c->state == RESOLVING && c->lookup == lookup)
			use_lookup(c, lookup);
}

static void choose_proxy(struct connection *c)
{
	const struct forward_proxies *proxies = &c->policy->given.proxies;
	const struct forward_proxy *proxy =
		c->request.is_connect ? &proxies->https : &proxies->http;

	if (proxy->host[0] &&
		!forward_proxy_is_excepted(proxies->except, c->request.host, c->request.port))
		c->proxy = proxy;
}

static void judge(struct connection *c)
{
	struct policy *policy = c->policy;
	const forward_hosts hosts = { .items = policy->hosts, .count = policy->host_count };
	const struct forward_host *host = forward_decide(&hosts, &c->request);

	if (!host && policy->given.is_settled) {
		refuse_host(c, "isn't a host that may be reached from here");
		return;
	}
	if (!host) {
		if (c->state != WAITING)
			connection_set_timer(c, policy->given.limits.wait_ms);
		c->state = WAITING;
		return;
	}
	c->is_named = host->is_named;
	c->state = RESOLVING;
	loop_cancel(policy->server->loop, c->timer); /* a lookup has a time limit of its own */
	c->timer = NULL;
	choose_proxy(c);
	if (c->proxy && !c->is_named && proxy_must_not_reach(host->host)) {
		refuse_host(c, "is an address that isn't public");
		return;
	}
	c->lookup = resolver_ask(&policy->resolver, c->proxy ? c->proxy->host : host->host);
	if (c->lookup->state != LOOKUP_RUNNING)
		use_lookup(c, c->lookup);
}

static void read_head(struct connection *c)
{
	struct error err;
	size_t old = c->head.len;
	char *room = buf_reserve(&c->head, FORWARD_HEAD_MAX - old);
	ssize_t got = room ? recv(c->fds[CLIENT], room, FORWARD_HEAD_MAX - old, MSG_DONTWAIT) : 0;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		connection_close(c);
		return;
	}
	buf_grew(&c->head, (size_t)got);
	/* Only a line's end can make a difference: a client that sends single bytes doesn't have
	 * the whole head read again for each. */
	if (old && c->head.len < FORWARD_HEAD_MAX && !memchr(c->head.data + old, '\n', (size_t)got))
		return;
	int status = forward_parse((struct str){ c->head.data, c->head.len }, &c->request, &err);
	if (status < 0) {
		char text[640];
		c->policy->status.refused++;
		str_format(text, sizeof text, "carrel: %s", err.text);
		connection_answer(c, 400, "Bad Request", text);
		return;
	}
	if (status > 0) {
		connection_watch(c, CLIENT, 0);
		judge(c);
	}
}

static void finish_connect(struct connection *c)
{
	int reason = 0;
	socklen_t len = sizeof reason;

	if (getsockopt(c->fds[UPSTREAM], SOL_SOCKET, SO_ERROR, &reason, &len) < 0)
		reason = errno;
	if (!reason) {
		on_connected(c);
		return;
	}
	c->reason = reason;
	connect_next(c);
}

void serve_on_event(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct connection *c = ctx;

	if (c->state == HEAD)
		read_head(c);
	else if (c->state == CONNECTING && fd == c->fds[UPSTREAM])
		finish_connect(c);
	else if (c->state == TUNNELING && fd == c->fds[UPSTREAM])
		read_tunnel(c);
	else if (c->state == RELAYING || c->state == DRAINING)
		connection_pump(c);
	else if (events & (EPOLLHUP | EPOLLERR)) /* the client has gone */
		connection_close(c);
}

void serve_on_timer(struct loop *loop, void *ctx)
{
	struct connection *c = ctx;
	uint64_t idle_ms = clock_monotonic_ms() - c->active_ms;

	c->timer = NULL;
	switch (c->state) {
	case HEAD:
		connection_answer(
			c, 408, "Request Timeout", "carrel: the request did not arrive in time");
		break;
	case WAITING:
		refuse_host(c, "isn't a host that may be reached from here");
		break;
	case CONNECTING:
		c->reason = ETIMEDOUT;
		connect_next(c);
		break;
	case TUNNELING:
		fail_host(c, 504, "Gateway Timeout", "it did not respond in time");
		break;
	case RELAYING:
		if (idle_ms >= c->policy->given.limits.idle_ms)
			connection_break(c);
		else
			connection_set_timer(c, c->policy->given.limits.idle_ms - idle_ms);
		break;
	case DRAINING:
		connection_close(c);
		break;
	case RESOLVING:
	case CLOSED:
		break;
	}
}

static void add_connection(struct policy *policy, int fd)
{
	struct server *server = policy->server;
	struct connection *c = xzalloc(sizeof *c);
	*c = (struct connection){ .policy = policy,
		.next = server->connections,
		.fds = { fd, -1 },
		.events = { UNWATCHED, UNWATCHED } };
	buf_init(&c->head, FORWARD_HEAD_MAX);
	buf_init(&c->tunnel, TUNNEL_HEAD_MAX);
	server->connections = c;
	server->count++;
	policy->count++;
	set_no_delay(fd);
	connection_set_timer(c, policy->given.limits.head_ms);
	connection_watch(c, CLIENT, EPOLLIN);
}

static bool has_room(const struct policy *policy)
{
	return policy->count < policy->given.limits.connections &&
	       (policy->server->count < CONNECTIONS_MAX || policy->count < CONNECTIONS_SHARE);
}

static void resume(struct loop *loop, void *ctx)
{
	serve_on_closed(ctx);
}

static void on_listener(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct policy *policy = ctx;

	if (!has_room(policy)) {
		watch_listeners(policy, false);
		return;
	}
	int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client >= 0) {
		add_connection(policy, client);
	} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		/* No memory or descriptors: it may come back. */
		watch_listeners(policy, false);
		loop_after(loop, PAUSE_MS, resume, policy->server);
	}
}

static void watch_listeners(struct policy *policy, bool is_wanted)
{
	struct loop *loop = policy->server->loop;

	if (policy->is_paused != is_wanted)
		return;
	policy->is_paused = !is_wanted;
	for (size_t i = 0; i < policy->listener_count; i++)
		if (is_wanted)
			loop_watch(loop, policy->listeners[i], EPOLLIN, on_listener, policy, NULL);
		else
			loop_unwatch(loop, policy->listeners[i]);
}

void serve_on_closed(struct server *server)
{
	for (struct policy *policy = server->policies; policy; policy = policy->next)
		if (policy->is_paused && has_room(policy))
			watch_listeners(policy, true);
}

static bool is_socket(int fd, int type, bool is_listening)
{
	int found = 0, accepts = 0;
	socklen_t len = sizeof found;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &found, &len) == 0 && found == type &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &len) == 0 &&
	       (accepts != 0) == is_listening;
}

static int add_listener(struct policy *policy, int *fd, struct error *err)
{
	if (!is_socket(*fd, SOCK_STREAM, true))
		return fail(err, ERR_INVALID, "not a listening socket");
	if (policy->listener_count == LISTENERS_MAX)
		return fail(err, ERR_LIMIT, "more than %d listeners", LISTENERS_MAX);
	if (fd_set_nonblocking(*fd) < 0)
		return fail_errno(err, "prepare a listening socket");
	if (!policy->is_paused &&
		loop_watch(policy->server->loop, *fd, EPOLLIN, on_listener, policy, err) < 0)
		return -1;
	policy->listeners[policy->listener_count++] = take_fd(fd);
	return 0;
}

static int add_host(struct policy *policy, const struct forward_host *host, struct error *err)
{
	size_t at = 0;

	if (host_check(host, err) < 0)
		return -1;
	while (at < policy->host_count && (policy->hosts[at].port != host->port ||
						  strcmp(policy->names[at], host->host) != 0))
		at++;
	if (at < policy->host_count) {
		policy->hosts[at].is_named |= host->is_named;
		return 0;
	}
	if (at == HOSTS_MAX)
		return fail(err, ERR_LIMIT, "more than %d hosts", HOSTS_MAX);
	str_copy(policy->names[at], HOST_SIZE, host->host);
	policy->hosts[at] = (struct forward_host){
		.host = policy->names[at], .port = host->port, .is_named = host->is_named
	};
	policy->host_count++;
	return 0;
}

static void close_policy(struct policy *policy)
{
	struct server *server = policy->server;

	while (policy->listener_count) {
		int *fd = &policy->listeners[--policy->listener_count];
		loop_unwatch(server->loop, *fd);
		fd_close(fd);
	}
	for (struct connection *c = server->connections; c; c = c->next)
		if (c->policy == policy && c->state != CLOSED)
			connection_break(c);
	resolver_done(&policy->resolver);
	policy->host_count = 0;
}

/* Its connections are freed in the next turn; none of them looks at its policy then. */
static void free_policy(struct policy *policy)
{
	struct server *server = policy->server;
	struct policy **at = &server->policies;

	close_policy(policy);
	while (*at != policy)
		at = &(*at)->next;
	*at = policy->next;
	server->policy_count--;
	loop_unwatch(server->loop, policy->channel);
	fd_close(&policy->channel);
	free(policy);
}

static void judge_waiting(const struct policy *policy)
{
	for (struct connection *c = policy->server->connections; c; c = c->next)
		if (c->state == WAITING && c->policy == policy)
			judge(c);
}

static int obey(
	struct policy *policy, const struct egress_message *message, int *fd, struct error *err)
{
	const struct forward_host host = {
		.host = message->host, .port = message->port, .is_named = message->is_named
	};

	if (message->zero || !memchr(message->host, '\0', sizeof message->host) ||
		message->is_named > 1 || (*fd >= 0) != (message->type == EGRESS_SERVE))
		return fail(err, ERR_INVALID, "a malformed message to the egress process");
	switch (message->type) {
	case EGRESS_SERVE:
		return add_listener(policy, fd, err);
	case EGRESS_ALLOW:
		return add_host(policy, &host, err);
	case EGRESS_SETTLE:
		policy->given.is_settled = true;
		return 0;
	case EGRESS_LOOK:
		return 0;
	case EGRESS_END:
		close_policy(policy);
		return 0;
	default:
		return fail(err, ERR_INVALID, "message %u to the egress process", message->type);
	}
}

void egress_reply(int channel, const struct error *err, const struct egress_status *status)
{
	struct egress_reply reply = { .code = err ? (int32_t)err->code : ERR_NONE };

	str_copy(reply.text, sizeof reply.text, err ? err->text : "");
	if (status)
		reply.status = *status;
	/* A client that reads no replies has ended, or reads the next one. */
	(void)!send(channel, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* One packet of exactly `size` bytes with at most one descriptor, *fd, which is the caller's. 1:
 * received. 0: no packet yet. -1: an invalid packet (*err), or, with *is_over, the end. */
static int receive(int channel, void *data, size_t size, int *fd, bool *is_over, struct error *err)
{
	struct fd_message came;
	ssize_t got = fd_message_receive(channel, data, size, 0, &came);

	*is_over = got == 0 || (got < 0 && errno != EAGAIN);
	if (got <= 0)
		return *is_over ? -1 : 0;
	if (got != (ssize_t)size || came.is_cut || came.has_lost_fds || came.fd_count > 1) {
		fd_message_close(&came, 0);
		return fail(err, ERR_INVALID, "a malformed message to the egress process");
	}
	*fd = came.fd_count ? came.fds[0] : -1;
	return 1;
}

static void on_channel(struct loop *loop, int channel, uint32_t events, void *ctx)
{
	struct policy *policy = ctx;
	struct egress_message message = { 0 };
	struct error err;
	auto_close int fd = -1;
	bool is_over;
	int got = receive(channel, &message, sizeof message, &fd, &is_over, &err);

	if (got == 0)
		return;
	if (is_over) {
		free_policy(policy);
		return;
	}
	int status = got < 0 ? -1 : obey(policy, &message, &fd, &err);
	egress_reply(channel, status < 0 ? &err : NULL, &policy->status);
	judge_waiting(policy);
}

static void set_limits(struct egress_limits *limits)
{
	static const struct egress_limits defaults = { .head_ms = 10000,
		.wait_ms = 30000,
		.resolve_ms = 10000,
		.connect_ms = 10000,
		.idle_ms = 120000,
		.connections = 256 };
	const uint64_t *otherwise = (const uint64_t *)&defaults;
	uint64_t *values = (uint64_t *)limits;

	for (size_t i = 0; i < sizeof defaults / sizeof *values; i++)
		if (!values[i])
			values[i] = otherwise[i];
}

/* One line of text, which can't be mistaken for two headers. */
static bool is_line(const char *text, size_t size)
{
	const char *end = memchr(text, '\0', size);

	for (; end && text < end; text++)
		if ((unsigned char)*text < ' ' && *text != '\t')
			return false;
	return end != NULL;
}

static int check_proxy(const struct forward_proxy *proxy, struct error *err)
{
	const struct forward_host host = { .host = proxy->host, .port = proxy->port };

	if (!is_line(proxy->host, sizeof proxy->host) ||
		!is_line(proxy->authorization, sizeof proxy->authorization))
		return fail(err, ERR_INVALID, "a malformed proxy of a policy");
	return proxy->host[0] ? host_check(&host, err) : 0;
}

static int add_policy(
	struct server *server, const struct egress_policy *given, int *channel, struct error *err)
{
	if (given->is_settled > 1 || !is_line(given->proxies.except, sizeof given->proxies.except))
		return fail(err, ERR_INVALID, "a malformed policy");
	if (check_proxy(&given->proxies.https, err) < 0 ||
		check_proxy(&given->proxies.http, err) < 0)
		return -1;
	if (server->policy_count == POLICIES_MAX)
		return fail(err, ERR_LIMIT, "more than %d policies", POLICIES_MAX);
	struct policy *policy = xzalloc(sizeof *policy);
	policy->server = server;
	policy->given = *given;
	set_limits(&policy->given.limits);
	policy->resolver = (struct resolver){ .loop = server->loop,
		.done = on_lookup,
		.ctx = policy,
		.timeout_ms = policy->given.limits.resolve_ms };
	if (loop_watch(server->loop, *channel, EPOLLIN, on_channel, policy, err) < 0) {
		free(policy);
		return -1;
	}
	policy->channel = take_fd(channel);
	policy->next = server->policies;
	server->policies = policy;
	server->policy_count++;
	return 0;
}

static void on_service(struct loop *loop, int service, uint32_t events, void *ctx)
{
	struct server *server = ctx;
	struct egress_policy given;
	struct error err;
	auto_close int channel = -1;
	bool is_over;
	int got = receive(service, &given, sizeof given, &channel, &is_over, &err);

	/* No client is left that could begin a policy. An empty packet looks the same, but leaves
	 * the socket connected. */
	if (is_over && events & EPOLLHUP)
		loop_stop(loop);
	/* A packet without a channel can't be answered. */
	if (got <= 0 || !is_socket(channel, SOCK_SEQPACKET, false) || fd_set_nonblocking(channel))
		return;
	int fd = channel;
	int status = add_policy(server, &given, &channel, &err);
	egress_reply(fd, status < 0 ? &err : NULL, NULL);
}

int egress_run(int service, struct error *err)
{
	struct server *server = xzalloc(sizeof *server);
	if (loop_new(&server->loop, err) < 0 || fd_set_nonblocking(service) < 0 ||
		loop_watch(server->loop, service, EPOLLIN, on_service, server, err) < 0)
		return -1;
	/* The process ends afterwards, and all that it holds with it. */
	return loop_run(server->loop, err);
}

void egress_refuse(int service, const struct error *why)
{
	struct egress_policy given;
	struct error ignored;
	auto_close int channel = -1;
	bool is_over;

	if (receive(service, &given, sizeof given, &channel, &is_over, &ignored) > 0)
		egress_reply(channel, why, NULL);
}
