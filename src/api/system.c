/* /healthz, /readyz, /openapi.json, /v1/environments */
#include "api/call.h"
#include "api/schema.h"

void api_healthz(struct call *c)
{
	call_respond(c, 200, "application/json", NULL, STR("{\"status\":\"ok\"}"));
}

void api_readyz(struct call *c)
{
	struct error err;

	if (core_check_ready(c->api->core, &err))
		call_problem(c, &err);
	else
		call_respond(c, 200, "application/json", NULL, STR("{\"status\":\"ready\"}"));
}

void api_openapi(struct call *c)
{
	call_json(c, 200, NULL, &c->api->openapi);
}

void api_environments(struct call *c)
{
	const struct list_query *query = c->query;
	const char *next = NULL;
	struct error err;

	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	json_object(&j, NULL);
	json_array(&j, "items");
	if (core_print_environments(c->request, c->api->core, query->cursor,
		    query->limit ? query->limit : LIMIT_DEFAULT, &c->r->arena, &j, &next, &err)) {
		call_problem(c, &err);
		return;
	}
	json_end(&j);
	json_text(&j, "next_cursor", next);
	json_end(&j);
	call_json(c, 200, NULL, &body);
}
