/* /v1/templates */
#include "api/call.h"
#include "api/schema.h"
#include "core/templates.h"

int api_template_list(struct call *c, struct error *err)
{
	const struct list_query *query = c->query;
	size_t limit = query->limit ? query->limit : LIMIT_DEFAULT, at = 0, count = 0;
	template_list all = { 0 };
	struct json *j = call_print_list(c);

	if (core_template_list(c->request, c->api->core, &c->r->arena, &all, err))
		return -1;
	while (query->cursor && at < all.count &&
		strcmp(all.items[at].model.name, query->cursor) <= 0)
		at++;
	for (; at < all.count && count < limit; at++, count++)
		template_print(j, NULL, &all.items[at]);
	call_send_list(c, at < all.count && count ? all.items[at - 1].model.name : NULL);
	return 0;
}

int api_template_get(struct call *c, struct error *err)
{
	struct template_shown shown;

	if (core_template_get(c->request, c->api->core, c->id, &c->r->arena, &shown, err))
		return -1;
	template_print(call_print(c), NULL, &shown);
	call_send(c, 200, NULL);
	return 0;
}

/* What was sent as an object is kept as JSON, which is YAML too. */
static struct str text_of(struct call *c, const struct template_body *body)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, true);

	if (body->yaml)
		return str_from(body->yaml);
	record_print_given(&j, NULL, &template_record, &body->model);
	json_finish(&j);
	buf_char(&text, '\n');
	return (struct str){ arena_bytes(&c->r->arena, text.data, text.len), text.len };
}

int api_template_add(struct call *c, struct error *err)
{
	const struct template_body *body = c->body;
	struct template_shown shown;
	bool was_there;

	if (core_template_add(c->request, c->api->core, text_of(c, body), body->check, &c->r->arena,
		    &shown, &was_there, err))
		return -1;
	template_print(call_print(c), NULL, &shown);
	call_send(c, body->check || was_there ? 200 : 201,
		body->check || was_there
			? NULL
			: arena_printf(&c->r->arena, "Location: /v1/templates/%s\r\n",
				  shown.model.name));
	return 0;
}

int api_template_delete(struct call *c, struct error *err)
{
	if (core_template_remove(c->request, c->api->core, c->id, err))
		return -1;
	call_empty(c, 204);
	return 0;
}
