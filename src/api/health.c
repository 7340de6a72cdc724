/* /v1/workspaces/{id}/health, and what is done about it */
#include "api/call.h"
#include "api/schema.h"
#include "core/health.h"

static void answer(void *ctx, const struct record *record, const void *value)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);

	record_print(&j, NULL, record, value);
	operation_answer(ctx, 200, NULL, &body);
}

static void on_health(void *ctx, const struct health *health, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		answer(ctx, &health_record, health);
}

static void on_repair(void *ctx, const struct repair *repair, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		answer(ctx, &repair_record, repair);
}

int api_workspace_health(struct call *c, struct error *err)
{
	const struct health_query *query = c->query;
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	struct operation *op = operation_new(c, sizeof *op);
	if (!core_health(c->request, w, query->deep, on_health, op, err))
		return 0;
	operation_end(op);
	return -1;
}

int api_workspace_repair(struct call *c, struct error *err)
{
	const struct health_query *query = c->query;
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	struct operation *op = operation_new(c, sizeof *op);
	if (!core_repair(c->request, w, query->deep, on_repair, op, err))
		return 0;
	operation_end(op);
	return -1;
}
