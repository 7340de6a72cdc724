/* Operations on snapshots of workspaces, and forks. */
#include "model/nouns/pushed.h"
#include "model/nouns/snapshot.h"
#include "model/nouns/workspace.h"
#include "model/operations/operation.h"

static const struct field layer_verdict_rows[] = {
	TEXT("name", NULL),
	TEXT("content_id", "null where there is a problem", FIELD_NULLABLE),
	TEXT("problem", "missing, changed, or why it can't be read; null: none", FIELD_NULLABLE),
};
static const struct record layer_verdict_record = { "LayerVerdict", NULL,
	RECORD_ROWS(layer_verdict_rows), FIELD_OUT };

static const struct field snapshot_verdict_rows[] = {
	TEXT("snapshot", "its id"),
	{ "ok", FIELD_BOOLEAN, .help = "no layer has a problem" },
	{ "layers", FIELD_OBJECTS, .help = "topmost first", .object = &layer_verdict_record },
};
static const struct record snapshot_verdict_record = { "SnapshotVerdict", NULL,
	RECORD_ROWS(snapshot_verdict_rows), FIELD_OUT };

static const struct operation operations[] = {
	{ "POST", WORKSPACE "/snapshots", "createSnapshot", "snapshot create", VERB_SNAPSHOT_CREATE,
		.summary = "Keep the present state of a workspace",
		.more = "Takes milliseconds, whatever the size. Commands that run are paused "
			"unless `when_busy` says otherwise.",
		.flags = ROUTE_OPTIONAL | ROUTE_LOCATION | ROUTE_WORKSPACE,
		TAKES(snapshot_wanted_record, struct snapshot_wanted),
		ANSWER(201, TYPE_JSON, &snapshot_record, "The snapshot was made."), MAKES },
	{ "GET", WORKSPACE "/snapshots", "listWorkspaceSnapshots", NULL, VERB_SNAPSHOT_LIST,
		.summary = "List the snapshots of a workspace", .more = "Newest first.",
		.flags = ROUTE_WORKSPACE, PAGES,
		LISTED("Snapshots", snapshot_record, "Newest first.") },
	{ "GET", "/v1/snapshots", "listSnapshots", "snapshot ls", VERB_SNAPSHOT_LIST,
		.summary = "List snapshots",
		.more = "Of all workspaces, also of removed ones, newest first.", PAGES,
		LISTED("Snapshots", snapshot_record, "Newest first.") },
	{ "POST", "/v1/snapshots", "pullSnapshot", "snapshot pull", VERB_SNAPSHOT_PULL,
		.summary = "Fetch a snapshot from the blob store",
		.more = "Of a workspace that was pushed, from this machine or another one.",
		.flags = ROUTE_LOCATION, TAKES(pull_wanted_record, struct pull_wanted),
		ANSWER(201, TYPE_JSON, &snapshot_record, "The snapshot was made."),
		.errors = { 404, 409, 429, 507 } },
	{ "GET", "/v1/snapshots/{id}", "getSnapshot", "snapshot show", VERB_SNAPSHOT_GET,
		.summary = "Show a snapshot", .more = "By its id.",
		SHOWN(snapshot_record, "The snapshot.") },
	{ "POST", "/v1/snapshots/{id}/verify", "verifySnapshot", "snapshot verify",
		VERB_SNAPSHOT_VERIFY,
		.summary = "Compare the layers of a snapshot with their content ids",
		.more = "Reads every file of its layers.",
		SHOWN(snapshot_verdict_record, "What was found.") },
	{ "DELETE", "/v1/snapshots/{id}", "removeSnapshot", "snapshot rm", VERB_SNAPSHOT_REMOVE,
		.summary = "Remove a snapshot",
		.more = "Layers that other snapshots and workspaces use stay.", REMOVED, CHANGES },
	{ "POST", WORKSPACE "/rollback", "rollbackWorkspace", "snapshot rollback",
		VERB_SNAPSHOT_ROLLBACK,
		.summary = "Put a workspace back into the state of a snapshot",
		.more = "The state that it leaves is kept as a snapshot, so that a rollback can be "
			"undone.",
		.flags = ROUTE_WORKSPACE, TAKES(rollback_wanted_record, struct rollback_wanted),
		SHOWN(workspace_record, "The workspace."), CHANGES },
	{ "POST", WORKSPACE "/push", "pushSnapshot", "snapshot push", VERB_SNAPSHOT_PUSH,
		.summary = "Send a snapshot of a workspace to the blob store",
		.more = "Only the layers that the blob store lacks are sent.",
		.flags = ROUTE_WORKSPACE, TAKES(push_wanted_record, struct push_wanted),
		SHOWN(push_result_record, "The blob store has it."), CHANGES },
	{ "POST", WORKSPACE "/fork", "forkWorkspace", "fork", VERB_SNAPSHOT_FORK,
		.summary = "Create workspaces with the state of another one",
		.more = "The new workspaces share the files of the other one until they change "
			"them. Costs milliseconds each.",
		.flags = ROUTE_OPTIONAL | ROUTE_WORKSPACE,
		TAKES(fork_wanted_record, struct fork_wanted),
		ANSWER(201, TYPE_JSON, PAGE_OF("Workspaces", workspace_record),
			"The new workspaces; next_cursor is null."),
		MAKES },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Snapshot",
		"{'id':'s1s25urtifvfsii9o731','workspace':'n5fda10efceptk5gu44i',"
		"'workspace_name':'demo','version':1,'tag':'v1','note':null,"
		"'created_at':'2026-01-02T10:00:00.000Z','size_bytes':24576,"
		"'layers':['snap-j79ahjda7nhs19jri8d7'],'environment':null,'view':'workspace',"
		"'automatic':false,'kept':false,'content_id':null}" },
	{ "SnapshotWanted", "{'tag':'v1','note':'before the upgrade'}" },
	{ "SnapshotVerdict",
		"{'snapshot':'s1s25urtifvfsii9o731','ok':true,"
		"'layers':[{'name':'snap-j79ahjda7nhs19jri8d7','content_id':'sha256-4f1c',"
		"'problem':null}]}" },
	{ "RollbackWanted", "{'snapshot':'v1'}" },
	{ "ForkWanted", "{'name':'try','count':3,'snapshot':'v1'}" },
	{ "PushWanted", "{'snapshot':'v1'}" },
	{ "Push", "{'snapshot':'s1s25urtifvfsii9o731','workspace':'demo',"
		  "'key':'snapshots/demo/1.json','layers':2,'sent_layers':1,'sent_bytes':18231}" },
	{ "PullWanted", "{'workspace':'demo','snapshot':'v1'}" },
	{ 0 },
};

const struct operation_table snapshot_operations = { "snapshots", operations, examples };
