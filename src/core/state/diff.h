/* diff.h -- what differs between two states of a workspace. */
#pragma once
#include "core/core.h"

struct core_diff {
	bool is_patch;	 /* as `git apply` reads it; else {items: changes} in JSON */
	bool is_bundle;	 /* an archive that carries the changes (trees/stacks/bundle.h) */
	bool has_all;	 /* also of /env and node_modules; not of a bundle */
	text_list paths; /* only these and what lies below them: from /workspace on, or below /env;
			  * empty: all */
	const char *snapshot; /* id, tag or version of the older state; NULL: as the last freeze
			       * left it */
	const struct cancelable *owner; /* that is canceled with it; or NULL */
};
/* fd: a file with the differences, yours to close; -1 when *err says why there is none. */
typedef void core_diff_fn(void *ctx, int fd, uint64_t size, const struct error *err);
/* What changed in w since the snapshot, or since the state that its uppers lie on; everything, when
 * there is none. What runs in it goes on. ERR_INVALID: a path; ERR_LIMIT: too many differences;
 * ERR_NOT_FOUND, ERR_CONFLICT: as of snapshot_of; has_all, and the environments differ. */
core_verb void core_diff(const struct request *request, struct core_workspace *w,
	const struct core_diff *wanted, core_diff_fn *done, void *ctx);
