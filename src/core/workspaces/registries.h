/* registries.h -- what WORKSPACE_REGISTRIES stands for: asked of `carrel env registries`, which
 * reads the configuration of the host's package managers. Private to core/workspaces/networks.c. */
#pragma once
#include "core/core.h"

/* Calls done(ctx, w, NULL) when they are known, or can't be found out, which is logged. May do so
 * before it returns. */
void registries_learn(struct core_workspace *w, core_workspace_fn *done, void *ctx);
