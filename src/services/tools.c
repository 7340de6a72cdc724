#include "services/tools_internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "services/scripts.h"

#define SWEEP_MS 3600000
#define LAST_USERS_MS 5 /* between two looks whether calls of a removed version have ended */

/* ---- those that are known ---- */

struct tool_entry *tools_add(struct tools *tools, const struct tool *model)
{
	struct tool_entry *entry = xzalloc(sizeof *entry);
	entry->tools = tools;
	arena_init(&entry->arena);
	entry->model = *model;
	record_copy_texts(&tool_record, &entry->arena, &entry->model);
	/* Times of creation are unique: they serve as cursors. */
	if (tools->newest && entry->model.created_ms <= tools->newest->model.created_ms)
		entry->model.created_ms = tools->newest->model.created_ms + 1;
	entry->older = tools->newest;
	if (entry->older)
		entry->older->newer = entry;
	tools->newest = entry;
	return entry;
}

void tools_drop(struct tool_entry *entry)
{
	*(entry->newer ? &entry->newer->older : &entry->tools->newest) = entry->older;
	if (entry->older)
		entry->older->newer = entry->newer;
	arena_done(&entry->arena);
	free(entry);
}

struct tool_entry *tools_find(struct tools *tools, const char *name, uint64_t version)
{
	for (struct tool_entry *e = tools->newest; e; e = e->older)
		if (!strcmp(e->model.name, name) && (!version || e->model.version == version))
			return e;
	return NULL;
}

struct tool_entry *tools_find_active(struct tools *tools, const char *name)
{
	for (struct tool_entry *e = tools->newest; e; e = e->older)
		if (!strcmp(e->model.name, name) && e->model.state == TOOL_ACTIVE)
			return e;
	return NULL;
}

struct tool_entry *tools_find_shown(struct tools *tools, const char *name)
{
	struct tool_entry *active = tools_find_active(tools, name);
	return active ? active : tools_find(tools, name, 0);
}

int tools_fail_unknown(struct tools *tools, const char *name, uint64_t version, struct error *err)
{
	uint64_t newest = 0;
	for (const struct tool_entry *e = tools->newest; e; e = e->older)
		if (!strcmp(e->model.name, name) && e->model.version > newest)
			newest = e->model.version;
	if (!newest)
		return fail_hint(err, ERR_NOT_FOUND, "carrel tool ls lists tools",
			"there is no tool '%s'", name);
	/* Versions count up: it was there. */
	if (version < newest)
		return fail_hint(err, ERR_NOT_FOUND,
			"forge its code again; --ttl keeps a version longer",
			"version %llu of tool '%s' has expired: versions that aren't active are "
			"removed after their time",
			(unsigned long long)version, name);
	fail(err, ERR_NOT_FOUND, "tool '%s' has no version %llu", name,
		(unsigned long long)version);
	return error_hint(err, "carrel tool show %s lists its versions", name);
}

/* ---- transitions ---- */

static void tell(const struct tool_entry *entry)
{
	const struct tool *tool = &entry->model;
	char version[24];
	str_format(version, sizeof version, "%llu", (unsigned long long)tool->version);
	journal_emit(core_journal(entry->tools->base.core), "tool.state",
		tool->workspace ? tool->workspace : "", tool->name, "tool", tool->id, "#version",
		version, "state", tool_state_names[tool->state], "error",
		tool->error ? tool->error : "", NULL);
}

static void set_state(struct tool *tool, enum tool_state state)
{
	tool->state = state;
	tool->changed_ms = clock_now_ms();
	tool->expires_ms = state == TOOL_DORMANT ? tool->changed_ms + (int64_t)tool->ttl_ms : 0;
}

void tool_become(struct tool_entry *entry, enum tool_state state, store_done_fn *done, void *ctx)
{
	static const char *const points[TOOL_STATE_COUNT] = { "tool_dormant", "tool_creating",
		"tool_installing", "tool_testing", "tool_active", "tool_cleanup" };
	set_state(&entry->model, state);
	tell(entry);
	core_put(entry->tools->base.core, &store_tools, &entry->model, done, ctx);
	fault_point(points[state]);
	if (state == TOOL_DORMANT)
		tools_arm_sweep(entry->tools);
}

int tools_activate(
	struct fiber *fiber, struct tool_entry *from, struct tool_entry *to, struct error *err)
{
	struct core *core = to->tools->base.core;
	struct tool after = to->model;
	to->users++;
	if (from && from->is_removed) /* its row may be gone, and stays so */
		from = NULL;
	if (from) {
		struct tool before = from->model;
		from->users++;
		set_state(&before, TOOL_DORMANT);
		core_put(core, &store_tools, &before, NULL, NULL);
	}
	set_state(&after, TOOL_ACTIVE);
	core_put(core, &store_tools, &after, fiber_continue, fiber);
	fault_point("tool_activate");
	int failed = fiber_wait(fiber, err);
	if (!failed) {
		/* More than one, when a rollback and a forging have ended at the same time. */
		for (struct tool_entry *e = to->tools->newest; e; e = e->older)
			if (e != to && !e->is_removed && e->model.state == TOOL_ACTIVE &&
				!strcmp(e->model.name, to->model.name))
				tool_become(e, TOOL_DORMANT, NULL, NULL);
		set_state(&to->model, TOOL_ACTIVE);
		tell(to);
		fault_point("tool_active");
	}
	if (from)
		from->users--;
	to->users--;
	return failed;
}

/* ---- verbs ---- */

/* What a verb asks for, when it has been checked; its fiber has a copy. */
struct tool_change {
	struct tools *tools;
	tool_fn *done;
	void *ctx;
	struct error refused;	      /* code ERR_NONE: it may be done */
	char name[TOOL_NAME_MAX + 1]; /* of the tool that is removed */
	struct tool_entry *entry;
};

static void refuse_tool(struct fiber *fiber, void *ctx)
{
	const struct tool_change change = *(const struct tool_change *)ctx;
	fail_later(fiber, change.tools->base.core);
	change.done(change.ctx, NULL, &change.refused);
}

static void fill(struct tool *tool, const struct tool_wanted *wanted, struct arena *arena)
{
	char hash[2 * SHA256_LEN + 1];
	*tool = (struct tool){ .state = TOOL_CREATING,
		.name = wanted->name,
		.package = wanted->package,
		.description = wanted->description,
		.code = wanted->code,
		.tests = wanted->tests,
		.requires = wanted->requires,
		.python = wanted->python,
		.network = wanted->network,
		.limits = wanted->limits,
		.timeout_ms = wanted->timeout_ms,
		.ttl_ms = wanted->ttl_ms ? wanted->ttl_ms : TOOL_TTL_DEFAULT_MS,
		.created_ms = clock_now_ms() };
	id_make(tool->id);
	if (wanted->package) {
		char name[TOOL_NAME_MAX + 1];
		struct str tests = script_package_tests;
		tool_package_name(wanted->package, name);
		tool->name = arena_text(arena, name);
		tool->code = script_package(arena, name + strlen(TOOL_PACKAGE_PREFIX));
		tool->tests = arena_bytes(arena, tests.data, tests.len);
		tool->requires = text_list_copy(arena, &wanted->requires);
		vec_push(arena, &tool->requires, wanted->package);
	}
	sha256_of(tool->code, strlen(tool->code), hash);
	tool->sha256 = arena_text(arena, hash);
}

/* ERR_CONFLICT, ERR_LIMIT; else the number of the new version. */
static int number(struct tools *tools, struct tool *tool, struct error *err)
{
	size_t count = 0;
	tool->version = 1;
	for (const struct tool_entry *e = tools->newest; e; e = e->older) {
		count++;
		if (strcmp(e->model.name, tool->name) != 0)
			continue;
		if (tool_is_forging(&e->model)) {
			fail(err, ERR_CONFLICT, "tool '%s' is being forged", tool->name);
			return error_hint(err, "carrel tool show %s shows its state", tool->name);
		}
		if (e->model.version >= tool->version)
			tool->version = e->model.version + 1;
	}
	return count >= TOOLS_MAX ? fail_hint(err, ERR_LIMIT, "carrel tool rm removes one",
					    "there are %zu versions of tools already", count)
				  : 0;
}

struct cancelable *tools_forge(const struct request *request, struct tools *tools,
	const struct tool_wanted *wanted, tool_fn *done, void *ctx)
{
	auto_arena struct arena arena = { 0 };
	struct tool_change change = { .tools = tools, .done = done, .ctx = ctx };
	struct error *err = &change.refused;
	struct tool_wanted settled = *wanted;
	struct tool tool;
	bool failed = core_check(request, tools->base.core, VERB_TOOL_FORGE, NULL, err) ||
		      workspace_network_settle(&settled.network, err) ||
		      limits_check(&settled.limits, err);
	if (!failed)
		fill(&tool, &settled, &arena);
	if (failed || number(tools, &tool, err)) {
		fiber_start(refuse_tool, &change);
		return NULL;
	}
	return tool_forge_start(tools_add(tools, &tool), request, done, ctx);
}

int tools_get(const struct request *request, struct tools *tools, const char *name,
	uint64_t version, const struct tool **tool, struct error *err)
{
	if (core_check(request, tools->base.core, VERB_TOOL_GET, NULL, err))
		return -1;
	struct tool_entry *found =
		version ? tools_find(tools, name, version) : tools_find_shown(tools, name);
	if (!found)
		return tools_fail_unknown(tools, name, version, err);
	*tool = &found->model;
	return 0;
}

int tools_list(const struct request *request, struct tools *tools, const char *name,
	const char *cursor, size_t limit, void (*fn)(void *ctx, const struct tool *tool), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err)
{
	struct core_page page;
	if (core_check(request, tools->base.core, VERB_TOOL_LIST, NULL, err) ||
		core_page_begin(&page, cursor, limit, next, err))
		return -1;
	if (name && !tools_find(tools, name, 0))
		return tools_fail_unknown(tools, name, 0, err);
	for (struct tool_entry *e = tools->newest; e && !core_page_is_full(&page); e = e->older)
		if ((name ? !strcmp(e->model.name, name)
			  : e == tools_find_shown(tools, e->model.name)) &&
			core_page_takes(&page, e->model.created_ms)) {
			struct tool brief = tool_brief(&e->model);
			fn(ctx, &brief);
		}
	return 0;
}

/* ---- rollback ---- */

static int find_target(struct tools *tools, const char *name, uint64_t version,
	struct tool_entry **to, struct error *err)
{
	struct tool_entry *active = tools_find_active(tools, name);
	struct core_workspace *w;
	*to = NULL;
	if (!tools_find(tools, name, 0) || (version && !tools_find(tools, name, version)))
		return tools_fail_unknown(tools, name, version, err);
	for (struct tool_entry *e = tools->newest; e && !*to; e = e->older)
		if (!strcmp(e->model.name, name) &&
			(version ? e->model.version == version
				 : e->model.has_passed && e->model.workspace &&
						(!active ||
							e->model.version < active->model.version)))
			*to = e;
	if (!*to) {
		fail(err, ERR_CONFLICT,
			"tool '%s' has no version to go back to: none that has passed its tests is "
			"left, versions that aren't active are removed after their time",
			name);
		return error_hint(err, "carrel tool show %s lists its versions", name);
	}
	if ((*to)->is_removed)
		return fail(err, ERR_NOT_FOUND, "version %llu of tool '%s' is being removed",
			(unsigned long long)(*to)->model.version, name);
	if (!(*to)->model.has_passed || !(*to)->model.workspace)
		return fail(err, ERR_CONFLICT, "version %llu of tool '%s' hasn't passed its tests",
			(unsigned long long)(*to)->model.version, name);
	if (core_find(core_system(), tools->base.core, (*to)->model.workspace, &w, err))
		return error_context(err, "version %llu of tool '%s' can't be loaded",
			(unsigned long long)(*to)->model.version, name);
	return 0;
}

static void run_tool_rollback(struct fiber *fiber, void *ctx)
{
	const struct tool_change change = *(const struct tool_change *)ctx;
	struct tool_entry *active = tools_find_active(change.tools, change.entry->model.name);
	struct error err;
	/* Of the version that is active already nothing but its row is written. */
	int failed =
		tools_activate(fiber, active == change.entry ? NULL : active, change.entry, &err);
	change.done(change.ctx, failed ? NULL : &change.entry->model, failed ? &err : NULL);
}

void tools_rollback(const struct request *request, struct tools *tools, const char *name,
	uint64_t version, tool_fn *done, void *ctx)
{
	struct tool_change change = { .tools = tools, .done = done, .ctx = ctx };
	struct error *err = &change.refused;
	bool failed = core_check(request, tools->base.core, VERB_TOOL_ROLLBACK, NULL, err) ||
		      find_target(tools, name, version, &change.entry, err);
	fiber_start(failed ? refuse_tool : run_tool_rollback, &change);
}

/* ---- removal ---- */

/* The end of a call, or of a rollback, comes in a later turn than that of its workspace. */
void tool_await_users(struct fiber *fiber, const struct tool_entry *entry)
{
	struct error ignored;
	while (entry->users > 1)
		pause_wait(fiber, entry->tools->base.loop, LAST_USERS_MS, &ignored);
}

/* A call that runs keeps its version until its workspace, and so the call, is ended. */
static int remove_version(struct fiber *fiber, struct tool_entry *entry, struct error *err)
{
	struct core *core = entry->tools->base.core;
	struct desk desk;
	entry->users++;
	entry->is_removed = true;
	desk_init(&desk, core, core_system());
	str_copy(desk.id, sizeof desk.id, entry->model.workspace ? entry->model.workspace : "");
	int failed = desk_remove(fiber, &desk, err);
	if (!failed) {
		fault_point("tool_remove");
		failed = wait_remove(fiber, core, &store_tools, entry->model.id, err);
	}
	if (!failed) {
		tool_await_users(fiber, entry);
		tools_drop(entry);
		return 0;
	}
	entry->users--;
	entry->is_removed = false;
	return -1;
}

/* Not one that is being forged: that began after the removal, and is its forging's to end. */
static struct tool_entry *find_removable(struct tools *tools, const char *name)
{
	for (struct tool_entry *e = tools->newest; e; e = e->older)
		if (!strcmp(e->model.name, name) && !tool_is_forging(&e->model) && !e->is_removed)
			return e;
	return NULL;
}

static void remove_all(struct fiber *fiber, void *ctx)
{
	const struct tool_change change = *(const struct tool_change *)ctx;
	struct tool_entry *entry = change.entry; /* only that one; or NULL */
	struct error err;
	int failed = 0;
	if (entry)
		failed = remove_version(fiber, entry, &err);
	while (!change.entry && !failed && (entry = find_removable(change.tools, change.name)))
		failed = remove_version(fiber, entry, &err);
	change.done(change.ctx, NULL, failed ? &err : NULL);
}

static int fail_in_use(const struct tool_entry *entry, struct error *err)
{
	const struct tool *tool = &entry->model;
	const char *name = tool->name;
	if (entry->calls)
		return fail_hint(err, ERR_CONFLICT, "try again when they have ended",
			"tool '%s' is in use: %u calls of version %llu run", name, entry->calls,
			(unsigned long long)tool->version);
	fail(err, ERR_CONFLICT, "tool '%s' is in use: it is being %s", name,
		entry->is_removed	? "removed already"
		: tool_is_forging(tool) ? "forged"
					: "activated or rolled back");
	return error_hint(err, "carrel tool show %s shows its state", name);
}

void tools_remove(const struct request *request, struct tools *tools, const char *name,
	tool_fn *done, void *ctx)
{
	struct tool_change change = { .tools = tools, .done = done, .ctx = ctx };
	struct error *err = &change.refused;
	int failed = core_check(request, tools->base.core, VERB_TOOL_REMOVE, NULL, err);
	if (!failed && !tools_find(tools, name, 0))
		failed = tools_fail_unknown(tools, name, 0, err);
	for (struct tool_entry *e = tools->newest; e && !failed; e = e->older)
		if (!strcmp(e->model.name, name) && e->users)
			failed = fail_in_use(e, err);
	str_copy(change.name, sizeof change.name, name);
	fiber_start(failed ? refuse_tool : remove_all, &change);
}

/* ---- expiry of versions that aren't active ---- */

static void on_expired(void *ctx, const struct tool *tool, const struct error *err)
{
	struct tools *tools = ctx;
	if (err)
		log_record(core_log(tools->base.core), LOG_LEVEL_WARN,
			"a tool that has expired can't be removed", "error", err->text, NULL);
}

static void on_sweep(struct loop *loop, void *ctx)
{
	struct tools *tools = ctx;
	int64_t now_ms = clock_now_ms();
	tools->sweep = NULL;
	for (struct tool_entry *e = tools->newest; e; e = e->older)
		if (e->model.state == TOOL_DORMANT && !e->users && e->model.expires_ms <= now_ms &&
			!core_is_stopping(tools->base.core)) {
			struct tool_change change = {
				.tools = tools, .done = on_expired, .ctx = tools, .entry = e
			};
			fiber_start(remove_all, &change);
		}
	tools_arm_sweep(tools);
}

void tools_arm_sweep(struct tools *tools)
{
	int64_t now_ms = clock_now_ms(), due_ms = now_ms + SWEEP_MS;
	for (const struct tool_entry *e = tools->newest; e; e = e->older)
		if (e->model.state == TOOL_DORMANT && !e->users && e->model.expires_ms < due_ms)
			due_ms = e->model.expires_ms;
	loop_cancel(tools->base.loop, tools->sweep);
	tools->sweep = loop_after(tools->base.loop,
		due_ms > now_ms ? (uint64_t)(due_ms - now_ms) : 0, on_sweep, tools);
}

/* ---- the service ---- */

static void take(void *state, const struct store_table *table, const void *row)
{
	tools_add(state, row);
}

static bool is_kept(void *ctx, const struct workspace *w)
{
	struct tools *tools = ctx;
	for (const struct tool_entry *e = tools->newest; e; e = e->older)
		if (e->model.workspace && !strcmp(e->model.workspace, w->id))
			return true;
	return false;
}

/* What a crash has interrupted, or what lost its workspace, is dormant. */
static void look_at(struct tool_entry *entry)
{
	struct tools *tools = entry->tools;
	struct tool *tool = &entry->model;
	struct core_workspace *w;
	struct error err;
	if (tool_is_forging(tool)) {
		tool->error = "the daemon ended while it was forged";
		tool->workspace = NULL;
		tool->has_passed = false;
		tool_become(entry, TOOL_DORMANT, NULL, NULL);
	} else if (tool->workspace &&
		   core_find(core_system(), tools->base.core, tool->workspace, &w, &err)) {
		tool->error = arena_printf(&entry->arena, "its workspace is gone: %s", err.text);
		tool->workspace = NULL;
		tool_become(entry, TOOL_DORMANT, NULL, NULL);
	} else if (tool->state == TOOL_ACTIVE && tools_find_active(tools, tool->name) != entry) {
		tool_become(entry, TOOL_DORMANT, NULL, NULL);
	}
}

static void start(void *state)
{
	struct tools *tools = state;
	if (tools->base.options.tools)
		tools->settings = *tools->base.options.tools;
	for (struct tool_entry *e = tools->newest; e; e = e->older)
		look_at(e);
	desk_sweep(tools->base.core, TOOLS_SERVICE, "left behind", is_kept, tools);
	tools_arm_sweep(tools);
}

static void stop(void *state)
{
	struct tools *tools = state;
	loop_cancel(tools->base.loop, tools->sweep);
	tools->sweep = NULL;
}

static void free_all(void *state)
{
	struct tools *tools = state;
	stop(state);
	while (tools->newest)
		tools_drop(tools->newest);
}

static void print_metrics(void *state, struct buf *out)
{
	const struct tools *tools = state;
	uint64_t counts[TOOL_STATE_COUNT] = { 0 };
	for (const struct tool_entry *e = tools->newest; e; e = e->older)
		counts[e->model.state]++;
	buf_text(out, "# HELP carrel_tools Versions of tools, by state.\n"
		      "# TYPE carrel_tools gauge\n");
	for (int i = 0; i < TOOL_STATE_COUNT; i++)
		buf_printf(out, "carrel_tools{state=\"%s\"} %llu\n", tool_state_names[i],
			(unsigned long long)counts[i]);
	buf_printf(out,
		"# HELP carrel_tool_forges_total Versions that were forged, by how it ended.\n"
		"# TYPE carrel_tool_forges_total counter\n"
		"carrel_tool_forges_total{result=\"active\"} %llu\n"
		"carrel_tool_forges_total{result=\"dormant\"} %llu\n"
		"# HELP carrel_tool_calls_total Calls of tools, by whether there was a result.\n"
		"# TYPE carrel_tool_calls_total counter\n"
		"carrel_tool_calls_total{result=\"ok\"} %llu\n"
		"carrel_tool_calls_total{result=\"failed\"} %llu\n",
		(unsigned long long)tools->forged, (unsigned long long)tools->refused,
		(unsigned long long)(tools->calls - tools->failed_calls),
		(unsigned long long)tools->failed_calls);
}

static const struct store_table *const tables[] = { &store_tools, NULL };
const struct service tools_service = { .name = TOOLS_SERVICE,
	.tables = tables,
	.size = sizeof(struct tools),
	.take = take,
	.start = start,
	.stop = stop,
	.free = free_all,
	.print_metrics = print_metrics };
