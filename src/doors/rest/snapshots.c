/* /v1/snapshots, and what workspaces have of them */
#include "core/state/push.h"
#include "core/state/snapshots.h"
#include "doors/call.h"
#include "doors/rest/schema.h"

static void on_snapshot(void *ctx, const struct snapshot *snapshot, const struct error *err)
{
	auto_arena struct arena arena = { 0 };

	operation_answer_record(ctx, err, 201,
		err ? NULL : arena_printf(&arena, "/v1/snapshots/%s", snapshot->id),
		&snapshot_record, snapshot);
}

int api_snapshot_create(struct call *c, struct error *err)
{
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	struct operation *op = operation_new(c, sizeof *op);
	operation_cancels(op, core_snapshot_create(c->request, w, c->body, on_snapshot, op));
	return 0;
}

int api_snapshot_pull(struct call *c, struct error *err)
{
	struct operation *op = operation_new(c, sizeof *op);

	operation_cancels(
		op, core_snapshot_pull(c->request, c->api->core, c->body, on_snapshot, op));
	return 0;
}

static void on_pushed(void *ctx, const struct push_result *result, const struct error *err)
{
	operation_answer_record(ctx, err, 200, NULL, &push_result_record, result);
}

int api_snapshot_push(struct call *c, struct error *err)
{
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	struct operation *op = operation_new(c, sizeof *op);
	operation_cancels(op, core_snapshot_push(c->request, w, c->body, on_pushed, op));
	return 0;
}

static void print_item(void *ctx, const struct snapshot *snapshot)
{
	record_print(ctx, NULL, &snapshot_record, snapshot);
}

static int list(struct call *c, const struct core_workspace *w, struct error *err)
{
	const struct list_query *query = c->query;
	char next[CORE_CURSOR_SIZE] = "";

	if (core_snapshot_list(c->request, c->api->core, w, query->cursor,
		    query->limit ? query->limit : LIMIT_DEFAULT, print_item, call_print_list(c),
		    next, err))
		return -1;
	call_send_list(c, next[0] ? next : NULL);
	return 0;
}

int api_snapshot_list(struct call *c, struct error *err)
{
	struct core_workspace *w;

	return call_workspace(c, &w, err) ? -1 : list(c, w, err);
}

int api_snapshot_list_all(struct call *c, struct error *err)
{
	return list(c, NULL, err);
}

int api_snapshot_get(struct call *c, struct error *err)
{
	struct core_snapshot *snapshot;

	if (core_snapshot_find(c->request, c->api->core, c->id, &snapshot, err))
		return -1;
	record_print(call_print(c), NULL, &snapshot_record, core_snapshot_model(snapshot));
	call_send(c, 200, NULL);
	return 0;
}

static void on_removed(void *ctx, const struct snapshot *none, const struct error *err)
{
	if (err)
		operation_fail(ctx, err);
	else
		operation_answer(ctx, 204, NULL, NULL);
}

int api_snapshot_delete(struct call *c, struct error *err)
{
	struct core_snapshot *snapshot;

	if (core_snapshot_find(c->request, c->api->core, c->id, &snapshot, err))
		return -1;
	core_snapshot_remove(
		c->request, snapshot, on_removed, operation_new(c, sizeof(struct operation)));
	return 0;
}

static void on_verdict(
	void *ctx, const struct core_snapshot_verdict *verdict, const struct error *err)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);

	if (err) {
		operation_fail(ctx, err);
		return;
	}
	json_object(&j, NULL);
	json_text(&j, "snapshot", verdict->snapshot);
	json_bool(&j, "ok", verdict->ok);
	json_array(&j, "layers");
	for (size_t i = 0; i < verdict->layers.count; i++) {
		const struct core_layer_verdict *layer = &verdict->layers.items[i];

		json_object(&j, NULL);
		json_text(&j, "name", layer->name);
		json_text(&j, "content_id", layer->content_id);
		json_text(&j, "problem", layer->problem);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	operation_answer(ctx, 200, NULL, &body);
}

int api_snapshot_verify(struct call *c, struct error *err)
{
	struct core_snapshot *snapshot;

	if (core_snapshot_find(c->request, c->api->core, c->id, &snapshot, err))
		return -1;
	struct operation *op = operation_new(c, sizeof *op);
	if (!core_snapshot_verify(c->request, snapshot, on_verdict, op, err))
		return 0;
	operation_end(op);
	return -1;
}

static void print_workspace(struct json *j, struct core_workspace *w)
{
	struct workspace_now now = core_now(w);

	workspace_print(j, NULL, core_model(w), &now);
}

static void on_workspace(void *ctx, struct core_workspace *w, const struct error *err)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);

	if (err) {
		operation_fail(ctx, err);
		return;
	}
	print_workspace(&j, w);
	operation_answer(ctx, 200, NULL, &body);
}

int api_rollback(struct call *c, struct error *err)
{
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	struct operation *op = operation_new(c, sizeof *op);
	operation_cancels(op, core_rollback(c->request, w, c->body, on_workspace, op));
	return 0;
}

static void on_forked(
	void *ctx, struct core_workspace *const *forks, size_t count, const struct error *err)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);

	if (err) {
		operation_fail(ctx, err);
		return;
	}
	json_object(&j, NULL);
	json_array(&j, "items");
	for (size_t i = 0; i < count; i++)
		print_workspace(&j, forks[i]);
	json_end(&j);
	json_null(&j, "next_cursor");
	json_end(&j);
	operation_answer(ctx, 201, NULL, &body);
}

int api_fork(struct call *c, struct error *err)
{
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	struct operation *op = operation_new(c, sizeof *op);
	operation_cancels(op, core_fork(c->request, w, c->body, on_forked, op));
	return 0;
}
