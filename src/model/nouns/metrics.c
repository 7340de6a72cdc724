#include "model/nouns/metrics.h"

#define AT(member) offsetof(struct workspace_metrics, member)
static const struct field metrics_rows[] = {
	{ "id", FIELD_ID, AT(id), "of the workspace" },
	{ "name", FIELD_TEXT, AT(name) },
	{ "state", FIELD_CHOICE, AT(state), .names = workspace_state_names },
	{ "warm", FIELD_BOOLEAN, AT(is_warm), "it has a sandbox; else nothing runs in it" },
	{ "measured_at", FIELD_TIME, AT(measured_ms),
		"when the sandbox was looked at: at most five times a second", FIELD_NULLABLE },
	{ "cpu_ms", FIELD_INTEGER, AT(cpu_ms), "cpu time of the sandbox since its start" },
	{ "cpu_percent", FIELD_REAL, AT(cpu_percent),
		"share of one cpu between the last two looks; null after the first", FIELD_NULLABLE,
		.has = FIELD_HAS(struct workspace_metrics, has_cpu_percent) },
	{ "memory", FIELD_SIZE, AT(memory_bytes),
		"of all processes and tmpfs; pages that processes share count once for each" },
	{ "memory_limit", FIELD_SIZE, AT(memory_limit), NULL, FIELD_NULLABLE },
	{ "pids", FIELD_INTEGER, AT(pids), "processes and threads" },
	{ "pids_limit", FIELD_INTEGER, AT(pids_limit), NULL, FIELD_NULLABLE },
	{ "disk_usage", FIELD_SIZE, AT(disk_bytes), "as last measured" },
	{ "disk_limit", FIELD_SIZE, AT(disk_limit), NULL, FIELD_NULLABLE },
	{ "execs", FIELD_INTEGER, AT(execs), "that run" },
};
const struct record metrics_record = { "WorkspaceMetrics", "What a workspace uses.",
	RECORD_ROWS(metrics_rows), FIELD_OUT };
