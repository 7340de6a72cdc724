/* pidfd.h -- processes by descriptor: no pid that could have become another's. */
#pragma once
#include "base/error.h"

struct pidfd_usage {
	uint64_t utime_us, stime_us, max_rss_kb; /* of it and the children it waited for */
};

/* *fd is yours to close; it polls readable when the process has ended. ERR_NOT_FOUND: no such one.
 */
int pidfd_open_process(pid_t pid, int *fd, struct error *err);
/* fd is a pidfd, of a process that may have ended. */
bool pidfd_is_valid(int fd);
/* A process that has ended already is success: there is nothing left to tell. */
int pidfd_signal(int fd, int signo, struct error *err);
/* Reaps the child behind fd: waits for its end, or with `wait` false says whether it has. Returns 1
 * with *status as wait(2) gives it (and *usage, which may be NULL), 0 when it still runs, -1. */
int pidfd_reap(int fd, bool wait, int *status, struct pidfd_usage *usage, struct error *err);
