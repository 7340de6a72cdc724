/* tree_pack.h -- a tree of this host becomes an archive, in a child of its own: what it reads goes
 * into a pipe, so that the daemon gets it as it comes.
 * 1. Nothing is followed; files, directories and links go in, what is neither is left out and
 * counted. Owners and setuid bits stay here.
 * 2. A tree that can't be read to its end makes an archive that no reader takes for whole. */
#pragma once
#include <sys/types.h>
#include "base/error.h"
#include "linux/child.h"

struct pack {
	struct child child;
	int archive; /* read it from here; yours to close */
};
struct pack_left_out {
	unsigned long count;
	char first[512]; /* perhaps cut */
};
/* dir: an open directory; what is in it goes in. pack_finish follows. */
int pack_begin(struct pack *pack, int dir, struct error *err);
/* Waits for the child, which is ended when it is still at it. -1: it failed, this is why.
 * *left_out: files that are none. */
int pack_finish(struct pack *pack, struct pack_left_out *left_out, struct error *err);
