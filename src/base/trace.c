#include "base/trace.h"
#ifdef CARREL_TRACE
#include <unistd.h>
#include "base/clock.h"
#include "base/str.h"

void trace_step(const char *step)
{
	const char *number = getenv("CARREL_TRACE_FD");
	uint64_t fd;
	char line[128];
	if (!number || !str_to_u64(str_from(number), &fd) || fd > 1 << 20)
		return;
	str_format(line, sizeof line, "trace %" PRIu64 " %d %.64s\n", clock_monotonic_ns(),
		(int)getpid(), step);
	(void)!write((int)fd, line, strlen(line));
}
#endif
