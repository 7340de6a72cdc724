/* tracers.h -- processes that trace others, found in /proc. */
#pragma once
#include <stddef.h>

/* Kills whoever traces a thread of `pid`. A thread that isn't the leader holds the end of its
 * process as well, until its tracer has waited for it. `list`: `size` bytes to work in, aligned
 * to 8. */
void tracers_kill(int pid, char *list, size_t size);
