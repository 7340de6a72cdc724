/* workspace_names.h -- how lists call workspaces: a context of an agent AGENT/CONTEXT, others by
 * their names. Commands take both. */
#pragma once
#include "base/map.h"
#include "cli/cli.h"

/* Of a workspace as the daemon shows it; NULL: it has no name. */
const char *workspace_names_of(struct arena *arena, const struct json_value *workspace);

struct workspace_names {
	struct map by_id;
	struct arena *arena;
};
/* Of all workspaces that the caller may list, or of contexts alone. */
int workspace_names_read(
	struct workspace_names *names, struct remote *remote, bool is_contexts, struct error *err);
/* Of the workspace whose id is the member `key`; one that isn't there is `other`, which may be
 * NULL. */
const char *workspace_names_find(const struct workspace_names *names, const struct json_value *item,
	const char *key, const char *other);
