/* getaddrinfo blocks, and parses packets of strangers. So each name is resolved by a child, which
 * has no more rights than the role and returns a fixed struct. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/arena.h"
#include "egress/internal.h"

_Static_assert(sizeof(struct addresses) <= MEASURE_DETAIL_MAX, "addresses are a measure's detail");

static bool keep_address(union address *out, const struct addrinfo *info)
{
	socklen_t len = info->ai_family == AF_INET ? sizeof out->ipv4 : sizeof out->ipv6;

	if ((info->ai_family != AF_INET && info->ai_family != AF_INET6) || info->ai_addrlen < len)
		return false;
	memcpy(out, info->ai_addr, len);
	return true;
}

/* In the child: what getaddrinfo returned, with lookup->found. */
static uint64_t resolve(void *ctx)
{
	struct lookup *lookup = ctx;
	struct addresses *found = &lookup->found;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;

	alarm((unsigned)(lookup->resolver->timeout_ms / 1000) + 2);
	int status = getaddrinfo(lookup->host, NULL, &hints, &list);
	for (; !status && list && found->count < ADDRESSES_MAX; list = list->ai_next)
		if (keep_address(&found->items[found->count], list))
			found->count++;
	return (uint64_t)(int64_t)status;
}

static void finish(struct lookup *lookup, const char *reason)
{
	measure_stop(&lookup->measure);
	loop_cancel(lookup->resolver->loop, lookup->timer);
	lookup->timer = NULL;
	lookup->state = reason ? LOOKUP_FAILED : LOOKUP_FOUND;
	lookup->reason = reason;
	lookup->resolver->done(lookup, lookup->resolver->ctx);
}

static void on_found(void *ctx, bool ok, uint64_t value)
{
	struct lookup *lookup = ctx;
	int status = (int)(int64_t)value;

	if (!ok || lookup->found.count > ADDRESSES_MAX)
		finish(lookup, "the process that resolves host names failed");
	else if (status)
		finish(lookup, gai_strerror(status));
	else
		finish(lookup, lookup->found.count ? NULL : "the name has no address");
}

static void on_timeout(struct loop *loop, void *ctx)
{
	struct lookup *lookup = ctx;

	lookup->timer = NULL;
	lookup->is_timeout = true;
	finish(lookup, "no response in time");
}

/* A host that is written as an address needs no lookup. */
static bool take_literal(struct lookup *lookup)
{
	union address *address = &lookup->found.items[0];

	if (inet_pton(AF_INET, lookup->host, &address->ipv4.sin_addr) == 1)
		address->any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, lookup->host, &address->ipv6.sin6_addr) == 1)
		address->any.sa_family = AF_INET6;
	else
		return false;
	lookup->state = LOOKUP_FOUND;
	lookup->found.count = 1;
	return true;
}

static void start(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;

	lookup->is_timeout = false;
	lookup->reason = NULL;
	lookup->found = (struct addresses){ 0 };
	if (take_literal(lookup))
		return;
	lookup->state = LOOKUP_RUNNING;
	lookup->measure = (struct measure){ .loop = resolver->loop,
		.find = resolve,
		.found = on_found,
		.ctx = lookup,
		.keep = { -1 }, /* the answer's pipe alone */
		.keep_count = 1,
		.detail = &lookup->found,
		.detail_len = sizeof lookup->found };
	lookup->timer = loop_after(resolver->loop, resolver->timeout_ms, on_timeout, lookup);
	measure_start(&lookup->measure);
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
		lookup->state = LOOKUP_FAILED;
		lookup->next = resolver->lookups;
		resolver->lookups = lookup;
	}
	if (lookup->state == LOOKUP_FAILED)
		start(lookup);
	return lookup;
}

void resolver_done(struct resolver *resolver)
{
	while (resolver->lookups) {
		struct lookup *lookup = resolver->lookups;
		resolver->lookups = lookup->next;
		measure_stop(&lookup->measure);
		loop_cancel(resolver->loop, lookup->timer);
		free(lookup);
	}
}
