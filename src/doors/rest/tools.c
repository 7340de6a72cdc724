/* /v1/tools */
#include "services/tools.h"
#include "doors/rest/handlers.h"

#define ANSWER_BYTES_MAX ((size_t)64 << 20)

static struct tools *tools_of(struct call *c)
{
	return services_state(c->api->options.services, &tools_service);
}

static void on_forged(void *ctx, const struct tool *tool, const struct error *err)
{
	pending_answer_made(ctx, err, "/v1/tools/", err ? NULL : tool->name, &tool_record, tool);
}

static int api_tool_forge(struct call *c, struct error *err)
{
	struct pending *op = pending_begin(c);
	pending_cancels(op, tools_forge(c->request, tools_of(c), c->body, on_forged, op));
	return 0;
}

static void print_item(void *ctx, const struct tool *tool)
{
	record_print(ctx, NULL, &tool_record, tool);
}

/* Of all tools, or the versions of one. */
static int api_tool_list(struct call *c, struct error *err)
{
	struct page page = call_page(c);
	return call_send_page(&page, tools_list(c->request, tools_of(c), c->id, page.cursor,
					     page.limit, print_item, page.j, page.next, err));
}

static int api_tool_get(struct call *c, struct error *err)
{
	const struct tool_query *query = c->query;
	const struct tool *tool;
	if (tools_get(c->request, tools_of(c), c->id, query->version, &tool, err))
		return -1;
	return call_answer(c, &tool_record, tool);
}

static void on_rolled_back(void *ctx, const struct tool *tool, const struct error *err)
{
	pending_answer_record(ctx, err, 200, NULL, &tool_record, tool);
}

static int api_tool_rollback(struct call *c, struct error *err)
{
	const struct tool_rollback *body = c->body;
	tools_rollback(
		c->request, tools_of(c), c->id, body->version, on_rolled_back, pending_begin(c));
	return 0;
}

static void on_removed(void *ctx, const struct tool *tool, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int api_tool_delete(struct call *c, struct error *err)
{
	tools_remove(c->request, tools_of(c), c->id, on_removed, pending_begin(c));
	return 0;
}

/* ---- calls ---- */

struct pending_call {
	struct pending op;
	struct tool_call_job *job;
};

static void on_called(void *ctx, const struct tool_answer *answer, const struct error *err)
{
	auto_buf struct buf body = buf_empty(ANSWER_BYTES_MAX);
	struct json j = json_to(&body, false);
	if (err) {
		pending_fail(ctx, err);
		return;
	}
	tool_print_answer(&j, answer);
	pending_answer(ctx, 200, NULL, &body);
}

static void on_gone(struct call *c)
{
	struct pending_call *op = c->priv;
	tools_cancel_call(op->job);
	free(op);
}

static int api_tool_call(struct call *c, struct error *err)
{
	struct pending_call *op = pending_new(c, sizeof *op);
	op->job = tools_call(c->request, tools_of(c), c->id, c->body, on_called, op, err);
	if (op->job)
		c->gone = on_gone;
	return pending_check(&op->op, !op->job);
}

/* ---- what is yet to be forged ---- */

struct pending_generate {
	struct pending op;
	struct tool_generate_job *job;
};

static void on_generated(void *ctx, const struct tool_source *source, const struct error *err)
{
	pending_answer_record(ctx, err, 200, NULL, &tool_source_record, source);
}

static void on_generate_gone(struct call *c)
{
	struct pending_generate *op = c->priv;
	tools_cancel_generate(op->job);
	free(op);
}

static int api_tool_generate(struct call *c, struct error *err)
{
	struct pending_generate *op = pending_new(c, sizeof *op);
	op->job = tools_generate(c->request, tools_of(c), c->body, on_generated, op, err);
	if (op->job)
		c->gone = on_generate_gone;
	return pending_check(&op->op, !op->job);
}

const struct handler tools_handlers[] = { { "listTools", api_tool_list },
	{ "forgeTool", api_tool_forge }, { "generateTool", api_tool_generate },
	{ "getTool", api_tool_get }, { "listToolVersions", api_tool_list },
	{ "callTool", api_tool_call }, { "rollbackTool", api_tool_rollback },
	{ "removeTool", api_tool_delete }, { 0 } };
