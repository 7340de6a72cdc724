/* bundle.h -- changes of a tree as one tar archive, and how they come into another tree.
 * 1. Members: "tree/PATH" for every file, directory and link that is new or changed, with the modes
 * 0600 and 0700; then BUNDLE_LIST, one line for each change in order of paths, a directory before
 * what it holds:
 *	CHANGE BEFORE HASH AFTER PATH
 * CHANGE is one of A, M, D, T; BEFORE and AFTER are "-", or the type (f, d, l; s: any other) and
 *the mode in octal; HASH is that of the content before (snapshot_hash_file, of a link the SHA-256
 *of its target) or "-"; PATH is percent-encoded. An archive without the list is not whole.
 * 2. An archive may be a stranger's. It is unpacked by trees/pack/tree.h, and paths of the list are
 * checked.
 * 3. A change is a conflict when the target has at that path neither what the source had before nor
 * what it has now. Either all changes that are neither conflicts nor refused are applied, or none.
 * 4. Owners, times of directories and extended attributes are not carried. */
#pragma once
#include <sys/stat.h>
#include <time.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "trees/pack/out.h"
#include "trees/stacks/apply.h"

#define BUNDLE_LIST "changes"
#define BUNDLE_TREE "tree"
#define BUNDLE_PLACE "bundle" /* a directory of the area: what a stranger's archive holds */
#define BUNDLE_CHANGES_MAX 50000
#define BUNDLE_LIST_MAX ((size_t)32 << 20)

/* ---- writing ---- */
struct bundle_out {
	struct tree_out out;
	struct buf list;
	size_t count;
};
struct snapshot_difference;
/* bundle_out_done follows. `fd` stays the caller's. */
void bundle_out_init(struct bundle_out *out, int fd);
void bundle_out_done(struct bundle_out *out);
/* ERR_CONFLICT: the entry is being changed by somebody. */
int bundle_out_add(
	struct bundle_out *out, const struct snapshot_difference *difference, struct error *err);
int bundle_out_end(struct bundle_out *out, struct error *err);

/* ---- reading ---- */
enum bundle_result {
	BUNDLE_TAKE,	 /* it can be applied */
	BUNDLE_SAME,	 /* the target has it already */
	BUNDLE_CONFLICT, /* the target has something else */
	BUNDLE_REFUSED,	 /* it is never applied */
	BUNDLE_RESULTS
};
struct bundle_change {
	const char *path;
	char change;	      /* enum snapshot_change */
	mode_t before, after; /* type and mode; 0: absent */
	bool has_hash;
	unsigned char hash[SHA256_LEN]; /* before */
	enum bundle_result result;
	const char *reason; /* of CONFLICT and REFUSED, else NULL */
	/* private */
	struct apply_item item; /* of TAKE: what is done in the target */
};
struct bundle {
	VEC(struct bundle_change) changes;
	size_t results[BUNDLE_RESULTS]; /* how many have each; set by bundle_judge */
	uint64_t bytes;			/* on disk */
	bool is_host;			/* of the target; as in struct apply */
	/* private */
	struct arena arena;
	struct map paths; /* -> change */
	int tree;
	struct timespec since;
};
/* bundle_done follows, also on failure. */
void bundle_init(struct bundle *bundle);
void bundle_done(struct bundle *bundle);
/* Unpacks the archive `from` in a new directory of `area`, whose other files an archive can't
 * replace, and reads its list. limit: bytes on
 * disk, and what it is in words (trees/pack/tree.h). ERR_INVALID: not such an archive. */
int bundle_read(struct bundle *bundle, int from, int area, uint64_t limit, const char *room,
	struct error *err);
/* Says of each change what it is to `target`. The caller may have refused some before. */
int bundle_judge(struct bundle *bundle, int target, struct error *err);
/* Applies what is BUNDLE_TAKE. The caller fills in target, journal, name, uid and gid. Nothing may
 * be a conflict (ERR_CONFLICT). What was changed in the target since it was judged is
 * ERR_CONFLICT. */
int bundle_apply(const struct bundle *bundle, const struct apply *where, struct error *err);
/* "take", "same", "conflict", "refused" */
extern const char *const bundle_result_names[BUNDLE_RESULTS];
