/* tree.h -- carrel cp's trees: trees/pack/tree.h on this host.
 * 1. A tree is packed by a child, into a pipe, so that the daemon gets it as it comes. One that
 * can't be read to its end makes an archive that no reader takes for whole.
 * 2. An archive comes from a sandbox. It is unpacked in a directory beside its place, and moved
 * there when it is whole. */
#pragma once
#include "base/error.h"
#include "linux/child.h"
#include "trees/pack/tree.h"

struct pack {
	struct child child;
	int archive; /* read it from here; yours to close */
};
/* dir: an open directory; what is in it goes in. pack_finish follows. */
int pack_begin(struct pack *pack, int dir, struct error *err);
/* Waits for the child, which is ended when it is still at it. -1: it failed, this is why. */
int pack_finish(struct pack *pack, struct tree_note *left_out, struct error *err);

struct unpack {
	struct tree_unpack tree;
	int place; /* directory that holds the stage */
	int stage; /* or -1 */
	char stage_name[40];
};
/* place: an open directory; stays the caller's. unpack_done follows always. */
int unpack_begin(struct unpack *unpack, int place, struct error *err);
/* All of a workspace is copied: what carrel made in it is left out. Before anything is added. */
void unpack_workspace(struct unpack *unpack);
/* The archive was added to unpack->tree: moves it to `name` in the place, as a directory of
 * `root_mode`, or into the one that is there (NULL: into the place itself). ERR_CONFLICT names what
 * is in the way. */
int unpack_finish(struct unpack *unpack, const char *name, unsigned root_mode, struct error *err);
void unpack_done(struct unpack *unpack);
