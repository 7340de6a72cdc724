#include "doors/visits.h"

#include "base/fd.h"
#include "format/network/inet_address.h"

#define NAME_SIZE 192
#define VISITORS_MAX 8192 /* then those that have no connection are forgotten */

struct visitor {
	char name[NAME_SIZE];
	unsigned connections;
	bool is_pending;    /* an address, a range or a uid, and no principal */
	uint64_t at_ms;	    /* of `allowance` */
	uint64_t allowance; /* thousandths of requests */
};
struct visit {
	enum http_peer_kind kind;
	struct http_connection *connection;
	struct visit *older, *newer; /* pending ones */
	struct visitor *range;	     /* or the uid; NULL: it is not pending */
	struct visitor *address;     /* while it is pending; NULL: a proxy, or a uid */
	struct visitor *principal;   /* NULL: it is pending */
};

void visits_init(struct visits *visits, const struct front *front,
	void (*drop_connection)(struct http_connection *connection))
{
	*visits = (struct visits){ .front = front, .drop = drop_connection };
	map_init(&visits->visitors, NULL);
}

void visits_done(struct visits *visits)
{
	struct visitor *visitor;
	size_t at = 0;
	while ((visitor = map_next(&visits->visitors, &at))) {
		map_remove(&visits->visitors, str_from(visitor->name));
		free(visitor);
	}
	map_done(&visits->visitors);
}

static struct visitor *find(struct visits *visits, const char *name, bool is_pending)
{
	struct visitor *found = map_get(&visits->visitors, str_from(name));
	if (found)
		return found;
	found = xzalloc(sizeof *found);
	str_copy(found->name, sizeof found->name, name);
	found->is_pending = is_pending;
	found->allowance = UINT64_MAX;
	map_set(&visits->visitors, str_from(found->name), found);
	return found;
}

static void drop(struct visits *visits, struct visitor *visitor)
{
	map_remove(&visits->visitors, str_from(visitor->name));
	free(visitor);
}

/* ---- pending ones ---- */

static void enter(struct visits *visits, struct visitor **place, const char *kind, const char *name)
{
	char full[NAME_SIZE];
	str_format(full, sizeof full, "%s %s", kind, name);
	*place = find(visits, full, true);
	(*place)->connections++;
}

static void leave(struct visits *visits, struct visitor **place)
{
	struct visitor *visitor = take_ptr(*place);
	if (!visitor)
		return;
	visitor->connections--;
	/* The allowance of a principal outlives its connections: else each new one had all of it.
	 */
	bool is_counted = !visitor->is_pending && visits->front->settings.rate;
	if (!visitor->connections && (!is_counted || visits->visitors.live > VISITORS_MAX))
		drop(visits, visitor);
}

static void append(struct visit_list *list, struct visit *visit)
{
	visit->older = list->newest;
	*(list->newest ? &list->newest->newer : &list->oldest) = visit;
	list->newest = visit;
	list->count++;
}

/* Its principal is known, or it ends. */
static void end_pending(struct visits *visits, struct visit *visit)
{
	struct visit_list *list = &visits->pending[visit->kind];
	*(visit->older ? &visit->older->newer : &list->oldest) = visit->newer;
	*(visit->newer ? &visit->newer->older : &list->newest) = visit->older;
	visit->older = visit->newer = NULL;
	list->count--;
	leave(visits, &visit->address);
	leave(visits, &visit->range);
}

/* The oldest of that address, range or uid; NULL: of the range or uid that has the most. */
static struct visit *find_oldest(const struct visit_list *list, const struct visitor *of)
{
	struct visit *found = list->oldest;
	for (struct visit *at = found; at; at = at->newer) {
		if (of && (at->address == of || at->range == of))
			return at;
		if (at->range->connections > found->range->connections)
			found = at;
	}
	return found;
}

/* `visit`, which is counted already and not in the list yet, may be one too many. */
static void make_room(struct visits *visits, const struct visit *visit, unsigned range_max)
{
	const struct visit_list *list = &visits->pending[visit->kind];
	unsigned most = visit->kind == HTTP_PEER_UNIX ? VISITS_UNIX_MAX : VISITS_TCP_MAX;
	struct visit *victim = NULL;
	if (visit->address && visit->address->connections > VISITS_ADDRESS_MAX)
		victim = find_oldest(list, visit->address);
	else if (visit->range->connections > range_max)
		victim = find_oldest(list, visit->range);
	else if (list->count >= most)
		victim = find_oldest(list, NULL);
	if (victim)
		visits->drop(victim->connection); /* which leaves */
}

struct visit *visits_come(
	struct visits *visits, const struct http_peer *peer, struct http_connection *connection)
{
	struct visit *visit = xzalloc(sizeof *visit);
	char name[INET_ADDRESS_TEXT_SIZE];
	unsigned range_max = VISITS_RANGE_MAX;
	union inet_address address;
	*visit = (struct visit){ .kind = peer->kind, .connection = connection };
	if (peer->kind == HTTP_PEER_UNIX) {
		str_format(name, sizeof name, "%u", peer->uid);
		enter(visits, &visit->range, "pending uid", name);
		range_max = VISITS_UID_MAX;
	} else if (front_is_proxy(visits->front, peer->address) ||
		   !inet_address_parse_host(str_from(peer->address), &address)) {
		enter(visits, &visit->range, "proxy", peer->address);
		range_max = VISITS_TCP_MAX;
	} else {
		inet_address_print_range(&address, name);
		enter(visits, &visit->range, "range", name);
		enter(visits, &visit->address, "address", peer->address);
	}
	make_room(visits, visit, range_max);
	append(&visits->pending[visit->kind], visit);
	return visit;
}

void visits_leave(struct visits *visits, struct visit *visit)
{
	if (visit->range)
		end_pending(visits, visit);
	leave(visits, &visit->principal);
	free(visit);
}

/* ---- principals ---- */

static bool may_ask(struct visitor *visitor, uint64_t rate, uint64_t now_ms)
{
	uint64_t most = 1000 * rate;
	if (visitor->allowance > most)
		visitor->allowance = most;
	else
		visitor->allowance += (now_ms - visitor->at_ms) * rate;
	if (visitor->allowance > most)
		visitor->allowance = most;
	visitor->at_ms = now_ms;
	if (visitor->allowance < 1000)
		return false;
	visitor->allowance -= 1000;
	return true;
}

static int fail_connections(
	const struct visit *visit, const char *principal, unsigned count, struct error *err)
{
	if (visit->kind == HTTP_PEER_UNIX)
		return fail_hint(err, ERR_LIMIT, "close some", "%s has %u connections already",
			principal, count);
	return fail_hint(err, ERR_LIMIT,
		"close some; serve.connections of config.yaml is the limit",
		"%s has %u connections already", principal, count);
}

int visits_ask(struct visits *visits, struct visit *visit, const char *principal, uint64_t now_ms,
	struct error *err)
{
	const struct serve_settings *settings = &visits->front->settings;
	uint64_t most = settings->connections ? settings->connections : SERVE_CONNECTIONS_DEFAULT;
	bool is_unix = visit->kind == HTTP_PEER_UNIX;
	if (!visit->principal || strcmp(visit->principal->name, principal) != 0) {
		struct visitor *next = find(visits, principal, false);
		if (next->connections >= (is_unix ? VISITS_PEER_MAX : most))
			return fail_connections(visit, principal, next->connections, err);
		next->connections++;
		if (visit->range)
			end_pending(visits, visit);
		leave(visits, &visit->principal);
		visit->principal = next;
	}
	if (!is_unix && settings->rate && !may_ask(visit->principal, settings->rate, now_ms))
		return fail_hint(err, ERR_LIMIT, "serve.rate of config.yaml is the limit",
			"%s asks more than %llu times a second", principal,
			(unsigned long long)settings->rate);
	return 0;
}
