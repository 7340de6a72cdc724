/* base.h -- a mount namespace to start sandboxes from: the system's trees and devices that a plan
 * shows, read-only, on a root of its own, and nothing else of the host.
 * 1. A sandbox that is born there puts its own root over that one and needs no pivot_root, whose
 * cost grows with the number of the host's processes; nor does it copy and drop the host's mounts.
 * 2. What is there was opened when it was made: base_is_current says whether the host still has the
 * same. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "plan/plan.h"

struct base_source {
	const char *path;
	uint64_t device, inode;
};
struct base {
	int mounts; /* the namespace, or -1 */
	struct arena arena;
	VEC(struct base_source) sources;
};
#define BASE_NONE                                                                                  \
	{                                                                                          \
		.mounts = -1                                                                       \
	}
/* Makes one of the system's binds of `plan`. Needs CAP_SYS_ADMIN. Waits for a child that makes it;
 * none is left. */
int base_make(const struct plan *plan, struct base *base, struct error *err);
void base_done(struct base *base);
/* Whether the paths it was made of lead where they did. */
bool base_is_current(const struct base *base);
/* *fd: the mount namespace that the caller is in. */
int base_open_own(int *fd, struct error *err);
