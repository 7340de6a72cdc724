/* Names for programs that know no proxy: a resolver that answers from a table, and sends no query
 * on. A name that may be reached gets an address of a range that is local to the sandbox's network
 * namespace, where sockets of this role listen on every address: a connection to such an address is
 * one to its name.
 * 1. Every name of a policy has an address of its own. It is given to another name only when nobody
 * has asked for it or connected to it for twice the time that an answer holds, and no connection to
 * it is open; and all other addresses of the range come before it.
 * 2. What is answered decides nothing: a connection is judged by its name once more. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "egress/internal.h"
#include "format/network/dns.h"

#define NAMES_MAX 1024 /* of one policy */
#define TTL_S 60
#define KEPT_MS (2 * TTL_S * 1000)
#define RANGE_IPV4 0xc6120000u /* 198.18.0.0/15 */
#define NUMBERS 131070	       /* its addresses but the first and the last */
#define QUERIES 32	       /* packets of a socket in a turn of the loop */
#define STREAMS_MAX 16	       /* TCP connections of one policy */
#define STREAM_MS 10000	       /* that one may be silent */
#define PAUSE_MS 200	       /* after accept has failed */
#define SAME_MS 1000	       /* a name that is refused again so soon is not recorded again */

/* The same in IPv6; the number is in the last four bytes. */
static const uint8_t range_ipv6[16] = { 0xfd, 0, 0, 0xca };

struct name {
	struct name *older, *newer; /* by their last use */
	uint64_t used_ms;
	uint32_t number; /* its place in the ranges, from 1 */
	char host[];
};
struct stream { /* a client that asks over TCP */
	struct names *names;
	struct stream *next, **link;
	int fd;
	struct buf in, out;
	struct loop_timer *timer;
};
struct names {
	struct policy *policy;
	struct map hosts, numbers;
	struct name *oldest, *newest;
	uint32_t last; /* number that was given out */
	struct stream *streams;
	unsigned stream_count;
	struct loop_timer *resumer;
	char refused[HOST_SIZE]; /* last */
	uint64_t refused_ms;
};

static struct names *names_of(struct policy *policy)
{
	struct names *names = policy->names;
	if (names)
		return names;
	names = xzalloc(sizeof *names);
	names->policy = policy;
	map_init(&names->hosts, NULL);
	map_init(&names->numbers, NULL);
	return policy->names = names;
}

/* ---- the table ---- */

static struct str number_key(const uint32_t *number)
{
	return (struct str){ (const char *)number, sizeof *number };
}

static void unlink_name(struct names *names, struct name *name)
{
	*(name->older ? &name->older->newer : &names->oldest) = name->newer;
	*(name->newer ? &name->newer->older : &names->newest) = name->older;
}

static void link_newest(struct names *names, struct name *name)
{
	name->used_ms = clock_monotonic_ms();
	name->older = names->newest;
	name->newer = NULL;
	*(names->newest ? &names->newest->newer : &names->oldest) = name;
	names->newest = name;
}

static void use(struct names *names, struct name *name)
{
	unlink_name(names, name);
	link_newest(names, name);
}

static void names_forget(struct names *names, struct name *name)
{
	unlink_name(names, name);
	map_remove(&names->hosts, str_from(name->host));
	map_remove(&names->numbers, number_key(&name->number));
	free(name);
}

static bool is_connected(const struct policy *policy, const char *host)
{
	for (const struct connection *c = policy->connections; c; c = c->next)
		if (c->front == EGRESS_FRONT_NAMES && !strcmp(c->host, host))
			return true;
	return false;
}

/* false: all names were used of late. */
static bool make_room(struct names *names)
{
	uint64_t now = clock_monotonic_ms();
	if (names->hosts.live < NAMES_MAX)
		return true;
	for (struct name *name = names->oldest; name; name = name->newer) {
		if (now - name->used_ms < KEPT_MS)
			return false;
		if (is_connected(names->policy, name->host))
			continue;
		names_forget(names, name);
		return true;
	}
	return false;
}

/* The name of a host that may be reached; NULL: there is no room. */
static struct name *give_number(struct names *names, const char *host)
{
	struct name *name = map_get(&names->hosts, str_from(host));
	size_t size = strlen(host) + 1;
	if (name) {
		use(names, name);
		return name;
	}
	if (!make_room(names))
		return NULL;
	do
		names->last = names->last % NUMBERS + 1;
	while (map_get(&names->numbers, number_key(&names->last)));
	name = xzalloc(sizeof *name + size);
	name->number = names->last;
	memcpy(name->host, host, size);
	map_add(&names->hosts, str_from(name->host), name);
	map_add(&names->numbers, number_key(&name->number), name);
	link_newest(names, name);
	return name;
}

/* 0: not an address of the ranges. */
static uint32_t number_of(const union address *address)
{
	uint32_t number;
	if (address->any.sa_family == AF_INET) {
		number = ntohl(address->ipv4.sin_addr.s_addr);
	} else if (address->any.sa_family == AF_INET6) {
		const uint8_t *bytes = address->ipv6.sin6_addr.s6_addr;
		memcpy(&number, bytes + 12, sizeof number);
		number = ntohl(number);
		if (memcmp(bytes, range_ipv6, 12) == 0)
			return number;
		if (!IN6_IS_ADDR_V4MAPPED(&address->ipv6.sin6_addr))
			return 0;
	} else {
		return 0;
	}
	return number > RANGE_IPV4 && number - RANGE_IPV4 <= NUMBERS ? number - RANGE_IPV4 : 0;
}

bool names_find(struct policy *policy, const union address *address, char host[HOST_SIZE])
{
	struct names *names = policy->names;
	uint32_t number = number_of(address);
	struct name *name = names ? map_get(&names->numbers, number_key(&number)) : NULL;
	if (!name)
		return false;
	use(names, name);
	return str_copy(host, HOST_SIZE, name->host);
}

/* ---- answers ---- */

/* Whether what listens for names can be reached by IPv6, too. */
static bool has_ipv6(const struct policy *policy)
{
	int domain = 0;
	socklen_t len = sizeof domain;
	for (const struct listener *l = policy->listeners; l; l = l->next)
		if (l->kind == EGRESS_NAMES &&
			getsockopt(l->fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
			domain == AF_INET6)
			return true;
	return false;
}

/* Clients ask for both kinds of addresses, and again when they get none. */
static void names_refuse(struct names *names, const char *host)
{
	struct policy *policy = names->policy;
	uint64_t now = clock_monotonic_ms();
	struct network_verdict verdict = policy_decide(policy, host, 443);
	if (!strcmp(names->refused, host) && now - names->refused_ms < SAME_MS)
		return;
	str_copy(names->refused, sizeof names->refused, host);
	names->refused_ms = now;
	policy_refused(policy, EGRESS_FRONT_RESOLVER, host, 0, verdict.rule,
		network_reason_text(verdict.reason));
}

static enum dns_code names_look_up(
	struct names *names, const struct dns_query *query, uint8_t bytes[16], bool *has_address)
{
	struct policy *policy = names->policy;
	char host[HOST_SIZE];
	bool is_ipv4 = query->type == DNS_A, is_ipv6 = query->type == DNS_AAAA && has_ipv6(policy);
	if (!query->name[0] || network_normalize(str_from(query->name), host, NULL) < 0 ||
		network_host_is_address(host))
		return DNS_NO_NAME;
	if (!policy_names(policy, host)) {
		names_refuse(names, host);
		return DNS_NO_NAME;
	}
	if (!is_ipv4 && !is_ipv6)
		return DNS_OK;
	const struct name *name = give_number(names, host);
	if (!name)
		return DNS_FAILED;
	uint32_t number = htonl(is_ipv4 ? RANGE_IPV4 + name->number : name->number);
	memcpy(bytes, range_ipv6, sizeof range_ipv6);
	memcpy(bytes + (is_ipv4 ? 0 : 12), &number, sizeof number);
	*has_address = true;
	return DNS_OK;
}

/* false: there is nothing to answer. */
static bool names_answer(struct names *names, struct str packet, struct buf *out)
{
	struct dns_query query;
	uint8_t bytes[16];
	bool has_address = false;
	int code = dns_parse(packet, &query);
	if (code < 0)
		return false;
	if (code == DNS_OK)
		code = names_look_up(names, &query, bytes, &has_address);
	dns_write(&query, (enum dns_code)code, has_address ? bytes : NULL, TTL_S, out);
	return true;
}

static void serve_packets(struct names *names, int fd)
{
	char data[DNS_QUERY_MAX + 1]; /* a longer packet is seen to be one */
	for (int i = 0; i < QUERIES; i++) {
		union address peer;
		socklen_t len = sizeof peer;
		ssize_t got = recvfrom(fd, data, sizeof data, MSG_DONTWAIT, &peer.any, &len);
		if (got < 0 && errno == EAGAIN)
			return;
		auto_buf struct buf out = buf_empty(DNS_ANSWER_MAX);
		/* A client that takes no answer asks again. */
		if (got >= 0 && names_answer(names, (struct str){ data, (size_t)got }, &out))
			(void)!sendto(
				fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL, &peer.any, len);
	}
}

/* ---- the same over TCP ---- */

static void close_stream(struct stream *stream)
{
	struct names *names = stream->names;
	struct loop *loop = names->policy->server->loop;
	*stream->link = stream->next;
	if (stream->next)
		stream->next->link = stream->link;
	names->stream_count--;
	loop_unwatch(loop, stream->fd);
	loop_cancel(loop, stream->timer);
	fd_close(&stream->fd);
	buf_done(&stream->in);
	buf_done(&stream->out);
	free(stream);
}

static void on_silence(struct loop *loop, void *ctx)
{
	struct stream *stream = ctx;
	stream->timer = NULL;
	close_stream(stream);
}

/* false: it is to be closed. */
static bool send_answers(struct stream *stream)
{
	while (stream->out.len) {
		ssize_t sent = send(
			stream->fd, stream->out.data, stream->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN;
		buf_drop_front(&stream->out, (size_t)sent);
	}
	return true;
}

static bool read_queries(struct stream *stream)
{
	char data[DNS_QUERY_MAX + 2];
	ssize_t got = recv(stream->fd, data, sizeof data, MSG_DONTWAIT);
	struct str message, rest;
	int status;
	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!got || !buf_append(&stream->in, data, (size_t)got))
		return false;
	rest = (struct str){ stream->in.data, stream->in.len };
	while ((status = dns_take_frame(rest, &message, &rest)) > 0) {
		auto_buf struct buf out = buf_empty(DNS_ANSWER_MAX);
		if (names_answer(stream->names, message, &out))
			dns_put_frame((struct str){ out.data, out.len }, &stream->out);
	}
	buf_drop_front(&stream->in, stream->in.len - rest.len);
	return status == 0;
}

static void on_stream(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct stream *stream = ctx;
	/* Nothing is read while answers wait. */
	bool is_open = stream->out.len || read_queries(stream);
	if (!is_open || !send_answers(stream)) {
		close_stream(stream);
		return;
	}
	loop_cancel(loop, stream->timer);
	stream->timer = loop_after(loop, STREAM_MS, on_silence, stream);
	loop_change(loop, fd, stream->out.len ? EPOLLOUT : EPOLLIN, NULL);
}

static void add_stream(struct names *names, int client)
{
	struct loop *loop = names->policy->server->loop;
	struct stream *stream = xzalloc(sizeof *stream);
	*stream = (struct stream){
		.names = names, .next = names->streams, .link = &names->streams, .fd = client
	};
	if (stream->next)
		stream->next->link = &stream->next;
	names->streams = stream;
	names->stream_count++;
	buf_init(&stream->in, 2 * (DNS_QUERY_MAX + 2));
	buf_init(&stream->out, BUF_MAX_DEFAULT);
	stream->timer = loop_after(loop, STREAM_MS, on_silence, stream);
	if (loop_watch(loop, client, EPOLLIN, on_stream, stream, NULL) < 0)
		close_stream(stream);
}

static void watch_resolvers(struct names *names, uint32_t events)
{
	for (struct listener *l = names->policy->listeners; l; l = l->next)
		if (l->kind == EGRESS_RESOLVER)
			loop_change(names->policy->server->loop, l->fd, events, NULL);
}

static void resume(struct loop *loop, void *ctx)
{
	struct names *names = ctx;
	names->resumer = NULL;
	watch_resolvers(names, EPOLLIN);
}

static void accept_stream(struct names *names, int fd)
{
	auto_close int client = foreign_accept(fd);
	if (client >= 0 && names->stream_count < STREAMS_MAX) {
		add_stream(names, take_fd(&client));
	} else if (client < 0 && errno == EINTR) {
		policy_give_up(names->policy);
	} else if (client < 0 && errno != EAGAIN && errno != ECONNABORTED && !names->resumer) {
		/* No memory or descriptors: it may come back. */
		watch_resolvers(names, 0);
		names->resumer = loop_after(names->policy->server->loop, PAUSE_MS, resume, names);
	}
}

void names_serve(struct listener *listener)
{
	struct names *names = names_of(listener->policy);
	if (policy_is_socket(listener->fd, SOCK_DGRAM, false))
		serve_packets(names, listener->fd);
	else
		accept_stream(names, listener->fd);
}

void names_done(struct policy *policy)
{
	struct names *names = policy->names;
	if (!names)
		return;
	for (struct stream *stream = names->streams, *next; stream; stream = next) {
		next = stream->next;
		close_stream(stream);
	}
	for (struct name *name = names->oldest, *newer; name; name = newer) {
		newer = name->newer;
		names_forget(names, name);
	}
	map_done(&names->hosts);
	map_done(&names->numbers);
	loop_cancel(policy->server->loop, names->resumer);
	free(names);
	policy->names = NULL;
}
