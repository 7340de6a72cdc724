#include "services/services.h"

#include "base/arena.h"
#include "services/agents.h"
#include "services/cases.h"
#include "services/code.h"
#include "services/tools.h"
#include "services/deployments.h"

static const struct service *const table[] = {
	&code_service,
	&cases_service,
	&agents_service,
	&tools_service,
	&deployments_service,
	NULL,
};

struct services {
	struct loop *loop;
	void *states[sizeof table / sizeof *table];
};

#define EACH(i)                                                                                    \
	size_t i = 0;                                                                              \
	table[i];                                                                                  \
	i++

struct services *services_new(struct loop *loop, const struct services_options *options)
{
	struct services *services = xzalloc(sizeof *services);
	services->loop = loop;
	for (EACH(i)) {
		struct service_state *state = xzalloc(table[i]->size);
		state->loop = loop;
		state->options = *options;
		services->states[i] = state;
	}
	return services;
}

static bool owns(const struct service *service, const struct store_table *rows)
{
	for (size_t i = 0; service->tables && service->tables[i]; i++)
		if (service->tables[i] == rows)
			return true;
	return false;
}

int services_take(void *ctx, const struct store_table *rows, const void *row)
{
	struct services *services = ctx;
	for (EACH(i))
		if (owns(table[i], rows))
			table[i]->take(services->states[i], rows, row);
	return 0;
}

void services_start(struct services *services, struct core *core)
{
	for (EACH(i)) {
		((struct service_state *)services->states[i])->core = core;
		table[i]->start(services->states[i]);
	}
}

void services_stop(struct services *services)
{
	for (EACH(i))
		if (table[i]->stop)
			table[i]->stop(services->states[i]);
}

void services_free(struct services *services)
{
	if (!services)
		return;
	for (EACH(i)) {
		if (table[i]->free)
			table[i]->free(services->states[i]);
		free(services->states[i]);
	}
	free(services);
}

void services_print_metrics(struct services *services, struct buf *out)
{
	for (EACH(i))
		if (table[i]->print_metrics)
			table[i]->print_metrics(services->states[i], out);
}

void *services_state(struct services *services, const struct service *service)
{
	for (EACH(i))
		if (table[i] == service)
			return services->states[i];
	abort(); /* a service that isn't in the table */
}
