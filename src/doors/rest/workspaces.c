/* /v1/workspaces */
#include "base/fd.h"
#include "core/state/archives.h"
#include "core/state/templates.h"
#include "doors/call.h"
#include "doors/rest/schema.h"
#include "model/nouns/metrics.h"

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

static const char *location_of(struct arena *arena, const struct core_workspace *w)
{
	return arena_printf(arena, "/v1/workspaces/%s", core_model(w)->id);
}

void operation_answer_workspace(
	struct operation *op, struct core_workspace *w, const struct error *err, int status)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);

	if (err) {
		operation_fail(op, err);
		return;
	}
	print(&j, w);
	operation_answer(op, status, status == 201 ? location_of(&arena, w) : NULL, &body);
}

static void on_workspace(void *ctx, struct core_workspace *w, const struct error *err)
{
	operation_answer_workspace(ctx, w, err, 200);
}

/* ---- create ---- */

struct create_operation {
	struct operation op;
	struct core_workspace *w; /* being made */
	bool is_bound;		  /* to its client: canceled when that goes before it is answered */
};

/* A client that has a key may come back for the answer, unless it says that it won't. */
static bool is_bound(struct call *c, const struct operation *op)
{
	return !op->entry || str_is(http_header(c->r, "carrel-cancel"), "disconnect");
}

static void on_gone(struct call *c)
{
	struct create_operation *op = c->priv;

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
	struct create_operation *op = ctx;
	struct call *c = op->is_bound ? op->op.call : NULL;

	operation_answer_workspace(ctx, w, err, 201);
	if (!c || err)
		return;
	c->priv = arena_text(&c->r->arena, core_model(w)->id);
	c->gone = on_answered;
}

static void create_now(struct call *c, struct operation *op)
{
	struct create_operation *own = (struct create_operation *)op;
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
	struct operation *op = ctx;
	struct error gone;

	if (!err && op->call) {
		create_now(op->call, op);
		return;
	}
	fail(&gone, ERR_CANCELED, "the client has gone");
	operation_fail(op, err ? err : &gone);
}

static void create(struct call *c, struct operation *op)
{
	const struct workspace *wanted = c->body;

	if (wanted->template && core_template_fetch(c->request, c->api->core, on_fetched, op))
		return;
	create_now(c, op);
}

static bool find(struct call *c, const char *id, struct buf *body, const char **location)
{
	struct core_workspace *w;
	struct error err;
	struct json j;

	if (core_find(c->request, c->api->core, id, &w, &err))
		return false;
	j = json_to(body, false);
	print(&j, w);
	*location = location_of(&c->r->arena, w);
	return true;
}

int api_workspace_create(struct call *c, struct error *err)
{
	static const struct once once = { "POST /v1/workspaces", sizeof(struct create_operation),
		create, find };

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
	const struct list_query *query = c->query;
	pair_list labels = { 0 };
	struct core_filter filter = {
		.labels = &labels,
		.state = query->has_state ? query->state : -1,
		.cursor = query->cursor,
		.limit = query->limit ? query->limit : LIMIT_DEFAULT,
	};
	char next[CORE_CURSOR_SIZE] = "";

	for (size_t i = 0; i < query->labels.count; i++) {
		struct str key, value;
		bool has_value = str_cut(str_from(query->labels.items[i]), '=', &key, &value);

		vec_push(&c->r->arena, &labels,
			(struct text_pair){ arena_bytes(&c->r->arena, key.data, key.len),
				has_value ? arena_bytes(&c->r->arena, value.data, value.len)
					  : NULL });
	}
	if (core_list(c->request, c->api->core, &filter, fn, ctx, next, err))
		return -1;
	call_send_list(c, next[0] ? next : NULL);
	return 0;
}

int api_workspace_list(struct call *c, struct error *err)
{
	return list_with(c, print_item, call_print_list(c), err);
}

/* ---- what they use ---- */

struct usage_list {
	struct call *call;
	struct json *j;
};

static void print_usage(void *ctx, struct core_workspace *w)
{
	struct usage_list *list = ctx;
	struct workspace_metrics metrics;
	struct error err;

	if (!core_look(list->call->request, w, &metrics, &err))
		record_print(list->j, NULL, &metrics_record, &metrics);
}

int api_workspace_metrics(struct call *c, struct error *err)
{
	struct workspace_metrics metrics;
	struct core_workspace *w;

	if (call_workspace(c, &w, err) || core_look(c->request, w, &metrics, err))
		return -1;
	record_print(call_print(c), NULL, &metrics_record, &metrics);
	call_send(c, 200, NULL);
	return 0;
}

int api_metrics_list(struct call *c, struct error *err)
{
	struct usage_list list = { c, call_print_list(c) };

	return list_with(c, print_usage, &list, err);
}

/* ---- one ---- */

int api_workspace_get(struct call *c, struct error *err)
{
	const struct workspace_query *query = c->query;
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	if (query->measure) {
		core_measure(
			c->request, w, on_workspace, operation_new(c, sizeof(struct operation)));
		return 0;
	}
	print(call_print(c), w);
	call_send(c, 200, NULL);
	return 0;
}

int api_workspace_patch(struct call *c, struct error *err)
{
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	core_update(
		c->request, w, c->body, on_workspace, operation_new(c, sizeof(struct operation)));
	return 0;
}

int api_workspace_suspend(struct call *c, struct error *err)
{
	const struct suspend_body *body = c->body;
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	core_suspend(c->request, w, body->force, on_workspace,
		operation_new(c, sizeof(struct operation)));
	return 0;
}

int api_workspace_resume(struct call *c, struct error *err)
{
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	core_resume(c->request, w, on_workspace, operation_new(c, sizeof(struct operation)));
	return 0;
}

static void on_removed(void *ctx, const struct archive_row *archive, const struct error *err)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);

	if (err) {
		operation_fail(ctx, err);
		return;
	}
	if (archive)
		record_print(&j, NULL, &archive_record, archive);
	operation_answer(ctx, archive ? 200 : 204, NULL, archive ? &body : NULL);
}

int api_workspace_delete(struct call *c, struct error *err)
{
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	const struct removal_query *query = c->query;
	enum archive_wish wish = !query->has_archive ? ARCHIVE_AS_CONFIGURED
				 : query->archive    ? ARCHIVE_ALWAYS
						     : ARCHIVE_NEVER;
	core_remove_as(c->request, w, wish, on_removed, operation_new(c, sizeof(struct operation)));
	return 0;
}
