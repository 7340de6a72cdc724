/* Operations on A2A agents. */
#include "model/agents/agent.h"
#include "model/operations/takes.h"
#include "model/records/rows.h"

static const struct field agent_body_rows[] = {
	ROW_OF(agent_body, TEXT, yaml, "the text of the agent", FIELD_REQUIRED, .least = 1,
		.most = AGENT_YAML_MAX),
	ROW_OF(agent_body, BOOLEAN, check, "only check it: nothing is added"),
};
static const struct record agent_added_record = { "AgentAdded", NULL, RECORD_ROWS(agent_body_rows),
	FIELD_IN };

static const struct operation operations[] = {
	{ "GET", "/v1/agents", "listAgents", "agent ls", VERB_AGENT_LIST,
		.summary = "List A2A agents", .more = "Each is served by A2A at /a2a/NAME.", PAGES,
		LISTED("Agents", agent_record, "Sorted by name.") },
	{ "POST", "/v1/agents", "addAgent", "agent add", VERB_AGENT_ADD,
		.summary = "Add an A2A agent, or only check it",
		.more = "An agent of the same name is replaced; its tasks that run go on as they "
			"began. With `check` it is only read, and nothing changes. Needs the scope "
			"admin.",
		.flags = ROUTE_LOCATION, TAKES(agent_added_record, struct agent_body),
		.answers = { { 200, TYPE_JSON, &agent_record,
				     "It was only checked, or has replaced another." },
			{ 201, TYPE_JSON, &agent_record, "It was added." } },
		.errors = { 404, 409, 429, 507 } },
	{ "GET", "/v1/agents/{id}", "getAgent", "agent show", VERB_AGENT_GET,
		.summary = "Show an A2A agent", .more = "With the YAML that it was made of.",
		SHOWN(agent_record, "The agent.") },
	{ "DELETE", "/v1/agents/{id}", "removeAgent", "agent rm", VERB_AGENT_REMOVE,
		.summary = "Remove an A2A agent and forget its tasks",
		.more = "Its tasks that run are canceled, and all of them are forgotten. "
			"Workspaces of its contexts stay until their ttl has passed. Needs the "
			"scope admin.",
		REMOVED, .errors = { 507 } },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "AgentAdded", "{'yaml':'name: tools\\ndescription: runs commands\\nversion: v1\\nkind: "
			"shell\\n'}" },
	{ "Agent",
		"{'id':'48qtd6olg40ies2t9oqd','name':'tools',"
		"'created_at':'2026-01-02T10:00:00.000Z','version':'v1',"
		"'description':'runs commands','default':false,'skills':[],'extended':null,"
		"'kind':'shell','template':null,'limits':{'memory_bytes':null,'disk_bytes':null,"
		"'tmp_bytes':null,'pids':null,'fds':null,'cpus':null,'cpu_time_ms':null,"
		"'timeout_ms':null,'output_bytes':null,'mechanism':null},'timeout_ms':300000,"
		"'ttl_ms':604800000,'namespace':null,'auth':'token','approver':'client',"
		"'workspace_without_context':false,'max_contexts':256,'max_tasks':32,'push':null,"
		"'yaml':'name: tools\\ndescription: runs commands\\nversion: v1\\nkind: "
		"shell\\n'}" },
	{ 0 },
};

const struct operation_table agent_operations = { "agents", operations, examples };
