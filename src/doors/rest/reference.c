/* Texts of the operations, in the order of routes.c. */
#include "doors/rest/reference.h"
#include <stdlib.h>
#include <string.h>

const struct tag tags[] = {
	{ "workspaces", "Private trees with their limits, environment and lifetime." },
	{ "execs", "Commands in workspaces: their output, input and end." },
	{ "files", "Files of a workspace, one by one, as archives, and as changes." },
	{ "snapshots",
		"Frozen states of workspaces: roll back to them, fork from them, copy them." },
	{ "packages", "Python and Node packages of workspaces, and built environments." },
	{ "templates", "Descriptions from which workspaces are made." },
	{ "agents", "A2A agents, which have a workspace for each context." },
	{ "archives", "Workspaces that were packed before their removal." },
	{ "approvals", "Commands that wait for a person's answer." },
	{ "tokens", "Credentials of clients." },
	{ "tools", "Code that is run once, and tools that are tested before they are loaded." },
	{ "cases", "Eval cases, and cells: runs of a case in forks of one prepared state." },
	{ "ports", "Servers that run in workspaces." },
	{ "deployments", "Agent packages that are served." },
	{ "events", "What happens, as it happens; and the audit log." },
	{ "daemon", "The daemon itself." },
};
const size_t tag_count = sizeof tags / sizeof *tags;

static const struct operation_text operations[] = {
	{ "healthz", "daemon", "Answers as long as the process runs. Needs no state." },
	{ "readyz", "daemon",
		"503 while the daemon starts, stops, or can't write its state. For load "
		"balancers." },
	{ "metrics", "daemon", "Counters and gauges of the daemon, for Prometheus." },
	{ "openapi", "daemon", "OpenAPI 3.1, printed from the tables that requests are read by." },
	{ "docs", "daemon",
		"One HTML page without external resources, drawn from /openapi.json, which is part "
		"of it. Its Content-Security-Policy allows its own script and style alone." },
	{ "listEnvironments", "packages",
		"Environments are shared, read-only sets of packages. A workspace names one in "
		"`environment`; `POST /v1/workspaces` with `python` or `node` builds one if "
		"needed." },

	{ "listTemplates", "templates", "Shipped templates, and those that were added." },
	{ "addTemplate", "templates",
		"A template of the same name is replaced. With `check` it is only read, and "
		"nothing changes. Workspaces keep the values that they were made with." },
	{ "getTemplate", "templates", "With the values that it leaves at their defaults." },
	{ "removeTemplate", "templates",
		"Only one that was added. Workspaces that were made from it stay as they are." },

	{ "listTrees", "files",
		"Shared trees are directories that several workspaces can attach "
		"(`attach` of `POST /v1/workspaces`)." },
	{ "createTree", "files", "The tree is empty at first." },
	{ "removeTree", "files", "409 while a workspace has it attached." },

	{ "listApprovals", "approvals",
		"An approval is made when the policy of a workspace answers `ask` for a command. "
		"Needs the scope read." },
	{ "getApproval", "approvals", "Shows the exact command that will run if it is approved." },
	{ "answerApproval", "approvals",
		"The exec that waits starts, or ends with reason `denied` (exit code 126). 409 if "
		"it was answered already, or has expired. Needs the scope review (tokens of scope "
		"reviewer or admin)." },

	{ "listAgents", "agents", "Each is served by A2A at /a2a/NAME." },
	{ "addAgent", "agents",
		"An agent of the same name is replaced; its tasks that run go on as they began. "
		"With `check` it is only read, and nothing changes. Needs the scope admin." },
	{ "getAgent", "agents", "With the YAML that it was made of." },
	{ "removeAgent", "agents",
		"Its tasks that run are canceled, and all of them are forgotten. Workspaces of "
		"its contexts stay until their ttl has passed. Needs the scope admin." },

	{ "listTokens", "tokens",
		"Without their texts, which are shown only once. Needs the scope admin." },
	{ "createToken", "tokens",
		"`text` of the answer is the credential; it can't be shown again. A token with "
		"`workspace` reaches nothing else. Needs the scope admin." },
	{ "removeToken", "tokens",
		"The token is refused at once, and streams that were opened with it end. Needs the "
		"scope admin." },

	{ "listCases", "cases", "Newest first." },
	{ "createCase", "cases",
		"`yaml` is the text of its file (carrel-case(1) describes it). The answer's "
		"`workspace` takes the source, at its root. A case that nobody uses for an hour is "
		"removed, unless it has `keep`." },
	{ "getCase", "cases", "With what its preparation printed." },
	{ "removeCase", "cases", "Answers when its workspaces are gone." },
	{ "listCells", "cases", "`GET /v1/cells/{id}` has the steps and the diff of one." },
	{ "startCell", "cases",
		"The first cell has the case prepared: its packages, the editable install, setup. "
		"Each cell then is a fork of that state: harness, diff, graders. As many run at "
		"once as are started. Events `cell.passed`, `cell.failed` and `cell.canceled` tell "
		"the end." },
	{ "getCell", "cases",
		"What its commands printed is kept to 64 KiB each, its diff to 96 KiB." },

	{ "createWorkspace", "workspaces",
		"An empty body makes a workspace with a generated name and the default limits. "
		"With `python` or `node` its environment is built first if it doesn't exist: "
		"follow `environment.progress` at `/v1/events` meanwhile. Repeat the request with "
		"the same Idempotency-Key after a connection was lost." },
	{ "listWorkspaces", "workspaces", "Pages hold 100 workspaces unless `limit` is given." },
	{ "getWorkspace", "workspaces",
		"A workspace is named by its id, its name, or its label `context_id`." },
	{ "changeWorkspace", "workspaces",
		"Only what is given changes. New limits hold from the next start of its sandbox "
		"on; "
		"`suspend` ends the one that is there." },
	{ "removeWorkspace", "workspaces",
		"Commands that run in it end with reason `canceled`. Its files are gone unless it "
		"is archived first." },

	{ "listArchives", "archives", "Archives of the blob store, newest first." },
	{ "removeArchive", "archives", "The archive is deleted from the blob store." },
	{ "uploadArchive", "archives",
		"The body is a tar.zst or tar.gz that `carrel rm --archive` wrote. 409 if the name "
		"is taken." },
	{ "restoreArchive", "archives",
		"The new workspace has a new id, and the name that it had unless another is "
		"given." },
	{ "listExports", "packages", "Environments that were exported to the blob store." },
	{ "getExport", "packages", "For `carrel env import` on another machine." },
	{ "putExport", "packages", "The body is what `carrel env export` wrote." },
	{ "removeExport", "packages", "Environments that were imported from it stay." },
	{ "listAgentPackages", "deployments",
		"Packages that deployments can name as `blob:NAME`." },
	{ "getAgentPackage", "deployments", "The bytes as they were stored." },
	{ "putAgentPackage", "deployments",
		"A zip, tar.gz or tar.zst with agent.yaml, as `carrel package build` writes it. "
		"Nothing of it is looked at before it is deployed." },
	{ "removeAgentPackage", "deployments", "Deployments that were made of it stay." },
	{ "listDeployments", "deployments", "With their surfaces and environments." },
	{ "createDeployment", "deployments",
		"Answers at once; the rollout goes on: `rollout.status` goes through downloading, "
		"building_env, installing_deps and starting, and ends as healthy or failed, each "
		"an "
		"event `deployment.status`. A deployment of that name is replaced when all "
		"surfaces of the new revision are healthy; if it fails, what was live stays. 409 "
		"while another rollout is under way." },
	{ "getDeployment", "deployments", "By its id or its name." },
	{ "removeDeployment", "deployments",
		"Requests under way are cut. The environment and the stored package stay." },
	{ "restartDeployment", "deployments", "As a rollout of the same package." },
	{ "rollbackDeployment", "deployments",
		"A second rollback goes forward again: the revision that was live is the earlier "
		"one then." },
	{ "getDeploymentLogs", "deployments", "At most the last 16 KiB of each stream." },
	{ "forwardRest", "deployments",
		"Method, headers, body and answer pass through, as for ports of workspaces." },
	{ "forwardA2a", "deployments",
		"HTTP/1.1 passes through. A gRPC client upgrades to `carrel-tcp` first, or uses "
		"`carrel port` with the workspace of the surface: the daemon speaks no HTTP/2." },
	{ "forwardUi", "deployments", "Static files, or what the surface's command serves." },
	{ "suspendWorkspace", "workspaces",
		"Frees the memory of the workspace. 409 while commands run, unless `force` is set. "
		"The next exec resumes it." },
	{ "resumeWorkspace", "workspaces", "So that the next exec finds its sandbox ready." },
	{ "checkWorkspace", "workspaces",
		"Looks at its marks, environment, packages, layers and disk usage. Nothing "
		"changes." },
	{ "verifyIsolation", "workspaces",
		"Starts its sandbox if there is none, and looks at each layer of isolation from "
		"outside and from inside." },
	{ "repairWorkspace", "workspaces",
		"Does what can be done about the issues of a check: makes marks again, fetches "
		"damaged layers, rebuilds its environment." },

	{ "createSnapshot", "snapshots",
		"Takes milliseconds, whatever the size. Commands that run are paused unless "
		"`when_busy` says otherwise." },
	{ "listWorkspaceSnapshots", "snapshots", "Newest first." },
	{ "listSnapshots", "snapshots", "Of all workspaces, also of removed ones, newest first." },
	{ "pullSnapshot", "snapshots",
		"Of a workspace that was pushed, from this machine or another one." },
	{ "getSnapshot", "snapshots", "By its id." },
	{ "verifySnapshot", "snapshots", "Reads every file of its layers." },
	{ "removeSnapshot", "snapshots", "Layers that other snapshots and workspaces use stay." },
	{ "rollbackWorkspace", "snapshots",
		"The state that it leaves is kept as a snapshot, so that a rollback can be "
		"undone." },
	{ "pushSnapshot", "snapshots", "Only the layers that the blob store lacks are sent." },
	{ "forkWorkspace", "snapshots",
		"The new workspaces share the files of the other one until they change them. "
		"Costs milliseconds each." },

	{ "workspaceMetrics", "workspaces", "Of its sandbox: cpu, memory, processes, disk." },
	{ "listMetrics", "workspaces", "The same of all workspaces, for a table such as top." },

	{ "listPackages", "packages",
		"Those of its environment, and those that commands installed." },
	{ "installPackages", "packages",
		"Resolves them together with the packages that are there, builds what is missing, "
		"and changes the workspace in one step; processes that run find the new packages. "
		"Answers when it is done: follow `environment.progress` at `/v1/events` "
		"meanwhile." },
	{ "uninstallPackages", "packages",
		"Dependencies that nothing else needs are removed too." },

	{ "exec", "execs",
		"Either `argv`, or `command` for /bin/sh. The answer depends on Accept: "
		"application/json (the default) is the result after the end; text/event-stream is "
		"the output as it comes. With `background` the answer is the exec, which continues "
		"without the client. Without `timeout`, and without a limit of the workspace, a "
		"foreground exec ends with reason `timeout` after 300 s; one in the background or "
		"with `tty` has no time limit. A command that doesn't exist, or can't be executed, "
		"has a result like any other: exit_code 127 or 126, and the cause in stderr. "
		"`exit_code` is the command's own, or 124 (timeout, "
		"cpu_limit), 137 (memory_limit, output_limit, disk_limit), 130 (canceled, "
		"daemon_lost: a background exec that ended with a daemon that was killed), 126 "
		"(denied), 128+n (signal n)." },
	{ "execSocket", "execs",
		"Stdin, stdout, stderr, the size of the terminal and signals as messages: "
		"docs/websocket.md has them all, and an example for a browser. The exec ends with "
		"reason `canceled` when its client goes. 426 without a WebSocket handshake." },
	{ "listExecs", "execs", "Those that run, and background ones that have ended." },
	{ "listAllExecs", "execs", "Of all workspaces." },
	{ "getExec", "execs", "With `wait` the answer comes when the exec has ended." },
	{ "getOutput", "execs",
		"Bytes of one stream from `offset` on; the header Carrel-Next-Offset is the offset "
		"to continue at. Of both streams together the last 64 MB (`limits.output` of the "
		"exec) are kept: beyond that the oldest part is dropped, offsets keep their "
		"meaning, and the header Carrel-First-Offset is the offset of the first byte of "
		"the answer. As text/event-stream, a gap is the event `dropped`." },
	{ "attachExec", "execs",
		"The output from `offset` on, then as it comes; stdin, the size of the terminal "
		"and signals go to the exec. It continues when the client goes, and any number of "
		"clients may be attached. 409 for an exec in the foreground, 426 without a "
		"WebSocket handshake." },
	{ "signalExec", "execs", "To all processes of its process group." },
	{ "writeStdin", "execs",
		"The body goes to the stdin of an exec that was started with `open_stdin`. The "
		"answer comes when the command's pipe has taken all of it." },
	{ "resizeTerminal", "execs", "Of an exec with `tty`; the command gets SIGWINCH." },

	{ "readFile", "files",
		"Paths mean what they mean to a command in the workspace. A directory is 409 "
		"without `list` or `stat`." },
	{ "writeFile", "files",
		"Parent directories are made. Other readers see the old file or the new one, never "
		"a part. With `mkdir` and `move` there is no body." },
	{ "removeFile", "files", "A directory that isn't empty needs `recursive`." },
	{ "runCode", "tools",
		"A workspace is made for it, and removed before the answer. Tests run when the "
		"code has exited with 0: `.py` by pytest, which is installed for them, `.sh` by a "
		"shell. Output of more than 8 MB ends a command with reason output_limit." },

	{ "listTools", "tools",
		"One item for each tool: its active version, else its newest one. Without code, "
		"tests and output." },
	{ "forgeTool", "tools",
		"The tests run twice, in order and in reverse order, in a workspace that is "
		"removed "
		"afterwards. A version that passes replaces the active one; one that doesn't is "
		"dormant, and the active one stays. docs/tools.md describes the interface of the "
		"code. With `package` the code is an adapter that calls functions of the "
		"package." },
	{ "generateTool", "tools",
		"Where the operator has a generator (`tools.generator` of config.yaml), it runs in "
		"a workspace that is removed afterwards, and what it writes is checked. Else the "
		"answer has skeletons, whose tests fail until `run` is written. Nothing is "
		"forged." },
	{ "getTool", "tools", "The active version, else the newest one, or the one of `version`." },
	{ "listToolVersions", "tools",
		"Versions that aren't active are removed after their `ttl`, 24 hours by default." },
	{ "callTool", "tools",
		"Calls `run(**arguments)` of the active version in its own workspace. An exception "
		"of the tool is a result with `ok` false. 409 if no version is loaded." },
	{ "rollbackTool", "tools", "The version must have passed its tests and not be expired." },
	{ "removeTool", "tools", "409 while it is being forged or called." },

	{ "packTree", "files", "Owners are left out; links stay links." },
	{ "unpackTree", "files",
		"Entries that would leave the directory, devices and set-user-id bits are refused. "
		"Nothing is undone if the archive turns out to be damaged." },
	{ "diffWorkspace", "files", "As a list, or with `patch` as text for git apply." },
	{ "packChanges", "files", "For `carrel apply` to a directory of another machine." },
	{ "applyChanges", "files",
		"A conflict is 409 with the list of changes; nothing is applied then." },
	{ "listPorts", "ports", "Nothing is listed without a sandbox." },
	{ "forwardPort", "ports",
		"Method, headers, body and answer pass through, and so do upgrades such as "
		"WebSocket. The credential of the client is not passed on." },
	{ "workspaceEvents", "events",
		"As /v1/events, of one workspace; the stream ends after workspace.deleted." },
	{ "events", "events",
		"New events as they come. With `after`, or the header Last-Event-ID, those after "
		"that id come first, as far back as they are kept (4096); `after=0` is all that "
		"are kept. Comments are sent every 15 s." },
	{ "audit", "events",
		"Every line has the hash of the line before it: `carrel audit verify` checks the "
		"chain. Needs the scope admin or review." },
};

const struct operation_text *operation_text_of(const char *name)
{
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	abort();
}
