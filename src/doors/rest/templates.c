/* /v1/templates */
#include "core/state/templates.h"
#include "doors/rest/handlers.h"

enum { LIST, GET, ADD, REMOVE }; /* which */

/* ---- fetched first ---- */

struct pending_fetch {
	struct pending op;
	route_fn *route;
};

static void on_fetched(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct pending_fetch *op = ctx;
	route_fn *route = op->route;
	struct call *c = pending_end(&op->op);
	struct error why;
	if (c && err)
		call_problem(c, err);
	else if (c && route(c, &why))
		call_problem(c, &why);
}

/* ---- routes ---- */

static int list(struct call *c, struct error *err)
{
	template_list all = { 0 };
	if (core_template_list(c->request, c->api->core, &c->r->arena, &all, err))
		return -1;
	call_send_array(c, &template_record, all.items, all.count, sizeof *all.items, true);
	return 0;
}

static int get(struct call *c, struct error *err)
{
	struct template_shown shown;
	if (core_template_get(c->request, c->api->core, c->id, &c->r->arena, &shown, err))
		return -1;
	return call_answer(c, &template_record, &shown);
}

/* What was sent as an object is kept as JSON, which is YAML too. */
static struct str text_of(struct call *c, const struct template_body *body)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, true);
	if (body->yaml)
		return str_from(body->yaml);
	record_print_given(&j, NULL, &template_record, &body->model);
	json_finish(&j);
	buf_char(&text, '\n');
	return (struct str){ arena_bytes(&c->r->arena, text.data, text.len), text.len };
}

static void on_added(
	void *ctx, const struct template_shown *shown, bool was_there, const struct error *err)
{
	pending_answer_put(ctx, err, !was_there, "/v1/templates/", err ? NULL : shown->model.name,
		&template_record, shown);
}

static void on_checked(
	void *ctx, const struct template_shown *shown, bool was_there, const struct error *err)
{
	on_added(ctx, shown, true, err);
}

static int add(struct call *c, struct error *err)
{
	const struct template_body *body = c->body;
	core_template_add(c->request, c->api->core, text_of(c, body), body->check,
		body->check ? on_checked : on_added, pending_begin(c));
	return 0;
}

static void on_removed(
	void *ctx, const struct template_shown *shown, bool was_there, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int remove_one(struct call *c, struct error *err)
{
	core_template_remove(c->request, c->api->core, c->id, on_removed, pending_begin(c));
	return 0;
}

/* Each is served when templates are as other homes have left them. */
static int api_template(struct call *c, struct error *err)
{
	static route_fn *const routes[] = {
		[LIST] = list, [GET] = get, [ADD] = add, [REMOVE] = remove_one
	};
	route_fn *route = routes[c->which];
	struct pending_fetch *op = pending_new(c, sizeof *op);
	op->route = route;
	if (core_template_fetch(c->request, c->api->core, on_fetched, op))
		return 0;
	pending_end(&op->op);
	return route(c, err);
}

const struct handler templates_handlers[] = { { "listTemplates", api_template, LIST },
	{ "addTemplate", api_template, ADD }, { "getTemplate", api_template, GET },
	{ "removeTemplate", api_template, REMOVE }, { 0 } };
