#include "services/agents_internal.h"

#include "base/clock.h"
#include "core/state/templates.h"
#include "format/text/yaml_json.h"
#include "services/waits.h"

#define SWEEP_MS 3600000

struct agents *agents_of(struct services *services)
{
	return services_state(services, &agents_service);
}

/* ---- those that are known ---- */

static struct agent_entry *find(const struct agents *agents, struct str name)
{
	return map_get(&agents->entries, name);
}

void entry_release(struct agent_entry *entry)
{
	if (!entry || --entry->users)
		return;
	arena_done(&entry->arena);
	free(entry);
}

struct agent_entry *entry_hold(struct agents *agents, const char *name)
{
	struct agent_entry *entry = find(agents, str_from(name));
	entry->users++;
	return entry;
}

static struct agent_entry *entry_new(void)
{
	struct agent_entry *entry = xzalloc(sizeof *entry);
	arena_init(&entry->arena);
	entry->users = 1;
	return entry;
}

const struct a2a_agent *agents_look(const struct agents *agents, struct str name)
{
	const struct agent_entry *entry = find(agents, name);
	return entry && entry->is_written ? &entry->model : NULL;
}

const struct a2a_agent *agents_default(const struct agents *agents)
{
	const struct agent_entry *entry, *only = NULL;
	size_t at = 0, count = 0;
	while ((entry = map_next(&agents->entries, &at))) {
		if (!entry->is_written)
			continue;
		if (entry->model.is_default)
			return &entry->model;
		only = entry;
		count++;
	}
	return count == 1 ? &only->model : NULL;
}

static int parse(struct str yaml, struct agent_entry *entry, struct error *err)
{
	struct json_value *value;
	char *text = arena_bytes(&entry->arena, yaml.data, yaml.len);
	if (yaml.len > AGENT_YAML_MAX)
		return fail(err, ERR_LIMIT, "the agent has more than %d bytes", AGENT_YAML_MAX);
	if (yaml_json_read((struct str){ text, yaml.len }, &entry->arena, &value, err) ||
		agent_read(value, &entry->arena, &entry->model, err))
		return -1;
	entry->model.yaml = text;
	return 0;
}

static void insert(struct agents *agents, struct agent_entry *entry)
{
	struct str name = str_from(entry->model.name);
	struct agent_entry *old = map_remove(&agents->entries, name);
	entry->model.changed_ms = clock_now_ms();
	map_add(&agents->entries, name, entry);
	entry_release(old);
}

static void take(void *state, const struct store_table *table, const void *row)
{
	struct agents *agents = state;
	struct error err;
	if (!agents->entries.slots) {
		map_init(&agents->entries, NULL);
		map_init(&agents->tasks, NULL);
	}
	if (table == &store_tasks) {
		task_restore(agents, row);
		return;
	}
	if (table == &store_push_configs) {
		pushes_restore(agents, row);
		return;
	}
	const struct a2a_agent *kept = row;
	struct agent_entry *entry = entry_new();
	memcpy(entry->model.id, kept->id, sizeof kept->id);
	entry->model.created_ms = kept->created_ms;
	entry->is_written = true;
	/* What an earlier version has checked is an error only if this version is stricter: then
	 * the agent isn't served, and its row stays. */
	if (parse(str_from(kept->yaml), entry, &err))
		entry_release(entry);
	else
		insert(agents, entry);
}

/* ---- verbs ---- */

/* What a verb asks for, when it has been checked; its fiber has a copy. */
struct change {
	struct agents *agents;
	struct agent_entry *entry; /* that is added */
	bool is_check;		   /* nothing is added */
	bool was_there;
	char name[AGENT_NAME_MAX + 1]; /* of the agent that is removed */
	agents_fn *done;
	void *ctx;
	struct error refused; /* code ERR_NONE: it may be done */
};

static void tell(struct agents *agents, const char *type, const char *name)
{
	journal_emit(core_journal(agents->base.core), type, "", name, NULL);
}

static int check_others(struct agents *agents, const struct a2a_agent *agent, struct error *err)
{
	const struct agent_entry *entry;
	size_t at = 0;
	if (agents->entries.live >= AGENTS_MAX)
		return fail_hint(err, ERR_LIMIT, "carrel agent rm removes one",
			"there are %d agents already", AGENTS_MAX);
	while (agent->is_default && (entry = map_next(&agents->entries, &at)))
		if (entry->model.is_default && strcmp(entry->model.name, agent->name) != 0)
			return fail_hint(err, ERR_CONFLICT, "leave `default` out",
				"agent '%s' is the default already", entry->model.name);
	return 0;
}

static int check_template(const struct request *request, struct core *core,
	const struct a2a_agent *agent, struct str yaml, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct template_shown shown;
	struct json_value *value;
	struct error ignored;
	if (!agent->template ||
		!core_template_get(request, core, agent->template, &arena, &shown, err))
		return 0;
	const struct json_value *named = yaml_json_read(yaml, &arena, &value, &ignored)
						 ? NULL
						 : json_member(value, "template");
	return named ? error_context(err, "line %d: template", named->line)
		     : error_context(err, "template");
}

static void run_agent_add(struct fiber *fiber, void *ctx)
{
	const struct change change = *(const struct change *)ctx;
	struct core *core = change.agents->base.core;
	struct agent_entry *entry = change.entry;
	struct error err = change.refused;
	int failed = err.code != ERR_NONE;
	if (failed || change.is_check)
		fail_later(fiber, core);
	else
		failed = wait_put(fiber, core, &store_agents, &entry->model, &err);
	if (!failed && !change.is_check) {
		entry->users++;
		entry->is_written = true;
		insert(change.agents, entry);
		tell(change.agents, "agent.added", entry->model.name);
	}
	change.done(
		change.ctx, failed ? NULL : &entry->model, change.was_there, failed ? &err : NULL);
	entry_release(entry);
}

void agents_add(const struct request *request, struct agents *agents, struct str yaml,
	bool is_check, agents_fn *done, void *ctx)
{
	struct agent_entry *entry = entry_new();
	struct change change = {
		.agents = agents, .entry = entry, .is_check = is_check, .done = done, .ctx = ctx
	};
	struct core *core = agents->base.core;
	struct error *err = &change.refused;
	id_make(entry->model.id);
	entry->model.created_ms = clock_now_ms();
	bool failed =
		core_check(request, core, is_check ? VERB_AGENT_GET : VERB_AGENT_ADD, NULL, err) ||
		parse(yaml, entry, err) || check_template(request, core, &entry->model, yaml, err);
	const struct agent_entry *old = failed ? NULL : find(agents, str_from(entry->model.name));
	change.was_there = old;
	if (old) {
		memcpy(entry->model.id, old->model.id, sizeof old->model.id);
		entry->model.created_ms = old->model.created_ms;
	} else if (!failed) {
		check_others(agents, &entry->model, err);
	}
	fiber_start(run_agent_add, &change);
}

static void forget_agent(struct agents *agents, const char *name)
{
	struct agent_entry *entry = map_remove(&agents->entries, str_from(name));
	size_t at = 0;
	struct agent_task *task;
	while ((task = map_next(&agents->tasks, &at)))
		if (!strcmp(task->model.agent, name)) {
			if (task->run && !task->is_ending)
				task_set_text(task, TASK_CANCELED, "the agent was removed");
			if (!task->is_ending)
				task_forget(task);
		}
	entry_release(entry);
	tell(agents, "agent.removed", name);
}

int agents_missing(const char *name, struct error *err)
{
	char shown[80];
	str_printable(shown, sizeof shown, str_from(name));
	return fail_hint(
		err, ERR_NOT_FOUND, "carrel agent ls lists them", "there is no agent '%s'", shown);
}

static int find_or_fail(const struct agents *agents, const char *name,
	const struct agent_entry **entry, struct error *err)
{
	*entry = find(agents, str_from(name));
	return *entry && (*entry)->is_written ? 0 : agents_missing(name, err);
}

static void run_agent_removal(struct fiber *fiber, void *ctx)
{
	const struct change change = *(const struct change *)ctx;
	struct agents *agents = change.agents;
	const struct agent_entry *entry = find(agents, str_from(change.name));
	struct error err = change.refused;
	int failed = err.code ? fail_later(fiber, agents->base.core)
			      : wait_remove(fiber, agents->base.core, &store_agents,
					entry->model.id, &err);
	if (!failed)
		forget_agent(agents, change.name);
	change.done(change.ctx, NULL, false, failed ? &err : NULL);
}

void agents_remove(const struct request *request, struct agents *agents, const char *name,
	agents_fn *done, void *ctx)
{
	struct change change = { .agents = agents, .done = done, .ctx = ctx };
	const struct agent_entry *entry;
	str_copy(change.name, sizeof change.name, name);
	if (!core_check(request, agents->base.core, VERB_AGENT_REMOVE, NULL, &change.refused))
		find_or_fail(agents, name, &entry, &change.refused);
	fiber_start(run_agent_removal, &change);
}

int agents_get(const struct request *request, struct agents *agents, const char *name,
	const struct a2a_agent **agent, struct error *err)
{
	const struct agent_entry *entry;
	if (core_check(request, agents->base.core, VERB_AGENT_GET, NULL, err) ||
		find_or_fail(agents, name, &entry, err))
		return -1;
	*agent = &entry->model;
	return 0;
}

int agents_list(const struct request *request, struct agents *agents, const char *cursor,
	size_t limit, void (*fn)(void *ctx, const struct a2a_agent *agent), void *ctx,
	const char **next, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const struct agent_entry *entry;
	text_list names = { 0 };
	size_t at = 0, count = 0;
	if (core_check(request, agents->base.core, VERB_AGENT_LIST, NULL, err))
		return -1;
	while ((entry = map_next(&agents->entries, &at)))
		if (entry->is_written && (!cursor || strcmp(entry->model.name, cursor) > 0))
			vec_push(&arena, &names, entry->model.name);
	text_list_sort(&names);
	*next = NULL;
	for (size_t i = 0; i < names.count && count < limit; i++, count++) {
		fn(ctx, &find(agents, str_from(names.items[i]))->model);
		*next = i + 1 < names.count ? names.items[i] : NULL;
	}
	return 0;
}

/* ---- the service ---- */

static void on_sweep(struct loop *loop, void *ctx)
{
	struct agents *agents = ctx;
	agents->sweep = loop_after(loop, SWEEP_MS, on_sweep, agents);
	tasks_sweep(agents);
}

static void start(void *state)
{
	struct agents *agents = state;
	if (!agents->entries.slots) {
		map_init(&agents->entries, NULL);
		map_init(&agents->tasks, NULL);
	}
	shares_init(&agents->run_shares, "tasks that run or wait for input",
		"wait until some of them have ended", TASKS_RUNNING_MAX, TASKS_RUNNING_MAX / 4);
	agents->is_started = true;
	pushes_begin(agents);
	tasks_begin(agents);
	pushes_resume(agents);
	contexts_begin(agents);
	agents->sweep = loop_after(agents->base.loop, SWEEP_MS, on_sweep, agents);
}

static void stop(void *state)
{
	struct agents *agents = state;
	loop_cancel(agents->base.loop, agents->sweep);
	agents->sweep = NULL;
}

static void free_all(void *state)
{
	struct agents *agents = state;
	struct agent_entry *entry;
	size_t at = 0;
	stop(state);
	while (agents->newest)
		task_free(agents->newest);
	while ((entry = map_next(&agents->entries, &at)))
		entry_release(entry);
	map_done(&agents->entries);
	map_done(&agents->tasks);
	shares_done(&agents->run_shares);
}

struct usage {
	const char *agent;
	uint64_t used, capacity;
};

static void add_usage(void *ctx, struct core_workspace *w)
{
	struct usage *usage = ctx;
	if (strcmp(core_model(w)->owner.agent, usage->agent) != 0)
		return;
	usage->used += core_model(w)->disk_usage_bytes;
	usage->capacity += core_model(w)->limits.disk_bytes;
}

/* Under the names that kagenti uses. */
static void print_usage(struct agents *agents, struct buf *out, const char *name, bool is_capacity)
{
	const struct agent_entry *entry;
	size_t at = 0;
	while ((entry = map_next(&agents->entries, &at))) {
		struct usage usage = { .agent = entry->model.name };
		struct core_filter filter = {
			.service = WORKSPACE_AGENTS, .state = -1, .limit = SIZE_MAX
		};
		char next[CORE_CURSOR_SIZE];
		struct error err;
		if (core_list(core_system(), agents->base.core, &filter, add_usage, &usage, next,
			    &err))
			continue;
		buf_printf(out, "%s{agent=\"%s\",namespace=", name, entry->model.name);
		buf_quoted(out, str_from(entry->model.namespace ? entry->model.namespace : ""));
		buf_printf(out, "} %" PRIu64 "\n", is_capacity ? usage.capacity : usage.used);
	}
}

static void print_metrics(void *state, struct buf *out)
{
	struct agents *agents = state;
	static const char used[] = "kagenti_workspace_pvc_usage_bytes",
			  capacity[] = "kagenti_workspace_pvc_capacity_bytes";
	buf_printf(out, "# HELP %s Disk usage of the contexts of an agent.\n# TYPE %s gauge\n",
		used, used);
	print_usage(agents, out, used, false);
	buf_printf(out, "# HELP %s Disk limits of the contexts of an agent.\n# TYPE %s gauge\n",
		capacity, capacity);
	print_usage(agents, out, capacity, true);
	buf_text(out, "# HELP carrel_tasks_running A2A tasks that run or wait for input.\n"
		      "# TYPE carrel_tasks_running gauge\n");
	buf_printf(out, "carrel_tasks_running %zu\n", agents->running);
	buf_text(out, "# HELP carrel_tasks_total A2A tasks that have ended, by state.\n"
		      "# TYPE carrel_tasks_total counter\n");
	for (int i = TASK_COMPLETED; i < TASK_STATE_COUNT; i++)
		buf_printf(out, "carrel_tasks_total{state=\"%s\"} %" PRIu64 "\n",
			task_state_names[i], agents->ended[i]);
	pushes_print_metrics(agents, out);
}

static const struct store_table *const tables[] = { &store_agents, &store_tasks,
	&store_push_configs, NULL };
const struct service agents_service = { .name = "agents",
	.tables = tables,
	.size = sizeof(struct agents),
	.take = take,
	.start = start,
	.stop = stop,
	.free = free_all,
	.print_metrics = print_metrics };
