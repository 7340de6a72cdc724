/* What server-sent events look like: their data is a JSON object whose `type` is the name of the
 * event. */
#include "model/agents/tool.h"
#include "model/nouns/approval.h"
#include "model/nouns/exec.h"
#include "model/operations/operation.h"

#define TYPE(types)                                                                                \
	{                                                                                          \
		"type", FIELD_CHOICE, 0, "the name of the event", .choices = types                 \
	}
#define TYPES(name, ...) static const struct field_choice name[] = { __VA_ARGS__, { 0 } }

/* ---- /v1/events ---- */

static const struct field common_rows[] = {
	COUNT("id", "counts up, also across restarts of the daemon"),
	{ "time", FIELD_TIME },
	TEXT("workspace", "its id; empty: the event isn't about one"),
	TEXT("name", "of the workspace, template, token, case or tool", FIELD_NULLABLE),
};
static const struct record common = { "", NULL, RECORD_ROWS(common_rows), FIELD_OUT };

/* An event with the common members, its type, and further rows. */
#define EVENT(noun, schema, about, types, ...)                                                     \
	static const struct field noun##_rows[] = { TYPE(types), ##__VA_ARGS__ };                  \
	static const struct record noun = { schema, about, RECORD_ROWS(noun##_rows), FIELD_OUT,    \
		.base = &common }

TYPES(state_types, { "workspace.created", 0 }, { "workspace.ready", 1 }, { "workspace.updated", 2 },
	{ "workspace.warm", 3 }, { "workspace.cold", 4 }, { "workspace.suspended", 5 },
	{ "workspace.resumed", 6 }, { "workspace.failed", 7 }, { "workspace.expired", 8 },
	{ "workspace.creating", 9 }, { "workspace.deleting", 10 });
EVENT(state, "WorkspaceEvent",
	"A workspace has changed. warm: its sandbox is ready; cold: its sandbox has ended.",
	state_types,
	TEXT("error", "of workspace.failed, or why a removal was given up", FIELD_OPTIONAL));

TYPES(deleted_types, { "workspace.deleted", 0 });
EVENT(deleted, "WorkspaceDeletedEvent", NULL, deleted_types,
	TEXT("reason", "why it was removed: a client asked, or its time to live is over"));

TYPES(warning_types, { "workspace.warning", 0 });
EVENT(warning, "WorkspaceWarningEvent", NULL, warning_types, TEXT("warning", NULL));

TYPES(repaired_types, { "workspace.repaired", 0 });
EVENT(repaired, "WorkspaceRepairedEvent", NULL, repaired_types, TEXT("done", "what was repaired"));

TYPES(disk_types, { "workspace.disk_warning", 0 });
EVENT(disk, "WorkspaceDiskEvent", "A workspace has nearly reached its disk limit.", disk_types,
	COUNT("disk_usage_bytes", NULL), COUNT("disk_limit_bytes", NULL));

TYPES(archive_types, { "workspace.archived", 0 }, { "workspace.restored", 1 });
EVENT(archived, "WorkspaceArchiveEvent", "A workspace was archived, or made of an archive.",
	archive_types, TEXT("archive", "its name"),
	COUNT("size_bytes", "of workspace.archived", FIELD_OPTIONAL));

TYPES(snapshot_types, { "workspace.snapshot", 0 });
EVENT(snapshot, "WorkspaceSnapshotEvent", NULL, snapshot_types,
	TEXT("snapshot", "id of the new snapshot"), COUNT("version", NULL),
	TEXT("tag", NULL, FIELD_OPTIONAL));

TYPES(rollback_types, { "workspace.rollback", 0 });
EVENT(rollback, "WorkspaceRollbackEvent", NULL, rollback_types,
	TEXT("snapshot", "id of the snapshot whose state it has now"),
	TEXT("kept", "id of the snapshot of the state that it left", FIELD_OPTIONAL));

TYPES(applied_types, { "workspace.applied", 0 });
EVENT(applied, "WorkspaceAppliedEvent", "A workspace has got changes of another one.",
	applied_types, TEXT("from", "id of the other one"), COUNT("changes", "how many"));

TYPES(package_types, { "workspace.installed", 0 }, { "workspace.uninstalled", 1 });
EVENT(packages, "WorkspacePackagesEvent", NULL, package_types,
	TEXT("environment", "the new environment of the workspace"));

TYPES(snapshot_copy_types, { "snapshot.pushed", 0 }, { "snapshot.pulled", 1 });
EVENT(snapshot_copy, "SnapshotEvent", "A snapshot was sent to the blob store, or fetched.",
	snapshot_copy_types, TEXT("snapshot", "its id"),
	COUNT("sent_bytes", "of snapshot.pushed", FIELD_OPTIONAL));

TYPES(exec_started_types, { "exec.started", 0 });
EVENT(exec_started, "ExecStartedEvent", "A background exec runs.", exec_started_types,
	TEXT("exec", "its id"));

TYPES(exec_ended_types, { "exec.ended", 0 });
EVENT(exec_ended, "ExecEndedEvent", NULL, exec_ended_types, TEXT("exec", "its id"),
	{ "reason", FIELD_CHOICE, .names = reason_names }, COUNT("exit_code", NULL));

TYPES(exec_changed_types, { "exec.changed", 0 });
EVENT(exec_changed, "ExecChangedEvent",
	"Files that an exec was judged by were changed before it ended: they are denied now.",
	exec_changed_types, TEXT("exec", "its id"), TEXT("reason", "what is denied"));

TYPES(approval_types, { "approval.requested", 0 }, { "approval.approved", 1 },
	{ "approval.denied", 2 }, { "approval.expired", 3 });
EVENT(approval, "ApprovalEvent", NULL, approval_types, TEXT("approval", "its id"),
	TEXT("exec", "id of the exec that waits for it"),
	TEXT("by", "the principal that answered; null: none has", FIELD_NULLABLE),
	TEXT("note", "of the answer, or why it has expired", FIELD_NULLABLE));

TYPES(webhook_types, { "webhook.failed", 0 });
EVENT(webhook, "WebhookEvent", "A webhook about an approval was given up.", webhook_types,
	TEXT("approval", "its id"), TEXT("error", NULL));

TYPES(token_types, { "token.created", 0 }, { "token.removed", 1 });
EVENT(token, "TokenEvent", NULL, token_types, TEXT("token", "its id"));

TYPES(case_types, { "case.created", 0 }, { "case.preparing", 1 }, { "case.ready", 2 },
	{ "case.failed", 3 }, { "case.removed", 4 });
EVENT(eval_case, "CaseEvent", "An eval case; `workspace` is the one that is prepared.", case_types,
	TEXT("case", "its id"), TEXT("error", "of case.failed", FIELD_OPTIONAL));

TYPES(cell_types, { "cell.waiting", 0 }, { "cell.harness", 1 }, { "cell.grading", 2 },
	{ "cell.passed", 3 }, { "cell.failed", 4 }, { "cell.canceled", 5 });
EVENT(cell, "CellEvent", "A cell of an eval case has a new state.", cell_types,
	TEXT("cell", "its id"), TEXT("case", "id of its case"),
	COUNT("repeat", "which run of the case it is"),
	TEXT("reason", "why it hasn't passed", FIELD_OPTIONAL));

TYPES(agent_types, { "agent.added", 0 }, { "agent.removed", 1 });
EVENT(agent, "AgentEvent", NULL, agent_types);

TYPES(task_types, { "task.state", 0 });
EVENT(task, "TaskEvent", "A task of an A2A agent, whose name is `name`.", task_types,
	TEXT("task", "its id"), TEXT("context", "its context id"),
	TEXT("state", "submitted, working, input-required, completed, failed, canceled, rejected"));

TYPES(push_types, { "task.push_failed", 0 });
EVENT(push, "TaskPushFailedEvent",
	"A push notification of a task was given up; the next is told when one was taken again.",
	push_types, TEXT("task", "its id"), TEXT("context", "its context id"),
	TEXT("config", "id of the push notification config"), TEXT("host", "of its URL"),
	TEXT("error", NULL));

TYPES(tool_types, { "tool.state", 0 });
EVENT(tool, "ToolEvent", "A version of a tool is in another state.", tool_types,
	TEXT("tool", "id of the version"), COUNT("version", NULL),
	{ "state", FIELD_CHOICE, .names = tool_state_names },
	TEXT("error", "why it is dormant, else empty"));

TYPES(deployment_types, { "deployment.status", 0 });
EVENT(deployment, "DeploymentEvent", "The status of a deployment has changed.", deployment_types,
	TEXT("deployment", "its id"),
	TEXT("status", "downloading, building_env, installing_deps, starting, healthy, unhealthy, "
		       "failed or stopped"),
	TEXT("version", NULL), COUNT("revision", NULL), TEXT("error", "why, or empty"));

TYPES(template_types, { "template.added", 0 }, { "template.removed", 1 }, { "template.built", 2 });
EVENT(template, "TemplateEvent", NULL, template_types);

TYPES(progress_types, { "environment.progress", 0 });
EVENT(progress, "EnvironmentProgressEvent", "An environment is being built for a workspace.",
	progress_types, TEXT("stage", "resolving, installing_deps, …"),
	COUNT("packages_done", NULL), COUNT("packages", "0: not known yet"),
	COUNT("bytes", "that were downloaded"), TEXT("request_id", "of the request that waits"));

TYPES(missed_types, { "missed", 0 });
static const struct field missed_rows[] = { TYPE(missed_types),
	COUNT("from", "the first event that was missed"), COUNT("to", "the last one") };
static const struct record missed = { "MissedEvent",
	"Events that are not kept any more: the client was away, or too slow.",
	RECORD_ROWS(missed_rows), FIELD_OUT };

static const struct record *const events[] = { &state, &deleted, &warning, &repaired, &disk,
	&archived, &snapshot, &rollback, &applied, &packages, &snapshot_copy, &exec_started,
	&exec_ended, &exec_changed, &approval, &webhook, &token, &template, &eval_case, &cell,
	&agent, &task, &push, &tool, &deployment, &progress, &missed, NULL };
const struct record event_record = { "Event",
	"The data of an event. New types may come: ignore what you don't know.", NULL, 0, FIELD_OUT,
	.variants = events, .tag = "type" };

/* ---- execs ---- */

TYPES(waiting_types, { "waiting", 0 });
static const struct field waiting_rows[] = { TYPE(waiting_types), TEXT("id", "of the exec"),
	TEXT("approval", "id of the approval that it waits for") };
static const struct record waiting = { "ExecWaitingEvent", "The exec waits for an approval.",
	RECORD_ROWS(waiting_rows), FIELD_OUT };

TYPES(learned_types, { "learned", 0 });
static const struct field learned_rows[] = { TYPE(learned_types),
	TEXT("decision", "of the policy: allow, ask or deny"),
	TEXT("decision_with_rules", "what it would be with the rules"),
	{ "rules", FIELD_TEXTS, 0, "that would allow the command" },
	{ "trail", FIELD_OBJECTS, 0, "how the policy judged it", .object = &policy_step_record } };
static const struct record learned = { "ExecLearnedEvent", "With `policy: learn`, before start.",
	RECORD_ROWS(learned_rows), FIELD_OUT };

TYPES(start_types, { "start", 0 });
static const struct field start_rows[] = { TYPE(start_types), TEXT("id", "of the exec") };
static const struct record start = { "ExecStartEvent", "The command runs.", RECORD_ROWS(start_rows),
	FIELD_OUT };

TYPES(output_types, { "stdout", 0 }, { "stderr", 1 });
TYPES(encodings, { "utf-8", 0 }, { "base64", 1 });
static const struct field output_rows[] = { TYPE(output_types), TEXT("data", NULL),
	{ "encoding", FIELD_CHOICE, 0, "of data", .choices = encodings } };
static const struct record output = { "ExecOutputEvent",
	"A piece of output. A character is never cut in two.", RECORD_ROWS(output_rows),
	FIELD_OUT };

TYPES(exit_types, { "exit", 0 });
static const struct field exit_rows[] = { TYPE(exit_types) };
static const struct record ended = { "ExecExitEvent",
	"The last event: the result. Its stdout and stderr are empty: they were sent before.",
	RECORD_ROWS(exit_rows), FIELD_OUT, .base = &result_record };

TYPES(error_types, { "error", 0 });
static const struct field error_rows[] = { TYPE(error_types),
	{ "code", FIELD_CHOICE, 0, "what went wrong", .choices = problem_codes },
	TEXT("detail", "for people"), TEXT("hint", "how to correct it", FIELD_NULLABLE),
	COUNT("exit_code", NULL) };
static const struct record failed = { "ExecErrorEvent",
	"The last event of an exec that was approved and then couldn't be started.",
	RECORD_ROWS(error_rows), FIELD_OUT };

static const struct record *const exec_events[] = { &waiting, &learned, &start, &output, &ended,
	&failed, NULL };
const struct record exec_event_record = { "ExecEvent",
	"The data of an event of an exec: waiting and learned where they apply; start, stdout and "
	"stderr as they come; then exit. One that is denied has no start.",
	NULL, 0, FIELD_OUT, .variants = exec_events, .tag = "type" };

/* ---- output of background execs ---- */

TYPES(dropped_types, { "dropped", 0 });
TYPES(streams, { "stdout", 0 }, { "stderr", 1 });
static const struct field dropped_rows[] = { TYPE(dropped_types),
	{ "stream", FIELD_CHOICE, .choices = streams },
	COUNT("from", "offset of the first byte that isn't kept any more"),
	COUNT("to", "offset of the next byte that is") };
static const struct record dropped = { "OutputDroppedEvent",
	"The oldest output was dropped, since the exec has written more than is kept.",
	RECORD_ROWS(dropped_rows), FIELD_OUT };
static const struct record exec_ended_now = { "OutputExitEvent",
	"The last event: the exec, which has ended.", RECORD_ROWS(exit_rows), FIELD_OUT,
	.base = &exec_fields };

static const struct record *const output_events[] = { &output, &dropped, &exec_ended_now, NULL };
const struct record output_event_record = { "OutputEvent",
	"The data of an event of the output of a background exec.", NULL, 0, FIELD_OUT,
	.variants = output_events, .tag = "type" };

/* ---- the audit log ---- */

static const struct field audit_rows[] = {
	COUNT("seq", "counts up without gaps"),
	{ "time", FIELD_TIME },
	TEXT("type", "such as exec.start, exec.end, file.write, policy.refused"),
	TEXT("principal", "who asked: `uid 1000`, `token ID`, `system`"),
	TEXT("workspace", "its id", FIELD_NULLABLE),
	TEXT("workspace_name", NULL, FIELD_NULLABLE),
	TEXT("request_id", NULL, FIELD_NULLABLE),
	TEXT("door", "how the request came in: rest, cli (carrel), core"),
	{ "data", FIELD_JSON, 0, "members of that type" },
	TEXT("prev", "the hash of the line before"),
	TEXT("hash", "of this line and prev"),
};
const struct record audit_line_record = { "AuditLine", "A line of the audit log.",
	RECORD_ROWS(audit_rows), FIELD_OUT };
