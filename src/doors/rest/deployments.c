/* /v1/deployments: agent packages that are served, and requests for their surfaces */
#include "services/deployments.h"
#include "doors/call.h"
#include "doors/rest/forward.h"
#include "doors/rest/schema.h"

static struct deployments *all_of(struct call *c)
{
	return services_state(c->api->options.services, &deployments_service);
}

static void on_changed(
	void *ctx, const struct deployment *shown, bool is_new, const struct error *err)
{
	auto_arena struct arena arena = { 0 };

	operation_answer_record(ctx, err, is_new ? 201 : 200,
		is_new ? arena_printf(&arena, "/v1/deployments/%s", shown->id) : NULL,
		&deployment_record, shown);
}

int api_deployment_create(struct call *c, struct error *err)
{
	deployment_create(c->request, all_of(c), c->body, on_changed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

int api_deployment_restart(struct call *c, struct error *err)
{
	deployment_restart(c->request, all_of(c), c->id, on_changed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

int api_deployment_rollback(struct call *c, struct error *err)
{
	deployment_rollback(c->request, all_of(c), c->id, on_changed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

static void on_removed(
	void *ctx, const struct deployment *none, bool is_new, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		operation_answer(ctx, 204, NULL, NULL);
}

int api_deployment_delete(struct call *c, struct error *err)
{
	deployment_remove(c->request, all_of(c), c->id, on_removed,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

int api_deployment_get(struct call *c, struct error *err)
{
	struct deployment shown;

	if (deployment_get(c->request, all_of(c), c->id, &c->r->arena, &shown, err))
		return -1;
	record_print(call_print(c), NULL, &deployment_record, &shown);
	call_send(c, 200, NULL);
	return 0;
}

static void print_item(void *ctx, const struct deployment *shown)
{
	record_print(ctx, NULL, &deployment_record, shown);
}

int api_deployment_list(struct call *c, struct error *err)
{
	const struct list_query *query = c->query;
	char next[CORE_CURSOR_SIZE] = "";

	if (deployment_list(c->request, all_of(c), query->cursor,
		    query->limit ? query->limit : LIMIT_DEFAULT, &c->r->arena, print_item,
		    call_print_list(c), next, err))
		return -1;
	call_send_list(c, next[0] ? next : NULL);
	return 0;
}

int api_deployment_logs(struct call *c, struct error *err)
{
	const struct logs_query *query = c->query;
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);

	if (deployment_logs(c->request, all_of(c), c->id, query->surface, &text, err))
		return -1;
	call_respond(
		c, 200, "text/plain; charset=utf-8", NULL, (struct str){ text.data, text.len });
	return 0;
}

/* ---- surfaces ---- */

static void on_left(void *ctx)
{
	deployment_leave(ctx);
}

static int forward(struct call *c, enum surface_kind kind, struct error *err)
{
	struct core_workspace *w;
	struct surface *use;
	uint16_t port;

	if (deployment_enter(c->request, all_of(c), c->id, kind, &w, &port, &use, err))
		return -1;
	if (!forward_start(c, core_system(), w, port, on_left, use, err))
		return 0;
	deployment_explain(use, err);
	deployment_leave(use);
	return -1;
}

int api_deployment_rest(struct call *c, struct error *err)
{
	return forward(c, SURFACE_REST, err);
}

int api_deployment_a2a(struct call *c, struct error *err)
{
	return forward(c, SURFACE_A2A, err);
}

int api_deployment_ui(struct call *c, struct error *err)
{
	return forward(c, SURFACE_UI, err);
}
