#include "model/nouns/metrics.h"
#include "model/records/rows.h"

#define AT(member) offsetof(struct workspace_metrics, member)
static const struct field metrics_rows[] = {
	ROW(ID, id, "of the workspace"),
	ROW(TEXT, name),
	ROW(CHOICE, state, .names = workspace_state_names),
	{ "warm", FIELD_BOOLEAN, AT(is_warm), "it has a sandbox; else nothing runs in it" },
	{ "measured_at", FIELD_TIME, AT(measured_ms),
		"when the sandbox was looked at: at most five times a second", FIELD_NULLABLE },
	ROW(INTEGER, cpu_ms, "cpu time of the sandbox since its start"),
	ROW(REAL, cpu_percent, "share of one cpu between the last two looks; null after the first",
		FIELD_NULLABLE, .has = FIELD_HAS(struct workspace_metrics, has_cpu_percent)),
	{ "memory", FIELD_SIZE, AT(memory_bytes),
		"of all processes and tmpfs; pages that processes share count once for each" },
	ROW(SIZE, memory_limit, NULL, FIELD_NULLABLE),
	ROW(INTEGER, pids, "processes and threads"),
	ROW(INTEGER, pids_limit, NULL, FIELD_NULLABLE),
	{ "disk_usage", FIELD_SIZE, AT(disk_bytes), "as last measured" },
	ROW(SIZE, disk_limit, NULL, FIELD_NULLABLE),
	ROW(INTEGER, execs, "that run"),
};
const struct record metrics_record = { "WorkspaceMetrics", "What a workspace uses.",
	RECORD_ROWS(metrics_rows), FIELD_OUT };
