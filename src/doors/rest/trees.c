/* /v1/trees */
#include <string.h>
#include "core/workspaces/shared.h"
#include "doors/call.h"
#include "doors/rest/schema.h"

int api_tree_list(struct call *c, struct error *err)
{
	const struct list_query *query = c->query;
	size_t limit = query->limit ? query->limit : LIMIT_DEFAULT, at = 0, count = 0;
	shared_tree_list all = { 0 };
	struct json *j = call_print_list(c);

	if (core_tree_list(c->request, c->api->core, &c->r->arena, &all, err))
		return -1;
	while (query->cursor && at < all.count && strcmp(all.items[at].name, query->cursor) <= 0)
		at++;
	for (; at < all.count && count < limit; at++, count++)
		record_print(j, NULL, &shared_tree_record, &all.items[at]);
	call_send_list(c, at < all.count && count ? all.items[at - 1].name : NULL);
	return 0;
}

int api_tree_create(struct call *c, struct error *err)
{
	const struct tree_body *body = c->body;
	const struct shared_tree made = { .name = body->name };

	if (core_tree_create(c->request, c->api->core, body->name, err))
		return -1;
	record_print(call_print(c), NULL, &shared_tree_record, &made);
	call_send(c, 201, arena_printf(&c->r->arena, "Location: /v1/trees/%s\r\n", body->name));
	return 0;
}

int api_tree_delete(struct call *c, struct error *err)
{
	if (core_tree_remove(c->request, c->api->core, c->id, err))
		return -1;
	call_empty(c, 204);
	return 0;
}
