/* units.h -- a tree of node_modules by what is installed and removed as a whole: a package
 * ("axios", "@types/node", with all below it) or a command (".bin/tsc"). */
#pragma once
#include "base/map.h"
#include "base/str.h"
#include "trees/layers/store.h"

struct node_unit {
	const char *path;
	VEC(const struct manifest_entry *) entries; /* of it, as the manifest has them */
};
/* The units of a layer by their paths; they live in `arena`. ERR_NOT_FOUND, ERR_CORRUPT. */
int node_units_read(const struct layer_store *layers, const char *id, struct arena *arena,
	struct map *units, struct error *err);
/* The path of the unit that a path is in; empty: none, it is a directory of units. */
struct str node_unit_of(const char *path);
/* The name of its package; of a command: of the package that the link leads to. "": none. */
const char *node_unit_package(const struct node_unit *unit, struct arena *arena);
/* Whether both have the same entries; either may be NULL. */
bool node_units_equal(const struct node_unit *a, const struct node_unit *b);
