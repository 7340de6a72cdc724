/* The door for REST: what there is under /v1, and beside it. */
#include "doors/authenticate.h"
#include "doors/rest/schema.h"
#include "core/workspaces/shared.h"
#include "model/agents/agent.h"
#include "model/nouns/approval.h"
#include "model/nouns/archive.h"
#include "model/agents/code.h"
#include "model/agents/case.h"
#include "model/agents/deployment.h"
#include "model/nouns/metrics.h"
#include "model/nouns/health.h"
#include "model/nouns/pushed.h"
#include "model/nouns/snapshot.h"
#include "model/nouns/token.h"
#include "model/agents/tool.h"
#include "model/agents/tool_spec.h"

#define JSON "application/json"
#define BYTES "application/octet-stream"
#define EVENTS "text/event-stream"
#define PATCH "text/x-patch"
#define TAR "application/x-tar"

#define ANSWERS(name, ...) static const struct route_answer name[] = { __VA_ARGS__, { 0 } }
ANSWERS(healthy, { 200, JSON, &health_schema, "The daemon works." });
ANSWERS(metrics, { 200, "text/plain; version=0.0.4; charset=utf-8", NULL, "Prometheus text." });
ANSWERS(audit_lines,
	{ 200, "application/x-ndjson", &audit_line_schema,
		"Lines of the log, oldest first: each is an AuditLine." },
	{ 200, EVENTS, &audit_line_schema, "The same as events `audit`, whose id is the seq." });
ANSWERS(document, { 200, JSON, &any_schema, "This document." });
ANSWERS(docs, { 200, "text/html; charset=utf-8", NULL, "A page." });
ANSWERS(environments, { 200, JSON, &environments_schema, "Sorted by name." });
ANSWERS(templates, { 200, JSON, &templates_schema, "Sorted by name." });
ANSWERS(one_template, { 200, JSON, &template_record, "The template." });
ANSWERS(added, { 200, JSON, &template_record, "It was only checked, or has replaced another." },
	{ 201, JSON, &template_record, "It was added." });
ANSWERS(created, { 201, JSON, &workspace_record,
			 "The workspace was created. A client that disconnects before the response "
			 "cancels the creation and leaves nothing; with an Idempotency-Key only if "
			 "it sent `Carrel-Cancel: disconnect`." });
ANSWERS(workspaces, { 200, JSON, &workspaces_schema, "Newest first." });
ANSWERS(workspace, { 200, JSON, &workspace_record, "The workspace." });
ANSWERS(trees, { 200, JSON, &trees_schema, "Sorted by name." });
ANSWERS(tree, { 201, JSON, &shared_tree_record, "It was created." });
ANSWERS(snapshot_made, { 201, JSON, &snapshot_record, "The snapshot was made." });
ANSWERS(snapshot, { 200, JSON, &snapshot_record, "The snapshot." });
ANSWERS(snapshot_verdict, { 200, JSON, &snapshot_verdict_schema, "What was found." });
ANSWERS(pushed, { 200, JSON, &push_result_record, "The blob store has it." });
ANSWERS(snapshots, { 200, JSON, &snapshots_schema, "Newest first." });
ANSWERS(forked, { 201, JSON, &workspaces_schema, "The new workspaces; next_cursor is null." });
ANSWERS(approvals, { 200, JSON, &approvals_schema, "Newest first." });
ANSWERS(approval, { 200, JSON, &approval_record, "The approval." });
ANSWERS(agents, { 200, JSON, &agents_schema, "Sorted by name." });
ANSWERS(agent, { 200, JSON, &agent_record, "The agent." });
ANSWERS(agent_added, { 200, JSON, &agent_record, "It was only checked, or has replaced another." },
	{ 201, JSON, &agent_record, "It was added." });
ANSWERS(tokens, { 200, JSON, &tokens_schema, "Newest first." });
ANSWERS(token_made, { 201, JSON, &token_record, "It was created." });
ANSWERS(code_result, { 200, JSON, &code_result_schema,
			     "The code has ended, and its tests, and the workspace is removed. A "
			     "client that disconnects before ends both." });
ANSWERS(cases, { 200, JSON, &cases_schema, "Newest first." });
ANSWERS(one_case, { 200, JSON, &case_record, "The case." });
ANSWERS(case_made, { 200, JSON, &case_record, "With check: it is valid. Nothing was made." },
	{ 201, JSON, &case_record,
		"It was created. Its source is sent to its workspace, before its first cell: PUT "
		"/v1/workspaces/{id}/archive." });
ANSWERS(cells, { 200, JSON, &cells_schema, "Newest first, without their steps and diffs." });
ANSWERS(one_cell, { 200, JSON, &cell_record, "The cell." });
ANSWERS(cell_made, { 201, JSON, &cell_record,
			   "It was created, and runs as soon as its case is prepared. Events tell "
			   "its states." });
ANSWERS(tools, { 200, JSON, &tools_schema, "Newest first." });
ANSWERS(tool, { 200, JSON, &tool_record, "The tool." });
ANSWERS(tool_forged, { 201, JSON, &tool_record,
			     "It was forged: `state` is active, or dormant with `error` and the "
			     "`output` of the tests. A client that disconnects doesn't end it." });
ANSWERS(tool_generated,
	{ 200, JSON, &tool_source_record, "Nothing is forged of it: send it to /v1/tools." });
ANSWERS(tool_result, { 200, JSON, &tool_result_schema,
			     "The call has ended, with a result or with the error of the tool. A "
			     "client that disconnects ends it." });
ANSWERS(usage, { 200, JSON, &metrics_record, "What the workspace uses now." });
ANSWERS(usages, { 200, JSON, &metrics_schema, "Newest first." });
ANSWERS(workspace_health, { 200, JSON, &health_record, "What was found." });
ANSWERS(verdict, { 200, JSON, &verdict_schema, "What was found." });
ANSWERS(repaired, { 200, JSON, &repair_record, "What was done, and what was found then." });
ANSWERS(packages_changed,
	{ 200, JSON, &packages_changed_schema,
		"Done. Errors of the resolution leave the workspace as it was." });
ANSWERS(packages, { 200, JSON, &packages_schema, "Sorted by name." });
ANSWERS(removed, { 204, NULL, NULL, "It was removed." });
ANSWERS(archived, { 204, NULL, NULL, "It was removed." },
	{ 200, JSON, &archive_record, "It was archived, then removed." });
ANSWERS(uploaded, { 201, NULL, NULL, "It was stored." });
ANSWERS(restored, { 201, JSON, &workspace_record, "The workspace." });
ANSWERS(archives, { 200, JSON, &archives_schema, "Newest first." });
ANSWERS(exports, { 200, JSON, &exports_schema, "By name." });
ANSWERS(exported, { 200, "application/x-tar", NULL, "As carrel env export wrote it." });
ANSWERS(stored_packages_list, { 200, JSON, &packages_stored_schema, "By name." });
ANSWERS(package_bytes, { 200, BYTES, NULL, "The package." });
ANSWERS(deployments, { 200, JSON, &deployments_schema, "Newest first." });
ANSWERS(deployment, { 200, JSON, &deployment_record, "The deployment." });
ANSWERS(rolled_out, { 200, JSON, &deployment_record, "Its next revision is being rolled out." },
	{ 201, JSON, &deployment_record, "It was created, and is being rolled out." });
ANSWERS(rolled_again, { 200, JSON, &deployment_record, "It is being rolled out." });
ANSWERS(logs, { 200, "text/plain; charset=utf-8", NULL,
		      "The end of what the surfaces have written, also of the latest rollout if it "
		      "has failed. A line `==> SURFACE of version VERSION (revision NUMBER) <==` "
		      "says whose output follows." });
ANSWERS(exec_answers,
	{ 200, JSON, &result_record,
		"The command has ended. The daemon keeps at most 128 MB of captured output of all "
		"execs together (carrel serve --captured-output); an exec that exceeds it ends "
		"with reason output_limit." },
	{ 200, EVENTS, &exec_event_schema,
		"As text/event-stream: events, whose data are ExecEvents." },
	{ 201, JSON, &exec_fields,
		"The command runs in the background, or waits for an approval there." },
	{ 202, JSON, &approval_required_schema,
		"With approval: return. The command waits for an approval in the background, also "
		"if background wasn't set: without input but that of stdin. It runs when it is "
		"approved: GET /v1/execs/{id}, and its output. Location is the approval." });
ANSWERS(exec_socket, { 101, NULL, NULL,
			     "The connection is a WebSocket of the subprotocol carrel.exec.v1, "
			     "which Sec-WebSocket-Protocol has to offer; a browser offers its "
			     "token as carrel.bearer.TOKEN besides. The first message to the "
			     "daemon is {\"type\": \"start\"} with the members of ExecWanted. "
			     "docs/websocket.md describes all messages." });
ANSWERS(attached, { 101, NULL, NULL,
			  "The connection is a WebSocket of the subprotocol carrel.exec.v1, with "
			  "the messages of GET /v1/workspaces/{id}/exec but start. The exec goes "
			  "on when the client leaves." });
ANSWERS(execs, { 200, JSON, &execs_schema, "Newest first." });
ANSWERS(exec, { 200, JSON, &exec_fields, "The exec." });
ANSWERS(output, { 200, BYTES, NULL, "The bytes from the offset." },
	{ 200, EVENTS, &output_event_schema,
		"As text/event-stream: events of both streams, whose data are OutputEvents, then "
		"exit with the exec." });
ANSWERS(done, { 204, NULL, NULL, "Done." });
ANSWERS(file_get, { 200, BYTES, NULL, "The file." },
	{ 200, JSON, &file_answer_schema, "With list: Files; with stat: FileInfo." },
	{ 206, BYTES, NULL, "The requested range." });
ANSWERS(file_put, { 200, JSON, &file_schema, "It was replaced or moved, or already existed." },
	{ 201, JSON, &file_schema, "It was created." });
ANSWERS(archive_get, { 200, TAR, NULL, "The archive." },
	{ 200, "application/zstd", NULL, "With format=tar.zst." });
ANSWERS(changes, { 200, JSON, &changes_schema, "In order of paths." },
	{ 200, PATCH, NULL, "With patch." });
ANSWERS(bundle, { 200, TAR, NULL,
			"Members: tree/PATH for what is new or changed, then `changes`, with a "
			"line for each change: its letter, what was there before (- or type and "
			"mode), a hash of that content, what is there now, and the path, "
			"percent-encoded." });
ANSWERS(applied, { 200, JSON, &applied_schema, "What was done, or with dry_run would be." });
ANSWERS(ports, { 200, JSON, &ports_schema, "By port. None without a sandbox." });
ANSWERS(forwarded,
	{ 101, NULL, NULL,
		"The protocol was changed: by the server, as for WebSocket, or, with `Upgrade: "
		"carrel-tcp`, to the bytes of a TCP connection to the port." },
	{ 200, "*/*", NULL, "The response of the server, whatever its status." });
ANSWERS(events,
	{ 200, EVENTS, &event_schema, "A stream of events; the data of each is an Event." });

#define QUERY(rows, type) .query = &rows, .query_size = sizeof(type)
#define BODY(rows, type) .body = &rows, .body_size = sizeof(type)
#define WORKSPACE "/v1/workspaces/{id}"
#define EXEC "/v1/execs/{id}"
#define DEPLOYMENT "/v1/deployments/{id}"

static const struct route routes[] = {
	{ "GET", "/healthz", "healthz", "Whether the daemon answers", api_healthz,
		ROUTE_BARE | ROUTE_OPEN, .answers = healthy },
	{ "GET", "/readyz", "readyz", "Whether the daemon accepts work", api_readyz,
		ROUTE_BARE | ROUTE_OPEN, .answers = healthy },
	{ "GET", "/metrics", "metrics", "Metrics in Prometheus' text format", api_metrics,
		ROUTE_BARE, .answers = metrics },
	{ "GET", "/openapi.json", "openapi", "This document", api_openapi, ROUTE_BARE | ROUTE_OPEN,
		.answers = document },
	{ "GET", "/docs", "docs", "This reference, for people", api_docs, ROUTE_BARE | ROUTE_OPEN,
		.answers = docs },
	{ "GET", "/v1/environments", "listEnvironments", "List the environments that are built",
		api_environments, QUERY(page_query_fields, struct list_query),
		.answers = environments },

	{ "GET", "/v1/templates", "listTemplates", "List templates", api_template_list,
		QUERY(page_query_fields, struct list_query), .answers = templates },
	{ "POST", "/v1/templates", "addTemplate", "Add a template, or only check it",
		api_template_add, ROUTE_LOCATION, BODY(template_fields, struct template_body),
		.answers = added, .errors = { 429, 507 } },
	{ "GET", "/v1/templates/{id}", "getTemplate", "Show a template", api_template_get,
		.answers = one_template },
	{ "DELETE", "/v1/templates/{id}", "removeTemplate", "Remove a template that was added",
		api_template_delete, .answers = removed, .errors = { 409, 507 } },

	{ "GET", "/v1/trees", "listTrees", "List shared trees", api_tree_list,
		QUERY(page_query_fields, struct list_query), .answers = trees },
	{ "POST", "/v1/trees", "createTree", "Create a shared tree", api_tree_create,
		ROUTE_LOCATION, BODY(tree_fields, struct tree_body), .answers = tree,
		.errors = { 409, 507 } },
	{ "DELETE", "/v1/trees/{id}", "removeTree", "Remove a shared tree that no workspace uses",
		api_tree_delete, .answers = removed, .errors = { 409, 507 } },

	{ "GET", "/v1/approvals", "listApprovals", "List approvals", api_approval_list,
		QUERY(approvals_query_fields, struct approvals_query), .answers = approvals,
		.errors = { 404 } },
	{ "GET", "/v1/approvals/{id}", "getApproval", "Show an approval", api_approval_get,
		.answers = approval },
	{ "POST", "/v1/approvals/{id}", "answerApproval", "Approve or deny a command that waits",
		api_approval_answer, BODY(approval_answer_record, struct approval_answer),
		.answers = approval, .errors = { 409, 507 } },

	{ "GET", "/v1/agents", "listAgents", "List A2A agents", api_agent_list,
		QUERY(page_query_fields, struct list_query), .answers = agents },
	{ "POST", "/v1/agents", "addAgent", "Add an A2A agent, or only check it", api_agent_add,
		ROUTE_LOCATION, BODY(agent_fields, struct agent_body), .answers = agent_added,
		.errors = { 404, 409, 429, 507 } },
	{ "GET", "/v1/agents/{id}", "getAgent", "Show an A2A agent", api_agent_get,
		.answers = agent },
	{ "DELETE", "/v1/agents/{id}", "removeAgent", "Remove an A2A agent and forget its tasks",
		api_agent_delete, .answers = removed, .errors = { 507 } },

	{ "GET", "/v1/tokens", "listTokens", "List access tokens", api_token_list,
		QUERY(page_query_fields, struct list_query), .answers = tokens },
	{ "POST", "/v1/tokens", "createToken", "Create an access token", api_token_create,
		ROUTE_LOCATION | ROUTE_OPTIONAL, BODY(token_wanted_record, struct token_wanted),
		.answers = token_made, .errors = { 404, 429, 507 } },
	{ "DELETE", "/v1/tokens/{id}", "removeToken",
		"Remove an access token, which is refused from then on", api_token_delete,
		.answers = removed, .errors = { 507 } },

	{ "POST", "/v1/code", "runCode",
		"Run a file of Python or shell, and its tests, in a throw-away workspace",
		api_code_run, BODY(code_wanted_record, struct code_wanted), .answers = code_result,
		.errors = { 404, 409, 429, 507 } },
	{ "GET", "/v1/cases", "listCases", "List eval cases", api_case_list,
		QUERY(page_query_fields, struct list_query), .answers = cases },
	{ "POST", "/v1/cases", "createCase", "Create an eval case, or only check it",
		api_case_create, ROUTE_KEYED | ROUTE_LOCATION,
		BODY(case_wanted_record, struct case_wanted), .answers = case_made,
		.errors = { 409, 429, 507 } },
	{ "GET", "/v1/cases/{id}", "getCase", "Show an eval case", api_case_get,
		.answers = one_case },
	{ "DELETE", "/v1/cases/{id}", "removeCase",
		"Remove an eval case with its workspaces, and cancel its cells", api_case_delete,
		.answers = removed, .errors = { 409, 507 } },
	{ "GET", "/v1/cases/{id}/cells", "listCells", "List the cells of a case", api_cell_list,
		QUERY(page_query_fields, struct list_query), .answers = cells },
	{ "POST", "/v1/cases/{id}/cells", "startCell", "Run a case once, in a cell of its own",
		api_cell_start, ROUTE_KEYED | ROUTE_LOCATION | ROUTE_OPTIONAL,
		BODY(cell_wanted_record, struct cell_wanted), .answers = cell_made,
		.errors = { 409, 429, 507 } },
	{ "GET", "/v1/cells/{id}", "getCell", "Show a cell", api_cell_get, .answers = one_cell },

	{ "GET", "/v1/tools", "listTools", "List tools", api_tool_list,
		QUERY(page_query_fields, struct list_query), .answers = tools },
	{ "POST", "/v1/tools", "forgeTool",
		"Test code and load it as a tool, or make a tool of a package", api_tool_forge,
		ROUTE_LOCATION, BODY(tool_wanted_record, struct tool_wanted),
		.answers = tool_forged, .errors = { 409, 429, 507 } },
	{ "POST", "/v1/tool-sources", "generateTool",
		"Write code and tests of a tool, by the operator's generator or as skeletons",
		api_tool_generate, BODY(tool_spec_record, struct tool_spec),
		.answers = tool_generated, .errors = { 429, 507 } },
	{ "GET", "/v1/tools/{id}", "getTool", "Show a tool, with its code and its tests",
		api_tool_get, QUERY(tool_query_fields, struct tool_query), .answers = tool },
	{ "GET", "/v1/tools/{id}/versions", "listToolVersions", "List the versions of a tool",
		api_tool_versions, QUERY(page_query_fields, struct list_query), .answers = tools },
	{ "POST", "/v1/tools/{id}/call", "callTool", "Call a tool", api_tool_call, ROUTE_OPTIONAL,
		BODY(tool_call_record, struct tool_call), .answers = tool_result,
		.errors = { 409, 429, 507 } },
	{ "POST", "/v1/tools/{id}/rollback", "rollbackTool", "Load another version of a tool",
		api_tool_rollback, ROUTE_OPTIONAL, BODY(tool_rollback_record, struct tool_rollback),
		.answers = tool, .errors = { 409, 507 } },
	{ "DELETE", "/v1/tools/{id}", "removeTool", "Remove a tool with all its versions",
		api_tool_delete, .answers = removed, .errors = { 409, 507 } },

	{ "POST", "/v1/workspaces", "createWorkspace", "Create a workspace", api_workspace_create,
		ROUTE_KEYED | ROUTE_LOCATION | ROUTE_OPTIONAL,
		BODY(workspace_record, struct workspace), .answers = created,
		.errors = { 404, 409, 429, 507 } },
	{ "GET", "/v1/workspaces", "listWorkspaces", "List workspaces", api_workspace_list,
		QUERY(list_query_fields, struct list_query), .answers = workspaces },
	{ "GET", WORKSPACE, "getWorkspace", "Show a workspace", api_workspace_get,
		QUERY(workspace_query_fields, struct workspace_query), .answers = workspace },
	{ "PATCH", WORKSPACE, "changeWorkspace", "Change labels, variables, limits and lifetimes",
		api_workspace_patch, BODY(workspace_change_record, struct workspace_change),
		.answers = workspace, .errors = { 409, 507 } },
	{ "DELETE", WORKSPACE, "removeWorkspace", "Remove a workspace and end its commands",
		api_workspace_delete, QUERY(removal_query_fields, struct removal_query),
		.answers = archived, .errors = { 409, 507 } },
	{ "GET", "/v1/archives", "listArchives", "List archived workspaces", api_archive_list,
		QUERY(page_query_fields, struct list_query), .answers = archives },
	{ "DELETE", "/v1/archives/{id}", "removeArchive", "Remove an archive", api_archive_delete,
		.answers = removed },
	{ "PUT", "/v1/archives/{id}", "uploadArchive",
		"Store an archive under a new name, to restore it", api_archive_upload,
		ROUTE_STREAMED, QUERY(upload_query_fields, struct upload_query), .body_type = BYTES,
		.answers = uploaded, .errors = { 409, 429, 507 } },
	{ "POST", "/v1/archives/{id}/restore", "restoreArchive", "Make a workspace of an archive",
		api_archive_restore, ROUTE_OPTIONAL | ROUTE_LOCATION,
		BODY(restore_wanted_record, struct restore_wanted), .answers = restored,
		.errors = { 409, 429, 507 } },
	{ "GET", "/v1/exports", "listExports", "List exported environments of the blob store",
		api_export_list, QUERY(page_query_fields, struct list_query), .answers = exports },
	{ "GET", "/v1/exports/{id}", "getExport", "Fetch an exported environment", api_export_get,
		.answers = exported, .errors = { 507 } },
	{ "PUT", "/v1/exports/{id}", "putExport",
		"Store an exported environment, or replace the one of that name", api_export_put,
		ROUTE_STREAMED, QUERY(upload_query_fields, struct upload_query), .body_type = BYTES,
		.answers = uploaded, .errors = { 429, 507 } },
	{ "DELETE", "/v1/exports/{id}", "removeExport", "Remove an exported environment",
		api_export_delete, .answers = removed },
	{ "GET", "/v1/packages", "listAgentPackages", "List agent packages of the blob store",
		api_package_list, QUERY(page_query_fields, struct list_query),
		.answers = stored_packages_list },
	{ "GET", "/v1/packages/{id}", "getAgentPackage", "Fetch an agent package", api_package_get,
		.answers = package_bytes, .errors = { 507 } },
	{ "PUT", "/v1/packages/{id}", "putAgentPackage",
		"Store an agent package, or replace the one of that name", api_package_put,
		ROUTE_STREAMED, QUERY(upload_query_fields, struct upload_query), .body_type = BYTES,
		.answers = uploaded, .errors = { 429, 507 } },
	{ "DELETE", "/v1/packages/{id}", "removeAgentPackage", "Remove an agent package",
		api_package_delete, .answers = removed },
	{ "GET", "/v1/deployments", "listDeployments", "List deployments", api_deployment_list,
		QUERY(page_query_fields, struct list_query), .answers = deployments },
	{ "POST", "/v1/deployments", "createDeployment",
		"Deploy an agent package, or replace what has that name", api_deployment_create,
		ROUTE_LOCATION, BODY(deployment_wanted_record, struct deployment_wanted),
		.answers = rolled_out, .errors = { 409, 429, 507 } },
	{ "GET", DEPLOYMENT, "getDeployment", "Show a deployment", api_deployment_get,
		.answers = deployment },
	{ "DELETE", DEPLOYMENT, "removeDeployment", "End a deployment and remove all of it",
		api_deployment_delete, .answers = removed, .errors = { 507 } },
	{ "POST", DEPLOYMENT "/restart", "restartDeployment",
		"Roll the live revision out again, without a failed request",
		api_deployment_restart, .answers = rolled_again, .errors = { 409, 507 } },
	{ "POST", DEPLOYMENT "/rollback", "rollbackDeployment",
		"Roll the revision before the live one out again", api_deployment_rollback,
		.answers = rolled_again, .errors = { 409, 507 } },
	{ "GET", DEPLOYMENT "/logs", "getDeploymentLogs", "Show what the surfaces write",
		api_deployment_logs, QUERY(logs_query_fields, struct logs_query), .answers = logs },
	{ "*", DEPLOYMENT "/rest/{path}", "forwardRest", "Forward a request to the REST surface",
		api_deployment_rest, ROUTE_STREAMED | ROUTE_RAW, .body_type = "*/*",
		.answers = forwarded, .errors = { 409, 429, 502 } },
	{ "*", DEPLOYMENT "/a2a/{path}", "forwardA2a", "Forward a request to the A2A surface",
		api_deployment_a2a, ROUTE_STREAMED | ROUTE_RAW, .body_type = "*/*",
		.answers = forwarded, .errors = { 409, 429, 502 } },
	{ "*", DEPLOYMENT "/ui/{path}", "forwardUi", "Forward a request to the UI surface",
		api_deployment_ui, ROUTE_STREAMED | ROUTE_RAW, .body_type = "*/*",
		.answers = forwarded, .errors = { 409, 429, 502 } },
	{ "POST", WORKSPACE "/suspend", "suspendWorkspace",
		"End the processes of a workspace and keep its files", api_workspace_suspend,
		ROUTE_OPTIONAL, BODY(suspend_fields, struct suspend_body), .answers = workspace,
		.errors = { 409, 507 } },
	{ "POST", WORKSPACE "/resume", "resumeWorkspace",
		"Start the sandbox of a workspace, as the next command would", api_workspace_resume,
		.answers = workspace, .errors = { 409, 429, 507 } },
	{ "GET", WORKSPACE "/health", "checkWorkspace", "Check a workspace", api_workspace_health,
		QUERY(health_query_fields, struct health_query), .answers = workspace_health },
	{ "GET", WORKSPACE "/verify", "verifyIsolation",
		"Check the isolation of a workspace's sandbox", api_workspace_verify,
		.answers = verdict, .errors = { 409 } },
	{ "POST", WORKSPACE "/repair", "repairWorkspace", "Repair what a check finds",
		api_workspace_repair, QUERY(health_query_fields, struct health_query),
		.answers = repaired, .errors = { 409, 507 } },

	{ "POST", WORKSPACE "/snapshots", "createSnapshot", "Keep the present state of a workspace",
		api_snapshot_create, ROUTE_OPTIONAL | ROUTE_LOCATION,
		BODY(snapshot_wanted_record, struct snapshot_wanted), .answers = snapshot_made,
		.errors = { 409, 429, 507 } },
	{ "GET", WORKSPACE "/snapshots", "listWorkspaceSnapshots",
		"List the snapshots of a workspace", api_snapshot_list,
		QUERY(page_query_fields, struct list_query), .answers = snapshots },
	{ "GET", "/v1/snapshots", "listSnapshots", "List snapshots", api_snapshot_list_all,
		QUERY(page_query_fields, struct list_query), .answers = snapshots },
	{ "POST", "/v1/snapshots", "pullSnapshot", "Fetch a snapshot from the blob store",
		api_snapshot_pull, ROUTE_LOCATION, BODY(pull_wanted_record, struct pull_wanted),
		.answers = snapshot_made, .errors = { 404, 409, 429, 507 } },
	{ "GET", "/v1/snapshots/{id}", "getSnapshot", "Show a snapshot", api_snapshot_get,
		.answers = snapshot },
	{ "POST", "/v1/snapshots/{id}/verify", "verifySnapshot",
		"Compare the layers of a snapshot with their content ids", api_snapshot_verify,
		.answers = snapshot_verdict },
	{ "DELETE", "/v1/snapshots/{id}", "removeSnapshot", "Remove a snapshot",
		api_snapshot_delete, .answers = removed, .errors = { 409, 507 } },
	{ "POST", WORKSPACE "/rollback", "rollbackWorkspace",
		"Put a workspace back into the state of a snapshot", api_rollback,
		BODY(rollback_wanted_record, struct rollback_wanted), .answers = workspace,
		.errors = { 409, 507 } },
	{ "POST", WORKSPACE "/push", "pushSnapshot",
		"Send a snapshot of a workspace to the blob store", api_snapshot_push,
		BODY(push_wanted_record, struct push_wanted), .answers = pushed,
		.errors = { 409, 507 } },
	{ "POST", WORKSPACE "/fork", "forkWorkspace",
		"Create workspaces with the state of another one", api_fork, ROUTE_OPTIONAL,
		BODY(fork_wanted_record, struct fork_wanted), .answers = forked,
		.errors = { 409, 429, 507 } },

	{ "GET", WORKSPACE "/metrics", "workspaceMetrics", "Show what a workspace uses",
		api_workspace_metrics, .answers = usage },
	{ "GET", "/v1/metrics", "listMetrics", "List what workspaces use", api_metrics_list,
		QUERY(list_query_fields, struct list_query), .answers = usages },

	{ "GET", WORKSPACE "/packages", "listPackages",
		"List the Python and Node packages that a command in the workspace finds",
		api_packages_list, .answers = packages },
	{ "POST", WORKSPACE "/packages", "installPackages",
		"Install Python or Node packages, also while commands run", api_packages_install,
		BODY(packages_fields, struct packages_body), .answers = packages_changed,
		.errors = { 409, 429, 507 } },
	{ "DELETE", WORKSPACE "/packages", "uninstallPackages", "Uninstall Python or Node packages",
		api_packages_uninstall, BODY(packages_fields, struct packages_body),
		.answers = packages_changed, .errors = { 409, 429, 507 } },

	{ "POST", WORKSPACE "/exec", "exec", "Run a command", api_exec_start,
		ROUTE_KEYED | ROUTE_LOCATION, BODY(exec_spec_record, struct exec_spec),
		.answers = exec_answers, .errors = { 406, 409, 429, 507 } },
	{ "GET", WORKSPACE "/exec", "execSocket", "Run a command interactively, on a WebSocket",
		api_exec_socket, .answers = exec_socket, .errors = { 426, 429 } },
	{ "GET", WORKSPACE "/execs", "listExecs", "List the execs of a workspace", api_exec_list,
		QUERY(page_query_fields, struct list_query), .answers = execs },
	{ "GET", "/v1/execs", "listAllExecs", "List execs", api_exec_list_all,
		QUERY(page_query_fields, struct list_query), .answers = execs },
	{ "GET", EXEC, "getExec", "Show an exec, or wait for its end", api_exec_get,
		QUERY(exec_query_fields, struct exec_query), .answers = exec },
	{ "GET", EXEC "/output", "getOutput", "Read the output of a background exec",
		api_exec_output, QUERY(output_query_fields, struct output_query), .answers = output,
		.errors = { 416 } },
	{ "GET", EXEC "/attach", "attachExec", "Attach to a background exec, on a WebSocket",
		api_exec_attach, QUERY(attach_query_fields, struct attach_query),
		.answers = attached, .errors = { 409, 416, 426, 429 } },
	{ "POST", EXEC "/signal", "signalExec", "Send a signal to an exec", api_exec_signal,
		BODY(signal_fields, struct signal_body), .answers = done, .errors = { 409 } },
	{ "POST", EXEC "/stdin", "writeStdin", "Write to the stdin of an exec", api_exec_stdin,
		ROUTE_STREAMED, QUERY(stdin_query_fields, struct stdin_query), .body_type = BYTES,
		.answers = done, .errors = { 409 } },
	{ "POST", EXEC "/resize", "resizeTerminal", "Change the terminal size of an exec",
		api_exec_resize, BODY(resize_fields, struct resize_body), .answers = done,
		.errors = { 409 } },

	{ "GET", WORKSPACE "/files/{path}", "readFile",
		"Read a file, list a directory, or show file information", api_file_get,
		ROUTE_RANGE, QUERY(file_get_query_fields, struct file_query), .answers = file_get,
		.errors = { 409, 416, 429 } },
	{ "PUT", WORKSPACE "/files/{path}", "writeFile",
		"Write a file (atomically), make a directory, or move", api_file_put,
		ROUTE_STREAMED | ROUTE_NEW, QUERY(file_put_query_fields, struct file_query),
		.body_type = BYTES, .answers = file_put, .errors = { 409, 412, 507 } },
	{ "DELETE", WORKSPACE "/files/{path}", "removeFile", "Remove a file or a directory",
		api_file_delete, QUERY(file_delete_query_fields, struct file_query),
		.answers = removed, .errors = { 409, 507 } },
	{ "GET", WORKSPACE "/archive", "packTree", "Pack files as one archive", api_archive_get,
		QUERY(archive_get_query_fields, struct archive_query), .answers = archive_get,
		.errors = { 409, 429 } },
	{ "PUT", WORKSPACE "/archive", "unpackTree",
		"Unpack a tar, tar.gz, tar.zst or zip archive into a workspace", api_archive_put,
		ROUTE_STREAMED, QUERY(archive_put_query_fields, struct archive_query),
		.body_type = BYTES, .answers = done, .errors = { 409, 429, 507 } },
	{ "GET", WORKSPACE "/diff", "diffWorkspace",
		"List what changed since the last snapshot, or another one, or all files",
		api_workspace_diff, QUERY(diff_query_fields, struct diff_query), .answers = changes,
		.errors = { 409, 429 } },
	{ "GET", WORKSPACE "/changes", "packChanges",
		"Pack what changed since the last snapshot, or another one, or all files",
		api_workspace_changes, QUERY(changes_query_fields, struct diff_query),
		.answers = bundle, .errors = { 409, 429, 507 } },
	{ "POST", WORKSPACE "/apply", "applyChanges",
		"Apply changes of a workspace to another one: all of them, or none",
		api_workspace_apply, BODY(apply_fields, struct apply_body), .answers = applied,
		.errors = { 409, 429, 507 } },
	{ "GET", WORKSPACE "/ports", "listPorts", "List the TCP ports that listen in a workspace",
		api_port_list, QUERY(page_query_fields, struct list_query), .answers = ports },
	{ "*", WORKSPACE "/ports/{port}/{path}", "forwardPort",
		"Forward a request to a server in a workspace", api_port_forward,
		ROUTE_STREAMED | ROUTE_RAW, .body_type = "*/*", .answers = forwarded,
		.errors = { 409, 429, 502 } },
	{ "GET", WORKSPACE "/events", "workspaceEvents", "Follow events of a workspace",
		api_workspace_events, ROUTE_EVENTS,
		QUERY(workspace_events_query_fields, struct events_query), .answers = events },
	{ "GET", "/v1/events", "events", "Follow events", api_events, ROUTE_EVENTS,
		QUERY(events_query_fields, struct events_query), .answers = events },
	{ "GET", "/v1/audit", "audit", "Read the audit log", api_audit, ROUTE_EVENTS,
		QUERY(audit_query_fields, struct audit_query), .answers = audit_lines },
	{ 0 }
};

static bool match(const struct http_request *r)
{
	return true;
}

const struct door rest_door = { .name = "rest",
	.name_of_cli = DOOR_CLI,
	.match = match,
	.login = authenticate_credential,
	.routes = routes,
	.refuse = call_problem_with };
