/* metrics.h -- what a workspace uses just now, as plain data. Pure. */
#pragma once
#include "model/nouns/workspace.h"

struct workspace_metrics {
	char id[ID_LEN + 1];
	const char *name;
	enum workspace_state state; /* as shown */
	bool is_warm;
	int64_t measured_ms;   /* Unix time of the look at its sandbox; 0: it has none */
	uint64_t cpu_ms;       /* of the sandbox, since it was started */
	double cpu_percent;    /* of one cpu, */
	bool has_cpu_percent;  /* between the last two looks */
	uint64_t memory_bytes; /* tmpfs included */
	uint64_t memory_limit; /* bytes; 0: none, as below */
	uint64_t pids;	       /* threads of all processes */
	uint64_t pids_limit;
	uint64_t disk_bytes; /* as last measured */
	uint64_t disk_limit;
	uint64_t execs; /* that run */
};
extern const struct record metrics_record;
