/* weak.h -- plans for hosts where no user namespace can be made: isolation "landlock".
 * 1. No namespaces, no mounts, no own root: Landlock alone decides which paths are read and
 * written, a second filter takes all sockets away. It is weaker, and never chosen but by name.
 * 2. A plan of plan_build becomes one; what it would need mounts or a network for is refused, by
 * the name of its option. */
#pragma once
#include "sandbox/plan/plan.h"

struct plan_weak {
	const char *scratch; /* the path of a directory of its own, not made yet */
	const char *cwd;     /* -w as it was typed, or NULL */
	uint64_t tasks;	     /* of the user that it runs as, now: RLIMIT_NPROC counts them all */
};
/* ERR_INVALID, ERR_UNAVAILABLE: this host or these options can't be kept without namespaces. */
int plan_weaken(const struct plan_options *options, const struct plan_facts *facts,
	const struct plan_weak *weak, struct arena *arena, struct plan *plan, struct error *err);
