/* nouns.h -- core for the room above it (services), which keeps nouns of its own: who may do what,
 * rows, events. Everything else those nouns need are verbs of core.
 * 1. A verb of such a noun has a row in the table of verbs (access.c) and begins with core_check.
 * 2. Rows of tables that core doesn't know are handed to core_options.row at the start, after all
 * rows of core itself; from then on the memory of their owner is the truth, the store its record.
 */
#pragma once
#include "core/core.h"
#include "store/store.h"

/* As access_check; w: the workspace that the verb is about, or NULL. */
core_verb int core_check(const struct request *request, struct core *core, enum verb verb,
	const struct core_workspace *w, struct error *err);
/* The principal of core itself, for timers and for what goes on by itself. */
const struct request *core_system(void);
/* As store_put and store_remove. */
void core_put(struct core *core, const struct store_table *table, const void *object,
	store_done_fn *done, void *ctx);
void core_drop(struct core *core, const struct store_table *table, const char *id,
	store_done_fn *done, void *ctx);
/* For journal_emit and journal_listen. */
struct journal *core_journal(struct core *core);
struct loop *core_loop(const struct core *core);
const struct log *core_log(const struct core *core);
bool core_is_stopping(const struct core *core);
