/* getaddrinfo blocks, and reads what strangers send: a process a name, which can't do more than the
 * forwarder itself and hands back a fixed struct. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "egress/internal.h"

struct answer { /* less than PIPE_BUF: written and read in one piece */
	int32_t status;
	uint32_t count;
	union address addresses[ADDRESSES_MAX];
};

static bool keep_address(union address *out, const struct addrinfo *info)
{
	socklen_t len = info->ai_family == AF_INET ? sizeof out->ipv4 : sizeof out->ipv6;

	if ((info->ai_family != AF_INET && info->ai_family != AF_INET6) || info->ai_addrlen < len)
		return false;
	memcpy(out, info->ai_addr, len);
	return true;
}

static _Noreturn void resolve_in_child(const char *host, int out, uint64_t timeout_ms)
{
	struct answer answer = { 0 };
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;

	alarm((unsigned)(timeout_ms / 1000) + 2);
	if (dup2(out, 3) < 0 || close_range(4, ~0u, 0) < 0)
		_exit(1);
	answer.status = getaddrinfo(host, NULL, &hints, &list);
	for (; !answer.status && list && answer.count < ADDRESSES_MAX; list = list->ai_next)
		if (keep_address(&answer.addresses[answer.count], list))
			answer.count++;
	_exit(fd_write_full(3, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
}

static void reap(struct lookup *lookup)
{
	loop_unwatch(lookup->resolver->loop, lookup->child.pipe);
	child_kill(&lookup->child);
	loop_cancel(lookup->resolver->loop, lookup->timer);
	lookup->timer = NULL;
}

static void finish(struct lookup *lookup, const char *reason)
{
	reap(lookup);
	lookup->state = reason ? LOOKUP_FAILED : LOOKUP_FOUND;
	lookup->reason = reason;
	lookup->resolver->done(lookup, lookup->resolver->ctx);
}

static void on_answer(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct lookup *lookup = ctx;
	struct answer answer;
	ssize_t got = read(fd, &answer, sizeof answer);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != (ssize_t)sizeof answer || answer.count > ADDRESSES_MAX) {
		finish(lookup, "the process that resolves host names failed");
		return;
	}
	if (answer.status || !answer.count) {
		finish(lookup,
			answer.status ? gai_strerror(answer.status) : "the name has no address");
		return;
	}
	memcpy(lookup->addresses, answer.addresses, sizeof answer.addresses);
	lookup->count = answer.count;
	finish(lookup, NULL);
}

static void on_timeout(struct loop *loop, void *ctx)
{
	struct lookup *lookup = ctx;

	lookup->timer = NULL;
	lookup->is_timeout = true;
	finish(lookup, "no response in time");
}

/* An address needs nobody to be asked. */
static bool take_literal(struct lookup *lookup)
{
	union address *address = &lookup->addresses[0];

	*address = (union address){ 0 };
	if (inet_pton(AF_INET, lookup->host, &address->ipv4.sin_addr) == 1)
		address->any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, lookup->host, &address->ipv6.sin6_addr) == 1)
		address->any.sa_family = AF_INET6;
	else
		return false;
	lookup->state = LOOKUP_FOUND;
	lookup->count = 1;
	return true;
}

static bool start(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;

	lookup->is_timeout = false;
	lookup->reason = NULL;
	if (take_literal(lookup))
		return true;
	lookup->state = LOOKUP_FAILED;
	if (child_fork(&lookup->child, CHILD_PIPE | CHILD_PIPE_ASYNC, SIGKILL, NULL) < 0)
		return false;
	if (lookup->child.pid == 0)
		resolve_in_child(lookup->host, lookup->child.pipe, resolver->timeout_ms);
	if (loop_watch(resolver->loop, lookup->child.pipe, EPOLLIN, on_answer, lookup, NULL) < 0) {
		child_kill(&lookup->child);
		return false;
	}
	lookup->state = LOOKUP_RUNNING;
	lookup->timer = loop_after(resolver->loop, resolver->timeout_ms, on_timeout, lookup);
	return true;
}

struct lookup *resolver_ask(struct resolver *resolver, const char *host)
{
	struct lookup *lookup = resolver->lookups;

	while (lookup && strcmp(lookup->host, host) != 0)
		lookup = lookup->next;
	if (!lookup) {
		lookup = xzalloc(sizeof *lookup);
		str_copy(lookup->host, sizeof lookup->host, host);
		lookup->resolver = resolver;
		lookup->child = CHILD_NONE;
		lookup->state = LOOKUP_FAILED;
		lookup->next = resolver->lookups;
		resolver->lookups = lookup;
	}
	if (lookup->state == LOOKUP_FAILED && !start(lookup))
		return NULL;
	return lookup;
}

void resolver_done(struct resolver *resolver)
{
	while (resolver->lookups) {
		struct lookup *lookup = resolver->lookups;
		resolver->lookups = lookup->next;
		reap(lookup);
		free(lookup);
	}
}
