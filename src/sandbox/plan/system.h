/* system.h -- the host paths that every sandbox shows, read-only, where they exist. Pure: a table,
 * and whether a name is in it.
 * 1. It is an allow-list: what no row names is not shown.
 * 2. No row names a secret (keys, passwords, configuration that may hold credentials) or what
 * identifies this host (machine id, host name, network configuration), nor a shell's start files,
 * which would replace the sandbox's PATH. */
#pragma once
#include "base/error.h"

/* Looked for one by one; NULL at the end. */
extern const char *const plan_system_paths[];
/* Directories that are listed, and the names in them that are shown: sorted (strcmp, without '*'),
 * a trailing '*' matches any ending. */
struct plan_system_place {
	const char *directory;
	const char *const *names;
	size_t count;
};
extern const struct plan_system_place plan_system_places[]; /* directory NULL at the end */
bool plan_system_place_has(const struct plan_system_place *place, const char *name);
/* Whether the operator may have `path` (absolute, plain) shown at its own place: it neither holds
 * nor lies in what is the sandbox's own, or a secret. ERR_INVALID. */
int plan_system_check_shown(const char *path, struct error *err);
