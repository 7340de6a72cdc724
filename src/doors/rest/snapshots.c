/* /v1/snapshots, and what workspaces have of them */
#include "core/state/push.h"
#include "core/state/snapshots.h"
#include "doors/rest/handlers.h"

static void on_snapshot(void *ctx, const struct snapshot *snapshot, const struct error *err)
{
	pending_answer_made(
		ctx, err, "/v1/snapshots/", err ? NULL : snapshot->id, &snapshot_record, snapshot);
}

static int api_snapshot_create(struct call *c, struct error *err)
{
	struct pending *op = pending_begin(c);
	pending_cancels(
		op, core_snapshot_create(c->request, c->workspace, c->body, on_snapshot, op));
	return 0;
}

static int api_snapshot_pull(struct call *c, struct error *err)
{
	struct pending *op = pending_begin(c);
	pending_cancels(op, core_snapshot_pull(c->request, c->api->core, c->body, on_snapshot, op));
	return 0;
}

static void on_pushed(void *ctx, const struct push_result *result, const struct error *err)
{
	pending_answer_record(ctx, err, 200, NULL, &push_result_record, result);
}

static int api_snapshot_push(struct call *c, struct error *err)
{
	struct pending *op = pending_begin(c);
	pending_cancels(op, core_snapshot_push(c->request, c->workspace, c->body, on_pushed, op));
	return 0;
}

static void print_item(void *ctx, const struct snapshot *snapshot)
{
	record_print(ctx, NULL, &snapshot_record, snapshot);
}

static int api_snapshot_list(struct call *c, struct error *err)
{
	struct page page = call_page(c);
	return call_send_page(
		&page, core_snapshot_list(c->request, c->api->core, c->workspace, page.cursor,
			       page.limit, print_item, page.j, page.next, err));
}

static int api_snapshot_get(struct call *c, struct error *err)
{
	struct core_snapshot *snapshot;
	if (core_snapshot_find(c->request, c->api->core, c->id, &snapshot, err))
		return -1;
	return call_answer(c, &snapshot_record, core_snapshot_model(snapshot));
}

static void on_removed(void *ctx, const struct snapshot *none, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int api_snapshot_delete(struct call *c, struct error *err)
{
	struct core_snapshot *snapshot;
	if (core_snapshot_find(c->request, c->api->core, c->id, &snapshot, err))
		return -1;
	core_snapshot_remove(c->request, snapshot, on_removed, pending_begin(c));
	return 0;
}

static void on_verdict(
	void *ctx, const struct core_snapshot_verdict *verdict, const struct error *err)
{
	struct json *j = pending_print(ctx, err);
	if (!j)
		return;
	json_object(j, NULL);
	json_text(j, "snapshot", verdict->snapshot);
	json_bool(j, "ok", verdict->ok);
	json_array(j, "layers");
	for (size_t i = 0; i < verdict->layers.count; i++) {
		const struct core_layer_verdict *layer = &verdict->layers.items[i];
		json_object(j, NULL);
		json_text(j, "name", layer->name);
		json_text(j, "content_id", layer->content_id);
		json_text(j, "problem", layer->problem);
		json_end(j);
	}
	json_end(j);
	json_end(j);
	pending_send(ctx, 200, NULL);
}

static int api_snapshot_verify(struct call *c, struct error *err)
{
	struct core_snapshot *snapshot;
	if (core_snapshot_find(c->request, c->api->core, c->id, &snapshot, err))
		return -1;
	struct pending *op = pending_begin(c);
	return pending_check(op, core_snapshot_verify(c->request, snapshot, on_verdict, op, err));
}

static void print_workspace(struct json *j, struct core_workspace *w)
{
	struct workspace_now now = core_now(w);
	workspace_print(j, NULL, core_model(w), &now);
}

static void on_workspace(void *ctx, struct core_workspace *w, const struct error *err)
{
	pending_answer_workspace(ctx, w, err, 200);
}

static int api_rollback(struct call *c, struct error *err)
{
	struct pending *op = pending_begin(c);
	pending_cancels(op, core_rollback(c->request, c->workspace, c->body, on_workspace, op));
	return 0;
}

static void on_forked(
	void *ctx, struct core_workspace *const *forks, size_t count, const struct error *err)
{
	struct json *j = pending_print(ctx, err);
	if (!j)
		return;
	json_object(j, NULL);
	json_array(j, "items");
	for (size_t i = 0; i < count; i++)
		print_workspace(j, forks[i]);
	json_end(j);
	json_null(j, "next_cursor");
	json_end(j);
	pending_send(ctx, 201, NULL);
}

static int api_fork(struct call *c, struct error *err)
{
	struct pending *op = pending_begin(c);
	pending_cancels(op, core_fork(c->request, c->workspace, c->body, on_forked, op));
	return 0;
}

const struct handler snapshots_handlers[] = { { "createSnapshot", api_snapshot_create },
	{ "listWorkspaceSnapshots", api_snapshot_list }, { "listSnapshots", api_snapshot_list },
	{ "pullSnapshot", api_snapshot_pull }, { "getSnapshot", api_snapshot_get },
	{ "verifySnapshot", api_snapshot_verify }, { "removeSnapshot", api_snapshot_delete },
	{ "rollbackWorkspace", api_rollback }, { "pushSnapshot", api_snapshot_push },
	{ "forkWorkspace", api_fork }, { 0 } };
