/* lifetimes.c -- what time does to a workspace: its sandbox is released, it is suspended, it
 * expires; its last use is saved and its tree measured. All on the monotonic clock: a wall clock
 * that jumps moves nothing while core runs. */
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/execs/execs.h"
#include "core/files/file_servers.h"
#include "core/files/files_ask.h"
#include "core/workspaces/internal.h"

#define SWEEP_MS 30000
#define EXPIRE_AGAIN_MS 60000
#define REST_SHARE 100 /* a walk of n ms is followed by n * 100 ms in which small changes wait */
#define SWEEPS_MOST 10 /* that may skip a tree while its file system hardly changes */
#define DISK_WARNING_PERCENT 80
#define TIMER_MAX_MS (24 * 3600 * 1000ull)

struct look {
	const struct core_workspace *w;
	unsigned found; /* processes that are neither init nor a known file server */
};

static void look_at_process(void *ctx, int proc, int pid)
{
	struct look *look = ctx;
	look->found += pid > 1 && !file_servers_count(look->w, (uint64_t)pid);
}

/* Such as a server started with &. Not looked for when init has reported that it is alone: the
 * process that it makes ahead for the next command can't be recognised from outside. */
bool sandbox_has_processes(const struct core_workspace *w)
{
	struct look look = { .w = w };
	if (!w->sandbox.is_alone)
		view_each_process(&w->sandbox.view, look_at_process, &look);
	return look.found > file_servers_count(w, 0);
}

static bool is_busy(const struct core_workspace *w)
{
	return w->users || w->sandbox.exec_count;
}

/* Time since the last request. Processes that commands left running keep the sandbox from being
 * released, but don't delay idle_timeout. */
static uint64_t idle_ms(const struct core_workspace *w)
{
	return is_busy(w) ? 0 : clock_monotonic_ms() - w->used_ms;
}

/* So long its sandbox has had nothing to do, as far as it has been looked at. */
static uint64_t unneeded_ms(const struct core_workspace *w)
{
	uint64_t last_ms = w->life->kept_ms > w->used_ms ? w->life->kept_ms : w->used_ms;
	return is_busy(w) ? 0 : clock_monotonic_ms() - last_ms;
}

static void release_sandbox(struct core_workspace *w)
{
	w->core->metrics.released++;
	core_end_sandbox(w, REASON_CANCELED);
}

static void add_use(const char *uses[WORKSPACE_USES_MAX], const char *what)
{
	size_t i = 0;
	while (i < WORKSPACE_USES_MAX && uses[i] && strcmp(uses[i], what) != 0)
		i++;
	if (i < WORKSPACE_USES_MAX)
		uses[i] = what;
}

void lifetime_list_uses(const struct core_workspace *w, const char *uses[WORKSPACE_USES_MAX])
{
	if (packages_are_changing(w))
		add_use(uses, "packages of it are being installed or removed");
	if (archive_is_in_progress(w))
		add_use(uses, "an archive of it is being made");
	for (const struct cancelable *c = w->operations; c; c = c->next)
		add_use(uses, c->what);
	if (file_servers_are_busy(w))
		add_use(uses, "files of it are being read or written");
}

/* By what, since `ps` lists commands alone. */
static int fail_busy(const struct core_workspace *w, struct error *err)
{
	const char *uses[WORKSPACE_USES_MAX] = { NULL };
	lifetime_list_uses(w, uses);
	const char *what = uses[0]	      ? uses[0]
			   : tree_is_taken(w) ? "its files are being kept, copied or archived"
			   : w->sandbox.state == SANDBOX_STARTING ? "its sandbox is starting"
								  : "a request to it is under way";
	if (!workspace_check_unused(w, err))
		fail(err, ERR_CONFLICT, "workspace '%s' is in use: %s", w->model.name, what);
	return error_hint(err, "try again when nothing runs in it");
}

int lifetime_release(struct core_workspace *w, struct error *err)
{
	if (is_busy(w) || w->sandbox.state == SANDBOX_STARTING ||
		(w->sandbox.state == SANDBOX_UP && sandbox_has_processes(w)))
		return fail_busy(w, err);
	if (w->sandbox.state == SANDBOX_UP)
		release_sandbox(w);
	return 0;
}

static bool can_suspend(const struct core_workspace *w)
{
	return w->model.idle_timeout_ms && !w->life->is_suspending &&
	       w->model.state == WORKSPACE_READY;
}

static void suspend_now(struct core_workspace *w)
{
	if (w->sandbox.state == SANDBOX_UP) {
		w->life->is_suspending = true;
		core_end_sandbox(w, REASON_CANCELED);
		return;
	}
	if (w->sandbox.state == SANDBOX_NONE)
		sandbox_suspended(w);
}

static void on_idle(struct loop *loop, void *ctx)
{
	struct core_workspace *w = ctx;
	w->life->idle = NULL;
	if (can_suspend(w) && idle_ms(w) >= w->model.idle_timeout_ms)
		suspend_now(w);
	else if (w->sandbox.state == SANDBOX_UP && unneeded_ms(w) >= w->core->release_after_ms) {
		if (!w->is_spare && sandbox_has_processes(w))
			w->life->kept_ms = clock_monotonic_ms();
		else
			release_sandbox(w);
	}
	lifetime_arm(w);
}

static bool is_expired(const struct core_workspace *w)
{
	return w->model.expires_ms && w->life->expires_at_ms <= clock_monotonic_ms();
}

/* Its life begins anew. Its timer may be early: it looks then. */
void lifetime_used(struct core_workspace *w)
{
	struct workspace *model = &w->model;
	if (!workspace_ttl_is_idle(model) || !model->ttl_ms)
		return;
	model->expires_ms = model->last_used_ms + (int64_t)model->ttl_ms;
	w->expires_from_ms = model->expires_ms;
	w->life->expires_at_ms = w->used_ms + model->ttl_ms;
}

bool lifetime_is_held(const struct core_workspace *w)
{
	return workspace_ttl_is_idle(&w->model) &&
	       (is_busy(w) || (w->sandbox.state == SANDBOX_UP && sandbox_has_processes(w)));
}

static void on_expiry(struct loop *loop, void *ctx)
{
	struct core_workspace *w = ctx;
	w->life->expiry = NULL;
	if (is_expired(w) && lifetime_is_held(w))
		core_touch(w);
	if (!is_expired(w)) {
		lifetime_arm(w); /* a long life is timed in parts */
		return;
	}
	w->core->metrics.expired++;
	journal_emit(&w->core->journal, "workspace.expired", w->model.id, w->model.name, NULL);
	w->wants_archive = archives_keep_expired(w->core) && !w->removal;
	w->archive_is_partial = w->wants_archive;
	core_remove(&request_system, w, "expired", NULL, NULL);
}

void lifetime_postpone(struct core_workspace *w)
{
	uint64_t soon = clock_monotonic_ms() + EXPIRE_AGAIN_MS;
	if (w->model.expires_ms && w->life->expires_at_ms < soon)
		w->life->expires_at_ms = soon;
	lifetime_arm(w);
}

/* The rest of `most` after that time; at least 1. */
static uint64_t left_of(uint64_t most, uint64_t passed)
{
	return most > passed ? most - passed : 1;
}

/* Its next look at itself; nothing is moved when it is used: it looks, and goes to sleep again. */
void lifetime_arm(struct core_workspace *w)
{
	uint64_t wait = UINT64_MAX, left;
	if (w->is_gone || w->model.state == WORKSPACE_DELETING)
		return;
	if (w->sandbox.state == SANDBOX_UP)
		wait = left_of(w->core->release_after_ms, unneeded_ms(w));
	if (can_suspend(w) && (left = left_of(w->model.idle_timeout_ms, idle_ms(w))) < wait)
		wait = left;
	if (w->life->idle)
		loop_cancel(w->core->loop, w->life->idle);
	w->life->idle = NULL;
	if (wait != UINT64_MAX)
		w->life->idle = loop_after(w->core->loop, wait, on_idle, w);
	if (w->life->expiry)
		loop_cancel(w->core->loop, w->life->expiry);
	w->life->expiry = NULL;
	if (!w->model.expires_ms)
		return;
	if (w->expires_from_ms != w->model.expires_ms) { /* first seen, or changed */
		int64_t life_ms = w->model.expires_ms - clock_now_ms();
		w->expires_from_ms = w->model.expires_ms;
		w->life->expires_at_ms =
			clock_monotonic_ms() + (life_ms > 0 ? (uint64_t)life_ms : 0);
	}
	uint64_t now = clock_monotonic_ms();
	left = w->life->expires_at_ms > now ? w->life->expires_at_ms - now : 0;
	w->life->expiry =
		loop_after(w->core->loop, left < TIMER_MAX_MS ? left : TIMER_MAX_MS, on_expiry, w);
}

void lifetime_disarm(struct core_workspace *w)
{
	struct loop_timer **timers[] = { &w->life->idle, &w->life->expiry };
	for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
		if (*timers[i])
			loop_cancel(w->core->loop, *timers[i]);
		*timers[i] = NULL;
	}
}

/* ---- measuring: one child at a time, in the order asked ---- */

static struct pace_counters read_counters(const struct core *core)
{
	struct statvfs fs;
	if (fstatvfs(core->workspaces, &fs))
		return (struct pace_counters){ 0 };
	return (struct pace_counters){ fs.f_bfree * fs.f_frsize, fs.f_ffree, fs.f_files };
}

static bool is_near(const struct core_workspace *w)
{
	struct pace_counters now = read_counters(w->core);
	return pace_is_near(&w->measured.counters, &now, w->model.limits.disk_bytes);
}

static bool is_rested(const struct core_workspace *w)
{
	return clock_monotonic_ms() - w->measured.at_ms >= w->measured.cost_ms * REST_SHARE;
}

/* For nobody in particular: what little has changed on the file system can wait. What others have
 * freed may hide a growth, but not for long. */
static bool is_walk_due(const struct core_workspace *w)
{
	bool is_late = clock_monotonic_ms() - w->measured.at_ms >= SWEEP_MS * SWEEPS_MOST;
	return is_rested(w) && (is_late || !is_near(w));
}

static uint64_t measure_tree(void *ctx)
{
	struct core *core = ctx;
	return tree_measure(core->upkeep->measurements->w);
}

static void measure_next(struct core *core);

void disk_usage_changed(struct core_workspace *w)
{
	const struct workspace *model = &w->model;
	uint64_t most = model->limits.disk_bytes;
	bool is_high = most && model->disk_usage_bytes >= most / 100 * DISK_WARNING_PERCENT;
	char used[24], limit[24];
	if (is_high && !w->life->has_warned && !w->is_spare) {
		str_format(used, sizeof used, "%llu", (unsigned long long)model->disk_usage_bytes);
		str_format(limit, sizeof limit, "%llu", (unsigned long long)most);
		journal_emit(&w->core->journal, "workspace.disk_warning", model->id, model->name,
			"#disk_usage_bytes", used, "#disk_limit_bytes", limit, NULL);
	}
	/* A walk that began before the last command says nothing about what it wrote. */
	w->life->has_warned = is_high || (w->life->has_warned && w->is_dirty);
}

static void on_measured(void *ctx, bool ok, uint64_t bytes)
{
	struct core *core = ctx;
	struct core_waiter *first = core->upkeep->measurements;
	core->upkeep->closed_meter = NULL;
	if (ok && bytes == TREE_CLOSED) {
		core->upkeep->closed_meter = tree_measure_closed(first->w, on_measured, core);
		return;
	}
	core->upkeep->measurements = first->next;
	/* What can't be measured keeps its last figure; the limit's own watch is stricter. */
	if (ok && bytes != TREE_ENDLESS) {
		uint64_t now_ms = clock_monotonic_ms();
		if (first->w->measured.moves == core->upkeep->meter_moves)
			first->w->measured.counters = core->upkeep->meter_counters;
		first->w->measured.bytes = bytes;
		first->w->measured.at_ms = now_ms;
		first->w->measured.cost_ms = now_ms - core->upkeep->meter_began_ms;
		first->w->model.disk_usage_bytes = bytes;
		disk_usage_changed(first->w);
	}
	measure_next(core);
	waiter_call(first, NULL, NULL);
}

static void measure_next(struct core *core)
{
	if (!core->upkeep->measurements || core->upkeep->meter.is_running ||
		core->upkeep->closed_meter)
		return;
	core->upkeep->meter_counters = read_counters(core);
	core->upkeep->meter_began_ms = clock_monotonic_ms();
	core->upkeep->meter_moves = core->upkeep->measurements->w->measured.moves;
	core_start_child(
		core, &core->upkeep->meter, measure_tree, on_measured, core->workspaces, -1);
}

bool core_must_measure(const struct core_workspace *w, uint64_t bytes)
{
	if (!bytes)
		bytes = w->model.limits.disk_bytes / 2;
	return w->is_dirty && bytes > files_room(w);
}

void core_measure(
	const struct request *request, struct core_workspace *w, core_workspace_fn *done, void *ctx)
{
	struct core *core = w->core;
	struct error err;
	if (access_check(core, request, VERB_WORKSPACE_MEASURE, w, &err)) {
		core_later(core, done, ctx, NULL, &err);
		return;
	}
	if (!w->is_dirty || w->is_gone) {
		core_later(core, done, ctx, w, NULL);
		return;
	}
	if (is_near(w) && !is_rested(w)) { /* the dearer its walk, the longer that is enough */
		w->model.disk_usage_bytes = w->measured.bytes;
		core_later(core, done, ctx, w, NULL);
		return;
	}
	w->is_dirty = is_busy(w); /* what still runs goes on writing */
	waiter_append(&core->upkeep->measurements, waiter_new(done, ctx, w, NULL));
	measure_next(core);
}

/* ---- now and then ---- */

static void on_sweep(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	for (struct core_workspace *w = core->newest; w; w = w->older) {
		if (w->model.state == WORKSPACE_DELETING && !w->removal)
			core_remove(&request_system, w, is_expired(w) ? "expired" : "removed", NULL,
				NULL); /* its row could not be removed, some time ago */
		if (w->model.state == WORKSPACE_CREATING || w->model.state == WORKSPACE_DELETING)
			continue;
		/* What is in use now was used now, also when core is killed next. */
		if (w->model.ttl_ms && workspace_ttl_is_idle(&w->model) && is_busy(w))
			core_touch(w);
		if (w->saved_last_used_ms != w->model.last_used_ms)
			workspace_save(w, NULL, NULL);
		if (w->is_dirty && is_walk_due(w))
			core_measure(&request_system, w, NULL, NULL);
	}
	log_bound(core);
	core->upkeep->sweep = loop_after(loop, SWEEP_MS, on_sweep, core);
}

void lifetimes_start(struct core *core)
{
	core->upkeep->sweep = loop_after(core->loop, SWEEP_MS, on_sweep, core);
}

void lifetimes_stop(struct core *core)
{
	struct loop_timer **timers[] = { &core->upkeep->sweep, &core->upkeep->cleaning,
		&core->upkeep->spare_due, &core->upkeep->spare_alone, &core->tidy };
	for (size_t i = 0; i < sizeof timers / sizeof *timers; i++)
		if (*timers[i])
			loop_cancel(core->loop, *timers[i]);
	measure_stop(&core->upkeep->cleaner);
	measure_stop(&core->upkeep->meter);
	tree_measure_forget(core->upkeep->closed_meter);
	measure_stop(&core->rotation);
	waiters_forget(core->upkeep->clean_waiters);
	waiters_forget(core->upkeep->measurements);
}
