/* getaddrinfo blocks, and parses packets of strangers. So each name is resolved by a child, which
 * has no more rights than the role and returns a fixed struct. */
#include <arpa/inet.h>
#include <netdb.h>
#include <resolv.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "egress/internal.h"

#define HOSTS_FILE "/etc/hosts"
#define FOUND_MS 30000	 /* how long what was found is used for new connections */
#define LOOKUPS_MAX 256	 /* of one policy */
#define RUNNING_MAX 64	 /* processes of all policies */
#define RUNNING_SHARE 16 /* of one policy */

_Static_assert(sizeof(struct addresses) <= MEASURE_DETAIL_MAX, "addresses are a measure's detail");

static bool keep_address(union address *out, const struct addrinfo *info)
{
	socklen_t len = info->ai_family == AF_INET ? sizeof out->ipv4 : sizeof out->ipv6;
	if ((info->ai_family != AF_INET && info->ai_family != AF_INET6) || info->ai_addrlen < len)
		return false;
	memcpy(out, info->ai_addr, len);
	return true;
}

/* Whether the hosts file has it, in which names are written without a dot at the end. */
static bool is_in_hosts_file(const char *host)
{
	FILE *file = fopen(HOSTS_FILE, "re");
	char line[1024];
	bool is_found = false;
	if (!file)
		return false;
	while (!is_found && fgets(line, sizeof line, file)) {
		char *rest = line, *word;
		line[strcspn(line, "#\r\n")] = '\0';
		strsep(&rest, " \t"); /* the address */
		while (!is_found && (word = strsep(&rest, " \t")))
			is_found = strcasecmp(word, host) == 0;
	}
	fclose(file);
	return is_found;
}

/* In the child: what getaddrinfo returned, with lookup->found. */
static uint64_t resolve_find(void *ctx)
{
	struct lookup *lookup = ctx;
	struct addresses *found = &lookup->found;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	char name[HOST_SIZE + 1];
	alarm((unsigned)(lookup->resolver->timeout_ms / 1000) + 2);
	/* The name servers are those of this moment, and the name is the whole name, which the dot
	 * says: a search domain behind it would make another one of it, which was not judged. */
	res_init();
	str_format(
		name, sizeof name, "%s%s", lookup->host, is_in_hosts_file(lookup->host) ? "" : ".");
	int status = getaddrinfo(name, NULL, &hints, &list);
	for (; !status && list && found->count < ADDRESSES_MAX; list = list->ai_next)
		if (keep_address(&found->items[found->count], list))
			found->count++;
	return (uint64_t)(int64_t)status;
}

static void start_next(struct lookup_queue *queue);

static void resolve_finish(struct lookup *lookup, const char *reason)
{
	struct resolver *resolver = lookup->resolver;
	measure_stop(&lookup->measure);
	loop_cancel(resolver->loop, lookup->timer);
	lookup->timer = NULL;
	lookup->state = reason ? LOOKUP_FAILED : LOOKUP_FOUND;
	lookup->reason = reason;
	lookup->old_ms = clock_monotonic_ms() + FOUND_MS;
	resolver->queue->running--;
	resolver->running--;
	start_next(resolver->queue);
	resolver->done(lookup, resolver->ctx);
}

static void on_found(void *ctx, bool ok, uint64_t value)
{
	struct lookup *lookup = ctx;
	int status = (int)(int64_t)value;
	if (!ok || lookup->found.count > ADDRESSES_MAX)
		resolve_finish(lookup, "the process that resolves host names failed");
	else if (status)
		resolve_finish(lookup, gai_strerror(status));
	else
		resolve_finish(lookup, lookup->found.count ? NULL : "the name has no address");
}

static void on_timeout(struct loop *loop, void *ctx)
{
	struct lookup *lookup = ctx;
	lookup->timer = NULL;
	lookup->is_timeout = true;
	resolve_finish(lookup, "no response in time");
}

static void resolve_start(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;
	resolver->queue->running++;
	resolver->running++;
	lookup->state = LOOKUP_RUNNING;
	lookup->measure = (struct measure){ .loop = resolver->loop,
		.find = resolve_find,
		.found = on_found,
		.ctx = lookup,
		.keep = { -1 }, /* the answer's pipe alone */
		.keep_count = 1,
		.detail = &lookup->found,
		.detail_len = sizeof lookup->found };
	lookup->timer = loop_after(resolver->loop, resolver->timeout_ms, on_timeout, lookup);
	measure_start(&lookup->measure);
}

static void leave_queue(struct lookup_queue *queue, const struct lookup *lookup)
{
	struct lookup **at = &queue->first;
	while (*at && *at != lookup)
		at = &(*at)->next_queued;
	if (!*at)
		return;
	*at = lookup->next_queued;
	if (!*at)
		queue->last = at;
}

/* The next is one of the policy that has the fewest running, so that no policy waits for the slow
 * names of another. */
static void start_next(struct lookup_queue *queue)
{
	struct lookup *next = NULL;
	for (struct lookup *lookup = queue->first; lookup; lookup = lookup->next_queued)
		if (!next || lookup->resolver->running < next->resolver->running)
			next = lookup;
	if (!next || queue->running >= RUNNING_MAX || next->resolver->running >= RUNNING_SHARE)
		return;
	leave_queue(queue, next);
	resolve_start(next);
}

static bool is_over(const struct lookup *lookup)
{
	return lookup->state == LOOKUP_FOUND || lookup->state == LOOKUP_FAILED;
}

/* Frees those that are over and not used again. */
static void forget_old(struct resolver *resolver)
{
	struct lookup **at = &resolver->lookups;
	uint64_t now = clock_monotonic_ms();
	while (*at) {
		struct lookup *lookup = *at;
		if (!is_over(lookup) || (lookup->state == LOOKUP_FOUND && now < lookup->old_ms)) {
			at = &lookup->next;
			continue;
		}
		*at = lookup->next;
		resolver->count--;
		free(lookup);
	}
}

struct lookup *resolver_ask(struct resolver *resolver, const char *host)
{
	forget_old(resolver);
	struct lookup *lookup = resolver->lookups;
	while (lookup && strcmp(lookup->host, host) != 0)
		lookup = lookup->next;
	if (lookup)
		return lookup;
	if (resolver->count == LOOKUPS_MAX)
		return NULL;
	lookup = xzalloc(sizeof *lookup);
	str_copy(lookup->host, sizeof lookup->host, host);
	lookup->resolver = resolver;
	lookup->next = resolver->lookups;
	resolver->lookups = lookup;
	resolver->count++;
	*resolver->queue->last = lookup;
	resolver->queue->last = &lookup->next_queued;
	start_next(resolver->queue);
	return lookup;
}

void resolver_done(struct resolver *resolver)
{
	unsigned ended = resolver->running;
	while (resolver->lookups) {
		struct lookup *lookup = resolver->lookups;
		resolver->lookups = lookup->next;
		if (lookup->state == LOOKUP_QUEUED)
			leave_queue(resolver->queue, lookup);
		resolver->queue->running -= lookup->state == LOOKUP_RUNNING;
		measure_stop(&lookup->measure);
		loop_cancel(resolver->loop, lookup->timer);
		free(lookup);
	}
	resolver->count = resolver->running = 0;
	while (ended--)
		start_next(resolver->queue);
}
