/* build_watch.h -- shows how far the build of an environment is that a request to the daemon waits
 * for. A process of its own listens to the daemon's events meanwhile, since the request blocks.
 * 1. Without events, as when the caller may not listen to them, nothing but the first phase is
 * shown; the request isn't affected. */
#pragma once
#include "cli/remote.h"
#include "envs/builder/progress.h"
#include "linux/child.h"

struct build_watch {
	enum progress_kind kind;
	struct child child;
	struct client client;
};
/* Before the request. `first`: a phase that is shown at once, or NULL. `whose`: the X-Request-Id of
 * the request, or the name or id of its workspace. build_watch_end follows. */
void build_watch_begin(struct build_watch *watch, struct remote *remote, enum progress_kind kind,
	const char *first, const char *whose);
/* After the answer: what was told before it is shown, then the bar disappears. */
void build_watch_end(struct build_watch *watch);
