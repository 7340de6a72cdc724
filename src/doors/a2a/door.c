/* The door for A2A: its routes, which its own specification describes, and who may come in. */
#include "doors/a2a/a2a.h"
#include "doors/authenticate.h"

static const struct operation operations[] = {
	{ "GET", "/.well-known/agent-card.json", "defaultCard", .flags = ROUTE_OPEN | ROUTE_RAW },
	{ "GET", "/a2a/{id}/.well-known/agent-card.json", "card", .flags = ROUTE_OPEN | ROUTE_RAW },
	{ "POST", "/a2a/{id}", "a2aRpc", .flags = ROUTE_RAW },
	{ "*", "/a2a/{id}/{path}", "a2a", .flags = ROUTE_RAW },
};
static const struct route routes[] = { { &operations[0], a2a_default_card },
	{ &operations[1], a2a_card }, { &operations[2], a2a_rpc }, { &operations[3], a2a_http },
	{ 0 } };

static const struct route *list_routes(void)
{
	return routes;
}

static bool match(const struct http_request *r)
{
	return str_starts_with(r->path, "/a2a/") ||
	       str_starts_with(r->path, "/.well-known/agent-card.json");
}

/* The agent without authentication whose route that is, or NULL. */
static const struct a2a_agent *find_open_agent(const struct api *api, const struct http_request *r)
{
	struct str name, rest = r->path;
	if (!str_starts_with(rest, "/a2a/"))
		return NULL;
	rest = (struct str){ rest.data + 5, rest.len - 5 };
	str_cut(rest, '/', &name, &rest);
	const struct a2a_agent *agent = agents_look(agents_of(api->options.services), name);
	return agent && agent->auth == AGENT_NO_AUTH ? agent : NULL;
}

/* A credential that comes along to an agent without authentication is not Carrel's, but that of the
 * gateway. */
static int login(struct api *api, struct http_request *r, const struct principal **principal,
	struct error *err)
{
	const struct access_from from = { .uid = ACCESS_NO_UID, .address = r->peer.address };
	const struct a2a_agent *agent = find_open_agent(api, r);
	if (!agent)
		return authenticate_credential(api, r, principal, err);
	*principal = access_client(agent->name, &from, &r->arena);
	return 0;
}

/* Clients often end the address of an agent with a slash, and append it to the paths below. */
const struct door a2a_door = { .name = A2A_DOOR,
	.match = match,
	.login = login,
	.routes = list_routes,
	.takes_last_slash = true,
	.takes_any_body = true,
	.refuse = call_problem_with };
