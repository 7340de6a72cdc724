/* root.h -- what a sandbox's root holds before anything of its own is mounted in it: files and
 * links, the points that a plan's mounts need there, and what it shows of the system. */
#pragma once
#include "base/error.h"
#include "sandbox/plan/plan.h"

/* What covers entries of /proc. They lie in the directory where the workspace will be mounted, the
 * hidden one: processes inside don't see their names. */
#define ROOT_MASK ".mask"
#define ROOT_MASK_FILE ".mask-file"

/* *tree: a tmpfs of that size, yours. attributes: MOUNT_ATTR_*. */
int root_make_tmpfs(uint64_t bytes, uint64_t inodes, unsigned mode, uint64_t attributes, int *tree,
	struct error *err);
/* Makes the plan's mount points, the directories that they lie in and the masks in `root`, a
 * directory. The caller's umask is 0. */
int root_make_points(int root, const struct plan *plan, struct error *err);
/* The plan's other directories, files and links; after root_make_points. */
int root_make_files(int root, const struct plan *plan, struct error *err);
/* The plan's views: those of PLAN_SYS at their place below `root`, those of /proc in `hidden`, by
 * the names of root_view_name. */
int root_make_views(int root, int hidden, const struct plan *plan, struct error *err);
#define ROOT_VIEW_LEN 64
void root_view_name(const char *path, char name[ROOT_VIEW_LEN]); /* begins with '/' */
/* The point of one mount, with the directories above it. */
int root_make_target(int root, const struct plan_mount *mount, struct error *err);
/* Whether the point of `mount` is of the root itself. */
static inline bool root_is_target(const struct plan_mount *mount)
{
	return mount->make_target && mount->in_root;
}
/* A path of the system, the same for every sandbox. */
bool root_is_system(const struct plan_mount *mount);
/* Puts their trees, as sources_open opened them, into `root` (attached somewhere), read-only; they
 * are closed. */
int root_attach_system(int root, const struct plan *plan, int *trees, struct error *err);
