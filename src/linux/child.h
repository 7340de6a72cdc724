/* child.h -- a forked copy of this process that does one job.
 * 1. A child with a death signal gets it when this process ends, also when this process ended
 * before the child could ask for it. A change of credentials in the child clears it.
 * 2. The process that started a child reaps it. */
#pragma once
#include "base/error.h"

struct child {
	pid_t pid; /* 0: this is the child; -1: none */
	int pipe;  /* CHILD_PIPE: what the child writes; in the child, where it writes. Else -1 */
	int pidfd; /* CHILD_PIDFD: readable when the child has ended. Else -1 */
};
#define CHILD_NONE ((struct child){ -1, -1, -1 })
enum {
	CHILD_PIPE = 1,
	CHILD_PIPE_ASYNC = 2, /* with CHILD_PIPE: reading it doesn't wait */
	CHILD_PIDFD = 4,
};

/* Forks: returns twice with 0. death_signal 0: the child outlives this process. */
int child_fork(struct child *child, unsigned flags, int death_signal, struct error *err);
/* Waits for the end of the child and closes its descriptors; then there is none. The wait status,
 * or -1: there was none, or SIGCHLD is ignored. */
int child_wait(struct child *child);
int child_kill(struct child *child); /* as child_wait, after SIGKILL */
/* In the child: /dev/null becomes the standard streams but `kept` (-1: all three). */
int child_leave_streams(int kept);
/* In the child: what the parent wanted done on a signal is not for it to do; SIGPIPE is ignored,
 * none is blocked. */
void child_reset_signals(void);
/* In the child: lowers a resource limit to `most`, for good; RLIMIT_DATA counts what it inherited
 * on top, and is left as it is under an address sanitizer, which keeps what was freed. */
int child_limit(int resource, uint64_t most, struct error *err);
int child_limit_data(uint64_t bytes, struct error *err);
