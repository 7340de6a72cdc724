/* grants.h -- what of the host, and which shared trees, a workspace's sandboxes show. Pure: encode,
 * decode, check.
 * 1. A *voucher* is what a user sends: one packet in a socket pair that the user's process made,
 * with a descriptor of each directory or file, opened for reading. The kernel tells the launcher
 * who made the pair (SO_PEERCRED), and nobody else could have put a packet there. Core only passes
 * the socket on: it can neither make one for another user nor change one.
 * 2. A *grant* is what the launcher keeps of it for later starts, where core can't write. The
 * object must then be the same one: device and inode are compared. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define GRANTS_MAX 16
#define GRANTS_BYTES_MAX 65536

enum grant_kind {
	GRANT_DIR,  /* a directory of the host in place of /workspace; the first one, if any */
	GRANT_BIND, /* a file or directory of the host */
	GRANT_TREE, /* a shared tree: trees/<source> in the home; never in a voucher */
	GRANT_KIND_COUNT
};
struct grant {
	enum grant_kind kind;
	const char *source, *target;
	bool read_only;
	uint64_t device, inode; /* 0 in a voucher, and of a tree */
};

/* [a-z0-9][a-z0-9._-]{0,63} */
int grant_check_tree(const char *name, struct error *err);
/* Takes "NAME:PATH[:ro]" apart. ERR_INVALID. */
int grant_parse_tree(const char *text, struct arena *arena, struct grant *grant, struct error *err);
/* The seed's skills and tickets: the path below the workspace, seen at `root` inside, of a link to
 * the tree, which is mounted outside of the workspace, at GRANT_TREES/<name>: its commands can't
 * get in the way of that. NULL: the tree is mounted at its target. */
#define GRANT_TREES "/opt/carrel/trees"
const char *grant_link(const struct grant *grant, const char *root);
void grants_encode(const struct grant *grants, size_t count, struct buf *out);
/* Texts point into `text`, which must end with a NUL. Checked: kinds, plain absolute paths, targets
 * that plan_check_target allows. ERR_CORRUPT. */
int grants_decode(
	struct str text, struct grant grants[GRANTS_MAX], size_t *count, struct error *err);
