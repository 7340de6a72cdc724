/* tree.h -- a tree of files to a tar archive, and back. Nothing follows a link.
 * 1. Packed are files, directories and links, hard links once, holes as holes; sockets, fifos and
 * devices are left out and counted. Owners and the setuid, setgid and sticky bits are not kept.
 * 2. An archive is an attacker's. It is unpacked in a stage, a directory of the caller's that holds
 * nothing else, and moved from there when it is whole: an archive that is cut or refused changes
 * nothing. What may come in is judged by format/archives/archived.h.
 * 3. Moving merges: files replace files and links, never directories; a directory goes into one
 * that is there, never through a link. What can't go that way (ERR_CONFLICT) is found before
 * anything moves. */
#pragma once
#include <time.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "base/vec.h"
#include "format/archives/archived.h"
#include "format/archives/tar.h"

struct tree_note {
	uint64_t count;	 /* of entries */
	char first[512]; /* the first one in words, perhaps cut */
};

struct tree_pack {
	int out; /* where the archive goes */
	bool crosses_mounts;
	struct tree_note left_out;
};
/* Takes `fd`: a directory, what is in it is packed, or a regular file, packed as `name`. An archive
 * that fails has no end. */
int tree_pack(struct tree_pack *pack, int fd, const char *name, struct error *err);

/* A directory on the way to the latest entry: entries come in the order of a walk, mostly. What is
 * made in it changes its time, which is set again when it is left. */
struct tree_level {
	int fd;
	struct timespec modified;
	char name[NAME_MAX + 1];
};
struct tree_unpack {
	/* Set by the caller after init. */
	bool is_upload;	  /* Into a workspace: special files, setuid bits and attributes that mean
			   * something to a kernel are refused, directories stay writable for their
			   * owner, those that are there get the archive's mode and time, and all of
			   * it is on disk at the end. Else, on a host: special files are left out,
			   * such bits and attributes dropped, and modes kept. */
	bool is_strict;	  /* Not an upload, but what an upload may not have is refused here, too. */
	uint64_t limit;	  /* bytes on disk; UINT64_MAX at first */
	const char *room; /* what the limit is, in words; NULL: the workspace's disk limit */
	bool is_over;	  /* by the limit it failed */
	const char *own_name, *own_link; /* a symbolic link with this target is left out; or NULL */
	/* What there was. */
	uint64_t entries, bytes;
	struct tree_note left_out, outward; /* outward: links that lead out of the tree */
	struct archived_place place;	    /* of the latest entry */
	/* private */
	int stage;
	struct tar_reader reader;
	int file; /* being written, or -1 */
	uint64_t file_blocks, file_size, files;
	int64_t file_modified_s;
	struct arena arena;
	VEC(struct tree_locked {
		const char *path;
		unsigned mode;
		uint64_t inode;
	})
	locked;	      /* directories whose owner lacks a right, which they lose at the very end */
	size_t depth; /* of levels; no directory is ever removed, so that they stay true */
	struct tree_level levels[PATH_DEPTH_MAX];
};
/* `stage` stays the caller's. tree_unpack_done follows always. */
void tree_unpack_init(struct tree_unpack *unpack, int stage);
/* ERR_CORRUPT: no tar archive, or a damaged one. */
int tree_unpack_add(struct tree_unpack *unpack, struct str data, struct error *err);
/* The archive is at its end: ERR_CORRUPT when it isn't whole. */
int tree_unpack_end(struct tree_unpack *unpack, struct error *err);
/* Then moves what is in the stage into `target`; the stage itself: it stays where it is. */
int tree_unpack_place(struct tree_unpack *unpack, int target, struct error *err);
void tree_unpack_done(struct tree_unpack *unpack);
