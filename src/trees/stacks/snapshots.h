/* snapshots.h -- work on whole trees of a workspace: the uppers of an overlay and the frozen layers
 * below them. Functions over descriptors of directories; they know no daemon.
 * 1. Trees belong to the caller, or to ids mapped in its user namespace, over which it has
 * capabilities: a directory of mode 0000 can be read.
 * 2. Nothing follows a link or waits on a fifo. Sizes, depths and counts are bounded (ERR_LIMIT).
 * 3. Marks of the overlay that say where a file was copied from (origin, impure, nlink, uuid) are
 * not part of a tree: they are neither copied, compared nor hashed. */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"
#include "trees/stacks/stack.h"

/* ---- copy ---- */
struct snapshot_copy {
	uint64_t files, bytes; /* bytes of data that were copied or shared; holes are not counted */
	uint64_t left_out;     /* sockets: nothing listens in a copy */
};
/* Copies all of the directory `from` into the empty directory `to`: files (shared with `from` where
 * the file system can), holes, hard links, links, fifos, whiteouts, modes, times and attributes. A
 * file that vanishes or changes its type meanwhile is left out. Not synced. */
int snapshot_copy(int from, int to, struct snapshot_copy *done, struct error *err);
/* One file, link, fifo or whiteout, or a directory with all below it. `to_name` must not exist. */
int snapshot_copy_entry(int from, const char *name, int to, const char *to_name,
	struct snapshot_copy *done, struct error *err);

/* ---- merge ---- */
/* Makes one layer of the layers `range` (topmost first) in the empty directory `to`: over `below`
 * it shows what they show. Files are hard links; on another file system copies. */
int snapshot_merge(const int *range, size_t count, const int *below, size_t below_count, int to,
	struct error *err);

/* ---- diff ---- */
enum snapshot_change {
	SNAPSHOT_ADDED = 'A',
	SNAPSHOT_MODIFIED = 'M',
	SNAPSHOT_DELETED = 'D',
	SNAPSHOT_TYPE = 'T', /* another type of file */
};
struct snapshot_difference {
	enum snapshot_change change;
	const char *path; /* of the tree, without a slash at its front */
	struct stack_entry before, after;
	bool is_meta; /* only the mode or the attributes differ */
};
/* Not 0: stop, with *err set. The entry's `dir` and `path` are valid during the call. */
typedef int snapshot_difference_fn(
	void *ctx, const struct snapshot_difference *difference, struct error *err);
struct snapshot_diff {
	const int *before, *after; /* layers, topmost first */
	size_t before_count, after_count;
	size_t shared; /* number of equal layers at the end of both lists */
	/* Only these paths, and what lies below them; empty: all. */
	const text_list *paths;
	bool with_parents; /* also new directories that hold one of these paths */
	/* Names at the top of the tree that are passed over; or NULL. */
	const char *const *except;
};
/* Calls fn for each path that differs, in order of names, a directory before what it holds. Only
 * what the layers that aren't shared hold is looked at. */
int snapshot_diff(
	const struct snapshot_diff *diff, snapshot_difference_fn *fn, void *ctx, struct error *err);
/* Whether two entries have the same type, mode, attributes and content; two that are absent are
 * the same. `name` is their name in their directories. *is_meta: their content is the same. */
int snapshot_is_same(const struct stack_entry *a, const struct stack_entry *b, const char *name,
	bool *is_same, bool *is_meta, struct error *err);

/* ---- patch ---- */
#define SNAPSHOT_TEXT_MAX ((size_t)4 << 20) /* a longer file is shown as a binary one */
/* Appends a difference as `git apply` reads it: nothing for a directory; "Binary files … differ"
 * for what is no text. */
int snapshot_patch(
	const struct snapshot_difference *difference, struct buf *out, struct error *err);
/* Appends the hunks that turn `before` into `after`; nothing when they are equal. Pure. */
void snapshot_text_diff(struct str before, struct str after, struct buf *out);

/* ---- content id ---- */
struct snapshot_content {
	char id[2 * SHA256_LEN + 1];
	uint64_t files, bytes;
};
/* Hashes everything in `dir` but times and the numbers of inodes. */
int snapshot_content_id(int dir, struct snapshot_content *content, struct error *err);
/* The hash of `size` bytes of a regular file, the same for holes and zeros; *bytes grows by what
 * was hashed. -1 with errno. */
int snapshot_hash_file(int fd, off_t size, unsigned char digest[SHA256_LEN], uint64_t *bytes);
