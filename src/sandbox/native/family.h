/* family.h -- a process and all its descendants, where no pid namespace tells them apart. The
 * process is a subreaper: whoever loses a parent stays below it. Private to this room. */
#pragma once

/* Calls fn for `root` and every process below it in `proc` (/proc). */
void family_each(int proc, pid_t root, void (*fn)(void *ctx, int proc, int pid), void *ctx);
/* Sends SIGKILL to every process below `root`, but not to it. One that is made meanwhile may be
 * missed: call it until the last one is reaped. */
void family_kill(int proc, pid_t root);
