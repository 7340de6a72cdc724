/* part.h -- what the state of a workspace consists of: trees that are overlays of their own. What
 * was changed in a part lies in its upper; a snapshot freezes the uppers of all parts as one layer,
 * with a directory a part. A new part is a row; whoever freezes, copies, compares, archives or
 * measures a workspace goes over the rows. */
#pragma once
#include "model/nouns/workspace.h"

enum { PART_WORKSPACE, PART_PYTHON, PART_NODE, WORKSPACE_PARTS };
struct workspace_part {
	const char *name; /* of its directory in a frozen layer, and in an archive */
	/* In workspaces/<id>: the directory of all of it ("": that one), what was changed,
	 * overlay's own; and an empty upper that is about to take the place of another, and that
	 * other. */
	const char *directory, *upper, *work, *fresh, *old;
	/* Layers of an environment lie below what was frozen, of the kind that names this part
	 * (envs/kind.h); only workspaces that have one have the part. */
	bool has_packages;
	const char *target[VIEW_COUNT]; /* where it is seen inside */
	/* How a list of changes names its paths: as inside, or from the workspace's directory on.
	 */
	const char *prefix;
};
/* In the order of the lists of lower layers that jobs over trees are given. */
extern const struct workspace_part workspace_parts[WORKSPACE_PARTS];
