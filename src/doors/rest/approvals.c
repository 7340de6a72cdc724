/* /v1/approvals */
#include "core/access/approvals.h"
#include "doors/rest/handlers.h"

static void print_item(void *ctx, const struct approval *approval)
{
	record_print(ctx, NULL, &approval_record, approval);
}

static int api_approval_list(struct call *c, struct error *err)
{
	const struct approvals_query *query = c->query;
	struct page page = call_page(c);
	struct core_workspace *w = NULL;
	if (query->workspace && core_find(c->request, c->api->core, query->workspace, &w, err))
		return -1;
	const struct approval_filter filter = { .w = w,
		.state = query->has_state ? query->state : -1,
		.cursor = page.cursor,
		.limit = page.limit };
	return call_send_page(&page, core_approval_list(c->request, c->api->core, &filter,
					     print_item, page.j, page.next, err));
}

static int api_approval_get(struct call *c, struct error *err)
{
	const struct approval *approval;
	if (core_approval_find(c->request, c->api->core, c->id, &approval, err))
		return -1;
	return call_answer(c, &approval_record, approval);
}

static void on_answered(void *ctx, const struct approval *approval, const struct error *err)
{
	pending_answer_record(ctx, err, 200, NULL, &approval_record, approval);
}

static int api_approval_answer(struct call *c, struct error *err)
{
	core_approval_answer(
		c->request, c->api->core, c->id, c->body, on_answered, pending_begin(c));
	return 0;
}

const struct handler approvals_handlers[] = { { "listApprovals", api_approval_list },
	{ "getApproval", api_approval_get }, { "answerApproval", api_approval_answer }, { 0 } };
