/* environment.h -- an environment of the store as part of a plan: its layers at /env, and what lies
 * outside /usr of its interpreter and its editable projects, each at its own path, read-only. */
#pragma once
#include "envs/store.h"
#include "layers/stage.h"
#include "plan/plan.h"

struct environment_mount {
	const struct layer_store *layers;
	struct plan_environment plan;
	struct layer_stage upper; /* only where a tmpfs can't be one */
};
/* Fills *mount, which must stay where it is, and adds to options (environment, binds). `upper`: the
 * name below the home of a directory that has `upper` and `work`, for what stays; NULL: what is
 * changed is gone afterwards. environment_unmount follows always, when the sandbox has ended (with
 * an upper of your own: when the plan isn't needed any more). */
int environment_mount(const struct layer_store *layers, const struct env_meta *meta,
	const char *upper, struct arena *arena, struct plan_options *options,
	struct environment_mount *mount, struct error *err);
void environment_unmount(struct environment_mount *mount);
