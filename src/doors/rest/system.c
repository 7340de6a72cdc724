/* /healthz, /readyz, /openapi.json, /v1/environments */
#include "doors/rest/handlers.h"

static void answer_status(struct call *c, const char *status)
{
	struct json *j = call_print(c);
	json_object(j, NULL);
	json_text(j, "status", status);
	json_end(j);
	call_send(c, 200, NULL);
}

static int api_healthz(struct call *c, struct error *err)
{
	answer_status(c, "ok");
	return 0;
}

static int api_readyz(struct call *c, struct error *err)
{
	if (core_check_ready(c->api->core, err))
		return -1;
	answer_status(c, "ready");
	return 0;
}

static int api_openapi(struct call *c, struct error *err)
{
	call_respond(c, 200, "application/json", NULL,
		(struct str){ c->api->openapi.data, c->api->openapi.len });
	return 0;
}

static int api_environments(struct call *c, struct error *err)
{
	struct page page = call_page(c);
	const char *next = NULL;
	if (core_print_environments(c->request, c->api->core, page.cursor, page.limit, &c->r->arena,
		    page.j, &next, err))
		return -1;
	call_send_list(c, next);
	return 0;
}

const struct handler system_handlers[] = { { "healthz", api_healthz }, { "readyz", api_readyz },
	{ "openapi", api_openapi }, { "listEnvironments", api_environments }, { 0 } };
