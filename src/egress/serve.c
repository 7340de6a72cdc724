/* The loop of the forwarder: its control socket, the sandboxes' listeners, and what becomes of a
 * request. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "egress/connection.h"
#include "linux/fd_message.h"

#define PAUSE_MS 200	     /* after accept has failed */
#define TUNNEL_MS 30000	     /* for a proxy to connect */
#define TUNNEL_HEAD_MAX 8192 /* of its answer */

static void watch_listeners(struct server *server, bool is_wanted);

static void answer_host(struct connection *c, int code, const char *title, const char *why)
{
	char text[640];

	str_format(text, sizeof text, "carrel: %s:%u %s", c->request.host, c->request.port, why);
	connection_answer(c, code, title, text);
}

static void refuse_host(struct connection *c, const char *why)
{
	struct shared *shared = c->server->shared;

	shared->counts.refused++;
	__atomic_add_fetch(&shared->sequence, 1, __ATOMIC_SEQ_CST);
	str_format(shared->last_refused, sizeof shared->last_refused, "%s:%u", c->request.host,
		c->request.port);
	__atomic_add_fetch(&shared->sequence, 1, __ATOMIC_SEQ_CST);
	answer_host(c, 403, "Forbidden", why);
}

/* Not reached: why is told to the client and, for messages, to the parent. */
static void fail_host(struct connection *c, int code, const char *title, const char *reason)
{
	struct shared *shared = c->server->shared;
	char why[400];

	if (c->proxy)
		str_format(why, sizeof why, "the proxy %s:%u: %s", c->proxy->host, c->proxy->port,
			reason);
	else
		str_copy(why, sizeof why, reason);

	__atomic_add_fetch(&shared->sequence, 1, __ATOMIC_SEQ_CST);
	str_format(shared->last_failure, sizeof shared->last_failure, "%s:%u: %s", c->request.host,
		c->request.port, why);
	__atomic_add_fetch(&shared->sequence, 1, __ATOMIC_SEQ_CST);
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
	auto_buf struct buf head;

	buf_init(&head, 4096);
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

/* Byte by byte at the end of what is there, so that nothing behind the head is taken: a tunnel's
 * first bytes belong to the client. */
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
	while (c->next_address < c->lookup->count) {
		union address address = c->lookup->addresses[c->next_address++];
		if (!c->is_named && !c->proxy && forward_address_is_closed(&address.any))
			continue;
		int status = connect_address(c, address);
		if (status == 0) {
			on_connected(c);
			return;
		}
		if (status > 0) {
			c->state = CONNECTING;
			connection_set_timer(c, c->server->limits.connect_ms);
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
	struct server *server = ctx;

	for (struct connection *c = server->connections; c; c = c->next)
		if (c->state == RESOLVING && c->lookup == lookup)
			use_lookup(c, lookup);
}

static void choose_proxy(struct connection *c)
{
	const struct forward_proxies *proxies = &c->server->proxies;
	const struct forward_proxy *proxy =
		c->request.is_connect ? &proxies->https : &proxies->http;

	if (proxy->host[0] &&
		!forward_proxy_is_excepted(proxies->except, c->request.host, c->request.port))
		c->proxy = proxy;
}

static void judge(struct connection *c)
{
	struct server *server = c->server;
	const struct policy *policy = c->policy;
	forward_hosts hosts = { .items = (struct forward_host *)(uintptr_t)policy->hosts,
		.count = policy->host_count };
	const struct forward_host *host = forward_decide(&hosts, &c->request);

	if (!host && policy->is_settled) {
		refuse_host(c, "isn't a host that may be reached from here");
		return;
	}
	if (!host) {
		if (c->state != WAITING)
			connection_set_timer(c, server->limits.wait_ms);
		c->state = WAITING;
		return;
	}
	c->is_named = host->is_named;
	c->state = RESOLVING;
	loop_cancel(server->loop, c->timer); /* a lookup has a time limit of its own */
	c->timer = NULL;
	choose_proxy(c);
	if (c->proxy && !c->is_named && proxy_must_not_reach(host->host)) {
		refuse_host(c, "is an address that isn't public");
		return;
	}
	c->lookup = resolver_ask(&server->resolver, c->proxy ? c->proxy->host : host->host);
	if (!c->lookup)
		fail_host(c, 502, "Bad Gateway", "can't be resolved now");
	else if (c->lookup->state != LOOKUP_RUNNING)
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
		c->server->shared->counts.refused++;
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
		if (idle_ms >= c->server->limits.idle_ms)
			connection_break(c);
		else
			connection_set_timer(c, c->server->limits.idle_ms - idle_ms);
		break;
	case DRAINING:
		connection_close(c);
		break;
	case RESOLVING:
	case CLOSED:
		break;
	}
}

static void add_connection(const struct listening *listening, int fd)
{
	struct server *server = listening->server;
	struct connection *c = calloc(1, sizeof *c);

	if (!c)
		abort();
	*c = (struct connection){ .server = server,
		.policy = listening->policy,
		.next = server->connections,
		.fds = { fd, -1 },
		.events = { UNWATCHED, UNWATCHED } };
	buf_init(&c->head, FORWARD_HEAD_MAX);
	buf_init(&c->tunnel, TUNNEL_HEAD_MAX);
	server->connections = c;
	server->count++;
	set_no_delay(fd);
	connection_set_timer(c, server->limits.head_ms);
	connection_watch(c, CLIENT, EPOLLIN);
}

static void resume(struct loop *loop, void *ctx)
{
	watch_listeners(ctx, true);
}

static void on_listener(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	const struct listening *listening = ctx;
	struct server *server = listening->server;

	if (server->count >= server->limits.connections) {
		watch_listeners(server, false);
		return;
	}
	int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client >= 0) {
		add_connection(listening, client);
	} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		/* No memory or descriptors: it may come back. */
		watch_listeners(server, false);
		loop_after(server->loop, PAUSE_MS, resume, server);
	}
}

static void watch_listeners(struct server *server, bool is_wanted)
{
	if (server->is_paused != is_wanted)
		return;
	server->is_paused = !is_wanted;
	for (size_t i = 0; i < server->listener_count; i++)
		if (is_wanted)
			loop_watch(server->loop, server->listeners[i]->fd, EPOLLIN, on_listener,
				server->listeners[i], NULL);
		else
			loop_unwatch(server->loop, server->listeners[i]->fd);
}

void serve_on_closed(struct server *server)
{
	if (server->is_paused)
		watch_listeners(server, true);
}

static struct policy *find_policy(struct server *server, uint32_t id)
{
	struct policy *policy = server->policies;

	while (policy && policy->id != id)
		policy = policy->next;
	return policy;
}

static struct policy *take_policy(struct server *server, uint32_t id, struct error *err)
{
	struct policy *policy = find_policy(server, id);

	if (policy)
		return policy;
	if (server->policy_count == POLICIES_MAX) {
		fail(err, ERR_LIMIT, "more than %d policies", POLICIES_MAX);
		return NULL;
	}
	policy = calloc(1, sizeof *policy);
	if (!policy)
		abort();
	policy->id = id;
	policy->next = server->policies;
	server->policies = policy;
	server->policy_count++;
	return policy;
}

static int add_listener(
	struct server *server, const struct policy *policy, int *fd, struct error *err)
{
	int is_listening = 0, type = 0;
	socklen_t len = sizeof is_listening;

	if (*fd < 0 || getsockopt(*fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) < 0 ||
		getsockopt(*fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || !is_listening ||
		type != SOCK_STREAM)
		return fail(err, ERR_INVALID, "not a listening socket");
	if (server->listener_count == LISTENERS_MAX)
		return fail(err, ERR_LIMIT, "more than %d listeners", LISTENERS_MAX);
	if (fd_set_nonblocking(*fd) < 0)
		return fail_errno(err, "prepare a listening socket");
	struct listening *listening = calloc(1, sizeof *listening);
	if (!listening)
		abort();
	*listening = (struct listening){ server, policy, *fd };
	if (!server->is_paused &&
		loop_watch(server->loop, *fd, EPOLLIN, on_listener, listening, err) < 0) {
		free(listening);
		return -1;
	}
	take_fd(fd);
	server->listeners[server->listener_count++] = listening;
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

/* Connections are freed in the next turn; none of them looks at its policy then. */
static void end_policy(struct server *server, struct policy *policy)
{
	size_t kept = 0;

	for (size_t i = 0; i < server->listener_count; i++) {
		struct listening *listening = server->listeners[i];
		if (listening->policy != policy) {
			server->listeners[kept++] = listening;
			continue;
		}
		if (!server->is_paused)
			loop_unwatch(server->loop, listening->fd);
		fd_close(&listening->fd);
		free(listening);
	}
	server->listener_count = kept;
	for (struct connection *c = server->connections; c; c = c->next)
		if (c->policy == policy && c->state != CLOSED)
			connection_break(c);
	for (struct policy **at = &server->policies; *at; at = &(*at)->next)
		if (*at == policy) {
			*at = policy->next;
			break;
		}
	server->policy_count--;
	free(policy);
}

static void judge_waiting(struct server *server)
{
	for (struct connection *c = server->connections; c; c = c->next)
		if (c->state == WAITING)
			judge(c);
}

static int obey(
	struct server *server, const struct control_message *message, int *fd, struct error *err)
{
	struct forward_host host = {
		.host = message->host, .port = message->port, .is_named = message->is_named
	};

	if (message->zero || !memchr(message->host, '\0', sizeof message->host) ||
		message->is_named > 1 || (*fd >= 0) != (message->type == CONTROL_SERVE))
		return fail(err, ERR_INVALID, "a malformed message to the forwarder");
	if (message->type == CONTROL_END) {
		struct policy *ended = find_policy(server, message->policy);
		if (ended)
			end_policy(server, ended);
		return 0;
	}
	if (message->type < CONTROL_SERVE || message->type > CONTROL_SETTLE)
		return fail(err, ERR_INVALID, "message %u to the forwarder", message->type);
	struct policy *policy = take_policy(server, message->policy, err);
	if (!policy)
		return -1;
	if (message->type == CONTROL_SERVE)
		return add_listener(server, policy, fd, err);
	if (message->type == CONTROL_ALLOW)
		return add_host(policy, &host, err);
	policy->is_settled = true;
	return 0;
}

void serve_reply(int control, const struct error *err)
{
	struct control_reply reply = { .code = err ? (int32_t)err->code : ERR_NONE };

	str_copy(reply.text, sizeof reply.text, err ? err->text : "");
	/* A parent that doesn't listen has ended, or will be told by the next one. */
	(void)!send(control, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_control(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct server *server = ctx;
	struct control_message message;
	struct fd_message came;
	struct error err;
	ssize_t got = fd_message_receive(fd, &message, sizeof message, MSG_DONTWAIT, &came);
	auto_close int passed = came.fd_count == 1 ? came.fds[0] : -1;

	if (came.fd_count > 1)
		fd_message_close(&came, 0);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) { /* the parent has ended, or wants this one to */
		loop_stop(loop);
		return;
	}
	int status = 0;
	if (got != (ssize_t)sizeof message || came.is_cut || came.has_lost_fds)
		status = fail(&err, ERR_INVALID, "a message of %zd bytes to the forwarder", got);
	else
		status = obey(server, &message, &passed, &err);
	serve_reply(fd, status < 0 ? &err : NULL);
	judge_waiting(server);
}

static void set_limits(struct forward_limits *limits, const struct forward_limits *wanted)
{
	*limits = *wanted;
	limits->head_ms = wanted->head_ms ? wanted->head_ms : 10000;
	limits->wait_ms = wanted->wait_ms ? wanted->wait_ms : 30000;
	limits->resolve_ms = wanted->resolve_ms ? wanted->resolve_ms : 10000;
	limits->connect_ms = wanted->connect_ms ? wanted->connect_ms : 10000;
	limits->idle_ms = wanted->idle_ms ? wanted->idle_ms : 120000;
	limits->connections = wanted->connections ? wanted->connections : 256;
}

static int prepare(struct server *server, const struct forward_options *options, int control,
	struct shared *shared, struct error *err)
{
	if (loop_new(&server->loop, err) < 0)
		return -1;
	server->shared = shared;
	server->control = control;
	server->proxies = options->proxies;
	if (!server->proxies.except)
		server->proxies.except = "";
	set_limits(&server->limits, &options->limits);
	server->resolver = (struct resolver){ .loop = server->loop,
		.done = on_lookup,
		.ctx = server,
		.timeout_ms = server->limits.resolve_ms };
	struct policy *policy = take_policy(server, FORWARD_POLICY, err);
	policy->is_settled = options->is_settled;
	for (size_t i = 0; i < options->hosts.count; i++)
		if (add_host(policy, &options->hosts.items[i], err) < 0)
			return -1;
	return loop_watch(server->loop, control, EPOLLIN, on_control, server, err);
}

int serve_run(const struct forward_options *options, int control, struct shared *shared,
	struct error *err)
{
	struct server *server = calloc(1, sizeof *server);

	if (!server)
		abort();
	int status = prepare(server, options, control, shared, err);
	if (!status) {
		serve_reply(control, NULL);
		status = loop_run(server->loop, err);
		resolver_done(&server->resolver);
	}
	/* The process ends now, and the rest with it. */
	return status;
}
