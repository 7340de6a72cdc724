/* /v1/cases, /v1/cells */
#include "services/cases.h"
#include "doors/rest/handlers.h"

static struct cases *cases_of(struct call *c)
{
	return services_state(c->api->options.services, &cases_service);
}

static void on_created(void *ctx, const struct eval_case *shown, const struct error *err)
{
	bool is_made = !err && shown->id[0];
	pending_answer_put(
		ctx, err, is_made, "/v1/cases/", is_made ? shown->id : NULL, &case_record, shown);
}

static void create(struct call *c, struct pending *op)
{
	struct case_wanted wanted = *(const struct case_wanted *)c->body;
	str_copy(wanted.id, sizeof wanted.id, op->id);
	case_create(c->request, cases_of(c), &wanted, on_created, op);
}

static bool find_case(struct call *c, const char *id, struct json *j)
{
	struct eval_case shown;
	struct error ignored;
	if (case_get(c->request, cases_of(c), id, &c->r->arena, &shown, &ignored))
		return false;
	record_print(j, NULL, &case_record, &shown);
	return true;
}

static int api_case_create(struct call *c, struct error *err)
{
	static const struct once once = { "POST /v1/cases", sizeof(struct pending), create,
		find_case, "/v1/cases/" };
	return call_once(c, &once, err);
}

static void print_case(void *ctx, const struct eval_case *shown)
{
	record_print(ctx, NULL, &case_record, shown);
}

static int api_case_list(struct call *c, struct error *err)
{
	struct page page = call_page(c);
	return call_send_page(&page, case_list(c->request, cases_of(c), page.cursor, page.limit,
					     print_case, page.j, page.next, err));
}

static int api_case_get(struct call *c, struct error *err)
{
	struct eval_case shown;
	if (case_get(c->request, cases_of(c), c->id, &c->r->arena, &shown, err))
		return -1;
	return call_answer(c, &case_record, &shown);
}

static void on_removed(void *ctx, const struct eval_case *none, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int api_case_delete(struct call *c, struct error *err)
{
	case_remove(c->request, cases_of(c), c->id, on_removed, pending_begin(c));
	return 0;
}

/* ---- cells ---- */

static void on_started(void *ctx, const struct cell *shown, const struct error *err)
{
	pending_answer_made(ctx, err, "/v1/cells/", err ? NULL : shown->id, &cell_record, shown);
}

static void start(struct call *c, struct pending *op)
{
	struct cell_wanted wanted = *(const struct cell_wanted *)c->body;
	str_copy(wanted.id, sizeof wanted.id, op->id);
	cell_start(c->request, cases_of(c), c->id, &wanted, on_started, op);
}

static bool find_cell(struct call *c, const char *id, struct json *j)
{
	struct cell shown;
	struct error ignored;
	if (cell_get(c->request, cases_of(c), id, &c->r->arena, &shown, &ignored))
		return false;
	record_print(j, NULL, &cell_record, &shown);
	return true;
}

static int api_cell_start(struct call *c, struct error *err)
{
	struct once *once = arena_alloc(&c->r->arena, sizeof *once);
	*once = (struct once){ arena_printf(&c->r->arena, "POST /v1/cases/%s/cells", c->id),
		sizeof(struct pending), start, find_cell, "/v1/cells/" };
	return call_once(c, once, err);
}

static void print_cell(void *ctx, const struct cell *shown)
{
	record_print(ctx, NULL, &cell_record, shown);
}

static int api_cell_list(struct call *c, struct error *err)
{
	struct page page = call_page(c);
	return call_send_page(&page, cell_list(c->request, cases_of(c), c->id, page.cursor,
					     page.limit, print_cell, page.j, page.next, err));
}

static int api_cell_get(struct call *c, struct error *err)
{
	struct cell shown;
	if (cell_get(c->request, cases_of(c), c->id, &c->r->arena, &shown, err))
		return -1;
	return call_answer(c, &cell_record, &shown);
}

const struct handler cases_handlers[] = { { "listCases", api_case_list },
	{ "createCase", api_case_create }, { "getCase", api_case_get },
	{ "removeCase", api_case_delete }, { "listCells", api_cell_list },
	{ "startCell", api_cell_start }, { "getCell", api_cell_get }, { 0 } };
