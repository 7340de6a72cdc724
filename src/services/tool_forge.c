/* How a version is forged: its tests in a throw-away workspace, then its desk. */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/fault.h"
#include "services/scripts.h"
#include "services/tools_internal.h"

#define OUTPUT_BYTES_MAX (8ull << 20)

enum step {
	STORE,
	CREATE,
	INSTALL,
	TEST,
	DESK_CREATE,
	ACTIVATE,
	CLEANUP,      /* the workspace of the tests */
	CLEANUP_DESK, /* and the desk, after a failure */
	END
};
struct forge {
	struct tool_entry *entry; /* NULL: it is active, and may be removed */
	struct tools *tools;
	const char *name;
	struct arena arena;
	struct desk bench, desk; /* of the tests; of calls */
	enum step step;		 /* that is under way */
	bool has_failed;
	uint64_t started_ms;
	tool_fn *done; /* NULL: told already */
	void *ctx;
};

static void begin(struct forge *forge, enum step step);

static void tell(struct forge *forge, const struct error *err)
{
	tool_fn *done = forge->done;
	forge->done = NULL;
	if (done)
		done(forge->ctx, err ? NULL : &forge->entry->model, err);
}

static void finish(struct forge *forge)
{
	desk_done(&forge->bench);
	desk_done(&forge->desk);
	arena_done(&forge->arena);
	if (forge->entry)
		forge->entry->users--;
	tools_arm_sweep(forge->tools);
	free(forge);
}

/* ---- its end ---- */

static void on_dormant(void *ctx, const struct error *err)
{
	struct forge *forge = ctx;
	if (err)
		log_record(core_log(forge->bench.core), LOG_LEVEL_WARN,
			"the state of a tool can't be stored", "tool", forge->entry->model.name,
			"error", err->text, NULL);
	tell(forge, NULL);
	finish(forge);
}

static void end(struct forge *forge)
{
	if (!forge->has_failed) {
		finish(forge);
		return;
	}
	forge->entry->tools->refused++;
	tool_become(forge->entry, TOOL_DORMANT, on_dormant, forge);
}

static void give_up(struct forge *forge, const char *why)
{
	struct tool *tool = &forge->entry->model;
	forge->has_failed = true;
	tool->error = arena_text(&forge->entry->arena, why);
	tool->workspace = NULL;
	tool->has_passed = false;
	tool->forge_ms = clock_monotonic_ms() - forge->started_ms;
	tool_become(forge->entry, TOOL_CLEANUP, NULL, NULL);
	begin(forge, CLEANUP);
}

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

static void on_step(void *ctx, const struct error *err);

static void create(struct forge *forge, struct desk *desk, const char *environment)
{
	const struct tool *tool = &forge->entry->model;
	struct workspace made = { .python = environment ? NULL : tool->python,
		.environment = environment,
		.limits = tool->limits,
		.network = tool->network };
	vec_push(&forge->arena, &made.labels, (struct text_pair){ "carrel.tool", tool->name });
	vec_push(&forge->arena, &made.labels,
		(struct text_pair){ "carrel.tool-version",
			arena_printf(&forge->arena, "%llu", (unsigned long long)tool->version) });
	desk_create(desk, TOOLS_SERVICE, &made, on_step, forge);
}

static void install(struct forge *forge)
{
	text_list packages = text_list_copy(&forge->arena, &forge->entry->model.requires);
	vec_push(&forge->arena, &packages, "pytest");
	tool_become(forge->entry, TOOL_INSTALLING, NULL, NULL);
	desk_install(&forge->bench, &packages, on_step, forge);
}

static void test(struct forge *forge)
{
	const struct tool *tool = &forge->entry->model;
	struct exec_spec spec = { .timeout_ms = tool->timeout_ms,
		.output_bytes = OUTPUT_BYTES_MAX };
	script_test_tool(&forge->arena, tool->code, tool->tests, &spec);
	tool_become(forge->entry, TOOL_TESTING, NULL, NULL);
	desk_run(&forge->bench, &spec, on_step, forge);
}

static void activate(struct forge *forge)
{
	struct tool *tool = &forge->entry->model;
	tool->environment = arena_text(&forge->entry->arena, forge->bench.environment);
	tool->workspace = arena_text(&forge->entry->arena, forge->desk.id);
	tool->has_passed = true;
	tool->error = NULL;
	tool->forge_ms = clock_monotonic_ms() - forge->started_ms;
	tools_activate(
		tools_find_active(forge->entry->tools, tool->name), forge->entry, on_step, forge);
}

static void begin(struct forge *forge, enum step step)
{
	forge->step = step;
	switch (step) {
	case STORE:
		tool_become(forge->entry, TOOL_CREATING, on_step, forge);
		return;
	case CREATE:
		create(forge, &forge->bench, NULL);
		return;
	case INSTALL:
		install(forge);
		return;
	case TEST:
		test(forge);
		return;
	case DESK_CREATE:
		create(forge, &forge->desk, forge->bench.environment);
		return;
	case ACTIVATE:
		activate(forge);
		return;
	case CLEANUP:
		desk_remove(&forge->bench, on_step, forge);
		return;
	case CLEANUP_DESK:
		desk_remove(&forge->desk, on_step, forge);
		return;
	case END:
		end(forge);
		return;
	}
}

/* The row can't be written: nothing is kept of it. */
static void refuse(struct forge *forge, const struct error *err)
{
	struct tool_entry *entry = forge->entry;
	tell(forge, err);
	finish(forge);
	tools_drop(entry);
}

static void on_step(void *ctx, const struct error *err)
{
	struct forge *forge = ctx;
	const char *why;
	if (err && forge->step == STORE) {
		refuse(forge, err);
		return;
	}
	if (err && forge->step >= CLEANUP)
		log_record(core_log(forge->bench.core), LOG_LEVEL_WARN,
			"a workspace of a tool can't be removed", "tool", forge->name, "error",
			err->text, NULL);
	else if (err) {
		give_up(forge, err->text);
		return;
	}
	switch (forge->step) {
	case TEST:
		keep_output(forge);
		why = judge(forge);
		if (why)
			give_up(forge, why);
		else
			begin(forge, DESK_CREATE);
		return;
	case ACTIVATE:
		forge->tools->forged++;
		forge->entry->users--;
		tell(forge, NULL);
		forge->entry = NULL;
		begin(forge, CLEANUP);
		return;
	case CLEANUP:
		begin(forge, forge->has_failed ? CLEANUP_DESK : END);
		return;
	default:
		begin(forge, forge->step + 1);
	}
}

void tool_forge_start(
	struct tool_entry *entry, const struct request *request, tool_fn *done, void *ctx)
{
	struct forge *forge = xzalloc(sizeof *forge);
	arena_init(&forge->arena);
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
	begin(forge, STORE);
}
