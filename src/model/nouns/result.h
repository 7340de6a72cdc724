/* result.h -- how an exec ended. */
#pragma once

enum reason {
	REASON_EXITED,
	REASON_SIGNALED,
	REASON_TIMEOUT,
	REASON_CPU_LIMIT,
	REASON_MEMORY_LIMIT,
	REASON_OUTPUT_LIMIT,
	REASON_DISK_LIMIT,
	REASON_CANCELED,
	REASON_DENIED,
	REASON_DAEMON_LOST, /* how it ended is unknown: the daemon was killed meanwhile */
	REASON_COUNT
};

struct result {
	enum reason reason;
	int exit_status; /* of the command, when it exited */
	int signal;	 /* that ended it, or 0 */
	uint64_t duration_ms, cpu_ms, max_rss_bytes;
	bool truncated; /* output was cut at its limit */
};

extern const char *const reason_names[REASON_COUNT + 1]; /* "memory_limit" …, NULL */
/* As far as the command itself goes: a signal, or an exit code other than 0. */
bool result_has_failed(const struct result *result);
/* Exited: the command's own; signaled: 128 + n; a limit: 124 or 137; canceled 130; denied 126. */
int result_exit_code(const struct result *result);
