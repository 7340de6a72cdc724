/* out.h -- a tar archive on its way to a descriptor. */
#pragma once
#include <sys/stat.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "format/archives/tar.h"

struct tree_out {
	int fd;		 /* stays the caller's */
	struct buf rest; /* that isn't written yet */
};
/* tree_out_done follows. */
void tree_out_init(struct tree_out *out, int fd);
void tree_out_done(struct tree_out *out);
int tree_out_flush(struct tree_out *out, struct error *err);
int tree_out_entry(struct tree_out *out, const struct tar_entry *entry, struct error *err);
/* Where the data of a file is, when there are holes. ERR_LIMIT: there are so many that the rest of
 * the file, with its holes as zeros, would be far more than the file takes on disk. */
int tree_find_regions(int fd, const struct stat *st, struct arena *arena, struct tar_entry *entry,
	struct error *err);
/* What belongs after an entry of a file, from `fd`; *bytes, or NULL, gets how much was read.
 * ERR_CONFLICT: it became shorter meanwhile. */
int tree_out_content(struct tree_out *out, int fd, const struct tar_entry *entry, uint64_t *bytes,
	struct error *err);
