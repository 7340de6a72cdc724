/* missed.h -- `carrel doctor -- PROGRAM`: which paths of the host a program looks for in vain in a
 * sandbox. */
#pragma once
#include "cli/cli.h"
#include "plan/plan.h"

/* What has to be shown so that `path` (absolute, plain; there on the host) is there in a sandbox of
 * `plan`, too: itself, or the first directory above it that isn't shown, but no more than a name in
 * /etc, /opt, /srv or a directory of /var. NULL: it is shown. Pure. */
const char *missed_entry(const struct plan *plan, const char *path, struct arena *arena);

/* Runs command->argv in a sandbox as `carrel run` does, its output on stderr, and prints what it
 * missed. 0, whatever the program's own exit code is. */
int missed_find(struct command *command, struct error *err);
