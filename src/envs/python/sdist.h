/* sdist.h -- packages that come as sources, and projects of the host, built to a wheel.
 * 1. No code of a package runs while anything can be reached: the archive and what the build needs
 * are fetched first (wheels only), then the network is closed, then the backend runs.
 * 2. What ran can touch nothing but its own stage, which goes afterwards: no other package's files,
 * no cache, no second round. The wheel that comes out is checked for its name and read as hostile.
 * 3. The archive's hash is one of the lock's. What [build-system] and the backend ask for is judged
 * as a requirement file is: names only, no URL, path or option, nothing that is blocked.
 * 4. A project is copied; the copy lies at the project's own path while its backend runs, so that
 * the project itself is never written to. */
#pragma once
#include "envs/python/internal.h"
#include "format/packages/lock.h"
#include "trees/layers/stage.h"

struct sdist {
	const struct lock_package *package; /* from the index; or NULL, and: */
	const char *project;		    /* absolute: an editable wheel is made of it, or */
	bool is_whole;			    /* a wheel with all of its modules */
};
/* Builds it, in stages of its own, with making's time, log and problem. The wheel comes to `wheels`
 * in the stage `to`, which may hold others. The network is closed when it returns: making_reach
 * again. The caller has checked that building is allowed. */
int sdist_build(struct making *making, const struct sdist *sdist, const struct layer_stage *to,
	struct built_wheel *wheel, struct error *err);

/* "name-1.0-py3-none-any.whl" taken apart; false when it isn't one. Pure. */
bool wheel_name_parse(
	const char *file, struct arena *arena, const char **name, const char **version);
