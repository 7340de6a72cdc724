/* Operations on workspaces: their life, their upkeep, and what they use. */
#include "model/nouns/archive.h"
#include "model/nouns/health.h"
#include "model/nouns/metrics.h"
#include "model/nouns/workspace.h"
#include "model/operations/takes.h"
#include "model/records/rows.h"

static int check_label_filter(const char *text, struct error *err)
{
	return !text[0] || text[0] == '='
		       ? fail(err, ERR_INVALID, "'%s' is neither KEY nor KEY=VALUE", text)
		       : 0;
}

static const struct field workspaces_query_rows[] = {
	{ "label", FIELD_TEXTS, offsetof(struct workspaces_query, labels),
		"KEY=VALUE or KEY: only workspaces with this label; all labels if given several "
		"times",
		.most = WORKSPACE_LABELS_MAX, .pattern = "^[^=\\x00][^\\x00]*$",
		.check = check_label_filter },
	ROW_OF(workspaces_query, CHOICE, state, .names = workspace_state_names,
		.has = FIELD_HAS(struct workspaces_query, has_state)),
	PAGE_ROWS,
};
static const struct field removal_query_rows[] = {
	ROW_OF(removal_query, BOOLEAN, archive,
		"archive it first; when not given: as archives.on_remove of config.yaml says",
		.has = FIELD_HAS(struct removal_query, has_archive)),
};
static const struct field workspace_query_rows[] = {
	ROW_OF(workspace_query, BOOLEAN, measure, "measure disk_usage_bytes first"),
};
static const struct field suspend_rows[] = {
	ROW_OF(suspend_body, BOOLEAN, force, "end the commands that run in it"),
};
static const struct record suspend_record = { "Suspend", NULL, RECORD_ROWS(suspend_rows),
	FIELD_IN };

static const struct field health_query_rows[] = {
	ROW_OF(health_query, BOOLEAN, deep, "compare every file of the layers with its hash"),
};
static const struct field check_rows[] = {
	TEXT("name", "seccomp, capabilities, network_namespace, …"),
	{ "ok", FIELD_BOOLEAN },
	{ "seen_from", FIELD_CHOICE, 0,
		"outside: by the daemon, from the kernel; inside: by a process there",
		.names = NAMES("outside", "inside") },
	TEXT("detail", "what was seen"),
};
static const struct record check_record = { "IsolationCheck", NULL, RECORD_ROWS(check_rows),
	FIELD_OUT };

static const struct field verdict_rows[] = {
	TEXT("workspace", "its id"),
	TEXT("name", NULL),
	{ "ok", FIELD_BOOLEAN, .help = "all checks are" },
	{ "inside_trusted", FIELD_BOOLEAN,
		.help = "no command ran there that could have faked what was seen from inside" },
	{ "layers", FIELD_OBJECTS, .object = &check_record },
};
static const struct record verdict_record = { "IsolationVerdict", NULL, RECORD_ROWS(verdict_rows),
	FIELD_OUT };

static const struct operation operations[] = {
	{ "POST", "/v1/workspaces", "createWorkspace", "create", VERB_WORKSPACE_CREATE,
		.summary = "Create a workspace",
		.more = "An empty body makes a workspace with a generated name and the default "
			"limits. With `python` or `node` its environment is built first if it "
			"doesn't exist: follow `environment.progress` at `/v1/events` meanwhile. "
			"Repeat the request with the same Idempotency-Key after a connection was "
			"lost.",
		.flags = ROUTE_KEYED | ROUTE_LOCATION | ROUTE_OPTIONAL,
		TAKES(workspace_record, struct workspace),
		ANSWER(201, TYPE_JSON, &workspace_record,
			"The workspace was created. A client that disconnects before the response "
			"cancels the creation and leaves nothing; with an Idempotency-Key only if "
			"it sent `Carrel-Cancel: disconnect`."),
		.errors = { 404, 409, 429, 507 } },
	{ "GET", "/v1/workspaces", "listWorkspaces", "ls", VERB_WORKSPACE_LIST,
		.summary = "List workspaces",
		.more = "Pages hold 100 workspaces unless `limit` is given.",
		QUERY(workspaces_query_rows, struct workspaces_query),
		LISTED("Workspaces", workspace_record, "Newest first.") },
	{ "GET", WORKSPACE, "getWorkspace", "info", VERB_WORKSPACE_GET,
		.summary = "Show a workspace",
		.more = "A workspace is named by its id, its name, or its label `context_id`.",
		.flags = ROUTE_WORKSPACE, QUERY(workspace_query_rows, struct workspace_query),
		SHOWN(workspace_record, "The workspace.") },
	{ "PATCH", WORKSPACE, "changeWorkspace", "update", VERB_WORKSPACE_UPDATE,
		.summary = "Change labels, variables, limits and lifetimes",
		.more = "Only what is given changes. New limits hold from the next start of its "
			"sandbox on; `suspend` ends the one that is there.",
		.flags = ROUTE_WORKSPACE, TAKES(workspace_change_record, struct workspace_change),
		SHOWN(workspace_record, "The workspace."), CHANGES },
	{ "DELETE", WORKSPACE, "removeWorkspace", "rm", VERB_WORKSPACE_REMOVE,
		.summary = "Remove a workspace and end its commands",
		.more = "Commands that run in it end with reason `canceled`. Its files are gone "
			"unless it is archived first.",
		.flags = ROUTE_WORKSPACE, QUERY(removal_query_rows, struct removal_query),
		.answers = { { 204, NULL, NULL, "It was removed." },
			{ 200, TYPE_JSON, &archive_record, "It was archived, then removed." } },
		CHANGES },
	{ 0 },
};

static const struct operation upkeep_rows[] = {
	{ "POST", WORKSPACE "/suspend", "suspendWorkspace", "suspend", VERB_WORKSPACE_SUSPEND,
		.summary = "End the processes of a workspace and keep its files",
		.more = "Frees the memory of the workspace. 409 while commands run, unless `force` "
			"is set. The next exec resumes it.",
		.flags = ROUTE_OPTIONAL | ROUTE_WORKSPACE,
		TAKES(suspend_record, struct suspend_body),
		SHOWN(workspace_record, "The workspace."), CHANGES },
	{ "POST", WORKSPACE "/resume", "resumeWorkspace", "resume", VERB_WORKSPACE_RESUME,
		.summary = "Start the sandbox of a workspace, as the next command would",
		.more = "So that the next exec finds its sandbox ready.", .flags = ROUTE_WORKSPACE,
		SHOWN(workspace_record, "The workspace."), MAKES },
	{ "GET", WORKSPACE "/health", "checkWorkspace", "health", VERB_WORKSPACE_HEALTH,
		.summary = "Check a workspace",
		.more = "Looks at its marks, environment, packages, layers and disk usage. Nothing "
			"changes.",
		.flags = ROUTE_WORKSPACE, QUERY(health_query_rows, struct health_query),
		SHOWN(health_record, "What was found.") },
	{ "GET", WORKSPACE "/verify", "verifyIsolation", "verify", VERB_WORKSPACE_VERIFY,
		.summary = "Check the isolation of a workspace's sandbox",
		.more = "Starts its sandbox if there is none, and looks at each layer of isolation "
			"from outside and from inside.",
		.flags = ROUTE_WORKSPACE, SHOWN(verdict_record, "What was found."),
		.errors = { 409 } },
	{ "POST", WORKSPACE "/repair", "repairWorkspace", "repair", VERB_WORKSPACE_REPAIR,
		.summary = "Repair what a check finds",
		.more = "Does what can be done about the issues of a check: makes marks again, "
			"fetches damaged layers, rebuilds its environment.",
		.flags = ROUTE_WORKSPACE, QUERY(health_query_rows, struct health_query),
		SHOWN(repair_record, "What was done, and what was found then."), CHANGES },
	{ 0 },
};

static const struct operation usage_rows[] = {
	{ "GET", WORKSPACE "/metrics", "workspaceMetrics", NULL, VERB_WORKSPACE_GET,
		.summary = "Show what a workspace uses",
		.more = "Of its sandbox: cpu, memory, processes, disk.", .flags = ROUTE_WORKSPACE,
		SHOWN(metrics_record, "What the workspace uses now.") },
	{ "GET", "/v1/metrics", "listMetrics", "top", VERB_WORKSPACE_LIST,
		.summary = "List what workspaces use",
		.more = "The same of all workspaces, for a table such as top.",
		QUERY(workspaces_query_rows, struct workspaces_query),
		LISTED("Metrics", metrics_record, "Newest first.") },
	{ 0 },
};

#define HEALTH_EXAMPLE                                                                             \
	"{'workspace':'n5fda10efceptk5gu44i','name':'demo','state':'ready','healthy':true,"        \
	"'configured':true,'python_venv':true,'python_deps_installed':true,"                       \
	"'node_modules':false,'node_deps_installed':false,'disk_usage':24576,"                     \
	"'disk_limit':1073741824,'disk_limit_mechanism':'counted','environment':'py312-4f1c',"     \
	"'node_environment':null,'environment_layers':3,'snapshot_layers':0,'deep':false,"         \
	"'layers_active':['namespaces','seccomp'],'issues':[]}"
static const struct operation_example examples[] = {
	{ "Workspace",
		"{'id':'n5fda10efceptk5gu44i','name':'demo','state':'ready','template':null,"
		"'created_at':'2026-01-02T10:00:00.000Z',"
		"'last_used_at':'2026-01-02T10:05:00.000Z','expires_at':null,"
		"'idle_timeout_ms':1800000,'labels':{'team':'data'},'environment':null,"
		"'env':{'LANG':'C.UTF-8'},'limits':{'memory_bytes':2147483648,"
		"'disk_bytes':1073741824,'tmp_bytes':1073741824,'pids':1024,'fds':1024,"
		"'cpus':null,'cpu_time_ms':null,'timeout_ms':null,'output_bytes':null,"
		"'mechanism':'cgroup-v2'},'network':{'mode':'none','allow':[],'deny':[]},"
		"'disk_usage_bytes':24576,'disk_limit_mechanism':'counted','isolation':'native',"
		"'layers_active':['namespaces','own_root','capabilities','no_new_privs',"
		"'landlock','seccomp','limits'],'warm':true,'ptrace':false,'view':'workspace',"
		"'snapshot':null,'error':null}" },
	{ "WorkspaceWanted", "{'name':'demo','python':{'version':'3.12','packages':['pandas>=2']},"
			     "'limits':{'memory':'2G','cpus':2},'network':{'mode':'list',"
			     "'allow':['example.com']},'labels':{'team':'data'},'ttl':'7d',"
			     "'idle_timeout':1800}" },
	{ "WorkspaceChange", "{'labels':{'team':'ml'},'limits':{'memory':'4G'},'ttl':'30d'}" },
	{ "Limits", "{'memory_bytes':2147483648,'disk_bytes':1073741824,'tmp_bytes':1073741824,"
		    "'pids':1024,'fds':1024,'cpus':2,'cpu_time_ms':null,'timeout_ms':null,"
		    "'output_bytes':null,'mechanism':'cgroup-v2'}" },
	{ "Suspend", "{'force':true}" },
	{ "WorkspaceHealth", HEALTH_EXAMPLE },
	{ "WorkspaceRepair",
		"{'done':['made the link .venv to /env again'],'failed':[],'health':" HEALTH_EXAMPLE
		"}" },
	{ "IsolationVerdict",
		"{'workspace':'n5fda10efceptk5gu44i','name':'demo','ok':true,"
		"'inside_trusted':true,'layers':[{'name':'seccomp','ok':true,"
		"'seen_from':'outside','detail':'as expected in all processes (2)'}]}" },
	{ "WorkspaceMetrics",
		"{'id':'n5fda10efceptk5gu44i','name':'demo','state':'running','warm':true,"
		"'measured_at':'2026-01-02T10:00:00.000Z','cpu_ms':1290,'cpu_percent':87.5,"
		"'memory_bytes':94371840,'memory_limit_bytes':2147483648,'pids':4,"
		"'pids_limit':1024,'disk_usage_bytes':24576,'disk_limit_bytes':1073741824,"
		"'execs':1}" },
	{ 0 },
};

const struct operation_table workspace_operations = { "workspaces", operations, examples };
const struct operation_table upkeep_operations = { "workspaces", upkeep_rows };
const struct operation_table usage_operations = { "workspaces", usage_rows };
