/* spare.c -- one workspace made ahead: with default limits, a tree and a running sandbox, but no
 * row. The next creation that asks for nothing else takes it, and has only its row to write.
 * 1. A spare workspace can't be looked up: it is in state `creating`, and its name is invalid.
 * 2. Nothing has run in it. It is used once, and ended like any other sandbox that has nothing to
 *    do.
 * 3. A daemon that has no other workspace has no spare one for long.
 * 4. A crash leaves a tree and a sandbox without a row, which core/reconcile.c removes. */
#include "base/clock.h"
#include "core/access/policies.h"
#include "core/execs/init_connection.h"
#include "core/workspaces/internal.h"

#define ALONE_MS 1000 /* it ends after this time without any other workspace */
#define DELAY_MS 10   /* creations, commands and removals that follow at once go first */

static void forget(struct core_workspace *w)
{
	struct error ignored; /* without a row, its tree is removed at the next start */
	if (w->core->upkeep->spare == w)
		w->core->upkeep->spare = NULL;
	tree_discard(w->core, w->model.id, &ignored);
	workspace_drop(w);
}

void spare_ended(struct core_workspace *w)
{
	if (w->sandbox.state == SANDBOX_NONE && !w->is_gone)
		forget(w);
}

static void on_up(void *ctx, struct core_workspace *w, const struct error *err)
{
	if (!err) {
		core_release(w);
		spare_check(w->core);
	} else if (w->sandbox.state == SANDBOX_NONE) /* else spare_ended is called */
		forget(w);
}

static void on_tree(void *ctx, struct core_workspace *w, const struct error *err)
{
	if (err)
		forget(w);
	else
		core_wake(w, NULL, on_up, NULL);
}

/* name: kept while *model is used. */
static int describe(
	struct core *core, const char *id, char name[ID_LEN + 2], struct workspace *model)
{
	struct error err;
	*model = (struct workspace){ .name = name,
		.state = WORKSPACE_CREATING,
		.created_ms = core->newest ? core->newest->model.created_ms : 0,
		.disk_mechanism = "counted" };
	memcpy(model->id, id, sizeof model->id);
	str_format(name, ID_LEN + 2, ".%s", id);
	return limits_fill(&model->limits, &err);
}

static void on_due(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	char id[ID_LEN + 1], name[ID_LEN + 2];
	struct workspace model;
	core->upkeep->spare_due = NULL;
	id_make(id);
	if (core->is_stopping || core->upkeep->spare || describe(core, id, name, &model))
		return;
	core->upkeep->spare = workspace_new(core, &model);
	core->upkeep->spare->is_spare = true;
	workspace_make_tree(core->upkeep->spare, "", on_tree, NULL);
}

static bool is_alone(const struct core *core)
{
	return core->upkeep->spare && core->newest == core->oldest;
}

static void on_alone(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	core->upkeep->spare_alone = NULL;
	if (is_alone(core))
		core_end_sandbox(core->upkeep->spare, REASON_CANCELED);
}

void spare_check(struct core *core)
{
	loop_cancel(core->loop, core->upkeep->spare_alone);
	core->upkeep->spare_alone =
		is_alone(core) ? loop_after(core->loop, ALONE_MS, on_alone, core) : NULL;
}

void spare_return(struct core_workspace *w)
{
	char name[ID_LEN + 2];
	struct workspace model;
	describe(w->core, w->model.id, name, &model);
	model.disk_mechanism = w->model.disk_mechanism;
	workspace_replace(w, &model);
	w->is_spare = true;
	core_end_sandbox(w, REASON_CANCELED);
}

static bool is_plain(const struct workspace *wanted)
{
	struct limits limits = { 0 };
	struct error err;
	return !wanted->id[0] && !wanted->template && !wanted->policy.settings &&
	       !wanted->policy.sources && !wanted->is_context && !wanted->ptrace &&
	       workspace_network_mode(&wanted->network) == NETWORK_NONE &&
	       wanted->view == VIEW_WORKSPACE && !grants_are_asked(wanted) &&
	       !environment_is_asked(wanted) && !limits_fill(&limits, &err) &&
	       !memcmp(&limits, &wanted->limits, sizeof limits);
}

struct core_workspace *spare_take(struct core *core, struct workspace *wanted)
{
	struct core_workspace *w = core->upkeep->spare;
	/* File rules are mounts of a sandbox, from its start on; the spare one has the operator's.
	 */
	if (!core->keeps_spare || !is_plain(wanted))
		return NULL;
	/* What the operator's sources let be reached is the spare one's network, too. */
	if (policies_have_sources(core) && wanted->network.mode)
		return NULL;
	if (!core->upkeep->spare_due)
		core->upkeep->spare_due = loop_after(core->loop, DELAY_MS, on_due, core);
	if (!w || w->sandbox.state != SANDBOX_UP)
		return NULL;
	core->upkeep->spare = NULL;
	w->is_spare = false;
	memcpy(wanted->id, w->model.id, sizeof wanted->id);
	wanted->disk_mechanism = w->model.disk_mechanism;
	workspace_replace(w, wanted);
	connection_make_env(w);
	w->start_ns = clock_monotonic_ns();
	sandbox_count_start(w);
	return w;
}
