/* store.h -- layers: immutable file trees, named by the hash of their content, shared by all.
 *	layers/<id>/{tree,manifest}	layers/.keys/<sha256 of key> -> <id>	layers/.lock
 *	layers/.empty	the lowest layer of every workspace,
 *	layers/.root	or of one that is seen as /: empty directories to mount on;
 *	layers/.root-*	and those of an environment
 *	layers/.damaged/<id>	a layer that is known to be damaged: see damage.h
 *	layers/snap-<id>	frozen trees of workspaces: core's, not looked at here
 * 1. A layer is whole when it has its name: tree and manifest are complete and on disk before the
 * rename, so a crash leaves a whole layer or something in a stage, which is swept.
 * 2. A whole layer is never written again. Every file in it is 0644 or 0755, every directory 0755,
 * every mtime LAYER_MTIME, no file has another name (hard link) outside of its layer, none is
 * anything but a file, a directory or a link, none has extended attributes (but the system's own
 * labels), all belong to the home's owner.
 * 3. A key says which layer an input gives ("wheel sha256:… cp311-…"); two who build the same key
 *end with one layer, the first one's.
 * 4. Who reads layer ids in order to write them down holds the lock shared until they are written;
 * who removes layers holds it alone.
 * 5. A link in a layer is relative, with ".." at its front only and never leading above the tree;
 *or absolute and plain, to /env, /usr or below; in the base of an environment (LAYER_KIND_BASE),
 *whose interpreter can lie anywhere, to any plain absolute path. That is for order, not for safety:
 *we follow none, and who runs in a sandbox could make any link himself.
 * 6. Every function here enters and leaves the home by itself: call none of them entered. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "linux/home.h"
#include "trees/layers/manifest.h"

#define LAYER_ID_LEN 64
#define LAYER_MTIME 1000000000 /* 2001-09-09, any one time will do */
#define LAYER_KIND_BASE "python"
#define LAYER_KIND_INTERPRETER "interpreter"
#define LAYER_BYTES_MAX ((uint64_t)64 << 30) /* of one layer's files, holes counted */

struct layer_store {
	const struct home *home;
	int dir; /* <home>/layers */
	/* Words that name those who may have a layer mounted now, or NULL: see layers_collect. Set
	 * by who opens it. */
	int (*list_holders)(void *ctx, struct arena *arena, text_list *holders, struct error *err);
	void *holders_ctx;
};
/* Opens the store, creating missing directories. layer_store_done follows. */
int layer_store_open(const struct home *home, struct layer_store *store, struct error *err);
void layer_store_done(struct layer_store *store);
/* Makes the lowest layers unless they are there. */
#define LAYER_EMPTY ".empty"
#define LAYER_ROOT ".root"
#define LAYER_ROOT_PYTHON LAYER_ROOT "-python"
#define LAYER_ROOT_NODE LAYER_ROOT "-node"
int layer_store_make_empty(const struct layer_store *store, struct error *err);

/* Invariant 4. *fd is the lock; closing it gives it back. Waits. */
int layer_store_lock(const struct layer_store *store, bool alone, int *fd, struct error *err);
/* Exclusive, without waiting. ERR_CONFLICT: another process holds it. */
int layer_store_try_lock(const struct layer_store *store, int *fd, struct error *err);

/* The layer that `key` gives. ERR_NOT_FOUND: none yet. */
int layer_find(const struct layer_store *store, const char *key, char id[LAYER_ID_LEN + 1],
	struct error *err);
/* 64 digits of lower-case hex. */
bool layer_id_is_valid(const char *id);
/* Checks that the layer exists and is not known to be damaged, only by a stat of its manifest and
 * tree. ERR_NOT_FOUND. */
int layer_check(const struct layer_store *store, const char *id, struct error *err);
/* The same for several, within one home_enter; the error names the first missing one. */
int layers_check(
	const struct layer_store *store, const char *const *ids, size_t count, struct error *err);
/* Reads and parses the manifest, and checks that its hash is the id. ERR_NOT_FOUND, ERR_CORRUPT. */
int layer_read(const struct layer_store *store, const char *id, struct arena *arena,
	struct manifest *manifest, struct error *err);

/* A tree about to become a layer: the directory `path` below a stage, which holds `tree` and
 * nothing else. It must have no writers left. */
struct layer_draft {
	const char *path;		   /* below the stage; it is renamed away */
	const char *kind, *name, *version; /* as in manifest.h */
	const char *key;		   /* NULL: not to be found by one */
	uint64_t bytes_max;		   /* of its files, holes counted; 0: LAYER_BYTES_MAX */
	/* out */
	char id[LAYER_ID_LEN + 1];
	uint64_t bytes, files; /* regular files and what they hold */
	bool was_there; /* the same layer, or one of this key, was there already; the draft may be
			 * left in the stage, and goes with it */
};
/* Gets the hash of each regular file, to compare it with RECORD: called in the
 * process that hashes (this one or a child: what it writes to memory may be lost), entered, in no
 * order; not 0: stop, with *err set. Not called for a draft whose key was there. May be NULL. */
typedef int layer_file_fn(void *ctx, size_t draft, const char *path,
	const unsigned char sha256[SHA256_LEN], uint64_t size, struct error *err);
/* Makes layers of all drafts: normalises modes and times, drops user attributes, refuses what
 * invariants 2 and 5 forbid (ERR_DENIED, path named; ERR_LIMIT), hashes on two processes, writes
 * the manifests, one syncfs, then the renames. All or an error; what was renamed before an error is
 * whole and stays. The caller must hold the lock shared from before this until the ids are
 * written down. The stage must be on the store's file system. */
int layers_publish(const struct layer_store *store, int stage, struct layer_draft *drafts,
	size_t count, layer_file_fn *seen, void *ctx, struct error *err);

/* Copies the trees of many layers, topmost first, into <draft>/tree below a stage: what an overlay
 * of them would show. *files gets the path of each file -> its struct manifest_entry, to be
 * compared while the draft is published. The caller holds the lock shared. ERR_CORRUPT: one is
 * damaged. */
int layers_merge(const struct layer_store *store, const char *const *ids, size_t count, int stage,
	const char *draft, struct arena *arena, struct map *files, struct error *err);

/* Writes the trees of these layers to `out` as one tar archive, in the order given; of directories
 * only empty ones, so that the others get the time at which it is unpacked. ERR_NOT_FOUND,
 * ERR_CORRUPT: a layer is missing or damaged; what was written isn't whole then. */
typedef bool layer_path_fn(void *ctx, const char *path); /* whether it is written; NULL: all is */
int layers_write_tar(const struct layer_store *store, const char *const *ids, size_t count,
	layer_path_fn *is_kept, void *ctx, int out, struct error *err);

struct layer_damage {
	const char *path; /* in the tree; "" the manifest or the layer itself */
	const char *what; /* "missing", "changed", "size 10, not 12", "not in the manifest", … */
};
typedef VEC(struct layer_damage) layer_damages;
/* Compares everything with the manifest, hashes included: every kind of damage is found, one
 * finding a path, sorted by path. What can't be read is damage. Sets the mark of damage.h, or takes
 * it away. ERR_NOT_FOUND: no such layer. */
int layer_verify(const struct layer_store *store, const char *id, struct arena *arena,
	layer_damages *damages, struct error *err);
/* The paths of its files that hold one of these texts, anywhere in their bytes; in the order of the
 * manifest. ERR_NOT_FOUND, ERR_CORRUPT: what was damaged can't be searched. */
int layer_search(const struct layer_store *store, const char *id, const text_list *texts,
	struct arena *arena, text_list *paths, struct error *err);
/* Moves a damaged layer out of the way (its keys lead nowhere then), so that it is built again. Its
 * copy is removed once it is unused: see layers_collect. The caller holds the exclusive lock. */
int layer_quarantine(const struct layer_store *store, const char *id, struct error *err);

int layers_list(
	const struct layer_store *store, struct arena *arena, text_list *ids, struct error *err);
/* Removes every layer that isn't a key of `live`, quarantined ones and dangling keys too. The
 * caller holds the lock alone. *count, *bytes (on disk): what went. A value of `live` is anything
 * but NULL. The quarantined copy of a layer stays while one of those is there who were holders when
 * it lost its name; one whose holders aren't known, while the value of the layer is LAYER_IN_USE.
 */
#define LAYER_IN_USE ((void *)&layer_in_use)
extern const char layer_in_use;
int layers_collect(const struct layer_store *store, const struct map *live, uint64_t *count,
	uint64_t *bytes, struct error *err);
/* Bytes on disk of one layer (st_blocks). */
int layer_measure(
	const struct layer_store *store, const char *id, uint64_t *bytes, struct error *err);
