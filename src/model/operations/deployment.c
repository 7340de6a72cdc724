/* Operations on agent packages that are served. */
#include "model/agents/deployment.h"
#include "model/operations/takes.h"
#include "model/records/rows.h"

static int check_surface(const char *text, struct error *err)
{
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (!strcmp(text, surface_names[i]))
			return 0;
	return fail(err, ERR_INVALID, "'%.32s' is not a surface: rest, a2a or ui", text);
}

static const struct field logs_query_rows[] = {
	ROW_OF(logs_query, TEXT, surface,
		"rest, a2a or ui; all when "
		"not given",
		.pattern = "^(rest|a2a|ui)$", .check = check_surface),
};

static const struct operation operations[] = {
	{ "GET", "/v1/deployments", "listDeployments", "deployment ls", VERB_DEPLOYMENT_LIST,
		.summary = "List deployments", .more = "With their surfaces and environments.",
		PAGES, LISTED("Deployments", deployment_record, "Newest first.") },
	{ "POST", "/v1/deployments", "createDeployment", "deploy", VERB_DEPLOYMENT_CREATE,
		.summary = "Deploy an agent package, or replace what has that name",
		.more = "Answers at once; the rollout goes on: `rollout.status` goes through "
			"downloading, building_env, installing_deps and starting, and ends as "
			"healthy or failed, each an event `deployment.status`. A deployment of "
			"that name is replaced when all surfaces of the new revision are healthy; "
			"if it fails, what was live stays. 409 while another rollout is under way.",
		.flags = ROUTE_LOCATION, TAKES(deployment_wanted_record, struct deployment_wanted),
		.answers = { { 200, TYPE_JSON, &deployment_record,
				     "Its next revision is being rolled out." },
			{ 201, TYPE_JSON, &deployment_record,
				"It was created, and is being rolled out." } },
		MAKES },
	{ "GET", DEPLOYMENT, "getDeployment", "deployment show", VERB_DEPLOYMENT_GET,
		.summary = "Show a deployment", .more = "By its id or its name.",
		SHOWN(deployment_record, "The deployment.") },
	{ "DELETE", DEPLOYMENT, "removeDeployment", "deployment rm", VERB_DEPLOYMENT_REMOVE,
		.summary = "End a deployment and remove all of it",
		.more = "Requests under way are cut. The environment and the stored package stay.",
		REMOVED, .errors = { 507 } },
	{ "POST", DEPLOYMENT "/restart", "restartDeployment", "deployment restart",
		VERB_DEPLOYMENT_RESTART,
		.summary = "Roll the live revision out again, without a failed request",
		.more = "As a rollout of the same package.",
		SHOWN(deployment_record, "It is being rolled out."), CHANGES },
	{ "POST", DEPLOYMENT "/rollback", "rollbackDeployment", "deployment rollback",
		VERB_DEPLOYMENT_ROLLBACK,
		.summary = "Roll the revision before the live one out again",
		.more = "A second rollback goes forward again: the revision that was live is the "
			"earlier one then.",
		SHOWN(deployment_record, "It is being rolled out."), CHANGES },
	{ "GET", DEPLOYMENT "/logs", "getDeploymentLogs", "deployment logs", VERB_DEPLOYMENT_GET,
		.summary = "Show what the surfaces write",
		.more = "At most the last 16 KiB of each stream.",
		QUERY(logs_query_rows, struct logs_query),
		ANSWER(200, "text/plain; charset=utf-8", NULL,
			"The end of what the surfaces have written, also of the latest rollout if "
			"it has failed. A line `==> SURFACE of version VERSION (revision NUMBER) "
			"<==` says whose output follows.") },
	{ "*", DEPLOYMENT "/rest/{path}", "forwardRest", NULL, VERB_DEPLOYMENT_CONNECT,
		.summary = "Forward a request to the REST surface",
		.more = "Method, headers, body and answer pass through, as for ports of "
			"workspaces.",
		FORWARDED },
	{ "*", DEPLOYMENT "/a2a/{path}", "forwardA2a", NULL, VERB_DEPLOYMENT_CONNECT,
		.summary = "Forward a request to the A2A surface",
		.more = "HTTP/1.1 passes through. A gRPC client upgrades to `carrel-tcp` first, or "
			"uses `carrel port` with the workspace of the surface: the daemon speaks "
			"no HTTP/2.",
		FORWARDED },
	{ "*", DEPLOYMENT "/ui/{path}", "forwardUi", NULL, VERB_DEPLOYMENT_CONNECT,
		.summary = "Forward a request to the UI surface",
		.more = "Static files, or what the surface's command serves.", FORWARDED },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "DeploymentWanted", "{'agentAppId':'greeter','version':'1.0.0'}" },
	{ "Deployment",
		"{'deploymentId':'48qtd6olg40ies2t9oqd','name':'greeter','status':'healthy',"
		"'agentAppId':'greeter','version':'1.0.0','packageUrl':'blob:greeter@1.0.0',"
		"'sha256':null,'revision':1,'error':null,'created_at':'2026-01-02T10:00:00.000Z',"
		"'updated_at':'2026-01-02T10:00:01.000Z','rollout':{'revision':1,"
		"'version':'1.0.0','status':'healthy','error':null},'venv':null,'surfaces':[]}" },
	{ 0 },
};

const struct operation_table deployment_operations = { "deployments", operations, examples };
