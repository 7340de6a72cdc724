/* exec_uses.c -- what others of core want to know of the execs of a workspace, and tell them. */
#include "core/access/policies.h"
#include "core/execs/internal.h"

size_t execs_count_open(
	const struct core_workspace *w, bool with_waiting, const struct exec_record **one)
{
	size_t at = 0, count = 0;
	struct core_exec *e;
	while ((e = map_next(&w->core->execs->by_id, &at)))
		if (e->workspace == w && e->stage != STAGE_ENDED &&
			(with_waiting || e->is_linked)) {
			count++;
			*one = &e->record;
		}
	return count;
}

void execs_end_with(struct core_workspace *w, const char *why)
{
	struct init_connection *connection = w->sandbox.connection;
	size_t at = 0;
	struct core_exec *e;
	while ((e = map_next(&w->core->execs->by_id, &at)))
		if (e->workspace == w && e->stage == STAGE_WAITING) {
			e->record.error = why;
			exec_kill(e, REASON_CANCELED);
		}
	if (connection && !connection->why)
		connection->why = why;
}

void execs_explain(struct core_workspace *w, const char *why)
{
	for (struct core_exec *e = w->sandbox.execs; e; e = e->next)
		if (!e->record.error)
			e->record.error = arena_text(&e->arena, why);
}

bool execs_judge_asked(const struct core *core, const struct approval *approval,
	const text_list *rules, struct arena *arena, struct policy_verdict *verdict)
{
	const struct core_exec *e = map_get(&core->execs->by_id, str_from(approval->exec));
	if (!e || !e->spec || strcmp(e->approval, approval->id) != 0)
		return false;
	policies_judge_with(e->workspace, e->spec, rules, arena, verdict);
	return true;
}
