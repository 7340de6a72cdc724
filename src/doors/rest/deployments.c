/* /v1/deployments: agent packages that are served, and requests for their surfaces */
#include "services/deployments.h"
#include "doors/rest/handlers.h"
#include "doors/rest/forward.h"

static struct deployments *all_of(struct call *c)
{
	return services_state(c->api->options.services, &deployments_service);
}

static void on_changed(
	void *ctx, const struct deployment *shown, bool is_new, const struct error *err)
{
	pending_answer_put(ctx, err, is_new, "/v1/deployments/", err ? NULL : shown->id,
		&deployment_record, shown);
}

static int api_deployment_create(struct call *c, struct error *err)
{
	deployment_create(c->request, all_of(c), c->body, on_changed, pending_begin(c));
	return 0;
}

static int api_deployment_restart(struct call *c, struct error *err)
{
	deployment_restart(c->request, all_of(c), c->id, on_changed, pending_begin(c));
	return 0;
}

static int api_deployment_rollback(struct call *c, struct error *err)
{
	deployment_rollback(c->request, all_of(c), c->id, on_changed, pending_begin(c));
	return 0;
}

static void on_removed(
	void *ctx, const struct deployment *none, bool is_new, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int api_deployment_delete(struct call *c, struct error *err)
{
	deployment_remove(c->request, all_of(c), c->id, on_removed, pending_begin(c));
	return 0;
}

static int api_deployment_get(struct call *c, struct error *err)
{
	struct deployment shown;
	if (deployment_get(c->request, all_of(c), c->id, &c->r->arena, &shown, err))
		return -1;
	return call_answer(c, &deployment_record, &shown);
}

static void print_item(void *ctx, const struct deployment *shown)
{
	record_print(ctx, NULL, &deployment_record, shown);
}

static int api_deployment_list(struct call *c, struct error *err)
{
	struct page page = call_page(c);
	return call_send_page(&page, deployment_list(c->request, all_of(c), page.cursor, page.limit,
					     &c->r->arena, print_item, page.j, page.next, err));
}

static int api_deployment_logs(struct call *c, struct error *err)
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

static int api_deployment_forward(struct call *c, struct error *err)
{
	struct core_workspace *w;
	struct surface *use;
	uint16_t port;
	if (deployment_enter(c->request, all_of(c), c->id, (enum surface_kind)c->which, &w, &port,
		    &use, err))
		return -1;
	if (!forward_start(c, core_system(), w, port, on_left, use, err))
		return 0;
	deployment_explain(use, err);
	deployment_leave(use);
	return -1;
}

const struct handler deployments_handlers[] = { { "listDeployments", api_deployment_list },
	{ "createDeployment", api_deployment_create }, { "getDeployment", api_deployment_get },
	{ "removeDeployment", api_deployment_delete },
	{ "restartDeployment", api_deployment_restart },
	{ "rollbackDeployment", api_deployment_rollback },
	{ "getDeploymentLogs", api_deployment_logs },
	{ "forwardRest", api_deployment_forward, SURFACE_REST },
	{ "forwardA2a", api_deployment_forward, SURFACE_A2A },
	{ "forwardUi", api_deployment_forward, SURFACE_UI }, { 0 } };
