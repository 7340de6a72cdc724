/* How a version is forged: its tests in a throw-away workspace, then its desk. */
#include "base/clock.h"
#include "base/fault.h"
#include "services/scripts.h"
#include "services/tools_internal.h"

#define OUTPUT_BYTES_MAX (8ull << 20)

struct forge {
	struct cancelable cancelable;
	struct fiber *fiber;
	struct tool_entry *entry; /* NULL: it is active, and may be removed */
	struct tools *tools;
	const char *name;
	struct arena arena;
	struct desk bench, desk; /* of the tests; of calls */
	uint64_t started_ms;
	tool_fn *done; /* NULL: told already */
	void *ctx;
};

/* ---- the verdict ---- */

/* The end of both streams, as a text without NUL. */
static void keep_output(struct forge *forge)
{
	const struct buf *streams = forge->bench.captured.streams;
	size_t lens[2] = { streams[0].len, streams[1].len };
	/* The shorter stream has what it needs, up to half. */
	size_t half = TOOL_OUTPUT_MAX / 2;
	for (int i = 0; i < 2; i++) {
		size_t other = lens[1 - i] < half ? lens[1 - i] : half;
		if (lens[i] > TOOL_OUTPUT_MAX - other)
			lens[i] = TOOL_OUTPUT_MAX - other;
	}
	char *text = arena_alloc(&forge->entry->arena, lens[0] + lens[1] + 1);
	for (int i = 0; i < 2; i++)
		if (lens[i])
			memcpy(text + (i ? lens[0] : 0), streams[i].data + streams[i].len - lens[i],
				lens[i]);
	for (size_t i = 0; i < lens[0] + lens[1]; i++)
		if (!text[i])
			text[i] = '?';
	forge->entry->model.output = text;
}

/* Why the tests are no pass, or NULL. */
static const char *judge(struct forge *forge)
{
	const struct result *result = &forge->bench.result;
	if (result->reason != REASON_EXITED)
		return arena_printf(
			&forge->arena, "its tests were ended: %s", reason_names[result->reason]);
	switch (result->exit_status) {
	case 0:
		return NULL;
	case SCRIPT_FAILED:
		return "its tests have failed";
	case SCRIPT_NONE:
		return "no test has passed: its tests have none, or all are skipped";
	case SCRIPT_ORDER:
		return "its tests pass in one order and fail in the reverse order";
	case SCRIPT_LOST:
		return "a test has ended the process that runs the tests";
	case SCRIPT_STOPPED:
		return "a test has ended the run before all tests were run";
	case SCRIPT_UNCALLABLE:
		return "its code has no function run, which a call of the tool needs";
	default:
		return arena_printf(
			&forge->arena, "its tests ended with exit code %d", result->exit_status);
	}
}

/* ---- steps ---- */

static int create(
	struct forge *forge, struct desk *desk, const char *environment, struct error *err)
{
	const struct tool *tool = &forge->entry->model;
	struct workspace made = { .python = environment ? NULL : tool->python,
		.environments.of[ENV_KIND_PYTHON] = environment,
		.limits = tool->limits,
		.network = tool->network,
		.owner = { .tool = tool->name,
			.tool_version = arena_printf(
				&forge->arena, "%llu", (unsigned long long)tool->version) } };
	return desk_create(forge->fiber, desk, TOOLS_SERVICE, &made, err);
}

static int install(struct forge *forge, struct error *err)
{
	text_list packages = text_list_copy(&forge->arena, &forge->entry->model.requires);
	vec_push(&forge->arena, &packages, "pytest");
	tool_become(forge->entry, TOOL_INSTALLING, NULL, NULL);
	return desk_install(forge->fiber, &forge->bench, &packages, err);
}

static int test(struct forge *forge, struct error *err)
{
	const struct tool *tool = &forge->entry->model;
	struct exec_spec spec = { .timeout_ms = tool->timeout_ms,
		.output_bytes = OUTPUT_BYTES_MAX };
	script_test_tool(&forge->arena, tool->code, tool->tests, &spec);
	tool_become(forge->entry, TOOL_TESTING, NULL, NULL);
	if (desk_run(forge->fiber, &forge->bench, &spec, err))
		return -1;
	keep_output(forge);
	const char *why = judge(forge);
	return why ? fail(err, ERR_FAILED, "%s", why) : 0;
}

static int activate(struct forge *forge, struct error *err)
{
	struct tool *tool = &forge->entry->model;
	if (cancelable_check(&forge->cancelable, err))
		return -1;
	fiber_end_cancellation(forge->fiber); /* from here on it takes the place of another */
	tool->environment = arena_text(&forge->entry->arena, forge->bench.environment);
	tool->workspace = arena_text(&forge->entry->arena, forge->desk.id);
	tool->has_passed = true;
	tool->error = NULL;
	tool->forge_ms = clock_monotonic_ms() - forge->started_ms;
	return tools_activate(forge->fiber, tools_find_active(forge->entry->tools, tool->name),
		forge->entry, err);
}

static int become(struct forge *forge, enum tool_state state, struct error *err)
{
	tool_become(forge->entry, state, fiber_continue, forge->fiber);
	return fiber_wait(forge->fiber, err);
}

/* ---- the job ---- */

static void tell(struct forge *forge, const struct error *err)
{
	if (forge->done)
		forge->done(forge->ctx, err ? NULL : &forge->entry->model, err);
	forge->done = NULL;
}

static void remove_desk(struct forge *forge, struct desk *desk)
{
	struct error err;
	if (desk_remove(forge->fiber, desk, &err))
		log_record(core_log(desk->core), LOG_LEVEL_WARN,
			"a workspace of a tool can't be removed", "tool", forge->name, "error",
			err.text, NULL);
}

static void end_active(struct forge *forge)
{
	forge->tools->forged++;
	forge->entry->users--;
	tell(forge, NULL);
	forge->entry = NULL;
	remove_desk(forge, &forge->bench);
}

static void clean_up(struct forge *forge, const char *why)
{
	struct tool *tool = &forge->entry->model;
	tool->error = arena_text(&forge->entry->arena, why);
	tool->workspace = NULL;
	tool->has_passed = false;
	tool->forge_ms = clock_monotonic_ms() - forge->started_ms;
	tool_become(forge->entry, TOOL_CLEANUP, NULL, NULL);
	remove_desk(forge, &forge->bench);
	remove_desk(forge, &forge->desk);
}

static void end_dormant(struct forge *forge, const char *why)
{
	struct error err;
	clean_up(forge, why);
	forge->tools->refused++;
	if (become(forge, TOOL_DORMANT, &err))
		log_record(core_log(forge->bench.core), LOG_LEVEL_WARN,
			"the state of a tool can't be stored", "tool", forge->name, "error",
			err.text, NULL);
	tell(forge, NULL);
}

/* Nothing is kept of it: its client didn't wait for the verdict. */
static void end_canceled(struct forge *forge, const struct error *why)
{
	struct error err;
	clean_up(forge, why->text);
	core_drop(forge->bench.core, &store_tools, forge->entry->model.id, fiber_continue,
		forge->fiber);
	if (fiber_wait(forge->fiber, &err))
		log_record(core_log(forge->bench.core), LOG_LEVEL_WARN, "a tool can't be removed",
			"tool", forge->name, "error", err.text, NULL);
	tell(forge, why);
	tool_await_users(forge->fiber, forge->entry);
	tools_drop(forge->entry);
	forge->entry = NULL;
}

static void cut(struct cancelable *c)
{
	fiber_cancel(((struct forge *)c)->fiber);
}

static void run_forge(struct fiber *fiber, void *ctx)
{
	struct forge *forge = ctx;
	struct tool_entry *refused = NULL;
	struct error err;
	forge->fiber = fiber;
	if (become(forge, TOOL_CREATING, &err) && !forge->cancelable.is_canceled) {
		refused = forge->entry; /* nothing is kept of it */
		tell(forge, &err);
	} else if (cancelable_check(&forge->cancelable, &err) ||
		   create(forge, &forge->bench, NULL, &err) || install(forge, &err) ||
		   test(forge, &err) ||
		   create(forge, &forge->desk, forge->bench.environment, &err) ||
		   activate(forge, &err)) {
		fiber_end_cancellation(fiber);
		if (forge->cancelable.is_canceled)
			end_canceled(forge, &err);
		else
			end_dormant(forge, err.text);
	} else {
		end_active(forge);
	}
	desk_done(&forge->bench);
	desk_done(&forge->desk);
	if (forge->entry)
		forge->entry->users--;
	if (refused)
		tools_drop(refused);
	tools_arm_sweep(forge->tools);
	arena_done(&forge->arena);
	free(forge);
}

struct cancelable *tool_forge_start(
	struct tool_entry *entry, const struct request *request, tool_fn *done, void *ctx)
{
	struct forge *forge = xzalloc(sizeof *forge);
	arena_init(&forge->arena);
	forge->cancelable = (struct cancelable){ .core = entry->tools->base.core, .cut = cut };
	forge->entry = entry;
	forge->tools = entry->tools;
	forge->name = arena_text(&forge->arena, entry->model.name);
	forge->started_ms = clock_monotonic_ms();
	forge->done = done;
	forge->ctx = ctx;
	request = access_keep(request, &forge->arena);
	desk_init(&forge->bench, entry->tools->base.core, request);
	desk_init(&forge->desk, entry->tools->base.core, request);
	entry->users++;
	fiber_start(run_forge, forge);
	return &forge->cancelable;
}
