/* trace.h -- the steps' own times, compiled in with -Dtrace=true only. trace_step writes one line
 * "trace <monotonic ns> <pid> <step>" to the descriptor in $CARREL_TRACE_FD; bench/ turns them into
 * a table. */
#pragma once
#ifdef CARREL_TRACE
void trace_step(const char *step);
#else
static inline void trace_step(const char *step)
{
	(void)step;
}
#endif
