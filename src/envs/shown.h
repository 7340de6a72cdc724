/* shown.h -- config.yaml as those read it who act on the host for the operator: `carrel run`, and
 * the launcher before core runs.
 * 1. Root parses only a file that root alone can write. The home belongs to another uid, core's: a
 * core that was taken over could otherwise have any path of the host shown. A file that others can
 * write is refused, never ignored: without it, what it forbids is allowed.
 * 2. The home is not made, and need not be there. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "model/settings/config.h"

/* *config: the defaults when there is no file. ERR_INVALID: the file is wrong. ERR_DENIED: it
 * belongs to somebody else, or others than the caller can write it. */
int shown_read(const char *home, struct arena *arena, struct config *config, struct error *err);
