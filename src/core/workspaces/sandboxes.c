/* sandboxes.c -- the sandbox of a workspace: started on demand, released when idle. */
#include "base/clock.h"
#include "base/fault.h"
#include "core/access/policies.h"
#include "core/execs/execs.h"
#include "core/packages/checkup.h"
#include "core/waits.h"
#include "core/workspaces/internal.h"
#include "core/workspaces/networks.h"

#define LOST_STARTS_MAX 3

static void start(struct core_workspace *w);

/* Each gets one hold, as core_wake promises. */
static void tell_waiters(struct core_workspace *w, const struct error *err)
{
	core_hold(w);
	for (struct core_waiter *waiter = w->waiters; waiter && !err; waiter = waiter->next)
		core_hold(w);
	waiters_call(&w->waiters, w, err);
	core_release(w);
}

void sandbox_clear(struct core_sandbox *sandbox)
{
	*sandbox = (struct core_sandbox){ 0 };
	view_init(&sandbox->view);
}

void sandbox_close(struct core *core, struct core_sandbox *sandbox, bool is_late)
{
	int fds[VIEW_MOUNTS];
	/* An overlay holds removed files until it is unmounted. */
	if (!is_late || !trees_room_is_low(core))
		closer_close(core, fds, view_take_mounts(&sandbox->view, fds), is_late);
	view_done(&sandbox->view);
	sandbox_clear(sandbox);
}

/* The sandbox is up: connects to its init, watches its limits, starts waiting execs. */
static int attach(struct core_workspace *w, int limiter, const int *fds, struct error *err)
{
	struct core_sandbox *sandbox = &w->sandbox;
	view_take(&sandbox->view, (enum plan_limiter)limiter, fds);
	if (view_connect(&sandbox->view, w->core->sockets, w->model.id, err) ||
		execs_attach(w, err))
		return error_context(err, "the sandbox of workspace '%s'", w->model.name);
	sandbox_move(sandbox, SANDBOX_UP);
	w->life->lost_starts = 0;
	networks_attach(w);
	if (!w->is_spare) {
		workspace_resumed(w);
		journal_emit(&w->core->journal, "workspace.warm", w->model.id, w->model.name, NULL);
	}
	lifetime_arm(w);
	return 0;
}

static void on_end(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct core_workspace *w = ctx;
	if (packet && packet->head.type == LAUNCH_FAILED)
		log_record(&w->core->log, LOG_LEVEL_WARN, "a sandbox could not be ended",
			"workspace", w->model.id, "error", packet->strings[0], NULL);
	sandbox_ended(w, packet && packet->head.type == LAUNCH_ENDED ? packet->head.value : 0);
	core_release(w);
}

static void end(struct core_workspace *w)
{
	struct launch_message head = { .type = LAUNCH_END };
	memcpy(head.id, w->model.id, sizeof head.id);
	sandbox_move(&w->sandbox, SANDBOX_ENDING);
	core_hold(w);
	launcher_ask(&w->core->launcher, &head, NULL, 0, NULL, 0, on_end, w);
}

void core_end_sandbox(struct core_workspace *w, enum reason reason)
{
	struct core_sandbox *sandbox = &w->sandbox;
	if (sandbox->state != SANDBOX_NONE && !sandbox->limit)
		sandbox->limit = reason;
	if (sandbox->state == SANDBOX_UP)
		end(w);
	/* A sandbox that is starting is ended once it is up, since its limit is set. */
}

/* The start failed: tells those who wait for it. */
static void not_started(struct core_workspace *w, const struct error *err)
{
	bool was_unwanted = w->sandbox.limit;
	sandbox_move(&w->sandbox, SANDBOX_NONE);
	w->sandbox.limit = REASON_EXITED;
	tell_waiters(w, err);
	if (w->removal && was_unwanted)
		removal_go_on(w);
	else if (w->life->is_suspending)
		sandbox_suspended(w);
	merge_go_on(w);
	takers_go_on(w);
	core_check_stopped(w->core);
	core_release(w);
}

/* A sandbox that died before its first use isn't the caller's fault: retry, a limited number of
 * times. */
static bool may_start_again(struct core_workspace *w)
{
	if (++w->life->lost_starts < LOST_STARTS_MAX)
		return true;
	w->life->lost_starts = 0;
	return false;
}

static int fail_unwanted(const struct core_workspace *w, struct error *err)
{
	return fail(err, w->removal ? ERR_NOT_FOUND : ERR_CANCELED, "workspace '%s' %s",
		w->model.name,
		w->removal		 ? "is being removed"
		: w->life->is_suspending ? "was suspended"
					 : "was stopped");
}

void sandbox_count_start(struct core_workspace *w)
{
	struct metrics *metrics = &w->core->metrics;
	metrics->sandbox_starts++;
	histogram_add(&metrics->sandbox_start_seconds,
		(double)(clock_monotonic_ns() - w->start_ns) / 1e9);
}

static void on_started(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct core_workspace *w = ctx;
	struct core *core = w->core;
	struct error err;
	bool is_unwanted = w->sandbox.limit || w->removal;
	if (!packet || packet->head.type != LAUNCH_STARTED) {
		launcher_failure(packet, &err);
		error_context(&err, "start the sandbox of workspace '%s'", w->model.name);
		core->metrics.sandbox_start_failures++;
		if (is_unwanted) { /* its tree may already be renamed for removal, which isn't a
				    * failure */
			fail_unwanted(w, &err);
		} else if (err.code == ERR_CANCELED) {
			if (may_start_again(w)) {
				sandbox_move(&w->sandbox, SANDBOX_NONE);
				start(w);
				core_release(w);
				return;
			}
			err.code = ERR_FAILED; /* ended for an unknown reason */
		}
		not_started(w, &err);
		return;
	}
	if (!w->is_spare)
		sandbox_count_start(w);
	int failed = attach(w, packet->head.value, fds, &err);
	if (is_unwanted)
		failed = fail_unwanted(w, &err);
	if (!failed) {
		tell_waiters(w, NULL);
		takers_go_on(w);
	} else {
		if (is_unwanted || !may_start_again(w))
			tell_waiters(w, &err);
		if (!w->sandbox.limit)
			w->sandbox.limit = REASON_CANCELED;
		end(w);
	}
	core_release(w);
}

/* What a START says of /workspace: how many strings. */
static size_t describe_layers(
	const struct core_workspace *w, struct launch_message *head, const char **strings)
{
	const text_list *layers = &w->model.layers;
	size_t count = 0;
	if (!layers->count)
		return 0;
	for (int i = 0; i < 5; i++) /* no name, kind, interpreter, prefix, projects */
		strings[count++] = "";
	for (size_t i = 0; i < layers->count; i++)
		strings[count++] = layers->items[i];
	for (int i = 0; i < 2; i++) /* no tools */
		strings[count++] = "";
	head->value++;
	return count;
}

static void ask(struct core_workspace *w)
{
	const struct limits *limits = &w->model.limits;
	struct launch_message head = { .type = LAUNCH_START,
		.flags = (uint16_t)((w->model.ptrace ? LAUNCH_PTRACE : 0) |
				    (plan_view_is_root(w->model.view) ? LAUNCH_ROOT_VIEW : 0) |
				    (policies_hold(w) ? LAUNCH_JUDGED : 0)),
		.limits = { .memory_bytes = policies_limit_memory(w, limits->memory_bytes),
			.disk_bytes = limits->disk_bytes,
			.tmp_bytes = limits->tmp_bytes,
			.pids = limits->pids,
			.fds = limits->fds,
			.millicpus = limits->millicpus } };
	auto_arena struct arena arena = { 0 };
	/* tmpfs counts as memory. */
	if (head.limits.tmp_bytes > head.limits.memory_bytes / 2 &&
		head.limits.memory_bytes < limits->memory_bytes)
		head.limits.tmp_bytes = head.limits.memory_bytes / 2;
	const char *strings[LAUNCH_STRINGS_MAX];
	int fds[ENV_KINDS], fd_count = 0;
	size_t count = environments_describe(w, &head, strings, fds, &fd_count);
	count += describe_layers(w, &head, strings + count);
	count += policies_describe(w, &arena, strings + count, LAUNCH_STRINGS_MAX - count);
	memcpy(head.id, w->model.id, sizeof head.id);
	memcpy(head.request_id, w->start_request, sizeof head.request_id);
	networks_describe(w, &head);
	fault_point("core_sandbox_start");
	launcher_ask(&w->core->launcher, &head, strings, count, fds, fd_count, on_started, w);
}

/* What a resume looks for besides: some stats, and nothing is started for it. */
static void restore_marks(struct core_workspace *w)
{
	unsigned made = tree_restore_marks(w);
	if (made)
		journal_emit(&w->core->journal, "workspace.repaired", w->model.id, w->model.name,
			"done",
			made == TREE_MADE_MARK	 ? "made '.workspace_configured' again"
			: made == TREE_MADE_VENV ? "made the link '.venv' to /env again"
						 : "made '.workspace_configured' and '.venv' again",
			NULL);
}

/* Its network, its environments, and its trees. */
static int prepare(struct fiber *fiber, struct core_workspace *w, struct error *err)
{
	struct error ignored;
	networks_prepare(w, fiber_continue_workspace, fiber);
	fiber_wait(fiber, &ignored);
	if (environment_prepare(fiber, w, w->start_request, err) || tree_make_cache(w, err) ||
		(!tree_is_overlay(w) && marks_sweep(fiber, w, err)) || layers_check_whole(w, err))
		return -1;
	if (w->core->auto_repair && w->model.state == WORKSPACE_SUSPENDED)
		restore_marks(w);
	if (environment_is_unsettled(&w->model))
		environment_settle(fiber, w, NULL, &ignored); /* logs it */
	return 0;
}

/* A workspace whose layers or directories are lost gets them back, once a start. */
static int prepare_repaired(struct fiber *fiber, struct core_workspace *w, struct error *err)
{
	if (repair_for_start(fiber, w, w->start_request, err))
		return -1;
	return w->removal || w->sandbox.limit ? fail_unwanted(w, err) : prepare(fiber, w, err);
}

static void run_start(struct fiber *fiber, void *ctx)
{
	struct core_workspace *w = ctx;
	struct error err;
	int failed = prepare(fiber, w, &err);
	if (failed && w->core->auto_repair && err.code == ERR_CORRUPT)
		failed = prepare_repaired(fiber, w, &err);
	if (!failed) {
		ask(w);
		return;
	}
	wait_turn(fiber, w->core); /* whoever has just called core_wake is still at work */
	not_started(w, &err);
}

static void start(struct core_workspace *w)
{
	sandbox_move(&w->sandbox, SANDBOX_STARTING);
	w->life->is_suspending = false;
	w->start_ns = clock_monotonic_ns();
	core_hold(w);
	fiber_start(run_start, w);
}

/* What runs on damaged layers may end; nothing begins beside it. */
static int end_damaged(struct core_workspace *w, struct error *err)
{
	struct error busy;
	if (sandbox_check_unused(w, &busy))
		return fail_hint(err, ERR_CORRUPT,
			"end what runs in it (carrel suspend --force, or POST .../suspend with "
			"\"force\"): the next command has whole layers",
			"layers below the sandbox of workspace '%s' are damaged, and it can't be "
			"replaced: %s",
			w->model.name, busy.text);
	core_end_sandbox(w, REASON_CANCELED);
	return 0;
}

void core_wake(struct core_workspace *w, const char *request_id, core_workspace_fn *done, void *ctx)
{
	struct error err;
	core_touch(w);
	if (w->sandbox.state == SANDBOX_UP && w->sandbox.is_damaged && end_damaged(w, &err)) {
		core_later(w->core, done, ctx, w, &err);
		return;
	}
	if (w->sandbox.state == SANDBOX_UP && !w->is_paused) {
		core_hold(w); /* the callee's */
		core_later(w->core, done, ctx, w, NULL);
		return;
	}
	if (w->core->is_stopping || w->model.state == WORKSPACE_DELETING) {
		if (w->core->is_stopping)
			fail(&err, ERR_UNAVAILABLE, "the daemon is stopping");
		else
			fail(&err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
		core_later(w->core, done, ctx, w, &err);
		return;
	}
	if (w->model.state == WORKSPACE_FAILED) {
		fail(&err, ERR_CONFLICT, "workspace '%s' has failed: %s", w->model.name,
			w->model.error ? w->model.error : "its files are missing");
		core_later(w->core, done, ctx, w, &err);
		return;
	}
	waiter_append(&w->waiters, waiter_new(done, ctx, NULL, NULL));
	if (w->sandbox.state != SANDBOX_NONE || tree_is_taken(w))
		return; /* sandbox_ended or tree_release begins anew */
	memset(w->start_request, 0, sizeof w->start_request);
	str_copy(w->start_request, sizeof w->start_request, request_id ? request_id : "");
	start(w);
}

void sandbox_go_on(struct core_workspace *w)
{
	struct error err;
	if (w->waiters && w->sandbox.state == SANDBOX_UP && !w->is_paused)
		tell_waiters(w, NULL);
	if (!w->waiters || w->sandbox.state != SANDBOX_NONE || tree_is_taken(w))
		return;
	if (w->removal || w->is_gone) {
		fail(&err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
		tell_waiters(w, &err);
	} else
		start(w);
}

void sandbox_adopt(struct core_workspace *w, int limiter, const int *fds)
{
	struct error err;
	if (!attach(w, limiter, fds, &err))
		return;
	log_record(&w->core->log, LOG_LEVEL_ERROR,
		"a running sandbox can't be adopted and is ended", "workspace", w->model.id,
		"error", err.text, NULL);
	w->sandbox.limit = REASON_CANCELED;
	end(w);
}

void sandbox_ended(struct core_workspace *w, int wait_status)
{
	struct core *core = w->core;
	bool is_late = w->removal || w->is_spare;
	if (w->sandbox.state != SANDBOX_UP && w->sandbox.state != SANDBOX_ENDING)
		return;
	core_hold(w);
	if (w->sandbox.state == SANDBOX_UP) /* a new request waits for the end */
		sandbox_move(&w->sandbox, SANDBOX_ENDING);
	w->is_frozen = false;
	execs_sandbox_gone(w);
	networks_detach(w);
	sandbox_move(&w->sandbox, SANDBOX_NONE);
	struct core_sandbox left = w->sandbox;
	sandbox_clear(&w->sandbox);
	if (w->model.state == WORKSPACE_READY) {
		journal_emit(&w->core->journal, "workspace.cold", w->model.id, w->model.name, NULL);
		/* Somebody who asked for the suspension gets it, also when a new request ends it
		 * at once. */
		if (w->life->is_suspending && (!w->waiters || w->suspenders))
			sandbox_suspended(w);
	}
	merge_go_on(w);
	if (w->removal) {
		struct error err;
		fail(&err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
		tell_waiters(w, &err);
		suspension_fail(w);
		removal_go_on(w);
	} else if (tree_is_awaited(w)) /* before a new sandbox starts */
		takers_go_on(w);
	else if (w->waiters && !w->core->is_stopping)
		start(w);
	else if (w->waiters) {
		struct error err;
		fail(&err, ERR_UNAVAILABLE, "the daemon is stopping");
		tell_waiters(w, &err);
	}
	if (w->is_spare)
		spare_ended(w);
	lifetime_arm(w);
	core_check_stopped(w->core);
	/* Unmounting writes the whole file system to the disk, and would hold up the sync of what
	 * was frozen. Nothing is mounted on those uppers again. */
	is_late |= w->is_frozen && !trees_room_is_low(core);
	core_release(w);
	/* Closing the last descriptor unmounts, which is slow: do it after the callbacks. */
	sandbox_close(core, &left, is_late);
}
