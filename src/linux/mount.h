/* mount.h -- the new mount API: trees are opened or made detached, shaped, and then attached.
 * Errors name the path and the file system. */
#pragma once
#include <sys/mount.h>
#include "base/error.h"

/* Clones the tree at dir/path with all that is mounted below it, following no link at its end (path
 * "": dir itself). *tree is yours. */
int mount_clone(int dir, const char *path, int *tree, struct error *err);
/* Makes a file system; options are "key", "value" pairs ended by NULL. attributes: MOUNT_ATTR_*. */
int mount_make(const char *type, const char *const options[], unsigned attributes, int *tree,
	struct error *err);
/* Attaches `tree` at dir/path; a link at the end of path is not followed. path "" attaches at dir
 * itself. */
int mount_attach(int tree, int dir, const char *path, struct error *err);

struct mount_change {
	uint64_t set, clear;  /* MOUNT_ATTR_* */
	uint64_t propagation; /* MS_PRIVATE, or 0 */
	int idmap;	      /* a user namespace when set has MOUNT_ATTR_IDMAP */
	bool recursive;
};
int mount_change(int dir, const char *path, const struct mount_change *change, struct error *err);
/* Puts the tree at `root` (attached somewhere) over the root of the caller's mount namespace and
 * goes there. The old root stays below it, out of reach of processes that can't chroot: use it only
 * where the old root holds nothing secret. */
int mount_cover_root(int root, struct error *err);
/* Makes the tree at `root` (attached somewhere) the root of the caller's mount namespace. The old
 * one lies over it, where no path leads, until mount_drop_old_root: the kernel waits there for all
 * cpus, milliseconds on a busy machine, so another thread may do it. */
int mount_pivot(int root, struct error *err);
int mount_drop_old_root(struct error *err);
