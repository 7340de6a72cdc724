/* push.h -- snapshots to the blob store, and back (model/nouns/pushed.h).
 * 1. A layer is an object named by its content id, and is sent only if the store lacks it. The
 * manifest is stored last: a snapshot that can be found there is whole.
 * 2. What is fetched becomes a layer only if it has the content id of its name. A snapshot has a
 * row when all its layers are here; a pull that fails leaves nothing. */
#pragma once
#include "core/state/snapshots.h"
#include "model/nouns/pushed.h"

/* result: valid during the call; NULL with an error. */
typedef void core_push_fn(void *ctx, const struct push_result *result, const struct error *err);
/* ERR_CORRUPT: a layer is not what it was when its content id was computed; nothing of it is sent.
 */
core_verb struct cancelable *core_snapshot_push(const struct request *request,
	struct core_workspace *w, const struct push_wanted *wanted, core_push_fn *done, void *ctx);
/* Makes a snapshot with the id, version and tag that it had; it stays without its workspace. One
 * that is here already is success. ERR_NOT_FOUND: the store has no such snapshot. ERR_CONFLICT:
 * several snapshots of the store have that tag or version; or another one of this home does.
 * ERR_CORRUPT: a layer is damaged, or missing in the store. */
core_verb struct cancelable *core_snapshot_pull(const struct request *request, struct core *core,
	const struct pull_wanted *wanted, core_snapshot_fn *done, void *ctx);
void pulls_done(struct core *core); /* forgets all of them */
