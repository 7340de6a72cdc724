#include "api/visits.h"

#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 192
#define VISITORS_MAX 8192 /* then those that have no connection are forgotten */

struct visitor {
	char name[NAME_SIZE];
	unsigned connections;
	bool is_pending;    /* an address */
	uint64_t at_ms;	    /* of `allowance` */
	uint64_t allowance; /* thousandths of requests */
};

void visits_init(struct visits *visits, const struct front_door *door)
{
	*visits = (struct visits){ .door = door };
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
	found = calloc(1, sizeof *found);
	if (!found)
		abort();
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

struct visitor *visits_come(struct visits *visits, const char *address)
{
	char name[NAME_SIZE];
	unsigned most = door_is_proxy(visits->door, address) ? VISITS_PENDING_MAX
							     : VISITS_PENDING_ADDRESS_MAX;

	if (visits->pending >= VISITS_PENDING_MAX)
		return NULL;
	str_format(name, sizeof name, "address %s", address);
	struct visitor *visitor = find(visits, name, true);
	if (visitor->connections >= most)
		return NULL;
	visitor->connections++;
	visits->pending++;
	return visitor;
}

void visits_leave(struct visits *visits, struct visitor *visitor)
{
	visitor->connections--;
	if (visitor->is_pending)
		visits->pending--;
	/* The allowance of a principal outlives its connections: else each new one had all of it.
	 */
	bool is_counted = !visitor->is_pending && visits->door->settings.rate;
	if (!visitor->connections && (!is_counted || visits->visitors.live > VISITORS_MAX))
		drop(visits, visitor);
}

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

int visits_ask(struct visits *visits, struct visitor **visitor, const char *principal,
	uint64_t now_ms, struct error *err)
{
	const struct serve_settings *settings = &visits->door->settings;
	uint64_t most = settings->connections ? settings->connections : SERVE_CONNECTIONS_DEFAULT;

	if (!*visitor || strcmp((*visitor)->name, principal) != 0) {
		struct visitor *next = find(visits, principal, false);
		if (next->connections >= most)
			return fail_hint(err, ERR_LIMIT,
				"close some; serve.connections of config.yaml is the limit",
				"%s has %u connections already", principal, next->connections);
		next->connections++;
		if (*visitor)
			visits_leave(visits, *visitor);
		*visitor = next;
	}
	if (settings->rate && !may_ask(*visitor, settings->rate, now_ms))
		return fail_hint(err, ERR_LIMIT, "serve.rate of config.yaml is the limit",
			"%s asks more than %llu times a second", principal,
			(unsigned long long)settings->rate);
	return 0;
}
