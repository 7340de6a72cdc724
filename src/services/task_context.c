/* task_context.c -- the workspaces of tasks: one per context, or one that is thrown away. */
#include "services/agents_internal.h"
#include "services/desk.h"

/* A context that is being made, and the tasks that wait for it. */
struct opening {
	struct agents *agents;
	struct arena arena;
	const char *agent, *key;
	struct task_run *waiting;
	struct opening *next;
};

static struct core *core_of(const struct task_run *run)
{
	return run->task->agents->base.core;
}

static void describe(const struct task_run *run, struct workspace *wanted)
{
	const struct a2a_agent *agent = &run->entry->model;
	*wanted = (struct workspace){ .template = agent->template,
		.limits = agent->limits.limits,
		.ttl_ms = agent->ttl_ms,
		.env = agent->env,
		.policy = { .settings = agent->settings, .sources = agent->sources },
		.owner = { .service = WORKSPACE_AGENTS,
			.agent = agent->name,
			.namespace = agent->namespace } };
}

static void on_throwaway(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct agent_task *task = task_recall(ctx);
	if (task && task->run && err)
		run_refuse(task->run, err);
	else if (task && task->run)
		run_exec(task->run, w);
	else if (w) /* it was canceled meanwhile */
		core_remove(core_system(), w, "removed", NULL, NULL);
}

static void make_throwaway(struct task_run *run)
{
	struct workspace wanted;
	describe(run, &wanted);
	wanted.owner.task = run->task->model.id;
	task_save(run->task); /* in one commit with the workspace */
	core_create(run->request, core_of(run), &wanted, on_throwaway, task_remember(run->task));
}

static void on_opened(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct opening *opening = ctx, **at = &opening->agents->openings;
	while (*at != opening)
		at = &(*at)->next;
	*at = opening->next;
	/* Refusing a task can remove others from this list: its head is read again. */
	while (opening->waiting) {
		struct task_run *run = opening->waiting;
		opening->waiting = run->next_waiting;
		run->opening = NULL;
		if (err)
			run_refuse(run, err);
		else
			run_exec(run, w);
	}
	arena_done(&opening->arena);
	free(opening);
}

static void wait_for(struct opening *opening, struct task_run *run)
{
	struct task_run **at = &opening->waiting;
	while (*at)
		at = &(*at)->next_waiting;
	*at = run;
	run->next_waiting = NULL;
	run->opening = opening;
}

static void open_context(struct task_run *run, const char *key)
{
	struct agents *agents = run->task->agents;
	struct opening *opening = agents->openings;
	struct workspace wanted;
	while (opening && strcmp(opening->key, key) != 0)
		opening = opening->next;
	if (opening) {
		wait_for(opening, run);
		return;
	}
	opening = xzalloc(sizeof *opening);
	opening->agents = agents;
	arena_init(&opening->arena);
	opening->agent = arena_text(&opening->arena, run->task->model.agent);
	opening->key = arena_text(&opening->arena, key);
	opening->next = agents->openings;
	agents->openings = opening;
	wait_for(opening, run);
	task_save(run->task); /* in one commit with the workspace */
	describe(run, &wanted);
	wanted.owner.context_id = run->task->model.context;
	wanted.is_context = true;
	core_create(access_keep(run->request, &opening->arena), agents->base.core, &wanted,
		on_opened, opening);
}

void context_leave_opening(struct task_run *run)
{
	if (!run->opening)
		return;
	struct task_run **at = &run->opening->waiting;
	while (*at != run)
		at = &(*at)->next_waiting;
	*at = run->next_waiting;
	run->opening = NULL;
}

struct count {
	const char *agent;
	size_t contexts;
};

static void count(void *ctx, struct core_workspace *w)
{
	struct count *counted = ctx;
	counted->contexts += !strcmp(core_model(w)->owner.agent, counted->agent);
}

int context_check(struct agents *agents, const struct a2a_agent *agent, const char *context,
	struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const struct core_filter filter = {
		.service = WORKSPACE_AGENTS, .only_contexts = true, .state = -1, .limit = SIZE_MAX
	};
	const char *key = context ? arena_printf(&arena, "%s/%s", agent->name, context) : NULL;
	char next[CORE_CURSOR_SIZE];
	struct count known = { .agent = agent->name };
	struct core_workspace *w;
	struct error ignored;
	if (key && !core_find(core_system(), agents->base.core, key, &w, &ignored))
		return 0;
	for (const struct opening *o = agents->openings; o; o = o->next) {
		known.contexts += !strcmp(o->agent, agent->name);
		if (key && !strcmp(o->key, key))
			return 0;
	}
	if (core_list(core_system(), agents->base.core, &filter, count, &known, next, err))
		return -1;
	if (known.contexts < agent->max_contexts)
		return 0;
	return fail_hint(err, ERR_LIMIT,
		"use a context again, or wait until an unused one has expired",
		"agent '%s' has %zu contexts already, which is its limit", agent->name,
		known.contexts);
}

/* Whether the workspace that was found by the key is a context of this agent. */
static bool is_context_of(const struct core_workspace *w, const struct task *task)
{
	const struct workspace_owner *owner = &core_model(w)->owner;
	return owner->service && !strcmp(owner->service, WORKSPACE_AGENTS) && owner->context_id &&
	       !strcmp(owner->context_id, task->context) && !strcmp(owner->agent, task->agent);
}

void context_find(struct task_run *run)
{
	const struct task *task = &run->task->model;
	const char *key = arena_printf(&run->arena, "%s/%s", task->agent, task->context);
	struct core_workspace *w;
	struct error err;
	if (run->is_throwaway) {
		make_throwaway(run);
	} else if (core_find(run->request, core_of(run), key, &w, &err)) {
		/* Check the limit again: other contexts may have been created since task_send. */
		if (err.code != ERR_NOT_FOUND ||
			context_check(run->task->agents, &run->entry->model, task->context, &err))
			run_refuse(run, &err);
		else
			open_context(run, key);
	} else if (!is_context_of(w, task)) {
		fail(&err, ERR_CONFLICT, "'%s' is the context_id of another workspace", key);
		run_refuse(run, &err);
	} else {
		run_exec(run, w);
	}
}

/* ---- after a start ---- */

bool context_is_throwaway(struct agents *agents, const char *workspace)
{
	struct core_workspace *w;
	struct error ignored;
	return !core_find(core_system(), agents->base.core, workspace, &w, &ignored) &&
	       core_model(w)->owner.task;
}

static bool is_kept(void *ctx, const struct workspace *w)
{
	const struct agents *agents = ctx;
	const char *id = w->owner.task;
	const struct agent_task *task = id ? map_get(&agents->tasks, str_from(id)) : NULL;
	return !id || (task && task->run);
}

void contexts_begin(struct agents *agents)
{
	desk_sweep(agents->base.core, WORKSPACE_AGENTS, "removed", is_kept, agents);
}
