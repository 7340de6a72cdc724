/* base.h -- a mount namespace to start sandboxes from: the system's trees and devices that a plan
 * shows, read-only, on a root with the files of every sandbox, and nothing else of the host.
 * 1. A sandbox that is born there needs no pivot_root, whose cost grows with the number of the
 * host's processes; nor does it copy and drop the host's mounts.
 * 2. One whose mounts all find their place there keeps that root, and mounts only what is its own;
 * any other puts a root of its own over it.
 * 3. What is there was opened when it was made: base_is_current says whether the host still has the
 * same. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "sandbox/plan/plan.h"

struct base_source {
	const char *path;
	uint64_t device, inode;
};
struct base {
	int mounts;	/* the namespace, or -1 */
	bool has_names; /* as plan_network_has_names: /etc says how to resolve names */
	struct arena arena;
	VEC(struct base_source) sources;
	text_list targets; /* where something can be mounted */
};
#define BASE_NONE                                                                                  \
	{                                                                                          \
		.mounts = -1                                                                       \
	}
/* Makes one of the system's binds of `plan`, with the points of all its mounts. Needs
 * CAP_SYS_ADMIN. Waits for a child that makes it; none is left. */
int base_make(const struct plan *plan, struct base *base, struct error *err);
void base_done(struct base *base);
/* Whether the paths it was made of lead where they did. */
bool base_is_current(const struct base *base);
/* Whether a sandbox of `plan` can keep its root. */
bool base_has_root_for(const struct base *base, const struct plan *plan);
/* *fd: the mount namespace that the caller is in. */
int base_open_own(int *fd, struct error *err);
