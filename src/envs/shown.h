/* shown.h -- the section `system` of config.yaml: host paths that the operator shows in every
 * sandbox, and what Landlock judges there.
 * 1. Root parses only a file that root alone can write. The home belongs to another uid, core's: a
 * core that was taken over could otherwise have any path of the host shown.
 * 2. The home is not made, and need not be there. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "model/config.h"

/* *config: the defaults when there is no file, or none with that section. ERR_INVALID: the file is
 * wrong. ERR_DENIED: it has a `system:` section and others than the caller can write it. */
int shown_read(const char *home, struct arena *arena, struct config *config, struct error *err);
