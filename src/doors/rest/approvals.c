/* /v1/approvals */
#include "core/access/approvals.h"
#include "doors/call.h"
#include "doors/rest/schema.h"

static void print_item(void *ctx, const struct approval *approval)
{
	record_print(ctx, NULL, &approval_record, approval);
}

int api_approval_list(struct call *c, struct error *err)
{
	const struct approvals_query *query = c->query;
	struct approval_filter filter = { .state = query->has_state ? query->state : -1,
		.cursor = query->cursor,
		.limit = query->limit ? query->limit : LIMIT_DEFAULT };
	struct core_workspace *w = NULL;
	char next[CORE_CURSOR_SIZE] = "";

	if (query->workspace && core_find(c->request, c->api->core, query->workspace, &w, err))
		return -1;
	filter.w = w;
	if (core_approval_list(
		    c->request, c->api->core, &filter, print_item, call_print_list(c), next, err))
		return -1;
	call_send_list(c, next[0] ? next : NULL);
	return 0;
}

int api_approval_get(struct call *c, struct error *err)
{
	const struct approval *approval;

	if (core_approval_find(c->request, c->api->core, c->id, &approval, err))
		return -1;
	record_print(call_print(c), NULL, &approval_record, approval);
	call_send(c, 200, NULL);
	return 0;
}

static void on_answered(void *ctx, const struct approval *approval, const struct error *err)
{
	operation_answer_record(ctx, err, 200, NULL, &approval_record, approval);
}

int api_approval_answer(struct call *c, struct error *err)
{
	core_approval_answer(c->request, c->api->core, c->id, c->body, on_answered,
		operation_new(c, sizeof(struct operation)));
	return 0;
}
