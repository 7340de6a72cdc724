/* tree_unpack.h -- an archive becomes files of this host. It comes from a sandbox, so nothing in it
 * is believed.
 * 1. All of it is unpacked in a directory of its own beside its place, by descriptor, following no
 * link, and moved there when it is whole: an archive that is cut or refused changes nothing.
 * 2. Links come as they are; those that lead out of the tree are counted, so that whoever walks
 * there can be told. What is neither file, directory nor link is left out; no setuid, setgid or
 * sticky bit is made; names with ".." or a slash in front are refused.
 * 3. Moving merges: files replace files and links, never directories; a directory goes into one
 * that is there, never through a link. What can't go that way is found before anything moves. */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "format/tar.h"

#define UNPACK_ENTRIES_MAX 1000000

struct unpack {
	struct arena arena;
	struct tar_reader reader;
	int place; /* directory that holds the stage */
	int stage; /* or -1 */
	char stage_name[40];
	int file;		  /* being written, or -1 */
	struct tar_entry written; /* what it is */
	bool is_workspace;  /* all of one: what carrel made in it is left out; set after begin */
	unsigned root_mode; /* of the tree itself, when the archive doesn't say: set it after begin
			     */
	uint64_t entries, left_out, outward;
	const char *first_left_out, *first_outward; /* in words, or NULL */
	VEC(struct unpack_directory {
		const char *name;
		unsigned mode;
		int64_t modified_s;
	})
	directories;
};
/* place: an open directory; stays the caller's. unpack_done follows always. */
int unpack_begin(struct unpack *unpack, int place, struct error *err);
int unpack_add(struct unpack *unpack, struct str data, struct error *err);
/* The archive is at its end: moves the tree to `name` in the place (NULL: what is in it into the
 * place itself). ERR_CONFLICT names what is in the way. */
int unpack_finish(struct unpack *unpack, const char *name, struct error *err);
void unpack_done(struct unpack *unpack);
