/* progress.h -- shows how far a build is, through the builder's env_progress. */
#pragma once
#include "envs/python/internal.h"

/* `done` of `total` in this phase, and the bytes that the network has brought. While packages are
 * installed, the receiver may ask for both counts again. */
void making_show(struct making *making, const char *phase, uint64_t done, uint64_t total);
/* The same with `done` of the missing packages; the total is all packages in each phase, and 1 for
 * an environment without any, where pip is installed. */
void making_show_packages(struct making *making, const char *phase, uint64_t done);
