/* What server-sent events look like: their data is a JSON object whose `type` is the name of the
 * event. */
#include "model/agents/tool.h"
#include "model/nouns/approval.h"
#include "model/nouns/exec.h"
#include "model/operations/operation.h"

#define TYPE(...)                                                                                  \
	{                                                                                          \
		"type", FIELD_CHOICE, 0, "the name of the event", .names = __VA_ARGS__             \
	}

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

EVENT(state, "WorkspaceEvent",
	"A workspace has changed. warm: its sandbox is ready; cold: its sandbox has ended.",
	NAMES("workspace.created", "workspace.ready", "workspace.updated", "workspace.warm",
		"workspace.cold", "workspace.suspended", "workspace.resumed", "workspace.failed",
		"workspace.expired", "workspace.creating", "workspace.deleting"),
	TEXT("error", "of workspace.failed, or why a removal was given up", FIELD_OPTIONAL));

EVENT(deleted, "WorkspaceDeletedEvent", NULL, NAMES("workspace.deleted"),
	TEXT("reason", "why it was removed: a client asked, or its time to live is over"));

EVENT(warning, "WorkspaceWarningEvent", NULL, NAMES("workspace.warning"), TEXT("warning", NULL));

EVENT(repaired, "WorkspaceRepairedEvent", NULL, NAMES("workspace.repaired"),
	TEXT("done", "what was repaired"));

EVENT(disk, "WorkspaceDiskEvent", "A workspace has nearly reached its disk limit.",
	NAMES("workspace.disk_warning"), COUNT("disk_usage_bytes", NULL),
	COUNT("disk_limit_bytes", NULL));

EVENT(archived, "WorkspaceArchiveEvent", "A workspace was archived, or made of an archive.",
	NAMES("workspace.archived", "workspace.restored"), TEXT("archive", "its name"),
	COUNT("size_bytes", "of workspace.archived", FIELD_OPTIONAL));

EVENT(snapshot, "WorkspaceSnapshotEvent", NULL, NAMES("workspace.snapshot"),
	TEXT("snapshot", "id of the new snapshot"), COUNT("version", NULL),
	TEXT("tag", NULL, FIELD_OPTIONAL));

EVENT(rollback, "WorkspaceRollbackEvent", NULL, NAMES("workspace.rollback"),
	TEXT("snapshot", "id of the snapshot whose state it has now"),
	TEXT("kept", "id of the snapshot of the state that it left", FIELD_OPTIONAL));

EVENT(applied, "WorkspaceAppliedEvent", "A workspace has got changes of another one.",
	NAMES("workspace.applied"), TEXT("from", "id of the other one"),
	COUNT("changes", "how many"));

EVENT(packages, "WorkspacePackagesEvent", NULL,
	NAMES("workspace.installed", "workspace.uninstalled"),
	TEXT("environment", "the new environment of the workspace"));

EVENT(snapshot_copy, "SnapshotEvent", "A snapshot was sent to the blob store, or fetched.",
	NAMES("snapshot.pushed", "snapshot.pulled"), TEXT("snapshot", "its id"),
	COUNT("sent_bytes", "of snapshot.pushed", FIELD_OPTIONAL));

EVENT(exec_started, "ExecStartedEvent", "A background exec runs.", NAMES("exec.started"),
	TEXT("exec", "its id"));

EVENT(exec_ended, "ExecEndedEvent", NULL, NAMES("exec.ended"), TEXT("exec", "its id"),
	{ "reason", FIELD_CHOICE, .names = reason_names }, COUNT("exit_code", NULL));

EVENT(exec_changed, "ExecChangedEvent",
	"Files that an exec was judged by were changed before it ended: they are denied now.",
	NAMES("exec.changed"), TEXT("exec", "its id"), TEXT("reason", "what is denied"));

EVENT(approval, "ApprovalEvent", NULL,
	NAMES("approval.requested", "approval.approved", "approval.denied", "approval.expired"),
	TEXT("approval", "its id"), TEXT("exec", "id of the exec that waits for it"),
	TEXT("by", "the principal that answered; null: none has", FIELD_NULLABLE),
	TEXT("note", "of the answer, or why it has expired", FIELD_NULLABLE));

EVENT(webhook, "WebhookEvent", "A webhook about an approval was given up.", NAMES("webhook.failed"),
	TEXT("approval", "its id"), TEXT("error", NULL));

EVENT(token, "TokenEvent", NULL, NAMES("token.created", "token.removed"), TEXT("token", "its id"));

EVENT(eval_case, "CaseEvent", "An eval case; `workspace` is the one that is prepared.",
	NAMES("case.created", "case.preparing", "case.ready", "case.failed", "case.removed"),
	TEXT("case", "its id"), TEXT("error", "of case.failed", FIELD_OPTIONAL));

EVENT(cell, "CellEvent", "A cell of an eval case has a new state.",
	NAMES("cell.waiting", "cell.harness", "cell.grading", "cell.passed", "cell.failed",
		"cell.canceled"),
	TEXT("cell", "its id"), TEXT("case", "id of its case"),
	COUNT("repeat", "which run of the case it is"),
	TEXT("reason", "why it hasn't passed", FIELD_OPTIONAL));

EVENT(agent, "AgentEvent", NULL, NAMES("agent.added", "agent.removed"));

EVENT(task, "TaskEvent", "A task of an A2A agent, whose name is `name`.", NAMES("task.state"),
	TEXT("task", "its id"), TEXT("context", "its context id"),
	TEXT("state", "submitted, working, input-required, completed, failed, canceled, rejected"));

EVENT(push, "TaskPushFailedEvent",
	"A push notification of a task was given up; the next is told when one was taken again.",
	NAMES("task.push_failed"), TEXT("task", "its id"), TEXT("context", "its context id"),
	TEXT("config", "id of the push notification config"), TEXT("host", "of its URL"),
	TEXT("error", NULL));

EVENT(tool, "ToolEvent", "A version of a tool is in another state.", NAMES("tool.state"),
	TEXT("tool", "id of the version"), COUNT("version", NULL),
	{ "state", FIELD_CHOICE, .names = tool_state_names },
	TEXT("error", "why it is dormant, else empty"));

EVENT(deployment, "DeploymentEvent", "The status of a deployment has changed.",
	NAMES("deployment.status"), TEXT("deployment", "its id"),
	TEXT("status", "downloading, building_env, installing_deps, starting, healthy, unhealthy, "
		       "failed or stopped"),
	TEXT("version", NULL), COUNT("revision", NULL), TEXT("error", "why, or empty"));

EVENT(template, "TemplateEvent", NULL,
	NAMES("template.added", "template.removed", "template.built"));

EVENT(progress, "EnvironmentProgressEvent", "An environment is being built for a workspace.",
	NAMES("environment.progress"), TEXT("stage", "resolving, installing_deps, …"),
	COUNT("packages_done", NULL), COUNT("packages", "0: not known yet"),
	COUNT("bytes", "that were downloaded"), TEXT("request_id", "of the request that waits"));

static const struct field missed_rows[] = { TYPE(NAMES("missed")),
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

static const struct field waiting_rows[] = { TYPE(NAMES("waiting")), TEXT("id", "of the exec"),
	TEXT("approval", "id of the approval that it waits for") };
static const struct record waiting = { "ExecWaitingEvent", "The exec waits for an approval.",
	RECORD_ROWS(waiting_rows), FIELD_OUT };

static const struct field learned_rows[] = { TYPE(NAMES("learned")),
	TEXT("decision", "of the policy: allow, ask or deny"),
	TEXT("decision_with_rules", "what it would be with the rules"),
	{ "rules", FIELD_TEXTS, 0, "that would allow the command" },
	{ "trail", FIELD_OBJECTS, 0, "how the policy judged it", .object = &policy_step_record } };
static const struct record learned = { "ExecLearnedEvent", "With `policy: learn`, before start.",
	RECORD_ROWS(learned_rows), FIELD_OUT };

static const struct field start_rows[] = { TYPE(NAMES("start")), TEXT("id", "of the exec") };
static const struct record start = { "ExecStartEvent", "The command runs.", RECORD_ROWS(start_rows),
	FIELD_OUT };

static const struct field output_rows[] = { TYPE(NAMES("stdout", "stderr")), TEXT("data", NULL),
	{ "encoding", FIELD_CHOICE, 0, "of data", .names = NAMES("utf-8", "base64") } };
static const struct record output = { "ExecOutputEvent",
	"A piece of output. A character is never cut in two.", RECORD_ROWS(output_rows),
	FIELD_OUT };

static const struct field exit_rows[] = { TYPE(NAMES("exit")) };
static const struct record ended = { "ExecExitEvent",
	"The last event: the result. Its stdout and stderr are empty: they were sent before.",
	RECORD_ROWS(exit_rows), FIELD_OUT, .base = &result_record };

static const struct field error_rows[] = { TYPE(NAMES("error")),
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

static const struct field dropped_rows[] = { TYPE(NAMES("dropped")),
	{ "stream", FIELD_CHOICE, .names = NAMES("stdout", "stderr") },
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
