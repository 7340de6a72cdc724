/* /v1/trees */
#include "core/workspaces/shared.h"
#include "doors/rest/handlers.h"

static int api_tree_list(struct call *c, struct error *err)
{
	shared_tree_list all = { 0 };
	if (core_tree_list(c->request, c->api->core, &c->r->arena, &all, err))
		return -1;
	call_send_array(c, &shared_tree_record, all.items, all.count, sizeof *all.items, true);
	return 0;
}

static int api_tree_create(struct call *c, struct error *err)
{
	const struct tree_body *body = c->body;
	const struct shared_tree made = { .name = body->name };
	if (core_tree_create(c->request, c->api->core, body->name, err))
		return -1;
	record_print(call_print(c), NULL, &shared_tree_record, &made);
	call_send(c, 201, arena_printf(&c->r->arena, "Location: /v1/trees/%s\r\n", body->name));
	return 0;
}

static int api_tree_delete(struct call *c, struct error *err)
{
	if (core_tree_remove(c->request, c->api->core, c->id, err))
		return -1;
	call_empty(c, 204);
	return 0;
}

const struct handler trees_handlers[] = { { "listTrees", api_tree_list },
	{ "createTree", api_tree_create }, { "removeTree", api_tree_delete }, { 0 } };
