/* The loop of the role: its service socket, and clients that connect to listeners of policies. */
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "egress/internal.h"

#define PAUSE_MS 200 /* after accept has failed */
#define ACCEPTS 16   /* in a turn of the loop */
/* Maximum of connections of all policies, or a quarter of the descriptors. Beyond it each policy
 * may still have CONNECTIONS_SHARE, so that no policy starves. */
#define CONNECTIONS_MAX 4096
#define CONNECTIONS_SHARE 8

static bool has_room(const struct policy *policy)
{
	return policy->count < policy->limits.connections &&
	       (policy->server->count < policy->server->count_max ||
		       policy->count < CONNECTIONS_SHARE);
}

void serve_on_closed(struct server *server)
{
	if (!server->paused)
		return;
	for (struct policy *policy = server->policies; policy; policy = policy->next)
		if (policy->is_paused && has_room(policy))
			policy_watch_listeners(policy, true);
}

static void resume(struct loop *loop, void *ctx)
{
	struct server *server = ctx;
	server->resumer = NULL;
	serve_on_closed(server);
}

/* The last refusal stays what it was: no rule could allow this one. */
static void refuse_address(struct connection *c, const union address *address)
{
	char text[48], why[128];
	address_print(address, text);
	str_format(why, sizeof why, "%s is not an address that the resolver has given out",
		str_starts_with(str_from(text), "::ffff:") ? text + strlen("::ffff:") : text);
	policy_refused(c->policy, EGRESS_FRONT_NAMES, "", c->port, NULL, why);
	connection_break(c);
}

static void add_connection(const struct listener *listener, int fd)
{
	struct connection *c = connection_new(listener->policy, fd);
	union address address = { 0 };
	socklen_t len = sizeof address;
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (listener->kind == EGRESS_PROXY) {
		connection_set_timer(c, c->policy->limits.head_ms);
		connection_watch(c, CLIENT, EPOLLIN);
		return;
	}
	c->front = EGRESS_FRONT_NAMES;
	c->is_tunnel = true;
	getsockname(fd, &address.any, &len);
	c->port = ntohs(address.ipv4.sin_port); /* sin6_port lies at the same place */
	if (!names_find(c->policy, &address, c->host)) {
		refuse_address(c, &address);
		return;
	}
	connection_watch(c, CLIENT, 0);
	front_judge(c);
}

void serve_on_listener(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	const struct listener *listener = ctx;
	struct policy *policy = listener->policy;
	struct server *server = policy->server;
	for (int i = 0; i < ACCEPTS; i++) {
		if (!has_room(policy)) {
			policy_watch_listeners(policy, false);
			return;
		}
		int client = foreign_accept(fd);
		if (client >= 0) {
			add_connection(listener, client);
			continue;
		}
		if (errno == EAGAIN || errno == ECONNABORTED)
			return;
		if (errno == EINTR) {
			policy_give_up(policy);
			return;
		}
		/* No memory or descriptors: it may come back. */
		policy_watch_listeners(policy, false);
		if (!server->resumer)
			server->resumer = loop_after(loop, PAUSE_MS, resume, server);
		return;
	}
}

static void on_service(struct loop *loop, int service, uint32_t events, void *ctx)
{
	struct server *server = ctx;
	struct egress_policy given;
	struct error err;
	auto_close int channel = -1;
	bool is_over;
	int got = policy_receive(service, &given, sizeof given, &channel, &is_over, &err);
	/* No client is left that could begin a policy. An empty packet looks the same, but leaves
	 * the socket connected. */
	if (is_over && events & EPOLLHUP)
		loop_stop(loop);
	/* A packet without a channel can't be answered. */
	if (got <= 0 || !policy_is_socket(channel, SOCK_SEQPACKET, false) ||
		fd_set_nonblocking(channel))
		return;
	int fd = channel;
	int status = policy_open(server, &given, &channel, &err);
	egress_reply(fd, status < 0 ? &err : NULL, NULL);
}

int egress_run(int service, struct error *err)
{
	struct server *server = xzalloc(sizeof *server);
	struct rlimit limit = { .rlim_cur = 1024 };
	getrlimit(RLIMIT_NOFILE, &limit);
	server->count_max = CONNECTIONS_MAX;
	if (limit.rlim_cur / 4 < server->count_max)
		server->count_max = (unsigned)(limit.rlim_cur / 4);
	server->lookups.last = &server->lookups.first;
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
	if (policy_receive(service, &given, sizeof given, &channel, &is_over, &ignored) > 0)
		egress_reply(channel, why, NULL);
}
