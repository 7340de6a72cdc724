#include "model/result.h"

static const struct {
	const char *name;
	int exit_code; /* -1: of the command */
} reasons[REASON_COUNT] = {
	[REASON_EXITED] = { "exited", -1 },
	[REASON_SIGNALED] = { "signaled", -1 },
	[REASON_TIMEOUT] = { "timeout", 124 },
	[REASON_CPU_LIMIT] = { "cpu_limit", 124 },
	[REASON_MEMORY_LIMIT] = { "memory_limit", 137 },
	[REASON_OUTPUT_LIMIT] = { "output_limit", 137 },
	[REASON_DISK_LIMIT] = { "disk_limit", 137 },
	[REASON_CANCELED] = { "canceled", 130 },
	[REASON_DENIED] = { "denied", 126 },
};

const char *reason_name(enum reason reason)
{
	return reasons[reason].name;
}

bool result_has_failed(const struct result *result)
{
	return result->reason != REASON_EXITED || result->exit_status;
}

int result_exit_code(const struct result *result)
{
	if (reasons[result->reason].exit_code >= 0)
		return reasons[result->reason].exit_code;
	return result->reason == REASON_SIGNALED ? 128 + result->signal : result->exit_status;
}
