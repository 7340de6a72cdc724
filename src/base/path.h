/* path.h -- functions on paths as text, and opening paths beneath a directory without leaving it
 * through links. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

#define PATH_DEPTH_MAX 256 /* directories held open while a tree is walked */

bool path_is_absolute(const char *path);
/* Absolute, no empty, "." or ".." component, no trailing slash (but "/" itself), at most 4095
 * bytes. */
bool path_is_normal(const char *path);
/* Makes `path` absolute (against `base`, itself normal) and normal by text alone; ".." stops at
 * "/". The result may be longer than path_is_normal allows. */
char *path_normalize(struct arena *a, const char *base, const char *path);
const char *path_basename(const char *path);		 /* what follows the last slash */
struct str path_parent(const char *path);		 /* what precedes it; empty: no slash */
bool path_is_beneath(const char *path, const char *dir); /* equal or below; both normal */
/* Whether a symlink at `path` (normal, relative to the tree) can't lead out of its tree, also
 * through other links that pass this check: its target is relative, has ".." only at its beginning,
 * and no more of them than `path` has directories. */
bool path_link_stays(const char *path, const char *target);
const char *path_type(mode_t mode); /* name of a file type: "file", "link" … */

/* openat2 beneath `dir`, close-on-exec: no ".." in the path, no absolute path (EXDEV), no link of
 * any kind (ELOOP); O_PATH | O_NOFOLLOW opens a last component that is a link. `mode` is used with
 * O_CREAT only. A descriptor, or -1 with errno. */
int path_open_nolinks(int dir, const char *path, int flags, mode_t mode);
/* As path_open_nolinks without O_CREAT, and within the mount of `dir` (EXDEV at a mount point); ""
 * is `dir`. */
int path_open_inside(int dir, const char *path, int flags);
/* Opens the directory `name` (one component) in dir for reading its entries; refuses a link
 * (ENOTDIR) and another mount (EXDEV). Works without openat2, which sandboxes don't have. -1 with
 * errno. */
int path_open_entry(int dir, const char *name);
/* mkdir -p beneath dir, without following links; umask applies to `mode`. *fd is an O_PATH
 * descriptor of the last directory, yours to close. */
int path_make_directories(int dir, const char *path, mode_t mode, int *fd, struct error *err);
/* Removes `name` (one component) in dir and all below it, by descriptor, following nothing,
 * crossing no mount point (ERR_CONFLICT). Directories without the owner's rwx get it first.
 * Directories deeper than PATH_DEPTH_MAX are moved up and removed there, so that no tree is too
 * deep. A missing `name` is success. */
int path_remove_tree(int dir, const char *name, struct error *err);
/* Gives the owner rwx on the directory `name` in dir; never changes another file that may replace
 * it meanwhile. -1 with errno. */
int path_grant_access(int dir, const char *name);
/* Bytes on disk (st_blocks) and inodes of the tree at `dir` (itself counted), hard links once,
 * nothing followed, mounts left out. Files that vanish meanwhile are skipped; a directory that
 * can't be read is an error, and so is one deeper than PATH_DEPTH_MAX (ERR_LIMIT). */
int path_measure_tree(int dir, uint64_t *bytes, uint64_t *inodes, struct error *err);
/* As path_measure_tree, but charges each inode at least PATH_INODE_CHARGE bytes, as a counted disk
 * limit does: empty files take no blocks, but the inodes of a file system are limited. */
#define PATH_INODE_CHARGE 4096
int path_charge_tree(int dir, uint64_t *bytes, struct error *err);
