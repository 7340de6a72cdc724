/* path.h -- paths taken apart as text, and opened beneath a directory so that nothing on the way leads out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/arena.h"
#include "base/error.h"

bool path_is_absolute(const char *path);
/* Absolute, no empty, "." or ".." component, no trailing slash (but "/" itself), at most 4095 bytes. */
bool path_is_normal(const char *path);
/* Makes `path` absolute (against `base`, itself normal) and normal by text alone; ".." stops at "/". */
char *path_normalize(struct arena *a, const char *base, const char *path);
const char *path_basename(const char *path);
bool path_is_beneath(const char *path, const char *dir);	/* equal or below; both normal */

/* openat2 beneath `dir`: no "..", no absolute path, no magic link, no symlink that leaves (RESOLVE_BENEATH |
 * RESOLVE_NO_MAGICLINKS). -1 with errno. */
int path_open_beneath(int dir, const char *path, int flags, mode_t mode);
/* The same without following any symlink at all. */
int path_open_nolinks(int dir, const char *path, int flags, mode_t mode);
/* mkdir -p beneath dir, without following links. *fd is an O_PATH descriptor of the last directory, yours to close. */
int path_make_directories(int dir, const char *path, mode_t mode, int *fd, struct error *err);
/* Removes `name` in dir and all below it, by descriptor, following nothing, crossing no mount point. Depth is capped
 * at 256: deeper is ERR_LIMIT. A name that isn't there is success. */
int path_remove_tree(int dir, const char *name, struct error *err);
/* Bytes on disk (st_blocks) and inodes of the tree at `dir`, hard links once, one file system, nothing followed.
 * Directories that vanish while it walks are passed over. */
int path_measure_tree(int dir, uint64_t *bytes, uint64_t *inodes, struct error *err);
