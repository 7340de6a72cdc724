/* supervise.h -- stays with a started sandbox until it has ended: relays, limits, signals, result.
 */
#pragma once
#include "sandbox/held.h"
#include "sandbox/sandbox.h"
#include "sandbox/streams.h"

struct supervised {
	const struct plan *plan;
	const struct cgroup *cgroup;
	struct streams *streams;
	struct loop *loop;
	int socket;		    /* to the child, then to carrel-init */
	int pidfd;		    /* of PID 1 */
	pid_t pid;		    /* its number here */
	const bool *is_up;	    /* start.is_up */
	struct held_base disk_base; /* for a disk that is counted */
};
/* Returns when PID 1 is gone and all output has been passed on. The signals in supervise_signals
 * must be blocked. */
int supervise(struct supervised *supervised, struct result *result, struct error *err);
/* Sends the spawn message. */
int supervise_spawn(const struct supervised *supervised, struct error *err);
/* Those that are caught and passed on. */
void supervise_signals(sigset_t *set);
