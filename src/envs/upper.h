/* upper.h -- what lies on top of an environment (an upper of overlayfs), brought in line with
 * another list of layers than the one it was made on.
 * 1. Files that commands made stay on top of the new layers; those of packages that are installed
 * by name (`forced`) go, so that the layers show.
 * 2. The upper is mounted nowhere meanwhile. What is in it was made by commands in a sandbox: no
 * link is followed, nothing is read without a bound.
 * 3. Doing it again changes nothing: a crash on the way is put right by the next call.
 * 4. Frozen layers may lie between the upper and the new layers, and hide what these have:
 * settle.h then copies it into the upper. */
#pragma once
#include <sys/stat.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "trees/layers/store.h"

struct upper_change {
	text_list before, after; /* layer ids; `before` may be empty: not known */
	/* Names of packages (of Python: normalised) whose files in the upper give way. The files
	 * of another package that is new in `after` go if they are all there, as the layer has
	 * them: copies that were made while a sandbox ran. One that a command has changed since
	 * stays whole. */
	text_list forced;
	/* Whether a frozen layer holds something at `path`: a whiteout of that stays. NULL: there
	 * are none. */
	bool (*is_frozen)(void *ctx, const char *path);
	void *ctx;
};
/* One implementation per kind of environment; called by settle.h. */
typedef int upper_settle_fn(const struct layer_store *layers, int upper,
	const struct upper_change *change, struct error *err);
upper_settle_fn python_upper_settle, node_upper_settle;
/* Of a kind: env_kind.restore. The files that a layer has of `package` show again; LAYER_KIND_BASE
 * is Python itself. 1: done, 0: the layer has none of it. */
typedef int upper_restore_fn(
	int upper, const struct manifest *manifest, const char *package, struct error *err);
upper_restore_fn python_upper_restore, node_upper_restore;

/* ---- shared by both implementations ---- */
#define UPPER_OPAQUE "user.overlay.opaque"
bool upper_is_whiteout(const struct stat *st);
/* A directory that its owner may not read gets his rights back: commands can take them away. -1:
 * there is none. */
int upper_open_directory(int dir, const char *name);
/* The directory at `path` below `upper`, "" is that itself; -1: there is none. */
int upper_open(int upper, struct str path);
/* Removes the entry `path`, and what hides the layers' on the way there: a deleted or replaced
 * directory, an opaque mark. upper_open_shown opens a directory so; -1: nothing lies there. */
int upper_remove(int upper, const char *path, struct error *err);
int upper_open_shown(int upper, struct str path, struct error *err);
/* Whether the entry `name` of `dir`, which is *st, is what the manifest says. */
bool upper_is_same(
	int dir, const char *name, const struct stat *st, const struct manifest_entry *entry);
