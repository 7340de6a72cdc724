/* The door for REST: what there is under /v1, and beside it. */
#include "doors/authenticate.h"
#include "doors/rest/handlers.h"

extern const struct handler agents_handlers[], approvals_handlers[], archives_handlers[],
	audit_handlers[], cases_handlers[], code_handlers[], deployments_handlers[],
	diff_handlers[], docs_handlers[], events_handlers[], exec_attach_handlers[],
	exec_socket_handlers[], exec_start_handlers[], execs_handlers[], exports_handlers[],
	files_handlers[], health_handlers[], metrics_handlers[], output_handlers[],
	packages_handlers[], ports_handlers[], snapshots_handlers[], system_handlers[],
	templates_handlers[], tokens_handlers[], tools_handlers[], tree_archive_handlers[],
	trees_handlers[], workspaces_handlers[];

static const struct handler *const tables[] = { agents_handlers, approvals_handlers,
	archives_handlers, audit_handlers, cases_handlers, code_handlers, deployments_handlers,
	diff_handlers, docs_handlers, events_handlers, exec_attach_handlers, exec_socket_handlers,
	exec_start_handlers, execs_handlers, exports_handlers, files_handlers, health_handlers,
	metrics_handlers, output_handlers, packages_handlers, ports_handlers, snapshots_handlers,
	system_handlers, templates_handlers, tokens_handlers, tools_handlers, tree_archive_handlers,
	trees_handlers, workspaces_handlers };
#define ROUTES_MAX 160
#define TABLES (sizeof tables / sizeof *tables)

/* What serves a row; a row that nothing serves is an error of the program. */
static const struct handler *find_handler(const char *name)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct handler *handler = tables[i]; handler->name; handler++)
			if (!strcmp(handler->name, name))
				return handler;
	abort();
}

/* In the order of the rows, which is that of /openapi.json; made at the first call. */
static const struct route *list_routes(void)
{
	static struct route routes[ROUTES_MAX + 1];
	size_t count = 0;
	if (routes[0].operation)
		return routes;
	for (const struct operation_table *const *table = operation_tables; *table; table++)
		for (const struct operation *row = (*table)->rows; row->method; row++) {
			if (count == ROUTES_MAX)
				abort();
			const struct handler *handler = find_handler(row->name);
			routes[count++] = (struct route){ row, handler->run, handler->which };
		}
	return routes;
}

static bool match(const struct http_request *r)
{
	return true;
}

const struct door rest_door = { .name = "rest",
	.name_of_cli = DOOR_CLI,
	.match = match,
	.login = authenticate_credential,
	.routes = list_routes,
	.refuse = call_problem_with };
