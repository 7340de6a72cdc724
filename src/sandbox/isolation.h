/* isolation.h -- what carries a plan out and keeps it, behind one interface: an isolation backend.
 * 1. A backend starts carrel-init as the first process of the sandbox, with the listening socket
 * that it is given, and sets every layer of the plan before, or fails and names the layer.
 * 2. Commands are run by that carrel-init (sandbox/init_client.h), and what a sandbox uses is seen
 * through sandbox/view.h: both are the same for every backend.
 * 3. Nothing here waits for the child. It is the caller's to reap, and dies with the caller. */
#pragma once
#include "sandbox/sandbox.h"
#include "sandbox/warm.h"

struct isolation {
	const char *name; /* as plan.isolation has it */
	/* What the control group of this plan is to be; the caller makes it, or takes it from a
	 * pool. */
	void (*prepare)(const struct plan *plan, struct cgroup_want *want);
	/* As warm_begin, warm_hear and warm_find: begins a start, hears how it goes, finds the
	 * descriptors of one that is up. */
	int (*start)(const struct warm_host *host, const struct warm_start *start, pid_t *pid,
		int *setup, struct error *err);
	int (*hear)(int setup, int fds[WARM_FD_MAX], struct error *err);
	int (*find)(pid_t pid, int fds[WARM_FD_MAX], struct error *err);
	/* Kills all of it; that it is over is told by the end of `pid`. */
	void (*end)(pid_t pid);
	/* One command in a sandbox of its own, as sandbox_run. */
	int (*run)(const struct plan *plan, const struct cgroup_host *cgroups,
		struct sandbox_io *io, struct result *result, struct error *err);
};
/* ERR_UNAVAILABLE: this version has no backend of that name. */
int isolation_find(const char *name, const struct isolation **isolation, struct error *err);
/* By the backend that the plan names. */
int isolation_run(const struct plan *plan, const struct cgroup_host *cgroups, struct sandbox_io *io,
	struct result *result, struct error *err);
