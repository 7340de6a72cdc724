/* stage.h -- where layers are made: <home>/stage/<id>/, a directory of its maker's alone.
 * 1. A stage is locked (flock) while its maker lives; one that isn't is what a crash left, and is
 * swept.
 * 2. It is on the layers' file system, so that a draft becomes a layer by a rename.
 * 3. What lies in it is a stranger's: it is removed by descriptor, following nothing.
 * Every function enters and leaves the home by itself. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "trees/layers/store.h"

struct layer_stage {
	const char *path; /* absolute, in the arena */
	/* The directory, 0700, the home's owner's, and its lock: a forked child that holds it keeps
	 * the stage. */
	int fd;
};
#define LAYER_STAGE_NONE ((struct layer_stage){ .fd = -1 })
/* layer_stage_done follows. */
int layer_stage_make(const struct layer_store *store, struct arena *arena,
	struct layer_stage *stage, struct error *err);
/* Removes it with all that is left in it; *stage is LAYER_STAGE_NONE then. Also for one that is so,
 * or all zero. When it can't be removed, the lock is released all the same, and a sweep tries
 * again.
 */
int layer_stage_done(const struct layer_store *store, struct layer_stage *stage, struct error *err);
/* Removes the stages whose maker is gone. *count (may be NULL): how many. */
int layer_stages_sweep(const struct layer_store *store, uint64_t *count, struct error *err);
/* Makes the directory `name` (0700) in dir and locks it for its maker. 1: *fd is the lock. 0: a
 * sweep removed it before it was locked. -1 with errno. */
int directory_make_locked(int dir, const char *name, int *fd);
