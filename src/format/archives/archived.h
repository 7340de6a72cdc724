/* archived.h -- checks of an entry of an untrusted tar archive: whether it is accepted, and as
 * what. Pure.
 * 1. What is allowed is a file, a directory, a link or a hard link at a clean relative path; a hard
 * link's target is one, too.
 * 2. A link's target is any text: who makes files of entries follows no link, neither one of the
 * archive nor one that was there before. */
#pragma once
#include "base/error.h"
#include "format/archives/tar.h"

#define ARCHIVED_DEPTH_MAX 100 /* components of a path in an upload */

/* What it becomes. */
struct archived_place {
	char path[PATH_MAX];   /* clean; "": the root */
	char target[PATH_MAX]; /* of a link: as it was; of a hard link: clean */
	unsigned mode;	       /* permission bits */
};
/* ERR_DENIED, ERR_INVALID, ERR_LIMIT (depth, length): the text names the entry. */
int archived_judge(const struct tar_entry *entry, unsigned depth_max, struct archived_place *place,
	struct error *err);
/* An extended attribute of the entry: success means that it may be dropped, silently. */
int archived_judge_attribute(const char *name, const char *attribute, struct error *err);
