/* template_fetch.h -- templates of a blob store that is not the home's own: a bucket, or a
 * directory that is shared.
 * 1. Core reads copies of them (<home>/templates/blobs/workspace-templates/NAME.yaml), never the
 * store. The directory of copies is there exactly while such a store is configured, and then counts
 * in place of <home>/blobs (core/state/template_store.h).
 * 2. A fetch makes the copies what the store has: it lists the store, gets what has changed, and
 * removes what is gone. A verb waits for a fetch that began after it was asked, so that it finds
 * what another home has added before.
 * 3. A copy has the time of its object, which says with the size whether it is outdated. An object
 * that was young when it was fetched may change again within the same second: its copy has no time,
 * and is fetched again.
 * 4. A fetch that fails leaves whole copies: old ones or new ones. */
#pragma once
#include "core/core.h"

/* source: names the store, and changes with it; "" or NULL: the home's own. Copies of another store
 * are removed. After template_builds_open. */
int template_copies_open(struct core *core, const char *source, struct error *err);
void template_copies_close(struct core *core);
/* After the object was stored or deleted. What fails here is mended by the next fetch. */
void template_copy_put(struct core *core, const char *name, struct str yaml);
void template_copy_remove(struct core *core, const char *name);

/* w is NULL. */
void template_fetch(struct core *core, const char *request_id, core_workspace_fn *done, void *ctx);
