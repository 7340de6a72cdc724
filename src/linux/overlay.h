/* overlay.h -- one tree made of many: layers below, a writable directory on top.
 * 1. Marks are user.* attributes (userxattr), in every mode, so that the owner of the upper
 * directory can read them.
 * 2. Paths are relative to the caller's working directory, and short: they show in mountinfo. */
#pragma once
#include "base/error.h"

struct overlay {
	const char *layers;	   /* the directory that holds the lowers */
	const char *const *lowers; /* names in it, topmost first */
	size_t lower_count;
	const char *upper, *work; /* two directories of one file system; NULL: it is read-only, of
				   * two layers at least */
	bool is_throwaway;   /* nothing of the upper is needed after a crash: no sync at the end */
	const char *scratch; /* a name three levels down that is free, to work at, for kernels
				without lowerdir+ (before 6.8) */
};
/* *tree is yours. Nothing of it is attached anywhere; the parts may be unmounted afterwards.
 * attributes: MOUNT_ATTR_*. */
int overlay_make(const struct overlay *overlay, unsigned attributes, int *tree, struct error *err);
/* Whether a tmpfs can be an upper here: it must hold user.* attributes (since 6.6). Asked of a
 * memfd, which lies on one. */
bool overlay_takes_tmpfs(void);
