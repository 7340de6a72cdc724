#include "core/execs/watch.h"

#include <signal.h>
#include "base/clock.h"
#include "core/execs/internal.h"
#include "core/access/policies.h"
#include "core/internal.h"
#include "core/execs/watch_disk.h"
#include "sandbox/native/usage.h"

#define STATS_EVERY 5 /* samples between two questions to init */
#define OOM_LOOK_MS 2 /* after the kernel told of an OOM, the kill is looked for so often */
#define OOM_LOOKS 500
#define LAST_WORD_MS 100
#define SOCKETS_MS 100
/* Looks for those who want to see them: each sandbox so often at most, all together a tenth of one
 * cpu, of which a second's worth may be used at once. */
#define SHOWN_MS 200
#define SHOWN_COST 10
#define SHOWN_AHEAD_US 1000000

struct watch_limits {
	struct core_workspace *w;
	struct execs *execs;
	bool is_watchdog, has_usage, is_oom_watched, is_sampling;
	struct usage usage;
	struct sample look;
	struct loop_timer *sample, *oom, *sockets;
	unsigned samples;
	int oom_looks; /* since the last event */
	struct watch_disk disk;
	struct workspace_metrics shown; /* of watch_measure, */
	uint64_t shown_ms;		/* when, monotonic; 0: never */
};

static struct watch_limits *limits_of(const struct core_workspace *w)
{
	return w->sandbox.connection ? w->sandbox.connection->limits : NULL;
}

static bool need_usage(struct watch_limits *limits);

/* Ends the sandbox for a limit. Notes its usage first: the kernel doesn't report that of killed
 * processes. */
static void end_sandbox(struct watch_limits *limits, enum reason reason)
{
	uint64_t peak = need_usage(limits) ? usage_peak_kb(&limits->usage) * 1024 : 0;
	for (struct core_exec *e = limits->w->sandbox.execs; e; e = e->next)
		if (exec_is_sent(e))
			e->record.result.max_rss_bytes = peak;
	core_end_sandbox(limits->w, reason);
}

void watch_disk_hit(struct core_workspace *w)
{
	end_sandbox(limits_of(w), REASON_DISK_LIMIT);
}

struct watch_disk *watch_disk_of(const struct core_workspace *w)
{
	struct watch_limits *limits = limits_of(w);
	return limits ? &limits->disk : NULL;
}

bool watch_forbids_growth(const struct core_workspace *w)
{
	return watch_disk_forbids_growth(&limits_of(w)->disk);
}

/* ---- memory ---- */

bool watch_is_out_of_memory(struct core_workspace *w)
{
	return view_is_out_of_memory(&w->sandbox.view);
}

static void on_killed(struct loop *loop, void *ctx)
{
	struct watch_limits *limits = ctx;
	limits->oom = NULL;
	end_sandbox(limits, REASON_MEMORY_LIMIT);
}

/* v1 tells of an OOM before anything is killed for it, and perhaps nothing will be. When it was a
 * command, init is about to say what that has used. */
static void look_for_kills(struct loop *loop, void *ctx)
{
	struct watch_limits *limits = ctx;
	limits->oom = NULL;
	if (watch_is_out_of_memory(limits->w))
		limits->oom = loop_after(loop, LAST_WORD_MS, on_killed, limits);
	else if (++limits->oom_looks < OOM_LOOKS)
		limits->oom = loop_after(loop, OOM_LOOK_MS, look_for_kills, limits);
}

static void on_oom(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct watch_limits *limits = ctx;
	view_rearm_memory(&limits->w->sandbox.view);
	limits->oom_looks = 0;
	loop_cancel(loop, limits->oom);
	look_for_kills(loop, limits);
}

/* On v1 the kernel counts the buffers of sockets apart. It stops at half of the limit, but for the
 * first buffer of each socket: thousands of sockets have as much again, and more. */
static void look_at_sockets(struct loop *loop, void *ctx)
{
	struct watch_limits *limits = ctx;
	struct core_workspace *w = limits->w;
	uint64_t bytes;
	limits->sockets = NULL;
	if (w->sandbox.state == SANDBOX_ENDING || (!w->sandbox.exec_count && w->sandbox.is_alone))
		return;
	if (view_socket_bytes(&w->sandbox.view, &bytes) &&
		bytes > policies_limit_memory(w, w->model.limits.memory_bytes)) {
		end_sandbox(limits, REASON_MEMORY_LIMIT);
		return;
	}
	limits->sockets = loop_after(loop, SOCKETS_MS, look_at_sockets, limits);
}

static void watch_sockets(struct watch_limits *limits)
{
	if (!limits->sockets && view_counts_sockets(&limits->w->sandbox.view))
		limits->sockets =
			loop_after(limits->execs->core->loop, SOCKETS_MS, look_at_sockets, limits);
}

/* ---- cpu time ---- */

/* Of the whole sandbox in ms, 0 when it isn't counted. */
static uint64_t sandbox_cpu_ms(struct core_workspace *w)
{
	struct watch_limits *limits = limits_of(w);
	uint64_t used_ms;
	if (view_cpu_ms(&w->sandbox.view, &used_ms))
		return used_ms;
	return limits && limits->has_usage ? usage_cpu_ms(&limits->usage) : 0;
}

/* Ends those that are over; the least time in which another can be. */
static uint64_t look_at_cpu_time(struct watch_limits *limits, uint64_t used_ms)
{
	uint64_t least_ms = UINT64_MAX;
	struct core_exec *next;
	for (struct core_exec *e = limits->w->sandbox.execs; e; e = next) {
		next = e->next;
		uint64_t limit_ms = e->record.cpu_time_ms;
		if (!limit_ms || e->limit)
			continue;
		uint64_t spent_ms = used_ms > e->cpu_base_ms ? used_ms - e->cpu_base_ms : 0;
		if (spent_ms >= limit_ms)
			exec_kill(e, REASON_CPU_LIMIT);
		else if (limit_ms - spent_ms < least_ms)
			least_ms = limit_ms - spent_ms;
	}
	return least_ms == UINT64_MAX ? least_ms : least_ms / limits->execs->cpus;
}

static bool has_cpu_limit(const struct watch_limits *limits)
{
	for (const struct core_exec *e = limits->w->sandbox.execs; e; e = e->next)
		if (e->record.cpu_time_ms)
			return true;
	return false;
}

/* ---- samples ---- */

static void on_hit(void *ctx, enum reason reason)
{
	end_sandbox(ctx, reason);
}

static bool need_usage(struct watch_limits *limits)
{
	struct error err;
	if (limits->has_usage)
		return true;
	if (view_open_usage(&limits->w->sandbox.view, &limits->usage, &err)) {
		if (err.code == ERR_UNAVAILABLE)
			return false;
		log_record(&limits->w->core->log, LOG_LEVEL_ERROR,
			"the usage of a sandbox can't be measured", "workspace",
			limits->w->model.id, "error", err.text, NULL);
		return false;
	}
	return limits->has_usage = true;
}

static void stop_sampling(struct watch_limits *limits)
{
	loop_cancel(limits->execs->core->loop, limits->sample);
	limits->sample = NULL;
	if (limits->is_sampling)
		limits->execs->sampled--;
	limits->is_sampling = false;
}

static void on_sample(struct loop *loop, void *ctx)
{
	struct watch_limits *limits = ctx;
	struct core_workspace *w = limits->w;
	uint64_t began_us = clock_process_cpu_us(), rest_ms, cpu_rest_ms = UINT64_MAX;
	limits->sample = NULL;
	if (limits->is_watchdog && sample_is_memory_over(&limits->look)) {
		stop_sampling(limits);
		end_sandbox(limits, REASON_MEMORY_LIMIT);
		return;
	}
	bool shares = limits->is_watchdog && w->model.limits.millicpus;
	if (shares || has_cpu_limit(limits)) {
		uint64_t used_ms = sandbox_cpu_ms(w);
		cpu_rest_ms = look_at_cpu_time(limits, used_ms);
		if (shares)
			sample_hold_share(&limits->look, used_ms);
	}
	bool is_idle = !w->sandbox.exec_count && (!limits->is_watchdog || w->sandbox.is_alone ||
							 limits->usage.processes <= 1);
	if (is_idle || w->sandbox.state == SANDBOX_ENDING ||
		(!limits->is_watchdog && cpu_rest_ms == UINT64_MAX)) {
		stop_sampling(limits);
		return;
	}
	if (limits->is_watchdog && limits->samples++ % STATS_EVERY == 0)
		connection_send(w, INIT_STATS, 0, 0);
	rest_ms = sample_rest_ms(clock_process_cpu_us() - began_us, limits->execs->sampled);
	if (!limits->is_watchdog && cpu_rest_ms > rest_ms)
		rest_ms = cpu_rest_ms;
	limits->sample = loop_after(loop, rest_ms, on_sample, limits);
}

static void start_sampling(struct watch_limits *limits)
{
	if (limits->is_sampling)
		return;
	limits->is_sampling = true;
	limits->execs->sampled++;
	limits->sample = loop_after(limits->execs->core->loop, SAMPLE_MS, on_sample, limits);
}

void watch_receive_stats(struct core_workspace *w, uint64_t shm_bytes)
{
	limits_of(w)->usage.sysv_bytes = shm_bytes;
}

/* ---- shown ---- */

static bool may_look(const struct watch_limits *limits, uint64_t now_ms)
{
	return (!limits->shown_ms || now_ms - limits->shown_ms >= SHOWN_MS) &&
	       limits->execs->looks_paid_us < now_ms * 1000 + SHOWN_AHEAD_US;
}

static void look(struct watch_limits *limits, uint64_t now_ms)
{
	struct workspace_metrics *shown = &limits->shown;
	struct execs *execs = limits->execs;
	uint64_t began_us = clock_process_cpu_us(), before_ms = shown->cpu_ms;
	shown->cpu_ms = sandbox_cpu_ms(limits->w);
	usage_look(&limits->usage, &shown->memory_bytes, &shown->pids);
	shown->measured_ms = clock_now_ms();
	shown->has_cpu_percent = limits->shown_ms != 0;
	if (shown->has_cpu_percent && shown->cpu_ms > before_ms)
		shown->cpu_percent = 100.0 * (double)(shown->cpu_ms - before_ms) /
				     (double)(now_ms - limits->shown_ms);
	else
		shown->cpu_percent = 0;
	limits->shown_ms = now_ms;
	uint64_t cost_us = (clock_process_cpu_us() - began_us) * SHOWN_COST;
	if (execs->looks_paid_us < now_ms * 1000)
		execs->looks_paid_us = now_ms * 1000;
	execs->looks_paid_us += cost_us;
}

void watch_measure(struct core_workspace *w, struct workspace_metrics *metrics)
{
	struct watch_limits *limits = limits_of(w);
	uint64_t now_ms = clock_monotonic_ms();
	if (!limits || w->sandbox.state != SANDBOX_UP || !need_usage(limits))
		return;
	if (may_look(limits, now_ms))
		look(limits, now_ms);
	metrics->measured_ms = limits->shown.measured_ms;
	metrics->cpu_ms = limits->shown.cpu_ms;
	metrics->cpu_percent = limits->shown.cpu_percent;
	metrics->has_cpu_percent = limits->shown.has_cpu_percent;
	metrics->memory_bytes = limits->shown.memory_bytes;
	metrics->pids = limits->shown.pids;
}

/* ---- execs come and go ---- */

void watch_spawning(struct core_workspace *w, struct core_exec *e)
{
	struct watch_limits *limits = limits_of(w);
	if (limits->is_watchdog || e->record.cpu_time_ms) {
		if (limits->is_watchdog)
			need_usage(limits);
		if (e->record.cpu_time_ms)
			e->cpu_base_ms = sandbox_cpu_ms(w);
		start_sampling(limits);
	}
	watch_sockets(limits);
	watch_disk_spawning(&limits->disk);
}

void watch_add_usage(struct core_workspace *w, struct core_exec *e)
{
	uint64_t used_ms = e->record.cpu_time_ms ? sandbox_cpu_ms(w) : 0;
	uint64_t spent_ms = used_ms > e->cpu_base_ms ? used_ms - e->cpu_base_ms : 0;
	if (spent_ms > e->record.result.cpu_ms)
		e->record.result.cpu_ms = spent_ms;
}

enum watch_verdict watch_last_look(
	struct core_workspace *w, struct core_exec *e, enum reason *reason)
{
	struct watch_limits *limits = limits_of(w);
	if (!limits)
		return WATCH_NOTHING;
	if (watch_is_out_of_memory(w)) {
		core_end_sandbox(w, REASON_MEMORY_LIMIT);
		*reason = REASON_MEMORY_LIMIT;
		return WATCH_HIT;
	}
	if (e->record.cpu_time_ms && e->record.result.cpu_ms >= e->record.cpu_time_ms) {
		*reason = REASON_CPU_LIMIT;
		return WATCH_HIT;
	}
	*reason = REASON_DISK_LIMIT; /* also of an exec that has it already */
	return watch_disk_last_look(&limits->disk, e);
}

void watch_forget(struct core_workspace *w, struct core_exec *e)
{
	struct watch_limits *limits = limits_of(w);
	if (!limits || e->judgement != JUDGEMENT_AWAITED)
		return;
	watch_disk_forget(&limits->disk, e);
}

/* ---- stopped for a copy ---- */

void watch_pause(struct core_workspace *w, bool pause)
{
	struct watch_limits *limits = limits_of(w);
	w->is_paused = pause;
	if (!limits)
		return;
	limits->look.is_held = pause;
	/* What is stopped for its share or its disk goes on when that is over. */
	if (pause || (!limits->look.is_paused && !limits->disk.is_stopped))
		connection_send(w, INIT_SIGNAL, 0, pause ? SIGSTOP : SIGCONT);
}

/* ---- opened and closed ---- */

/* What a core before this one left there is limited as before, whether or not an exec runs. */
static void adopt(struct watch_limits *limits)
{
	if (!limits->is_watchdog)
		return;
	/* That core may have stopped everything there for its share. */
	connection_send(limits->w, INIT_SIGNAL, 0, SIGCONT);
	if (need_usage(limits))
		start_sampling(limits);
}

int watch_open(struct core_workspace *w, struct error *err)
{
	struct watch_limits *limits = xzalloc(sizeof *limits);
	struct core_sandbox *sandbox = &w->sandbox;
	*limits = (struct watch_limits){ .w = w,
		.execs = w->core->execs,
		.is_watchdog = sandbox->view.limiter == LIMITER_WATCHDOG,
		.disk = { .w = w, .execs = w->core->execs } };
	sandbox->connection->limits = limits;
	limits->look = (struct sample){ .loop = w->core->loop,
		.init_socket = sandbox->view.init,
		.memory_bytes = policies_limit_memory(w, w->model.limits.memory_bytes),
		.millicpus = w->model.limits.millicpus,
		.hit = on_hit,
		.ctx = limits,
		.usage = &limits->usage };
	sample_begin(&limits->look);
	watch_disk_open(&limits->disk, sandbox->connection->is_adopted);
	if (sandbox->connection->is_adopted) {
		adopt(limits);
		watch_sockets(limits);
	}
	uint32_t events;
	int oom = view_memory_events(&sandbox->view, &events);
	if (oom < 0)
		return 0;
	if (loop_watch(w->core->loop, oom, events, on_oom, limits, err))
		return error_context(err, "watch the memory of the sandbox");
	limits->is_oom_watched = true;
	return 0;
}

void watch_close(struct core_workspace *w)
{
	struct watch_limits *limits = limits_of(w);
	struct loop *loop = w->core->loop;
	if (!limits)
		return;
	stop_sampling(limits);
	loop_cancel(loop, limits->oom);
	loop_cancel(loop, limits->sockets);
	uint32_t events;
	if (limits->is_oom_watched)
		loop_unwatch(loop, view_memory_events(&w->sandbox.view, &events));
	watch_disk_close(&limits->disk);
	sample_end(&limits->look);
	if (limits->has_usage)
		usage_done(&limits->usage);
	w->sandbox.connection->limits = NULL;
	free(limits);
}
