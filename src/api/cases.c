/* /v1/cases, /v1/cells */
#include "services/cases.h"
#include "api/call.h"
#include "api/schema.h"

static struct cases *cases_of(struct call *c)
{
	return services_state(c->api->options.services, &cases_service);
}

static void on_created(void *ctx, const struct eval_case *shown, const struct error *err)
{
	auto_arena struct arena arena = { 0 };
	bool is_made = !err && shown->id[0];
	operation_answer_record(ctx, err, is_made ? 201 : 200,
		is_made ? arena_printf(&arena, "/v1/cases/%s", shown->id) : NULL, &case_record,
		shown);
}

int api_case_create(struct call *c, struct error *err)
{
	case_create(c->request, cases_of(c), c->body, on_created,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

static void print_case(void *ctx, const struct eval_case *shown)
{
	record_print(ctx, NULL, &case_record, shown);
}

int api_case_list(struct call *c, struct error *err)
{
	const struct list_query *query = c->query;
	char next[CORE_CURSOR_SIZE] = "";
	if (case_list(c->request, cases_of(c), query->cursor,
		    query->limit ? query->limit : LIMIT_DEFAULT, print_case, call_print_list(c),
		    next, err))
		return -1;
	call_send_list(c, next[0] ? next : NULL);
	return 0;
}

int api_case_get(struct call *c, struct error *err)
{
	struct eval_case shown;
	if (case_get(c->request, cases_of(c), c->id, &c->r->arena, &shown, err))
		return -1;
	print_case(call_print(c), &shown);
	call_send(c, 200, NULL);
	return 0;
}

static void on_removed(void *ctx, const struct eval_case *none, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		operation_answer(ctx, 204, NULL, NULL);
}

int api_case_delete(struct call *c, struct error *err)
{
	case_remove(c->request, cases_of(c), c->id, on_removed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

/* ---- cells ---- */

static void on_started(void *ctx, const struct cell *shown, const struct error *err)
{
	auto_arena struct arena arena = { 0 };
	operation_answer_record(ctx, err, 201,
		err ? NULL : arena_printf(&arena, "/v1/cells/%s", shown->id), &cell_record, shown);
}

int api_cell_start(struct call *c, struct error *err)
{
	cell_start(c->request, cases_of(c), c->id, c->body, on_started,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

static void print_cell(void *ctx, const struct cell *shown)
{
	record_print(ctx, NULL, &cell_record, shown);
}

int api_cell_list(struct call *c, struct error *err)
{
	const struct list_query *query = c->query;
	char next[CORE_CURSOR_SIZE] = "";
	if (cell_list(c->request, cases_of(c), c->id, query->cursor,
		    query->limit ? query->limit : LIMIT_DEFAULT, print_cell, call_print_list(c),
		    next, err))
		return -1;
	call_send_list(c, next[0] ? next : NULL);
	return 0;
}

int api_cell_get(struct call *c, struct error *err)
{
	struct cell shown;
	if (cell_get(c->request, cases_of(c), c->id, &c->r->arena, &shown, err))
		return -1;
	print_cell(call_print(c), &shown);
	call_send(c, 200, NULL);
	return 0;
}
