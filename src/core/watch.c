#include "core/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/magic.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/exec_parts.h"
#include "core/parts.h"
#include "format/procfs.h"
#include "sandbox/sample.h"

#define OWN_BLOCKS_SHARE 256 /* of a file system, at most, and for small ones */
#define OWN_BLOCKS_BYTES 65536
#define STATS_EVERY 5 /* samples between two questions to init */
#define OOM_LOOK_MS 2 /* after the kernel told of an OOM, the kill is looked for so often */
#define OOM_LOOKS 500
#define LAST_WORD_MS 100
#define DISK_MS 250
#define DISK_LEFT_MS 1000     /* while nothing runs but what execs have left behind */
#define DISK_COST_SHARE 10    /* a walk of n ms is followed by n * 10 ms of rest */
#define MEASURES_MOST 2	      /* trees that are walked at once, */
#define MEASURES_COST_SHARE 3 /* and as much rest in between for all of them */
#define MASKED_MS                                                                                  \
	5000 /* for so long what others free at the same time may hide what is written             \
	      */
#define QGROUP_NODES 65536	  /* btrfs keeps some of a limit for nodes of its own trees */
#define WRITTEN_A_MS (2ull << 20) /* bytes: more than any disk or cache takes in a ms */

enum disk { DISK_UNLIMITED, DISK_QUOTA, DISK_EXACT, DISK_COUNTED };

struct watch_limits {
	struct core_workspace *w;
	struct exec_shelf *shelf;
	bool is_watchdog, has_usage, is_oom_watched, is_sampling;
	struct usage usage;
	struct sample look;
	struct loop_timer *sample, *oom, *disk_timer;
	unsigned samples;
	int oom_looks; /* since the last event */
	enum disk disk;
	bool was_full;		/* at a sample */
	bool was_over;		/* before the exec that began when nothing ran */
	struct measure tree;	/* takes long to find */
	uint64_t tree_began_ms; /* and not again before */
	uint64_t tree_after_ms;
	uint64_t over_bytes; /* when it was first seen over its limit; 0: it isn't */
	uint64_t known_bytes, unmeasured_ms; /* time in which commands ran since that was known */
	uint64_t known_at_ms, free_bytes;    /* on the whole file system, then */
	uint64_t free_before;		     /* when the walk began */
	unsigned walks;			     /* begun */
	struct core_exec *judged;	     /* wait for one; linked by own->judged_next */
};

static struct watch_limits *limits_of(const struct core_workspace *w)
{
	return w->sandbox.watch ? w->sandbox.watch->limits : NULL;
}

static bool need_usage(struct watch_limits *limits);

/* Ends it for a limit. The kernel tells nobody afterwards what those that it kills have used. */
static void end_sandbox(struct watch_limits *limits, enum reason reason)
{
	uint64_t peak = need_usage(limits) ? usage_peak_kb(&limits->usage) * 1024 : 0;
	for (struct core_exec *e = limits->w->sandbox.execs; e; e = e->next)
		if (e->own->phase == EXEC_PHASE_SENT)
			e->record.result.max_rss_bytes = peak;
	core_end_sandbox(limits->w, reason);
}

/* ---- memory ---- */

static bool read_number(int fd, const char *key, uint64_t *value)
{
	char text[1024];
	ssize_t len = fd < 0 ? -1 : pread(fd, text, sizeof text, 0);
	struct str all = { text, len > 0 ? (size_t)len : 0 };
	if (len <= 0)
		return false;
	return key ? procfs_find_number(all, key, value) : str_to_u64(str_trim(all), value);
}

bool watch_is_out_of_memory(struct core_workspace *w)
{
	uint64_t kills;
	return read_number(w->sandbox.fds[LAUNCH_FD_OOM_COUNT], "oom_kill", &kills) && kills;
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
	char text[1024];
	/* v1's eventfd is emptied, v2's file armed again. */
	(void)!read(fd, text, sizeof(uint64_t));
	(void)!pread(fd, text, sizeof text, 0);
	limits->oom_looks = 0;
	loop_cancel(loop, limits->oom);
	look_for_kills(loop, limits);
}

/* ---- cpu time ---- */

/* Of the whole sandbox in ms, 0 when nobody counts. */
static uint64_t sandbox_cpu_ms(struct core_workspace *w)
{
	struct watch_limits *limits = limits_of(w);
	uint64_t value;
	int fd = w->sandbox.fds[LAUNCH_FD_CPU];
	if (read_number(fd, "usage_usec", &value))
		return value / 1000;
	if (read_number(fd, NULL, &value))
		return value / 1000000;
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
		if (!limit_ms || e->own->has_limit)
			continue;
		uint64_t spent_ms =
			used_ms > e->own->cpu_base_ms ? used_ms - e->own->cpu_base_ms : 0;
		if (spent_ms >= limit_ms)
			exec_kill(e, REASON_CPU_LIMIT);
		else if (limit_ms - spent_ms < least_ms)
			least_ms = limit_ms - spent_ms;
	}
	return least_ms == UINT64_MAX ? least_ms : least_ms / limits->shelf->cpus;
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

static int tmpfs_of(int fd)
{
	struct statfs fs;
	return fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC ? fd : -1;
}

static bool need_usage(struct watch_limits *limits)
{
	const int *fds = limits->w->sandbox.fds;
	const int tmpfs[USAGE_TMPFS] = { tmpfs_of(fds[LAUNCH_FD_ROOT]), -1, -1 };
	struct error err;
	if (limits->has_usage || fds[LAUNCH_FD_PROC] < 0)
		return limits->has_usage;
	if (usage_init(&limits->usage, fds[LAUNCH_FD_PROC], tmpfs, &err)) {
		log_record(&limits->w->core->log, LOG_LEVEL_ERROR, "a sandbox can't be measured",
			"workspace", limits->w->model.id, "error", err.text, NULL);
		return false;
	}
	return limits->has_usage = true;
}

static void stop_sampling(struct watch_limits *limits)
{
	loop_cancel(limits->shelf->core->loop, limits->sample);
	limits->sample = NULL;
	if (limits->is_sampling)
		limits->shelf->sampled--;
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
	if (is_idle || w->sandbox.is_ending ||
		(!limits->is_watchdog && cpu_rest_ms == UINT64_MAX)) {
		stop_sampling(limits);
		return;
	}
	if (limits->is_watchdog && limits->samples++ % STATS_EVERY == 0)
		line_send(w, INIT_STATS, 0, 0);
	rest_ms = sample_rest_ms(clock_process_cpu_us() - began_us, limits->shelf->sampled);
	if (!limits->is_watchdog && cpu_rest_ms > rest_ms)
		rest_ms = cpu_rest_ms;
	limits->sample = loop_after(loop, rest_ms, on_sample, limits);
}

static void start_sampling(struct watch_limits *limits)
{
	if (limits->is_sampling)
		return;
	limits->is_sampling = true;
	limits->shelf->sampled++;
	limits->sample = loop_after(limits->shelf->core->loop, SAMPLE_MS, on_sample, limits);
}

void watch_heard_stats(struct core_workspace *w, uint64_t shm_bytes)
{
	limits_of(w)->usage.sysv_bytes = shm_bytes;
}

/* ---- disk ---- */

/* A tree that was made too deep or unreadable to be measured is over every limit. What was deleted
 * and is still open takes its room all the same. Runs in a child. */
static uint64_t find_tree(void *ctx)
{
	struct watch_limits *limits = ctx;
	struct core_workspace *w = limits->w;
	struct error err;
	struct stat st;
	uint64_t bytes;
	if (fstat(w->core->workspaces, &st) || tree_measure(w->core, w->model.id, &bytes, &err))
		return UINT64_MAX;
	return bytes + (limits->has_usage ? usage_deleted_bytes(&limits->usage, st.st_dev) : 0);
}

/* Whether anybody can write there. What is left of execs that have ended is kept by a quota, if
 * there is one. */
static bool has_writers(const struct watch_limits *limits)
{
	const struct core_workspace *w = limits->w;
	return w->sandbox.exec_count ||
	       (limits->disk == DISK_COUNTED && w->sandbox.is_up && sandbox_has_processes(w));
}

static void on_disk(struct loop *loop, void *ctx);

static void arm_disk(struct watch_limits *limits, uint64_t least_ms)
{
	uint64_t now_ms = clock_monotonic_ms();
	uint64_t wait_ms = limits->tree_after_ms > now_ms ? limits->tree_after_ms - now_ms : 0;
	if (limits->disk == DISK_UNLIMITED || limits->disk == DISK_EXACT || limits->disk_timer ||
		limits->tree.is_running)
		return;
	limits->disk_timer = loop_after(limits->shelf->core->loop,
		wait_ms > least_ms ? wait_ms : least_ms, on_disk, limits);
}

static void arm_disk_again(struct watch_limits *limits)
{
	arm_disk(limits, limits->w->sandbox.exec_count ? DISK_MS : DISK_LEFT_MS);
}

static void set_disk_limit(struct core_exec *e)
{
	if (!e->own->has_limit)
		e->own->limit = REASON_DISK_LIMIT;
	e->own->has_limit = true;
}

/* By itself: one that a caller has ended by a signal has not. */
static bool has_failed(const struct core_exec *e)
{
	const struct result *result = &e->record.result;
	return result_has_failed(result) &&
	       !(result->signal && result->signal == e->own->signal_sent);
}

/* Those whose end waited for a walk up to this one. */
static void judge_all(struct watch_limits *limits, unsigned walk, bool is_over)
{
	struct core_exec **at = &limits->judged, *e, *found = NULL;
	while ((e = *at)) {
		if (e->own->judged_by > walk) {
			at = &e->own->judged_next;
			continue;
		}
		*at = e->own->judged_next;
		e->own->judged_next = found;
		found = e;
	}
	while ((e = found)) {
		found = e->own->judged_next;
		e->own->is_judging = false;
		if (is_over && has_failed(e))
			set_disk_limit(e);
		exec_go_on_ending(e);
	}
}

/* On the whole file system; 0: nobody knows. btrfs counts what is written when it gets to the disk.
 */
static uint64_t free_bytes(const struct core *core)
{
	struct statfs fs;
	if (fstatfs(core->workspaces, &fs) || fs.f_type == BTRFS_SUPER_MAGIC)
		return 0;
	return (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize;
}

/* So much is there when a write fails for the limit. */
static uint64_t full_bytes(const struct watch_limits *limits)
{
	uint64_t limit = limits->w->model.limits.disk_bytes;
	return limits->disk == DISK_EXACT && limit > QGROUP_NODES ? limit - QGROUP_NODES : limit;
}

static void measure_tree(struct watch_limits *limits);

/* It ends when a walk has begun and ended after this moment. */
static enum watch_verdict judge_by_tree(struct watch_limits *limits, struct core_exec *e)
{
	unsigned walk = limits->walks + 1;
	measure_tree(limits);
	if (!limits->tree.is_running)
		return e->own->has_limit ? WATCH_HIT : WATCH_NOTHING;
	e->own->judged_by = walk;
	e->own->judged_next = limits->judged;
	limits->judged = e;
	return WATCH_LATER;
}

/* So much that what runs is ended for it: since the first walk over its limit while this ran. The
 * file system's own blocks, which come when files get to the disk, aren't its doing. */
static bool has_grown(const struct watch_limits *limits, uint64_t bytes)
{
	uint64_t over = limits->over_bytes;
	return bytes == UINT64_MAX ||
	       bytes > (over ? over + over / OWN_BLOCKS_SHARE + OWN_BLOCKS_BYTES
			     : limits->known_bytes);
}

static void note_tree(struct watch_limits *limits, uint64_t bytes, bool is_first)
{
	struct core_workspace *w = limits->w;
	uint64_t limit = w->model.limits.disk_bytes, free_after = free_bytes(w->core);
	if (bytes <= limit)
		w->is_overgrown = false;
	else if (limits->known_bytes > limit && bytes > limits->known_bytes)
		w->is_overgrown = true;
	if (bytes <= limit || !limits->over_bytes || is_first)
		limits->over_bytes = bytes <= limit ? 0 : bytes == UINT64_MAX ? limit : bytes;
	limits->known_bytes = bytes;
	limits->known_at_ms = limits->tree_began_ms;
	/* What was removed during the walk must hide nothing that is written after it. */
	limits->free_bytes = limits->free_before > free_after ? limits->free_before : free_after;
	limits->unmeasured_ms = 0;
	if (bytes != UINT64_MAX)
		w->model.disk_usage_bytes = bytes;
}

bool watch_forbids_growth(const struct core_workspace *w)
{
	const struct watch_limits *limits = limits_of(w);
	/* Others may have made room, or the limit larger, since a walk. */
	return w->is_overgrown && limits->disk == DISK_COUNTED &&
	       (limits->known_bytes == UINT64_MAX ||
		       w->model.disk_usage_bytes > w->model.limits.disk_bytes);
}

static void on_tree(void *ctx, bool ok, uint64_t bytes)
{
	struct watch_limits *limits = ctx;
	struct core_workspace *w = limits->w;
	uint64_t limit = w->model.limits.disk_bytes, now_ms = clock_monotonic_ms();
	/* What was over its limit before an exec began is not that exec's doing: it may be there to
	 * clear up, and goes on as long as nothing grows. */
	bool was_over = limits->was_over;
	bool is_grown = bytes == UINT64_MAX || (has_grown(limits, bytes) && !was_over);
	limits->was_over = false;
	limits->shelf->measures--;
	limits->tree_after_ms = now_ms + (now_ms - limits->tree_began_ms) * DISK_COST_SHARE;
	limits->shelf->tree_after_ms =
		now_ms + (now_ms - limits->tree_began_ms) * MEASURES_COST_SHARE;
	if (ok)
		note_tree(limits, bytes, was_over);
	core_hold(w);
	/* Without an answer nobody waits for another one. */
	judge_all(limits, ok ? limits->walks : UINT_MAX, ok && bytes >= full_bytes(limits));
	if (limits_of(w) == limits && limits->judged)
		measure_tree(limits);
	if (limits_of(w) == limits && has_writers(limits)) {
		if (ok && bytes > limit && is_grown && limits->disk == DISK_COUNTED)
			end_sandbox(limits, REASON_DISK_LIMIT);
		else
			arm_disk_again(limits);
	}
	core_release(w);
}

static void measure_tree(struct watch_limits *limits)
{
	if (limits->tree.is_running)
		return;
	if (limits->is_watchdog) /* as root, nobody but root could look into its processes */
		need_usage(limits);
	limits->tree_began_ms = clock_monotonic_ms();
	limits->free_before = free_bytes(limits->w->core);
	limits->shelf->measures++;
	limits->walks++;
	limits->tree.keep[0] = limits->w->core->workspaces;
	limits->tree.keep_count = 1;
	if (limits->has_usage) {
		usage_descriptors(&limits->usage, limits->tree.keep + 1);
		limits->tree.keep_count += USAGE_FDS;
	}
	measure_start(&limits->tree);
}

static bool is_quota_full(struct watch_limits *limits)
{
	return usage_tmpfs_is_full(limits->w->sandbox.fds[LAUNCH_FD_WORKSPACE]);
}

static uint64_t room_left(const struct watch_limits *limits)
{
	uint64_t full = full_bytes(limits);
	return full > limits->known_bytes ? full - limits->known_bytes : 0;
}

static bool had_time_to_write(const struct watch_limits *limits, uint64_t bytes)
{
	uint64_t written;
	return __builtin_mul_overflow(limits->unmeasured_ms, WRITTEN_A_MS, &written) ||
	       written >= bytes;
}

static bool is_lost(const struct watch_limits *limits, uint64_t bytes)
{
	uint64_t left = free_bytes(limits->w->core);
	return (!left && had_time_to_write(limits, bytes)) ||
	       (left < limits->free_bytes && limits->free_bytes - left >= bytes);
}

/* Whether the commands since the last measurement can have filled it: the file system lost as much
 * room, or they had the time, and what others have freed may hide it. */
static bool could_be_full(const struct watch_limits *limits)
{
	uint64_t room = room_left(limits);
	if (!room || is_lost(limits, room))
		return true;
	return clock_monotonic_ms() >= limits->known_at_ms + MASKED_MS &&
	       had_time_to_write(limits, room);
}

/* The same for one that has failed, perhaps for that: what it could not write isn't lost, and an
 * answer without the reason is worse than one that takes a walk longer. */
static bool could_have_hit(const struct watch_limits *limits)
{
	uint64_t room = room_left(limits);
	return !room || had_time_to_write(limits, room) || is_lost(limits, room / 2);
}

static bool may_measure(const struct watch_limits *limits)
{
	const struct exec_shelf *shelf = limits->shelf;
	return shelf->measures < MEASURES_MOST && clock_monotonic_ms() >= shelf->tree_after_ms;
}

static void on_disk(struct loop *loop, void *ctx)
{
	struct watch_limits *limits = ctx;
	limits->disk_timer = NULL;
	limits->unmeasured_ms += limits->w->sandbox.exec_count ? DISK_MS : DISK_LEFT_MS;
	if (limits->w->sandbox.is_ending || !has_writers(limits))
		return;
	if (limits->disk == DISK_QUOTA)
		limits->was_full |= is_quota_full(limits);
	else if (could_be_full(limits) && may_measure(limits)) {
		measure_tree(limits); /* and on from there */
		return;
	}
	arm_disk_again(limits);
}

static enum watch_verdict look_at_disk(struct watch_limits *limits, struct core_exec *e)
{
	bool failed = has_failed(e);
	if (limits->disk == DISK_UNLIMITED)
		return WATCH_NOTHING;
	if (limits->disk == DISK_QUOTA)
		return failed && (limits->was_full || is_quota_full(limits)) ? WATCH_HIT
									     : WATCH_NOTHING;
	limits->unmeasured_ms += (clock_monotonic_ns() - e->own->began_ns) / 1000000 + 1;
	bool is_counted = limits->disk == DISK_COUNTED;
	/* RLIMIT_FSIZE is the limit there, or nothing. */
	if (is_counted && e->record.result.signal == SIGXFSZ)
		set_disk_limit(e);
	if (failed ? !could_have_hit(limits) : !could_be_full(limits))
		return e->own->has_limit ? WATCH_HIT : WATCH_NOTHING;
	if (failed || (is_counted && limits->known_bytes >= limits->w->model.limits.disk_bytes))
		return judge_by_tree(limits, e);
	if (clock_monotonic_ms() >= limits->tree_after_ms && may_measure(limits))
		measure_tree(limits);
	return WATCH_NOTHING;
}

/* ---- execs come and go ---- */

void watch_spawning(struct core_workspace *w, struct core_exec *e)
{
	struct watch_limits *limits = limits_of(w);
	if (!w->sandbox.exec_count) {
		limits->was_full = false;
		limits->was_over = limits->disk == DISK_COUNTED &&
				   limits->known_bytes >= w->model.limits.disk_bytes &&
				   !(w->sandbox.is_up && sandbox_has_processes(w));
		/* It may be one that has more time. */
		loop_cancel(w->core->loop, limits->disk_timer);
		limits->disk_timer = NULL;
	}
	if (limits->is_watchdog || e->record.cpu_time_ms) {
		if (limits->is_watchdog)
			need_usage(limits);
		if (e->record.cpu_time_ms)
			e->own->cpu_base_ms = sandbox_cpu_ms(w);
		start_sampling(limits);
	}
	arm_disk(limits, DISK_MS);
}

void watch_add_usage(struct core_workspace *w, struct core_exec *e)
{
	uint64_t used_ms = e->record.cpu_time_ms ? sandbox_cpu_ms(w) : 0;
	uint64_t spent_ms = used_ms > e->own->cpu_base_ms ? used_ms - e->own->cpu_base_ms : 0;
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
	*reason = REASON_DISK_LIMIT; /* set_disk_limit's, too */
	return look_at_disk(limits, e);
}

void watch_forget(struct core_workspace *w, struct core_exec *e)
{
	struct watch_limits *limits = limits_of(w);
	if (!limits || !e->own->is_judging)
		return;
	for (struct core_exec **at = &limits->judged; *at; at = &(*at)->own->judged_next)
		if (*at == e) {
			*at = e->own->judged_next;
			return;
		}
}

/* ---- opened and closed ---- */

static enum disk disk_of(const struct core_workspace *w)
{
	static const struct {
		const char *name;
		enum disk disk;
	} mechanisms[] = { { "project-quota", DISK_QUOTA }, { "btrfs-qgroup", DISK_EXACT } };
	if (!w->model.limits.disk_bytes)
		return DISK_UNLIMITED;
	for (size_t i = 0; w->model.disk_mechanism && i < 2; i++)
		if (!strcmp(w->model.disk_mechanism, mechanisms[i].name))
			return mechanisms[i].disk;
	return DISK_COUNTED;
}

/* What a core before this one left there is limited as before, whether or not an exec runs. */
static void adopt(struct watch_limits *limits)
{
	arm_disk_again(limits);
	if (!limits->is_watchdog)
		return;
	/* That core may have stopped everything there for its share. */
	line_send(limits->w, INIT_SIGNAL, 0, SIGCONT);
	if (need_usage(limits))
		start_sampling(limits);
}

int watch_open(struct core_workspace *w, struct error *err)
{
	struct watch_limits *limits = calloc(1, sizeof *limits);
	struct core_sandbox *sandbox = &w->sandbox;
	if (!limits)
		abort();
	*limits = (struct watch_limits){ .w = w,
		.shelf = exec_shelf(w->core),
		.is_watchdog = !strcmp(sandbox->limiter, "watchdog"),
		.disk = disk_of(w),
		.over_bytes = w->model.disk_usage_bytes > w->model.limits.disk_bytes
				      ? w->model.disk_usage_bytes
				      : 0,
		.known_bytes = w->model.disk_usage_bytes };
	sandbox->watch->limits = limits;
	if (limits->disk == DISK_COUNTED)
		limits->free_bytes = free_bytes(w->core);
	limits->tree = (struct measure){
		.loop = w->core->loop, .find = find_tree, .found = on_tree, .ctx = limits
	};
	limits->look = (struct sample){ .loop = w->core->loop,
		.init_socket = sandbox->init,
		.memory_bytes = w->model.limits.memory_bytes,
		.millicpus = w->model.limits.millicpus,
		.hit = on_hit,
		.ctx = limits,
		.usage = &limits->usage };
	sample_begin(&limits->look);
	if (sandbox->watch->is_adopted)
		adopt(limits);
	int oom = sandbox->fds[LAUNCH_FD_OOM];
	if (oom < 0)
		return 0;
	if (loop_watch(w->core->loop, oom,
		    !strcmp(sandbox->limiter, "cgroup-v2") ? EPOLLPRI : EPOLLIN, on_oom, limits,
		    err))
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
	loop_cancel(loop, limits->disk_timer);
	if (limits->is_oom_watched)
		loop_unwatch(loop, w->sandbox.fds[LAUNCH_FD_OOM]);
	if (limits->tree.is_running)
		limits->shelf->measures--;
	measure_stop(&limits->tree);
	sample_end(&limits->look);
	if (limits->has_usage)
		usage_done(&limits->usage);
	w->sandbox.watch->limits = NULL;
	free(limits);
}
