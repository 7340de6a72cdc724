/* task_push.c -- the configs of push notifications, their rows, and what waits to be posted. */
#include "base/clock.h"
#include "services/task_push.h"

/* ---- what waits ---- */

static void add_entry(struct push *push, const struct task_event *event)
{
	struct push_entry **at = &push->first, *made = xzalloc(sizeof *made);
	buf_init(&made->body, BUF_MAX_DEFAULT);
	if (event) {
		struct json j = json_to(&made->body, false);
		a2a_print_event(&j, NULL, task_model(push->task), event, false);
	}
	while (*at)
		at = &(*at)->next;
	*at = made;
	push->count++;
	push->agents->pushes.bytes += made->body.len;
}

static void drop_entry(struct push *push, struct push_entry **at)
{
	struct push_entry *entry = *at;
	*at = entry->next;
	push->count--;
	push->agents->pushes.bytes -= entry->body.len;
	buf_done(&entry->body);
	free(entry);
}

void push_drop_first(struct push *push)
{
	drop_entry(push, &push->first);
}

void push_keep_only(struct push *push, size_t count)
{
	struct push_entry **at = &push->first;
	for (size_t i = 0; i < count; i++)
		at = &(*at)->next;
	while (*at) {
		drop_entry(push, at);
		push->agents->pushes.merged++;
	}
}

void push_merge(struct push *push)
{
	push_keep_only(push, push->sent);
	add_entry(push, NULL);
	push->seen_ms = (uint64_t)push->task->model.updated_ms;
}

static void on_told(void *ctx, struct agent_task *task, const struct task_event *event)
{
	struct push *push = ctx;
	const struct push_entry *last = push->first;
	if (event->kind == TASK_EVENT_KEPT)
		return;
	if (event->kind == TASK_EVENT_STATUS)
		push->seen_ms = (uint64_t)task->model.updated_ms;
	while (last && last->next)
		last = last->next;
	if (push->count > push->sent && !last->body.len)
		push->agents->pushes.merged++; /* the task that waits will tell it */
	else if (push->model.is_old || push->is_failing ||
		 push->count - push->sent >= PUSH_ENTRIES_MAX ||
		 push->agents->pushes.bytes > PUSH_BYTES_MAX)
		push_merge(push);
	else
		add_entry(push, event);
	push_next(push);
}

void push_settle(struct push *push)
{
	const struct task *task = push->task ? &push->task->model : NULL;
	if (push->model.is_done || !task || push->task->is_ending ||
		!task_state_is_settled(task->state))
		return;
	if (!task_state_is_final(task->state) &&
		(push->seen_ms != (uint64_t)task->updated_ms || /* its row is being written */
			push->model.told_ms == push->seen_ms))
		return;
	push->model.is_done = task_state_is_final(task->state);
	push->model.told_ms = (uint64_t)task->updated_ms;
	core_put(push->agents->base.core, &store_push_configs, &push->model, NULL, NULL);
}

/* ---- the configs of a task ---- */

static struct push *push_new(
	struct agents *agents, struct agent_task *task, const struct push_config *given)
{
	struct push *push = xzalloc(sizeof *push), **at = &task->pushes;
	push->agents = agents;
	push->task = task;
	arena_init(&push->arena);
	buf_init(&push->orders, BUF_MAX_DEFAULT);
	push->model = *given;
	record_copy_texts(&push_config_record, &push->arena, &push->model);
	push->listener = (struct task_listener){ .told = on_told, .ctx = push };
	while (*at)
		at = &(*at)->next;
	*at = push;
	task_listen(task, &push->listener);
	return push;
}

void push_free(struct push *push)
{
	while (push->first)
		push_drop_first(push);
	buf_done(&push->orders);
	arena_done(&push->arena);
	free(push);
}

void push_forget(struct push *push)
{
	struct push **at = &push->task->pushes;
	while (*at != push)
		at = &(*at)->next;
	*at = push->next;
	task_unlisten(push->task, &push->listener);
	push->task = NULL;
	push_end(push);
}

void pushes_drop(struct agent_task *task)
{
	while (task->pushes)
		push_forget(task->pushes);
}

size_t pushes_bytes(const struct agent_task *task)
{
	size_t sum = 0;
	for (const struct push *push = task->pushes; push; push = push->next)
		sum += sizeof *push + strlen(push->model.url) +
		       (push->model.token ? strlen(push->model.token) : 0) +
		       (push->model.credentials ? strlen(push->model.credentials) : 0);
	return sum;
}

static struct push *find(struct agent_task *task, const char *owner, const char *id)
{
	for (struct push *push = task->pushes; push; push = push->next)
		if (!strcmp(push->model.owner, owner) && (!id || !strcmp(push->model.config, id)))
			return push;
	return NULL;
}

static int check_count(const struct agent_task *task, struct error *err)
{
	size_t sum = 0;
	for (const struct push *push = task->pushes; push; push = push->next)
		sum++;
	return sum < PUSH_CONFIGS_MAX
		       ? 0
		       : fail(err, ERR_LIMIT, "task '%s' has %d push notification configs already",
				 task->model.id, PUSH_CONFIGS_MAX);
}

/* The row as it will be. A config of the same id keeps its row. */
static struct push_config describe(struct agent_task *task, const struct push_config *given,
	const char *owner, const struct push *old)
{
	struct push_config row = *given;
	id_make(row.id);
	if (old)
		memcpy(row.id, old->model.id, sizeof row.id);
	memcpy(row.task, task->model.id, sizeof row.task);
	row.config = given->config ? given->config : task->model.id;
	row.owner = owner;
	row.created_ms = clock_now_ms();
	row.is_done = false;
	/* A new one is told what happens from now on. */
	row.told_ms = old ? old->model.told_ms : (uint64_t)task->model.updated_ms;
	return row;
}

int pushes_check(const struct a2a_agent *agent, const struct push_config *config,
	bool *is_port_named, struct error *err)
{
	bool ignored;
	if (!agent->has_push)
		return 0;
	return push_config_check(
		config, &agent->push, is_port_named ? is_port_named : &ignored, err);
}

void pushes_add(
	struct agent_task *task, const struct request *request, const struct push_config *given)
{
	char owner[PRINCIPAL_NAME_SIZE];
	struct push_config row = describe(task, given, access_caller(request, owner), NULL);
	push_new(task->agents, task, &row);
	core_put(task->agents->base.core, &store_push_configs, &row, NULL, NULL);
}

/* ---- verbs ---- */

/* What a verb asks for, when it has been checked; its fiber has a copy. */
struct push_change {
	struct agents *agents;
	struct push_config row;
	push_config_fn *done;
	void *ctx;
	bool is_needed;	      /* something is to be changed */
	struct error refused; /* code ERR_NONE: it may be done */
};

/* The task may have been forgotten meanwhile, or got other configs. */
static int replace(
	struct agents *agents, const struct push_config *row, struct push **set, struct error *err)
{
	struct agent_task *task = map_get(&agents->tasks, str_from(row->task));
	struct push *old = task ? find(task, row->owner, row->config) : NULL;
	if (!task || (!old && check_count(task, err))) {
		core_drop(agents->base.core, &store_push_configs, row->id, NULL, NULL);
		return task ? -1 : fail(err, ERR_NOT_FOUND, "there is no task '%s'", row->task);
	}
	bool is_due = old && old->count;
	if (old && strcmp(old->model.id, row->id) != 0) /* two were set at once */
		core_drop(agents->base.core, &store_push_configs, old->model.id, NULL, NULL);
	if (old)
		push_forget(old);
	*set = push_new(agents, task, row);
	if (is_due || (!task->is_ending && task_state_is_final(task->model.state)))
		push_merge(*set);
	return 0;
}

static void run_push_set(struct fiber *fiber, void *ctx)
{
	struct push_change change = *(const struct push_change *)ctx;
	struct core *core = change.agents->base.core;
	auto_arena struct arena arena = { 0 };
	struct error err = change.refused;
	struct push *push = NULL;
	record_copy_texts(&push_config_record, &arena, &change.row);
	int failed = err.code ? fail_later(fiber, core)
			      : wait_put(fiber, core, &store_push_configs, &change.row, &err);
	failed = failed || replace(change.agents, &change.row, &push, &err);
	change.done(change.ctx, failed ? NULL : &push->model, failed ? &err : NULL);
	if (!failed)
		push_next(push);
}

void push_config_set(const struct request *request, struct agents *agents, const char *agent,
	const char *id, const struct push_config *given, push_config_fn *done, void *ctx)
{
	struct push_change change = { .agents = agents, .done = done, .ctx = ctx };
	struct error *err = &change.refused;
	struct agent_task *task;
	char owner[PRINCIPAL_NAME_SIZE];
	struct push *old = NULL;
	access_caller(request, owner);
	bool failed = task_find(request, agents, agent, id, VERB_TASK_PUSH, &task, err) < 0;
	if (!failed)
		old = find(task, owner, given->config ? given->config : task->model.id);
	if (!failed)
		failed = pushes_check(agents_look(agents, str_from(agent)), given, NULL, err) < 0;
	if (!failed && !old)
		failed = check_count(task, err) < 0;
	if (!failed && !task->is_kept) /* it must be found by the receiver, too */
		task_save(task);
	if (!failed)
		change.row = describe(task, given, owner, old);
	fiber_start(run_push_set, &change);
}

int push_config_get(const struct request *request, struct agents *agents, const char *agent,
	const char *id, const char *config, const struct push_config **out, struct error *err)
{
	struct agent_task *task;
	char owner[PRINCIPAL_NAME_SIZE], shown[64];
	if (task_find(request, agents, agent, id, VERB_TASK_GET, &task, err))
		return -1;
	const struct push *push = find(task, access_caller(request, owner), config);
	str_printable(shown, sizeof shown, str_from(config ? config : ""));
	if (!push)
		return fail(err, ERR_NOT_FOUND,
			"task '%s' has no push notification config '%s' of yours", id, shown);
	*out = &push->model;
	return 0;
}

int push_config_list(const struct request *request, struct agents *agents, const char *agent,
	const char *id, void (*fn)(void *ctx, const struct push_config *config), void *ctx,
	struct error *err)
{
	struct agent_task *task;
	char owner[PRINCIPAL_NAME_SIZE];
	if (task_find(request, agents, agent, id, VERB_TASK_GET, &task, err))
		return -1;
	access_caller(request, owner);
	for (const struct push *push = task->pushes; push; push = push->next)
		if (!strcmp(push->model.owner, owner))
			fn(ctx, &push->model);
	return 0;
}

static void run_push_deletion(struct fiber *fiber, void *ctx)
{
	const struct push_change change = *(const struct push_change *)ctx;
	struct core *core = change.agents->base.core;
	struct error err = change.refused;
	if (change.is_needed)
		wait_remove(fiber, core, &store_push_configs, change.row.id, &err);
	else
		fail_later(fiber, core);
	change.done(change.ctx, NULL, err.code ? &err : NULL);
}

void push_config_delete(const struct request *request, struct agents *agents, const char *agent,
	const char *id, const char *config, push_config_fn *done, void *ctx)
{
	struct push_change change = { .agents = agents, .done = done, .ctx = ctx };
	struct agent_task *task;
	char owner[PRINCIPAL_NAME_SIZE];
	struct push *push = NULL;
	if (!task_find(request, agents, agent, id, VERB_TASK_PUSH, &task, &change.refused))
		push = find(task, access_caller(request, owner), config);
	change.is_needed = push;
	if (push) {
		memcpy(change.row.id, push->model.id, sizeof change.row.id);
		push_forget(push); /* from now on, also when its row can't be deleted */
	}
	fiber_start(run_push_deletion, &change);
}

/* ---- after a start ---- */

void pushes_restore(struct agents *agents, const struct push_config *row)
{
	struct agent_task *task = map_get(&agents->tasks, str_from(row->task));
	if (task) {
		push_new(agents, task, row);
		return;
	}
	/* Its task was never stored: nobody was told that the config was. */
	vec_push(&agents->pushes.arena, &agents->pushes.stale,
		arena_text(&agents->pushes.arena, row->id));
}

void pushes_begin(struct agents *agents)
{
	struct pushes *pushes = &agents->pushes;
	for (size_t i = 0; i < pushes->stale.count; i++)
		core_drop(
			agents->base.core, &store_push_configs, pushes->stale.items[i], NULL, NULL);
	arena_done(&pushes->arena);
	pushes->stale = (text_list){ 0 };
	desk_sweep(agents->base.core, PUSH_SERVICE, "left behind", NULL, NULL);
}

static bool is_owed(const struct push *push)
{
	const struct task *task = &push->task->model;
	return task_state_is_final(task->state) ? !push->model.is_done
						: push->model.told_ms < (uint64_t)task->updated_ms;
}

void pushes_resume(struct agents *agents)
{
	for (struct agent_task *task = agents->newest; task; task = task->older)
		for (struct push *push = task->pushes; push; push = push->next)
			if (!task->is_ending && is_owed(push)) {
				push_merge(push);
				push_next(push);
			}
}

void pushes_print_metrics(const struct agents *agents, struct buf *out)
{
	const struct pushes *pushes = &agents->pushes;
	buf_printf(out,
		"# HELP carrel_task_pushes_total Push notifications of A2A tasks, by what became "
		"of them.\n"
		"# TYPE carrel_task_pushes_total counter\n"
		"carrel_task_pushes_total{result=\"delivered\"} %" PRIu64 "\n"
		"carrel_task_pushes_total{result=\"failed\"} %" PRIu64 "\n"
		"carrel_task_pushes_total{result=\"merged\"} %" PRIu64 "\n"
		"# HELP carrel_task_push_workspaces Workspaces from which notifications are "
		"posted.\n"
		"# TYPE carrel_task_push_workspaces gauge\n"
		"carrel_task_push_workspaces %zu\n",
		pushes->delivered, pushes->failed, pushes->merged, pushes->active_count);
}
