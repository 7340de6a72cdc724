#include "model/nouns/result.h"

const char *const reason_names[REASON_COUNT + 1] = {
	[REASON_EXITED] = "exited",
	[REASON_SIGNALED] = "signaled",
	[REASON_TIMEOUT] = "timeout",
	[REASON_CPU_LIMIT] = "cpu_limit",
	[REASON_MEMORY_LIMIT] = "memory_limit",
	[REASON_OUTPUT_LIMIT] = "output_limit",
	[REASON_DISK_LIMIT] = "disk_limit",
	[REASON_CANCELED] = "canceled",
	[REASON_DENIED] = "denied",
	[REASON_DAEMON_LOST] = "daemon_lost",
};
/* 0: that of the command. */
static const int exit_codes[REASON_COUNT] = {
	[REASON_TIMEOUT] = 124,
	[REASON_CPU_LIMIT] = 124,
	[REASON_MEMORY_LIMIT] = 137,
	[REASON_OUTPUT_LIMIT] = 137,
	[REASON_DISK_LIMIT] = 137,
	[REASON_CANCELED] = 130,
	[REASON_DENIED] = 126,
	[REASON_DAEMON_LOST] = 130,
};

bool result_has_failed(const struct result *result)
{
	return result->reason != REASON_EXITED || result->exit_status;
}

int result_exit_code(const struct result *result)
{
	if (exit_codes[result->reason])
		return exit_codes[result->reason];
	return result->reason == REASON_SIGNALED ? 128 + result->signal : result->exit_status;
}
