/* environment.h -- an environment of the store as part of a plan: its layers at /env, and what lies
 * outside /usr of its interpreter and its editable projects, each at its own path, read-only. */
#pragma once
#include "envs/store.h"
#include "sandbox/plan/plan.h"
#include "trees/layers/stage.h"

struct environment_mount {
	const struct layer_store *layers;
	struct plan_tree plan;
	struct layer_stage upper; /* only where a tmpfs can't be one */
};
/* Fills *mount, which must stay where it is, and adds to options (environments, binds). `upper`:
 * the name below the home of a directory that has `upper` and `work`, for what stays; NULL: what is
 * changed is gone afterwards. environment_unmount follows always, when the sandbox has ended (with
 * an upper of your own: when the plan isn't needed any more). */
int environment_mount(const struct layer_store *layers, const struct env_meta *meta,
	const char *upper, struct arena *arena, struct plan_options *options,
	struct environment_mount *mount, struct error *err);
void environment_unmount(struct environment_mount *mount);
/* host_look_at_source for what the owner of a home may have named: a directory is one by its own
 * path, not by a link; what lies in the home is its owner's; and from here on no link on the way to
 * it is followed, whatever takes whose place. ERR_DENIED. */
int environment_look_at_source(const struct home *home, struct plan_bind *bind, const char *what,
	struct arena *arena, struct error *err);
