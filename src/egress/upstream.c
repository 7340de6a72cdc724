/* Reaching a host that was allowed: resolve its name once, judge the addresses, connect to one of
 * them, and through a proxy ask it for the host. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "egress/internal.h"

#define TUNNEL_MS 30000	     /* for a proxy to connect */
#define TUNNEL_HEAD_MAX 8192 /* of its answer */

/* Not reached: the reason is told to the client and, for messages, to the holder of the policy. */
static void fail_upstream(struct connection *c, int code, const char *title, const char *reason)
{
	char why[400];
	if (c->proxy)
		str_format(why, sizeof why, "the proxy %s:%u: %s", c->proxy->host, c->proxy->port,
			reason);
	else
		str_copy(why, sizeof why, reason);
	front_fail(c, code, title, why);
}

/* 0: connected. 1: under way. -1: not this address. */
static int connect_address(struct connection *c, union address address)
{
	bool is_ipv4 = address.any.sa_family == AF_INET;
	uint16_t port = htons(c->proxy ? c->proxy->port : c->port);
	int on = 1;
	auto_close int fd = socket(
		address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return -1;
	*(is_ipv4 ? &address.ipv4.sin_port : &address.ipv6.sin6_port) = port;
	int status = connect(fd, &address.any, is_ipv4 ? sizeof address.ipv4 : sizeof address.ipv6);
	if (status < 0 && errno != EINPROGRESS)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	c->address = address;
	c->fds[UPSTREAM] = take_fd(&fd);
	return status < 0 ? 1 : 0;
}

/* ---- through a proxy ---- */

/* The host is asked for by CONNECT, also for http://: the proxy sees nothing of the request. */
static void begin_tunnel(struct connection *c)
{
	bool is_v6 = strchr(c->host, ':') != NULL;
	const char *open = is_v6 ? "[" : "", *close = is_v6 ? "]" : "";
	auto_buf struct buf head = buf_empty(4096);
	buf_printf(&head, "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n", open, c->host, close,
		c->port, open, c->host, close, c->port);
	if (c->proxy->authorization[0])
		buf_printf(&head, "Proxy-Authorization: %s\r\n", c->proxy->authorization);
	buf_text(&head, "\r\n");
	/* The first bytes of a connection: the socket takes them at once. */
	if (send(c->fds[UPSTREAM], head.data, head.len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		(ssize_t)head.len) {
		fail_upstream(c, 502, "Bad Gateway", "it accepts no request");
		return;
	}
	c->state = TUNNELING;
	buf_done(&c->tunnel);
	buf_init(&c->tunnel, TUNNEL_HEAD_MAX);
	connection_set_timer(c, TUNNEL_MS);
	connection_watch(c, UPSTREAM, EPOLLIN);
}

static void judge_tunnel(struct connection *c, struct str head)
{
	char why[128];
	if (head.len >= 12 &&
		(str_starts_with(head, "HTTP/1.1 2") || str_starts_with(head, "HTTP/1.0 2"))) {
		buf_done(&c->tunnel);
		front_connected(c);
		return;
	}
	if (str_starts_with(head, "HTTP/1.1 407") || str_starts_with(head, "HTTP/1.0 407")) {
		fail_upstream(c, 502, "Bad Gateway",
			"it rejects the credentials (HTTPS_PROXY=http://user:password@...)");
		return;
	}
	head.len = head.len < 12 ? head.len : 12;
	str_printable(why, sizeof why - 32, head);
	str_format(why + strlen(why), 32, " was its response");
	fail_upstream(c, 502, "Bad Gateway", why);
}

/* Reads byte by byte near the end of the head, so that nothing after it is consumed: the first
 * bytes of the tunnel belong to the client. */
static void read_tunnel(struct connection *c)
{
	for (;;) {
		char *room = buf_reserve(&c->tunnel, 1);
		if (!room) {
			fail_upstream(c, 502, "Bad Gateway", "its response is too long");
			return;
		}
		ssize_t got = recv(c->fds[UPSTREAM], room, 1, MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			fail_upstream(c, 502, "Bad Gateway", "it closed the connection");
			return;
		}
		buf_grew(&c->tunnel, 1);
		if (c->tunnel.len >= 4 &&
			!memcmp(c->tunnel.data + c->tunnel.len - 4, "\r\n\r\n", 4)) {
			judge_tunnel(c, (struct str){ c->tunnel.data, c->tunnel.len });
			return;
		}
	}
}

/* ---- connecting ---- */

static void on_connected(struct connection *c)
{
	free(c->attempt);
	c->attempt = NULL;
	if (c->proxy)
		begin_tunnel(c);
	else
		front_connected(c);
}

static void connect_next(struct connection *c)
{
	struct attempt *attempt = c->attempt;
	char why[160];
	connection_close_side(c, UPSTREAM);
	while (attempt->next < attempt->addresses.count) {
		int status = connect_address(c, attempt->addresses.items[attempt->next++]);
		if (status < 0) {
			attempt->reason = errno;
			continue;
		}
		if (status == 0) {
			on_connected(c);
			return;
		}
		c->state = CONNECTING;
		connection_set_timer(c, c->policy->limits.connect_ms);
		connection_watch(c, UPSTREAM, EPOLLOUT);
		return;
	}
	bool is_late = attempt->reason == ETIMEDOUT;
	str_copy(why, sizeof why, is_late ? "it does not answer" : strerror(attempt->reason));
	fail_upstream(c, is_late ? 504 : 502, is_late ? "Gateway Timeout" : "Bad Gateway", why);
}

/* An address of this machine, whose firewall doesn't see connections to itself. The kernel would
 * choose the same address as their source; nothing is sent to find that out. */
static bool is_own(union address to)
{
	bool is_ipv4 = to.any.sa_family == AF_INET;
	union address from = { 0 };
	socklen_t len = sizeof from;
	auto_close int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	*(is_ipv4 ? &to.ipv4.sin_port : &to.ipv6.sin6_port) = htons(1);
	if (connect(fd, &to.any, is_ipv4 ? sizeof to.ipv4 : sizeof to.ipv6) < 0 ||
		getsockname(fd, &from.any, &len) < 0)
		return false; /* it can't be reached at all */
	return is_ipv4 ? from.ipv4.sin_addr.s_addr == to.ipv4.sin_addr.s_addr
		       : IN6_ARE_ADDR_EQUAL(&from.ipv6.sin6_addr, &to.ipv6.sin6_addr);
}

/* Removes the addresses that the host may not have. */
static bool keep_allowed(struct connection *c)
{
	struct addresses *all = &c->attempt->addresses;
	const struct rules *rules = c->policy->rules;
	size_t count = 0;
	char text[48];
	for (size_t i = 0; i < all->count; i++) {
		const union address *address = &all->items[i];
		bool is_open = c->attempt->is_open ||
			       (rules && address_is_within(&address->any, rules->ranges,
						 rules->range_count)) ||
			       (!address_is_closed(&address->any) && !is_own(*address));
		c->address = *address; /* for the record of a refusal */
		address_print(address, text);
		if (is_open && rules &&
			network_decide(&rules->list, text, c->port).reason == NETWORK_REASON_DENIED)
			is_open = false;
		if (is_open)
			all->items[count++] = *address;
	}
	all->count = count;
	return count > 0;
}

static void use_addresses(struct connection *c, const struct addresses *found)
{
	c->lookup = NULL;
	if (!c->attempt)
		c->attempt = xzalloc(sizeof *c->attempt);
	*c->attempt = (struct attempt){ .addresses = *found,
		.reason = EHOSTUNREACH,
		/* A proxy is the operator's; trusted entries are, too. */
		.is_open = c->proxy || c->verdict.is_trusted || c->has_set_address };
	if (!keep_allowed(c)) {
		front_refuse(c, "is at an address that isn't public");
		return;
	}
	connect_next(c);
}

static void use_lookup(struct connection *c, const struct lookup *lookup)
{
	char why[320];
	if (lookup->state == LOOKUP_FOUND) {
		use_addresses(c, &lookup->found);
		return;
	}
	c->lookup = NULL;
	str_format(why, sizeof why, "can't be resolved: %s", lookup->reason);
	/* The title is all that clients show of the answer to a CONNECT; index.py looks for it. */
	fail_upstream(c, lookup->is_timeout ? 504 : 502, "Name Not Resolved", why);
}

void upstream_on_lookup(struct lookup *lookup, void *ctx)
{
	struct policy *policy = ctx;
	struct connection *next;
	for (struct connection *c = policy->connections; c; c = next) {
		next = c->next;
		if (c->state == RESOLVING && c->lookup == lookup)
			use_lookup(c, lookup);
	}
}

static void choose_proxy(struct connection *c)
{
	const struct proxies *proxies = c->policy->proxies;
	c->proxy = NULL;
	if (!proxies || c->has_set_address)
		return;
	bool is_plain = c->front == EGRESS_FRONT_HTTP;
	const struct forward_proxy *proxy = is_plain ? &proxies->given.http : &proxies->given.https;
	if (proxy->host[0] && !forward_proxy_is_excepted(proxies->given.except, c->host, c->port))
		c->proxy = proxy;
}

void upstream_begin(struct connection *c)
{
	const struct rules *rules = c->policy->rules;
	const union address *configured = rules ? map_get(&rules->hosts, str_from(c->host)) : NULL;
	struct addresses one = { .count = 1 };
	c->state = RESOLVING;
	connection_stop_timer(c); /* a lookup has a time limit of its own */
	c->has_set_address = configured != NULL;
	choose_proxy(c);
	if (c->proxy && !c->verdict.is_trusted && proxy_must_not_reach(c->host)) {
		front_refuse(c, "is an address that isn't public");
		return;
	}
	if (configured)
		one.items[0] = *configured;
	const char *host = c->proxy ? c->proxy->host : c->host;
	if (configured || address_read(host, &one.items[0])) {
		use_addresses(c, &one);
		return;
	}
	c->lookup = resolver_ask(&c->policy->resolver, host);
	if (!c->lookup)
		fail_upstream(c, 503, "Name Not Resolved", "too many names are being resolved");
	else if (c->lookup->state == LOOKUP_FOUND || c->lookup->state == LOOKUP_FAILED)
		use_lookup(c, c->lookup);
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
	c->attempt->reason = reason;
	connect_next(c);
}

void upstream_on_event(struct connection *c)
{
	if (c->state == CONNECTING)
		finish_connect(c);
	else
		read_tunnel(c);
}

void upstream_on_timer(struct connection *c)
{
	if (c->state == TUNNELING) {
		fail_upstream(c, 504, "Gateway Timeout", "it did not respond in time");
		return;
	}
	c->attempt->reason = ETIMEDOUT;
	connect_next(c);
}
