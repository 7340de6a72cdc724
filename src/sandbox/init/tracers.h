/* tracers.h -- processes that trace others, found in /proc. */
#pragma once
#include <stddef.h>

/* Kills every tracer of a thread of `pid`: a traced thread, also one that isn't the leader, delays
 * the end of its process until its tracer has waited for it. `list`: scratch space of `size` bytes,
 * aligned to 8. */
void tracers_kill(int pid, char *list, size_t size);
