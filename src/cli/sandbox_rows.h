/* sandbox_rows.h -- what can be asked of any sandbox on a command line: one list of rows for `run`
 * and `create`, which differ in what some of them mean. */
#pragma once
#include "cli/args.h"
#include "model/limits.h"

/* AT(field) is the offset of that field in the table's own structure, which has `net` and a struct
 * limits `limits`. */
#define SANDBOX_ROWS(AT, cpu_time_help, timeout_help, disk_help, output_help)                      \
	{ 0, "net", ARG_CHOICE, AT(net), "none", "the network inside: none, only loopback",        \
		"none|list|open", 0, 0 },                                                          \
		{ 0, "memory", ARG_SIZE, AT(limits.memory_bytes), "SIZE",                          \
			"memory of all processes and tmpfs together (default 2G)", NULL,           \
			LIMIT_MEMORY_LEAST, 0 },                                                   \
		{ 0, "cpus", ARG_CPUS, AT(limits.millicpus), "N",                                  \
			"number of CPUs, such as 0.5 (default no limit)", NULL, 10, 0 },           \
		{ 0, "cpu-time", ARG_DURATION, AT(limits.cpu_time_ms), "TIME", cpu_time_help,      \
			NULL, 1, 0 },                                                              \
		{ 0, "timeout", ARG_DURATION, AT(limits.timeout_ms), "TIME", timeout_help, NULL,   \
			1, 0 },                                                                    \
		{ 0, "pids", ARG_COUNT, AT(limits.pids), "N",                                      \
			"processes and threads (default 1024)", NULL, 1, 4194304 },                \
		{ 0, "fds", ARG_COUNT, AT(limits.fds), "N",                                        \
			"open files of a process (default 1024)", NULL, 16, 1048576 },             \
		{ 0, "disk", ARG_SIZE, AT(limits.disk_bytes), "SIZE", disk_help, NULL, 65536, 0 }, \
		{ 0, "tmp", ARG_SIZE, AT(limits.tmp_bytes), "SIZE",                                \
			"size of /tmp and /dev/shm together (default half of --memory)", NULL,     \
			65536, 0 },                                                                \
	{                                                                                          \
		0, "output", ARG_SIZE, AT(limits.output_bytes), "SIZE", output_help, NULL, 1, 0    \
	}
#define PTRACE_ROW(AT)                                                                             \
	{                                                                                          \
		0, "ptrace", ARG_FLAG, AT(ptrace), NULL,                                           \
			"allow processes inside to trace each other (gdb, strace, py-spy)", NULL,  \
			0, 0                                                                       \
	}
#define ISOLATION_ROW(AT)                                                                          \
	{                                                                                          \
		0, "isolation", ARG_CHOICE, AT(isolation), "native", "the kind of sandbox",        \
			"native|oci|gvisor|bwrap", 0, 0                                            \
	}

/* ERR_UNAVAILABLE: a choice that this version doesn't have. */
int sandbox_rows_check(const char *net, const char *isolation, struct error *err);
