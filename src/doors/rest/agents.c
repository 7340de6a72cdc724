/* /v1/agents */
#include "doors/rest/handlers.h"
#include "services/agents.h"

static struct agents *agents_here(const struct call *c)
{
	return agents_of(c->api->options.services);
}

static void on_added(
	void *ctx, const struct a2a_agent *agent, bool was_there, const struct error *err)
{
	pending_answer_put(ctx, err, !was_there, "/v1/agents/", err ? NULL : agent->name,
		&agent_record, agent);
}

static void on_checked(
	void *ctx, const struct a2a_agent *agent, bool was_there, const struct error *err)
{
	on_added(ctx, agent, true, err);
}

static int api_agent_add(struct call *c, struct error *err)
{
	const struct agent_body *body = c->body;
	agents_add(c->request, agents_here(c), str_from(body->yaml), body->check,
		body->check ? on_checked : on_added, pending_begin(c));
	return 0;
}

static void print_item(void *ctx, const struct a2a_agent *agent)
{
	record_print(ctx, NULL, &agent_record, agent);
}

static int api_agent_list(struct call *c, struct error *err)
{
	struct page page = call_page(c);
	const char *next;
	if (agents_list(c->request, agents_here(c), page.cursor, page.limit, print_item, page.j,
		    &next, err))
		return -1;
	call_send_list(c, next);
	return 0;
}

static int api_agent_get(struct call *c, struct error *err)
{
	const struct a2a_agent *agent;
	if (agents_get(c->request, agents_here(c), c->id, &agent, err))
		return -1;
	return call_answer(c, &agent_record, agent);
}

static void on_removed(
	void *ctx, const struct a2a_agent *agent, bool was_there, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int api_agent_delete(struct call *c, struct error *err)
{
	agents_remove(c->request, agents_here(c), c->id, on_removed, pending_begin(c));
	return 0;
}

const struct handler agents_handlers[] = { { "listAgents", api_agent_list },
	{ "addAgent", api_agent_add }, { "getAgent", api_agent_get },
	{ "removeAgent", api_agent_delete }, { 0 } };
