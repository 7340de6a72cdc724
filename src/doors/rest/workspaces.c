/* /v1/workspaces */
#include "base/fd.h"
#include "core/state/archives.h"
#include "core/state/templates.h"
#include "doors/rest/handlers.h"
#include "model/nouns/metrics.h"

#define WORKSPACES "/v1/workspaces/"

static void print(struct json *j, struct core_workspace *w)
{
	struct workspace_now now = core_now(w);
	workspace_print(j, NULL, core_model(w), &now);
}

/* Policies may have megabytes: a list leaves them out. */
static void print_brief(struct json *j, struct core_workspace *w)
{
	struct workspace_now now = core_now(w);
	now.is_brief = true;
	workspace_print(j, NULL, core_model(w), &now);
}

void pending_answer_workspace(
	struct pending *op, struct core_workspace *w, const struct error *err, int status)
{
	auto_arena struct arena arena = { 0 };
	struct json *j = pending_print(op, err);
	if (!j)
		return;
	print(j, w);
	const char *location = arena_printf(&arena, WORKSPACES "%s", core_model(w)->id);
	pending_send(op, status, status == 201 ? location : NULL);
}

static void on_workspace(void *ctx, struct core_workspace *w, const struct error *err)
{
	pending_answer_workspace(ctx, w, err, 200);
}

/* ---- create ---- */

struct pending_create {
	struct pending op;
	struct core_workspace *w; /* being made */
	bool is_bound;		  /* to its client: canceled when that goes before it is answered */
};

/* A client that has a key may come back for the answer, unless it says that it won't. */
static bool is_bound(struct call *c, const struct pending *op)
{
	return !op->entry || str_is(http_header(c->r, "carrel-cancel"), "disconnect");
}

static void on_gone(struct call *c)
{
	struct pending_create *op = c->priv;
	op->op.call = NULL;
	core_cancel_create(op->w);
}

/* Removes the workspace if its client disconnected before it received the response. */
static void on_answered(struct call *c)
{
	if (c->is_aborted)
		core_cancel_created(c->request, c->api->core, c->priv);
}

static void on_created(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct pending_create *op = ctx;
	struct call *c = op->is_bound ? op->op.call : NULL;
	pending_answer_workspace(ctx, w, err, 201);
	if (!c || err)
		return;
	c->priv = arena_text(&c->r->arena, core_model(w)->id);
	c->gone = on_answered;
}

static void create_now(struct call *c, struct pending *op)
{
	struct pending_create *own = (struct pending_create *)op;
	struct workspace wanted = *(const struct workspace *)c->body;
	str_copy(wanted.id, sizeof wanted.id, op->id);
	own->w = core_create_with(c->request, c->api->core, &wanted,
		c->r->fd_count == 1 ? c->r->fds[0] : -1, on_created, op);
	for (int i = 0; i < c->r->fd_count; i++)
		fd_close(&c->r->fds[i]);
	own->is_bound = is_bound(c, op);
	if (own->w && own->is_bound)
		c->gone = on_gone;
}

/* The client may have gone meanwhile, and what it asked for with it: nothing is made then. */
static void on_fetched(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct pending *op = ctx;
	struct error gone;
	if (!err && op->call) {
		create_now(op->call, op);
		return;
	}
	fail(&gone, ERR_CANCELED, "the client has gone");
	pending_fail(op, err ? err : &gone);
}

static void create(struct call *c, struct pending *op)
{
	const struct workspace *wanted = c->body;
	if (wanted->template && core_template_fetch(c->request, c->api->core, on_fetched, op))
		return;
	create_now(c, op);
}

static bool find(struct call *c, const char *id, struct json *j)
{
	struct core_workspace *w;
	struct error err;
	if (core_find(c->request, c->api->core, id, &w, &err))
		return false;
	print(j, w);
	return true;
}

static int api_workspace_create(struct call *c, struct error *err)
{
	static const struct once once = { "POST /v1/workspaces", sizeof(struct pending_create),
		create, find, WORKSPACES };
	return call_once(c, &once, err);
}

/* ---- list ---- */

static void print_item(void *ctx, struct core_workspace *w)
{
	print_brief(ctx, w);
}

/* Answers with those that the query asks for, printed by fn. */
static int list_with(struct call *c, void (*fn)(void *ctx, struct core_workspace *w), void *ctx,
	struct error *err)
{
	const struct workspaces_query *query = c->query;
	struct page page = call_page(c);
	pair_list labels = { 0 };
	struct core_filter filter = {
		.labels = &labels,
		.state = query->has_state ? query->state : -1,
		.cursor = page.cursor,
		.limit = page.limit,
	};
	for (size_t i = 0; i < query->labels.count; i++) {
		struct str key, value;
		bool has_value = str_cut(str_from(query->labels.items[i]), '=', &key, &value);
		vec_push(&c->r->arena, &labels,
			(struct text_pair){ arena_bytes(&c->r->arena, key.data, key.len),
				has_value ? arena_bytes(&c->r->arena, value.data, value.len)
					  : NULL });
	}
	return call_send_page(
		&page, core_list(c->request, c->api->core, &filter, fn, ctx, page.next, err));
}

static int api_workspace_list(struct call *c, struct error *err)
{
	return list_with(c, print_item, &c->json, err);
}

/* ---- what they use ---- */

static void print_usage(void *ctx, struct core_workspace *w)
{
	struct call *c = ctx;
	struct workspace_metrics metrics;
	struct error err;
	if (!core_look(c->request, w, &metrics, &err))
		record_print(&c->json, NULL, &metrics_record, &metrics);
}

static int api_workspace_metrics(struct call *c, struct error *err)
{
	struct workspace_metrics metrics;
	if (core_look(c->request, c->workspace, &metrics, err))
		return -1;
	return call_answer(c, &metrics_record, &metrics);
}

static int api_metrics_list(struct call *c, struct error *err)
{
	return list_with(c, print_usage, c, err);
}

/* ---- one ---- */

static int api_workspace_get(struct call *c, struct error *err)
{
	const struct workspace_query *query = c->query;
	if (query->measure) {
		core_measure(c->request, c->workspace, on_workspace, pending_begin(c));
		return 0;
	}
	print(call_print(c), c->workspace);
	call_send(c, 200, NULL);
	return 0;
}

static int api_workspace_patch(struct call *c, struct error *err)
{
	core_update(c->request, c->workspace, c->body, on_workspace, pending_begin(c));
	return 0;
}

static int api_workspace_suspend(struct call *c, struct error *err)
{
	const struct suspend_body *body = c->body;
	core_suspend(c->request, c->workspace, body->force, on_workspace, pending_begin(c));
	return 0;
}

static int api_workspace_resume(struct call *c, struct error *err)
{
	core_resume(c->request, c->workspace, on_workspace, pending_begin(c));
	return 0;
}

static void on_removed(void *ctx, const struct archive_row *archive, const struct error *err)
{
	if (archive)
		pending_answer_record(ctx, err, 200, NULL, &archive_record, archive);
	else
		pending_answer_done(ctx, err);
}

static int api_workspace_delete(struct call *c, struct error *err)
{
	const struct removal_query *query = c->query;
	enum archive_wish wish = !query->has_archive ? ARCHIVE_AS_CONFIGURED
				 : query->archive    ? ARCHIVE_ALWAYS
						     : ARCHIVE_NEVER;
	core_remove_as(c->request, c->workspace, wish, on_removed, pending_begin(c));
	return 0;
}

const struct handler workspaces_handlers[] = { { "createWorkspace", api_workspace_create },
	{ "listWorkspaces", api_workspace_list }, { "getWorkspace", api_workspace_get },
	{ "changeWorkspace", api_workspace_patch }, { "removeWorkspace", api_workspace_delete },
	{ "suspendWorkspace", api_workspace_suspend }, { "resumeWorkspace", api_workspace_resume },
	{ "workspaceMetrics", api_workspace_metrics }, { "listMetrics", api_metrics_list }, { 0 } };
