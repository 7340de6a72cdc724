/* /v1/agents */
#include "doors/call.h"
#include "doors/rest/schema.h"
#include "services/agents.h"

static struct agents *agents_here(const struct call *c)
{
	return agents_of(c->api->options.services);
}

static void on_added(
	void *ctx, const struct a2a_agent *agent, bool was_there, const struct error *err)
{
	auto_arena struct arena arena = { 0 };
	bool is_new = !err && !was_there;

	operation_answer_record(ctx, err, is_new ? 201 : 200,
		is_new ? arena_printf(&arena, "/v1/agents/%s", agent->name) : NULL, &agent_record,
		agent);
}

static void on_checked(
	void *ctx, const struct a2a_agent *agent, bool was_there, const struct error *err)
{
	on_added(ctx, agent, true, err);
}

int api_agent_add(struct call *c, struct error *err)
{
	const struct agent_body *body = c->body;

	agents_add(c->request, agents_here(c), str_from(body->yaml), body->check,
		body->check ? on_checked : on_added, operation_new(c, sizeof(struct operation)));
	return 0;
}

static void print_item(void *ctx, const struct a2a_agent *agent)
{
	record_print(ctx, NULL, &agent_record, agent);
}

int api_agent_list(struct call *c, struct error *err)
{
	const struct list_query *query = c->query;
	const char *next;

	if (agents_list(c->request, agents_here(c), query->cursor,
		    query->limit ? query->limit : LIMIT_DEFAULT, print_item, call_print_list(c),
		    &next, err))
		return -1;
	call_send_list(c, next);
	return 0;
}

int api_agent_get(struct call *c, struct error *err)
{
	const struct a2a_agent *agent;

	if (agents_get(c->request, agents_here(c), c->id, &agent, err))
		return -1;
	record_print(call_print(c), NULL, &agent_record, agent);
	call_send(c, 200, NULL);
	return 0;
}

static void on_removed(
	void *ctx, const struct a2a_agent *agent, bool was_there, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		operation_answer(ctx, 204, NULL, NULL);
}

int api_agent_delete(struct call *c, struct error *err)
{
	agents_remove(c->request, agents_here(c), c->id, on_removed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}
