/* shared.h -- shared trees: directories <home>/trees/<name> that several workspaces have mounted at
 * once (`attach`), read-only or writable.
 * 1. A tree is the directory, and nothing else: there is no row. It is made whole by mkdir, and
 * goes by a rename.
 * 2. A tree that a workspace has attached is not removed.
 * 3. The state of a workspace excludes it: its snapshots, its archives and its disk limit.
 */
#pragma once
#include "core/core.h"
#include "model/nouns/shared_tree.h"

typedef VEC(struct shared_tree) shared_tree_list;

/* ERR_INVALID: a bad name. ERR_CONFLICT: there is one of that name. */
core_verb int core_tree_create(
	const struct request *request, struct core *core, const char *name, struct error *err);
/* Sorted by name; texts live in the arena. */
core_verb int core_tree_list(const struct request *request, struct core *core, struct arena *arena,
	shared_tree_list *trees, struct error *err);
/* ERR_NOT_FOUND; ERR_CONFLICT: a workspace has it attached. */
core_verb int core_tree_remove(
	const struct request *request, struct core *core, const char *name, struct error *err);
