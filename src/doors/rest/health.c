/* /v1/workspaces/{id}/health, and what is done about it */
#include "core/packages/health.h"
#include "doors/rest/handlers.h"

static void on_health(void *ctx, const struct health *health, const struct error *err)
{
	pending_answer_record(ctx, err, 200, NULL, &health_record, health);
}

static void on_repair(void *ctx, const struct repair *repair, const struct error *err)
{
	pending_answer_record(ctx, err, 200, NULL, &repair_record, repair);
}

static int api_workspace_health(struct call *c, struct error *err)
{
	const struct health_query *query = c->query;
	struct pending *op = pending_begin(c);
	return pending_check(
		op, core_health(c->request, c->workspace, query->deep, on_health, op, err));
}

static int api_workspace_repair(struct call *c, struct error *err)
{
	const struct health_query *query = c->query;
	struct pending *op = pending_begin(c);
	return pending_check(
		op, core_repair(c->request, c->workspace, query->deep, on_repair, op, err));
}

static void on_verdict(void *ctx, const struct core_verdict *verdict, const struct error *err)
{
	struct json *j = pending_print(ctx, err);
	if (!j)
		return;
	json_object(j, NULL);
	json_text(j, "workspace", verdict->workspace);
	json_text(j, "name", verdict->name);
	json_bool(j, "ok", verdict->ok);
	json_bool(j, "inside_trusted", verdict->is_inside_trusted);
	json_array(j, "layers");
	for (size_t i = 0; i < verdict->checks.count; i++) {
		const struct core_check *check = &verdict->checks.items[i];
		json_object(j, NULL);
		json_text(j, "name", check->name);
		json_bool(j, "ok", check->ok);
		json_text(j, "seen_from", check->is_outside ? "outside" : "inside");
		json_text(j, "detail", check->detail);
		json_end(j);
	}
	json_end(j);
	json_end(j);
	pending_send(ctx, 200, NULL);
}

static int api_workspace_verify(struct call *c, struct error *err)
{
	struct pending *op = pending_begin(c);
	return pending_check(op, core_verify(c->request, c->workspace, on_verdict, op, err));
}

const struct handler health_handlers[] = { { "checkWorkspace", api_workspace_health },
	{ "verifyIsolation", api_workspace_verify }, { "repairWorkspace", api_workspace_repair },
	{ 0 } };
