/* Rules that reviewers add to the policies of a workspace. */
#include "core/access/policies.h"
#include "core/internal.h"
#include "core/workspaces/networks.h"

/* Nobody waits for it: an allow rule only opens. */
static void on_bounds_changed(void *ctx, struct core_workspace *w, const struct error *err)
{
}

void policies_add_rule(struct core_workspace *w, const char *rule, store_done_fn *done, void *ctx)
{
	struct workspace next = w->model;
	struct error err;
	text_list *rules = &next.policy.rules;
	int failed = 0;
	for (size_t i = 0; i < rules->count; i++)
		if (!strcmp(rules->items[i], rule)) { /* another reviewer was faster */
			workspace_save(w, done, ctx);
			return;
		}
	*rules = text_list_copy(&w->arena, rules);
	vec_push(&w->arena, rules, (const char *)arena_text(&w->arena, rule));
	if (rules->count > WORKSPACE_RULES_MAX)
		failed = fail(&err, ERR_LIMIT, "workspace '%s' would have more than %d rules",
			w->model.name, WORKSPACE_RULES_MAX);
	if (failed || policies_check(w->core, &next, &err)) {
		workspace_tidy(w);
		done(ctx, &err);
		return;
	}
	w->model.policy = next.policy;
	policies_forget(w);
	networks_changed(w, on_bounds_changed, NULL);
	journal_emit(&w->core->journal, "workspace.updated", w->model.id, w->model.name, NULL);
	workspace_save(w, done, ctx);
}
