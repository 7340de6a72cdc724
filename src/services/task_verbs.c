/* task_verbs.c -- what clients ask of tasks: send, get, cancel, list. */
#include "services/agents_internal.h"

/* An agent without authentication lets its own clients do what its verbs do, and nothing else. */
static const struct request *as_caller(const struct request *request, const struct a2a_agent *agent,
	unsigned scopes, struct arena *arena)
{
	return agent->auth == AGENT_NO_AUTH && access_is_client(request, agent->name)
		       ? access_agent(request, agent->name, scopes, arena)
		       : request;
}

static int check(const struct request *request, struct agents *agents, const char *name,
	enum verb verb, const char *workspace, const struct a2a_agent **agent, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct core_workspace *w = NULL;
	struct error ignored;
	*agent = agents_look(agents, str_from(name));
	if (!*agent)
		return agents_missing(name, err);
	const struct request *caller = as_caller(request, *agent, SCOPE_READ | SCOPE_USE, &arena);
	/* Of a principal that is bound to a workspace: only what is about that one. */
	if (workspace && core_find(core_system(), agents->base.core, workspace, &w, &ignored))
		w = NULL;
	return core_check(caller, agents->base.core, verb, w, err);
}

static int find_task(struct agents *agents, const char *agent, const char *id,
	struct agent_task **task, struct error *err)
{
	*task = id_is_valid(id) ? map_get(&agents->tasks, str_from(id)) : NULL;
	if (*task && !strcmp((*task)->model.agent, agent))
		return 0;
	char shown[64];
	str_printable(shown, sizeof shown, str_from(id));
	return fail(err, ERR_NOT_FOUND, "there is no task '%s'", shown);
}

int task_find(const struct request *request, struct agents *agents, const char *name,
	const char *id, enum verb verb, struct agent_task **task, struct error *err)
{
	const struct a2a_agent *agent;
	struct error gone;
	int missing = find_task(agents, name, id, task, &gone);
	if (check(request, agents, name, verb, missing ? NULL : (*task)->model.workspace, &agent,
		    err))
		return -1;
	if (missing)
		*err = gone;
	return missing;
}

/* Somebody else than its client knows of it from now on. */
static void keep_seen(struct agent_task *task)
{
	if (!task->is_kept)
		task_save(task);
}

int task_get(const struct request *request, struct agents *agents, const char *agent,
	const char *id, struct agent_task **task, struct error *err)
{
	if (task_find(request, agents, agent, id, VERB_TASK_GET, task, err))
		return -1;
	keep_seen(*task);
	return 0;
}

int task_cancel(const struct request *request, struct agents *agents, const char *agent,
	const char *id, struct agent_task **task, struct error *err)
{
	if (task_find(request, agents, agent, id, VERB_TASK_CANCEL, task, err))
		return -1;
	if (task_state_is_final((*task)->model.state))
		return fail(err, ERR_CONFLICT, "task '%s' has ended: it is %s", id,
			task_state_names[(*task)->model.state]);
	task_set_text(*task, TASK_CANCELED, NULL);
	return 0;
}

static int check_context(const char *context, struct error *err)
{
	size_t len = strlen(context);
	if (!len || len > TASK_CONTEXT_MAX)
		return fail(
			err, ERR_INVALID, "'contextId' must have 1 to %d bytes", TASK_CONTEXT_MAX);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)context[i] < ' ' || context[i] == 127)
			return fail(err, ERR_INVALID, "'contextId' has a control character");
	return 0;
}

static int continue_task(const struct request *request, struct agents *agents, const char *agent,
	const struct task_send *send, struct agent_task **out, struct error *err)
{
	auto_buf struct buf json = buf_empty(BUF_MAX_DEFAULT);
	struct agent_task *task;
	if (task_find(request, agents, agent, send->task, VERB_TASK_SEND, &task, err))
		return -1;
	if (send->context && strcmp(send->context, task->model.context) != 0)
		return fail(err, ERR_INVALID, "task '%s' belongs to another context", send->task);
	if (task_state_is_final(task->model.state))
		return fail(err, ERR_CONFLICT, "task '%s' has ended: it is %s", send->task,
			task_state_names[task->model.state]);
	task_print_message(&json, &send->message, "ROLE_USER", task->model.id, task->model.context);
	if (!task_has_room(task, json.len))
		return fail(err, ERR_LIMIT, "the history of task '%s' is full", send->task);
	if (run_answer(request, task->run, &send->message, json.data, err))
		return -1;
	*out = task;
	return 0;
}

/* The workspace of a context that exists, for the check; NULL: there is none. */
static const char *workspace_of(
	struct agents *agents, const char *agent, const char *context, struct arena *arena)
{
	struct core_workspace *w;
	struct error ignored;
	if (!context || core_find(core_system(), agents->base.core,
				arena_printf(arena, "%s/%s", agent, context), &w, &ignored))
		return NULL;
	return arena_text(arena, core_model(w)->id);
}

static int check_room(
	struct agents *agents, const struct a2a_agent *agent, const char *caller, struct error *err)
{
	size_t running = 0;
	for (const struct task_run *run = agents->runs; run; run = run->next)
		running += !strcmp(run->task->model.agent, agent->name);
	if (running >= agent->max_tasks)
		return fail(err, ERR_LIMIT, "%zu tasks of agent '%s' run or wait for input already",
			running, agent->name);
	return shares_check(&agents->run_shares, caller, 1, err);
}

int task_send(const struct request *request, struct agents *agents, const char *name,
	const struct task_send *send, struct agent_task **out, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf json = buf_empty(BUF_MAX_DEFAULT);
	const struct a2a_agent *agent;
	char id[ID_LEN + 1], context[ID_LEN + 1], caller[PRINCIPAL_NAME_SIZE];
	if (send->context && check_context(send->context, err))
		return -1;
	if (send->task)
		return continue_task(request, agents, name, send, out, err);
	if (check(request, agents, name, VERB_TASK_SEND,
		    workspace_of(agents, name, send->context, &arena), &agent, err))
		return -1;
	if (core_is_stopping(agents->base.core))
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	if (check_room(agents, agent, access_caller(request, caller), err) ||
		(send->push && pushes_check(agent, send->push, NULL, err)) ||
		((send->context || agent->workspace_without_context) &&
			context_check(agents, agent, send->context, err)))
		return -1;
	id_make(id);
	id_make(context);
	task_print_message(
		&json, &send->message, "ROLE_USER", id, send->context ? send->context : context);
	if (json.len > TASK_BYTES_MAX / 2)
		return fail(err, ERR_INVALID, "the message has more than %zu bytes",
			TASK_BYTES_MAX / 2);
	struct agent_task *task = task_new(agents, id, name);
	task->model.agent = arena_text(&task->arena, name);
	task->model.context = arena_text(&task->arena, send->context ? send->context : context);
	task->model.requested_by = arena_text(&task->arena, access_caller(request, caller));
	buf_text(&task->artifacts, "[]");
	task_touch(task);
	task->model.created_ms = task->model.updated_ms;
	if (send->push)
		pushes_add(task, request, send->push);
	task_add_history(task, json.data);
	run_begin(task, as_caller(request, agent, SCOPE_READ | SCOPE_USE, &arena), send, json.data);
	*out = task;
	return 0;
}

int task_list(const struct request *request, struct agents *agents, const char *name,
	const struct task_filter *filter, void (*fn)(void *ctx, struct agent_task *task), void *ctx,
	char next[CORE_CURSOR_SIZE], size_t *total, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const struct a2a_agent *agent = agents_look(agents, str_from(name));
	uint64_t before = UINT64_MAX;
	size_t shown = 0;
	if (!agent)
		return agents_missing(name, err);
	const struct request *caller = as_caller(request, agent, SCOPE_READ, &arena);
	const char *only = access_only(caller);
	struct core_workspace *w = NULL;
	if (only && core_find(caller, agents->base.core, only, &w, err))
		return -1;
	if (core_check(caller, agents->base.core, VERB_TASK_LIST, w, err))
		return -1;
	if (filter->cursor && !str_to_u64(str_from(filter->cursor), &before))
		return fail(err, ERR_INVALID, "'pageToken' is not one of this agent");
	next[0] = 0;
	*total = 0;
	uint64_t last = 0;
	for (struct agent_task *task = agents->newest; task; task = task->older) {
		const struct task *model = &task->model;
		if (strcmp(model->agent, name) != 0 ||
			(filter->context && strcmp(model->context, filter->context) != 0) ||
			(filter->state >= 0 && (int)model->state != filter->state) ||
			model->updated_ms <= filter->after_ms ||
			(only && (!model->workspace || strcmp(model->workspace, only) != 0)))
			continue;
		++*total;
		if ((uint64_t)model->updated_ms >= before)
			continue;
		if (shown < filter->limit) {
			keep_seen(task);
			fn(ctx, task);
			last = (uint64_t)model->updated_ms;
		} else if (shown == filter->limit && last) {
			str_format(next, CORE_CURSOR_SIZE, "%" PRIu64, last);
		}
		shown++;
	}
	return 0;
}
