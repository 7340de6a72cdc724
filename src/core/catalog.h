/* catalog.h -- read-only views besides workspaces and execs: environments, levels of the launcher's
 * pools, the health of core. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "core/core.h"
#include "format/text/json.h"

/* ERR_UNAVAILABLE says why nothing can be asked for now: still reconciling, or stopping. */
int core_check_serving(struct core *core, struct error *err);
/* Also when the store doesn't take writes: what needs none is done nevertheless, and what frees a
 * full disk too. */
int core_check_ready(struct core *core, struct error *err);

/* At most `limit` environments after `cursor` (a name, or NULL), sorted by name, as objects into
 * the open array:
 * {"name","package_id","state","created_at","last_used_at","use_count","size_bytes",
 * "kind","python_version","node_version","installed_packages","in_use","problem"}. *next: NULL, or
 * the cursor for more.
 */
core_verb int core_print_environments(const struct request *request, struct core *core,
	const char *cursor, size_t limit, struct arena *arena, struct json *j, const char **next,
	struct error *err);
/* One of them, by its name; its texts are in the arena. */
struct env_meta;
core_verb int core_environment(const struct request *request, struct core *core, const char *name,
	struct arena *arena, struct env_meta *meta, struct error *err);
/* Prometheus text of the environment store's own names. */
core_verb int core_print_environment_metrics(
	const struct request *request, struct core *core, struct buf *out, struct error *err);

/* What the launcher says of itself. */
struct core_levels {
	uint32_t sandboxes, netns_ready, cgroups_ready, starting;
	uint64_t netns_missed, cgroups_missed;
};
typedef void core_levels_fn(void *ctx, const struct core_levels *levels);
struct core_question;
/* fn: once, from the loop, 250 ms later at most; levels NULL: the launcher hasn't answered by then.
 * *question is valid until that. */
core_verb int core_ask_levels(const struct request *request, struct core *core, core_levels_fn *fn,
	void *ctx, struct core_question **question, struct error *err);
void core_forget_levels(struct core_question *question); /* fn is not called any more */
