/* pack.h -- trees of a workspace as one tar archive that any tar can read, and back.
 * 1. Members lie below the name of their part: "workspace/...", "env/...", "node/...". Owners are
 * not kept; times are whole seconds.
 * 2. What ordinary files can't say comes last, in the member PACK_MARKS: whiteouts, opaque
 * directories, fifos, user attributes, and the setuid, setgid and sticky bits. Its paths are
 * percent-encoded. Sockets are left out.
 * 3. An archive may be a stranger's. It is unpacked into an empty directory by trees/pack/tree.h,
 * which refuses absolute names, "..", what lies below a link, special files, setuid and setgid
 * bits, and too many entries; marks name only what lies in that directory, reached by no link, and
 * no attribute of the overlay but the opaque mark.
 * 4. An archive that failed has no end. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "trees/pack/out.h"

#define PACK_MARKS "carrel-marks.json"
#define PACK_MARKS_MAX ((size_t)32 << 20)

struct packer {
	struct tree_out out;
	bool is_layer; /* the bits of setuid, setgid and sticky are kept, too */
	/* What passes a limit (too deep, names too long, too many holes or marks) is left out, and
	 * counted; else it is an error. */
	bool is_partial;
	uint64_t left_out;
	uint64_t files, bytes, sockets;
	/* private */
	struct arena arena;
	struct map links; /* inode -> the first name of a file that has several */
	struct buf path;
	struct buf whiteouts, opaque, fifos, modes, attributes; /* JSON, without the brackets */
	unsigned depth;
};
/* packer_done follows always. */
void packer_init(struct packer *packer, int out, bool is_layer);
/* The directories `layers` (topmost first, -1: none) as an overlay would show them; a single one as
 * it is, with its whiteouts and opaque marks. */
int packer_add_merged(struct packer *packer, const char *part, const int *layers, size_t count,
	struct error *err);
int packer_add_layer(struct packer *packer, const char *part, int layer, struct error *err);
int packer_add_text(struct packer *packer, const char *name, struct str text, struct error *err);
/* Whether the archive goes on without what failed with `err`; counts it. */
bool packer_leaves_out(struct packer *packer, const struct error *err);
int packer_end(struct packer *packer, struct error *err);
void packer_done(struct packer *packer);

struct unpacked {
	uint64_t entries, bytes; /* bytes on disk */
	bool is_over;		 /* it failed by `limit` itself, not by a lower limit for `first` */
};
/* Called when the first member is whole, and lies in the stage: may lower *limit. */
typedef int pack_first_fn(void *ctx, int stage, uint64_t *limit, struct error *err);
/* Reads `from` to its end. limit: bytes on disk (ERR_LIMIT). first: or NULL. Not synced. */
int pack_unpack(int from, int stage, bool is_layer, uint64_t limit, pack_first_fn *first, void *ctx,
	struct unpacked *done, struct error *err);
