/* apply.h -- takes chosen changes of a tree, such as an overlay's upper directory, into a
 * directory: all of them or none.
 * 1. Everything new is staged in the target (APPLY_STAGE…) before the first name changes; what is
 * replaced is moved there. A failure is undone at once; after a crash, apply_recover undoes what
 * was begun. The journal for that lies in a directory that only the caller can write.
 * 2. An entry of the target that changed after `since` is a conflict: it isn't what the changes
 * were made on. Conflicts are found before anything moves.
 * 3. Paths are opened below the target following no link, within its mount, and without openat2,
 * which a sandbox doesn't have.
 * 4. Whoever owns the target may be hostile: the stage is used by descriptor, after a check that it
 * belongs to the caller. */
#pragma once
#include <time.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

#define APPLY_STAGE ".carrel-apply-"

struct apply_item {
	const char *path; /* of the tree */
	char change;	  /* enum snapshot_change */
	bool was_directory, is_directory;
	bool has_mode; /* `mode` counts, else that of the source */
	unsigned mode;
};
typedef VEC(struct apply_item) apply_items;
struct apply {
	int source;	       /* the tree: new and changed entries are at their paths */
	bool moves;	       /* files of the source may be moved out of it */
	int target, journal;   /* directories */
	const char *name;      /* of the target, for errors */
	bool is_host;	       /* the target: new entries can't be written by others */
	struct timespec since; /* by the clock of file times */
	uid_t uid;	       /* who new entries belong to; (uid_t)-1: the caller */
	gid_t gid;
};
/* Applies `items`, which are in order of paths, a directory before what it holds. ERR_CONFLICT
 * names the first path that can't be applied; nothing has changed then. */
int apply_changes(const struct apply *apply, const apply_items *items, struct error *err);
/* What `mode` becomes in a directory of the host, where the entry has mode `there` (0: none): what
 * others may not write now, they may not write afterwards. */
mode_t apply_host_mode(mode_t mode, mode_t there);
/* A time that no later change in the target has: file times are taken from a clock that ticks
 * slowly, and this waits for its next tick. */
void apply_wait_for_tick(struct timespec *since);
/* The directory of `path` below `root` (invariant 3); "" is root. -1 with errno. */
int apply_open_directory(int root, struct str path);
int apply_open_parent(int root, const char *path);
/* Undoes what a process that has ended left in the target, as its journal says; nothing without
 * one. ERR_DENIED: what lies there is not the caller's, and was left alone. */
int apply_recover(int target, int journal, const char *name, struct error *err);
