/* observe.h -- which paths the processes behind a seccomp filter name in their calls, as told by
 * the kernel's user notification. For finding out, never for deciding: a process can change the
 * memory that was read before the kernel reads it. */
#pragma once
#include "base/error.h"

/* Loads a filter on the calling thread, which must have no_new_privs, that reports calls that open,
 * look at or execute a path, and changes nothing. Such a call waits until the holder of *listener
 * has taken its report; it fails with ENOSYS when all copies of that descriptor are closed. */
int observe_load(int *listener, struct error *err);
/* Takes one report and lets its call go on. `path`: absolute and whole, or "" when it can't be read
 * or isn't. 0; -1 with errno (EAGAIN or ENOENT: the caller was killed meanwhile). */
int observe_take(int listener, char *path, size_t size);
