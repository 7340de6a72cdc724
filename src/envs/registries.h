/* registries.h -- the package indexes that the clients of this host (pip, uv, npm, bun) are
 * configured with, for sandboxes that may reach them: hosts, and the variables that name the
 * indexes to the clients inside. No address is written in this program. */
#pragma once
#include "envs/build.h"

struct registries_found {
	text_list hosts;     /* "host:port" of the files of indexes, and */
	text_list indexes;   /* of the indexes and the npm registry, which the operator has named */
	text_list variables; /* "PIP_INDEX_URL=…"; without credentials */
};
/* Asks pip, uv and npm in sandboxes for what isn't configured nor known from an earlier time.
 * builder->runner NULL: asks nobody, and ERR_NOT_FOUND when something isn't known. What one client
 * doesn't say is left out; ERR_UNAVAILABLE: none says anything. */
int registries_find(const struct builder *builder, struct arena *arena,
	struct registries_found *found, struct error *err);
