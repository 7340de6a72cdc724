/* weak.h -- the isolation "landlock": one command without namespaces, for hosts that give none.
 * 1. Two processes stand for the sandbox. The guardian is the supervisor's child, outside of the
 * sandbox, and a subreaper: it ends when carrel-init ends, on SIGTERM, and when the supervisor
 * dies, but only after every process below it is gone and the plan's scratch directory is removed.
 * carrel-init is its child, locked in by Landlock and the filters.
 * 2. From Landlock's ABI 6 on the guardian is in a domain of its own, whose signals reach the
 * sandbox and nothing else: one kill(-1) ends all of it at once, and nothing in it can signal the
 * guardian. Before, processes are looked for by their parents until none is left.
 * Private to this room. */
#pragma once
#include "sandbox/native/start.h"

/* As sandbox_run: makes plan->scratch first. */
int weak_run(const struct plan *plan, const struct cgroup_host *cgroups, struct sandbox_io *io,
	struct result *result, struct error *err);
/* The guardian's life, and that of the child which becomes carrel-init. */
_Noreturn void weak_main(struct start *start);
