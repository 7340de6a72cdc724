#include "sandbox/native/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "sandbox/native/init_client.h"
#include "sandbox/native/pace.h"
#include "sandbox/native/start.h"

#define DISK_SAMPLE_MS 250
#define SOCKETS_MS 100
#define STATS_EVERY 5 /* samples between two questions to carrel-init */
#define OOM_LOOK_MS 2 /* after the kernel told of an OOM, the kill is looked for so often */
#define OOM_LOOKS 500
/* A command that has ended by then was never measured, and cost no wake-up. */
#define FIRST_LOOK_MS 20
#define COST_SHARE 10 /* a measurement of n ms without need is followed by n * 10 ms of rest */

static void take_sample(struct loop *loop, void *ctx);
static void sample_disk(struct loop *loop, void *ctx);

/* ---- a disk that is counted ---- */

static const struct plan_mount *find_measured(const struct plan *plan)
{
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (!strcmp(plan->mounts.items[i].target, plan->measured))
			return &plan->mounts.items[i];
	return NULL;
}

int guard_check_disk(const struct plan *plan, struct held_base *base, struct error *err)
{
	uint64_t bytes;
	const struct plan_mount *mount = find_measured(plan);
	auto_close int path = -1;
	if (!plan->counted_disk)
		return 0;
	if (!mount)
		return fail(err, ERR_INVALID, "'%s' has a disk limit and is not mounted",
			plan->measured);
	if (source_open(mount, &path, err))
		return -1;
	auto_close int dir = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open '%s'", plan->measured);
	if (path_charge_tree(dir, &bytes, err))
		return -1;
	*base = (struct held_base){ .free_bytes = held_free_bytes(dir),
		.free_room = held_free_room(dir),
		.counted_bytes = bytes };
	if (bytes < plan->limits.disk_bytes)
		return 0;
	return fail(err, ERR_LIMIT, "'%s%s%s' holds %llu bytes already; --disk allows %llu",
		mount->source, mount->beneath ? "/" : "", mount->beneath ? mount->beneath : "",
		(unsigned long long)bytes, (unsigned long long)plan->limits.disk_bytes);
}

static uint64_t room_left(const struct guard *guard, uint64_t used)
{
	uint64_t limit = guard->plan->limits.disk_bytes;
	return limit > used ? limit - used : 0;
}

/* A tree that was made too deep or unreadable to be measured is over every limit. */
static uint64_t find_bytes(void *ctx)
{
	struct guard *guard = ctx;
	struct guard_disk_found *found = &guard->counted.found;
	struct error err;
	struct held_place place;
	auto_close int dir = openat(guard->workspace, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || !held_find_place(dir, "", guard->plan->measured, &place) ||
		path_charge_tree(dir, &found->counted_bytes, &err))
		return UINT64_MAX;
	held_count(guard->proc, &place, 1, &found->held);
	found->free_bytes = held_free_bytes(dir);
	found->free_room = held_free_room(dir);
	found->counted_bytes += found->held.bytes;
	return found->counted_bytes + held_hidden_bytes(&guard->counted.base, &found->held,
					      found->counted_bytes, found->free_bytes);
}

/* The freezer where the group has one; else SIGSTOP, which a process can undo by a timer: then it
 * is measured while it runs, as it would be without. */
static void stop_writers(struct guard *guard, bool stop)
{
	struct error err;
	if (guard->counted.is_stopped == stop)
		return;
	guard->counted.is_stopped = stop;
	if (cgroup_freeze(guard->cgroup, stop, &err))
		init_client_signal(guard->init_socket, 0, stop ? SIGSTOP : SIGCONT, &err);
}

static void look_at_disk(struct loop *loop, void *ctx);

static void arm(struct guard *guard)
{
	struct guard_disk *disk = &guard->counted;
	disk->timer = loop_after(guard->loop, pace_look_ms(room_left(guard, disk->known_bytes)),
		look_at_disk, guard);
}

static void on_bytes(void *ctx, bool ok, uint64_t bytes)
{
	struct guard *guard = ctx;
	struct guard_disk *disk = &guard->counted;
	uint64_t now_ms = clock_monotonic_ms();
	if (ok && bytes > guard->plan->limits.disk_bytes) {
		guard->hit(guard->ctx, REASON_DISK_LIMIT);
		return;
	}
	if (ok) {
		const struct guard_disk_found *found = &disk->found;
		disk->doubt = pace_doubt(
			disk->doubt, disk->free_room, found->free_room, disk->known_bytes, bytes);
		disk->known_bytes = bytes;
		disk->free_room = found->free_room;
		if (!found->held.hidden)
			disk->base = (struct held_base){ found->free_bytes, found->free_room,
				found->counted_bytes, found->held.written };
	}
	disk->known_at_ms = now_ms;
	disk->stop_after_ms = now_ms + (now_ms - disk->began_ms) * disk->doubt;
	disk->rest_until_ms = now_ms + (now_ms - disk->began_ms) * COST_SHARE;
	stop_writers(guard, false);
	arm(guard);
}

/* What others free on the file system hides what is written here: it is also measured after a
 * while without a loss. */
static void look_at_disk(struct loop *loop, void *ctx)
{
	struct guard *guard = ctx;
	struct guard_disk *disk = &guard->counted;
	uint64_t now_ms = clock_monotonic_ms();
	enum pace_due due = pace_due(room_left(guard, disk->known_bytes), disk->doubt,
		disk->free_room, held_free_room(guard->workspace), now_ms - disk->known_at_ms);
	disk->timer = NULL;
	if (due == PACE_NOT_YET && now_ms >= disk->known_at_ms + PACE_MOST_MS)
		due = PACE_MEASURE;
	if (due == PACE_MEASURE_STOPPED && now_ms < disk->stop_after_ms)
		due = PACE_MEASURE;
	if (due == PACE_NOT_YET || (due == PACE_MEASURE && now_ms < disk->rest_until_ms)) {
		arm(guard);
		return;
	}
	if (due == PACE_MEASURE_STOPPED)
		stop_writers(guard, true);
	disk->began_ms = now_ms;
	measure_start(&disk->measure);
}

static void start_disk(struct guard *guard)
{
	struct guard_disk *disk = &guard->counted;
	disk->known_bytes = disk->base.counted_bytes;
	disk->free_room = disk->base.free_room;
	disk->known_at_ms = clock_monotonic_ms();
	disk->measure = (struct measure){ .loop = guard->loop,
		.find = find_bytes,
		.found = on_bytes,
		.ctx = guard,
		.detail = &disk->found,
		.detail_len = sizeof disk->found };
	look_at_disk(guard->loop, guard); /* it has run for a while already */
}

/* ---- the other limits ---- */

static bool is_watchdog(const struct guard *guard)
{
	return guard->plan->limiter == LIMITER_WATCHDOG;
}

static void on_wall_time(struct loop *loop, void *ctx)
{
	struct guard *guard = ctx;
	guard->wall = NULL;
	guard->hit(guard->ctx, REASON_TIMEOUT);
}

/* v1 tells of an OOM before anything is killed for it, and perhaps nothing will be. */
static void look_for_kills(struct loop *loop, void *ctx)
{
	struct guard *guard = ctx;
	struct error err;
	uint64_t kills = 0;
	guard->oom = NULL;
	if (!cgroup_oom_kills(guard->cgroup, guard->oom_fd, &kills, &err) && kills)
		guard->hit(guard->ctx, REASON_MEMORY_LIMIT);
	else if (++guard->oom_looks < OOM_LOOKS)
		guard->oom = loop_after(loop, OOM_LOOK_MS, look_for_kills, guard);
}

static void on_oom(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct guard *guard = ctx;
	guard->oom_looks = 0;
	if (guard->oom)
		loop_cancel(loop, guard->oom);
	look_for_kills(loop, guard);
}

static void begin_looks(struct guard *guard)
{
	guard->look = (struct sample){ .loop = guard->loop,
		.init_socket = guard->init_socket,
		.memory_bytes = guard->plan->limits.memory_bytes,
		.millicpus = guard->plan->limits.millicpus,
		.hit = guard->hit,
		.ctx = guard->ctx,
		.usage = &guard->usage };
	sample_begin(&guard->look);
}

int guard_start(struct guard *guard, struct error *err)
{
	guard->oom_fd = guard->root = guard->workspace = guard->upper = guard->proc = -1;
	begin_looks(guard);
	guard->started_ms = clock_monotonic_ms();
	if (guard->plan->limits.timeout_ms)
		guard->wall = loop_after(
			guard->loop, guard->plan->limits.timeout_ms, on_wall_time, guard);
	if (is_watchdog(guard))
		return 0;
	short events;
	if (cgroup_watch_oom(guard->cgroup, &guard->oom_fd, &events, err))
		return -1;
	return loop_watch(guard->loop, guard->oom_fd, events & POLLPRI ? EPOLLPRI : EPOLLIN, on_oom,
		guard, err);
}

/* The kernel stops at half of the limit, but for the first buffer of each socket: thousands of
 * sockets have as much again, and more. */
static void sample_sockets(struct loop *loop, void *ctx)
{
	struct guard *guard = ctx;
	struct error err;
	uint64_t bytes;
	guard->sockets = loop_after(loop, SOCKETS_MS, sample_sockets, guard);
	if (!cgroup_socket_bytes(guard->cgroup, &bytes, &err) &&
		bytes > guard->plan->limits.memory_bytes)
		guard->hit(guard->ctx, REASON_MEMORY_LIMIT);
}

static bool needs_samples(const struct guard *guard)
{
	return is_watchdog(guard) || guard->plan->limits.cpu_time_ms;
}

void guard_descriptors(struct guard *guard, int proc, int root, int workspace)
{
	guard->proc = proc;
	guard->root = root;
	guard->workspace = workspace;
}

uint64_t guard_first_look_ms(const struct guard *guard)
{
	uint64_t disk_ms = pace_look_ms(room_left(guard, guard->counted.base.counted_bytes));
	return guard->plan->counted_disk && disk_ms < FIRST_LOOK_MS ? disk_ms : FIRST_LOOK_MS;
}

static void start_samples(struct guard *guard)
{
	if (needs_samples(guard))
		guard->sample = loop_after(guard->loop, SAMPLE_MS, take_sample, guard);
	if (guard->plan->limiter == LIMITER_CGROUP_V1)
		guard->sockets = loop_after(guard->loop, SOCKETS_MS, sample_sockets, guard);
	if (guard->plan->counted_disk)
		start_disk(guard);
}

int guard_watch(struct guard *guard, struct error *err)
{
	/* Files in a --dir don't count as memory of the sandbox. */
	bool is_tmpfs = guard->plan->limits.disk_bytes && !guard->plan->counted_disk;
	const int tmpfs[USAGE_TMPFS] = { guard->root, is_tmpfs ? guard->workspace : -1,
		guard->upper };
	if (usage_init(&guard->usage, guard->proc, tmpfs, err))
		return -1;
	guard->usage.below = guard->family;
	guard->is_watching = true;
	start_samples(guard);
	if (!guard->plan->counted_disk && guard->plan->limits.disk_bytes)
		guard->disk = loop_after(guard->loop, DISK_SAMPLE_MS, sample_disk, guard);
	return 0;
}

void guard_shm(struct guard *guard, uint64_t bytes)
{
	guard->usage.sysv_bytes = bytes;
}

/* Summed cpu time; 0 when neither a control group nor a sample has counted it. */
static uint64_t cpu_ms(struct guard *guard)
{
	struct error err;
	uint64_t us;
	if (guard->cgroup->cpuacct >= 0 && !cgroup_cpu_us(guard->cgroup, &us, &err))
		return us / 1000;
	return guard->is_watching ? usage_cpu_ms(&guard->usage) + guard->missed_cpu_ms : 0;
}

bool guard_is_needed(const struct plan *plan)
{
	/* On v1 buffers of sockets are sampled. */
	return plan->limiter == LIMITER_WATCHDOG || plan->limiter == LIMITER_CGROUP_V1 ||
	       plan->limits.timeout_ms || plan->limits.cpu_time_ms || plan->counted_disk;
}

int guard_descriptors_of(const struct guard *guard, int fds[GUARD_FDS])
{
	const int own[] = { guard->init_socket, guard->proc, guard->root, guard->workspace,
		guard->upper };
	int count = 0;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		fds[count++] = own[i];
	for (int i = 0; i < guard->cgroup->dir_count; i++)
		fds[count++] = guard->cgroup->dirs[i];
	return count;
}

void guard_take_over(
	struct guard *guard, const struct guard *from, bool suspended, uint64_t counted_ms)
{
	const struct limits *limits = &from->plan->limits;
	guard->plan = from->plan;
	guard->cgroup = from->cgroup;
	guard->init_socket = from->init_socket;
	guard->counted = (struct guard_disk){ .base = from->counted.base };
	guard->usage = from->usage;
	guard->is_watching = from->is_watching;
	guard->oom_fd = -1; /* the kernel kills without being asked */
	guard->started_ms = from->started_ms;
	guard->is_deputy = true;
	begin_looks(guard);
	guard->upper = from->upper;
	guard_descriptors(guard, from->proc, from->root, from->workspace);
	if (suspended) /* a share is kept by continuing everything again */
		guard->look.millicpus = 0;
	if (limits->timeout_ms) {
		uint64_t passed_ms = clock_monotonic_ms() - guard->started_ms;
		guard->wall = loop_after(guard->loop,
			passed_ms < limits->timeout_ms ? limits->timeout_ms - passed_ms : 0,
			on_wall_time, guard);
	}
	uint64_t seen_ms = limits->cpu_time_ms ? cpu_ms(guard) : 0;
	guard->missed_cpu_ms = counted_ms > seen_ms ? counted_ms - seen_ms : 0;
	start_samples(guard);
}

void guard_let_go_on(struct guard *guard)
{
	struct error err;
	if (guard->counted.is_stopped || guard->look.is_paused)
		return;
	cgroup_freeze(guard->cgroup, false, &err);
	init_client_signal(guard->init_socket, guard_signal_id(guard->plan), SIGCONT, &err);
}

void guard_note_usage(struct guard *guard)
{
	if (!guard->is_watching)
		return;
	guard->noted_cpu_ms = cpu_ms(guard);
	guard->noted_peak_kb = usage_peak_kb(&guard->usage);
}

void guard_add_usage(struct guard *guard, struct result *result)
{
	uint64_t used_ms = cpu_ms(guard);
	if (guard->noted_cpu_ms > used_ms)
		used_ms = guard->noted_cpu_ms;
	if (used_ms > result->cpu_ms)
		result->cpu_ms = used_ms;
	if (guard->noted_peak_kb * 1024 > result->max_rss_bytes)
		result->max_rss_bytes = guard->noted_peak_kb * 1024;
}

static void take_sample(struct loop *loop, void *ctx)
{
	struct guard *guard = ctx;
	const struct limits *limits = &guard->plan->limits;
	uint64_t began_us = clock_process_cpu_us();
	guard->sample = NULL;
	if (is_watchdog(guard) && sample_is_memory_over(&guard->look)) {
		guard->hit(guard->ctx, REASON_MEMORY_LIMIT);
		return;
	}
	bool shares = guard->look.millicpus && is_watchdog(guard);
	if (limits->cpu_time_ms || shares) {
		uint64_t used_ms = cpu_ms(guard);
		if (guard->sampled_cpu_ms)
			*guard->sampled_cpu_ms = used_ms;
		if (limits->cpu_time_ms && used_ms >= limits->cpu_time_ms) {
			guard->hit(guard->ctx, REASON_CPU_LIMIT);
			return;
		}
		if (shares)
			sample_hold_share(&guard->look, used_ms);
	}
	struct error err;
	if (is_watchdog(guard) && !guard->is_deputy && guard->samples++ % STATS_EVERY == 0)
		init_client_stats(guard->init_socket, &err);
	uint64_t cost_us = clock_process_cpu_us() - began_us;
	guard->sample = loop_after(loop, sample_rest_ms(cost_us, 1), take_sample, guard);
}

static void sample_disk(struct loop *loop, void *ctx)
{
	struct guard *guard = ctx;
	guard->disk = NULL;
	if (usage_tmpfs_is_full(guard->workspace))
		guard->disk_was_full = true;
	guard->disk = loop_after(loop, DISK_SAMPLE_MS, sample_disk, guard);
}

static bool is_disk_full(struct guard *guard)
{
	if (!guard->plan->limits.disk_bytes || guard->workspace < 0)
		return false;
	if (!guard->plan->counted_disk)
		return guard->disk_was_full || usage_tmpfs_is_full(guard->workspace);
	return find_bytes(guard) >= guard->plan->limits.disk_bytes;
}

bool guard_last_look(struct guard *guard, bool command_failed, enum reason *reason)
{
	struct error err;
	uint64_t kills = 0;
	if (!is_watchdog(guard) && !cgroup_oom_kills(guard->cgroup, -1, &kills, &err) && kills) {
		*reason = REASON_MEMORY_LIMIT;
		return true;
	}
	if (guard->plan->limits.cpu_time_ms && cpu_ms(guard) >= guard->plan->limits.cpu_time_ms) {
		*reason = REASON_CPU_LIMIT;
		return true;
	}
	if (command_failed && is_disk_full(guard)) {
		*reason = REASON_DISK_LIMIT;
		return true;
	}
	return false;
}

void guard_end(struct guard *guard)
{
	struct loop_timer **timers[] = { &guard->wall, &guard->sample, &guard->disk, &guard->oom,
		&guard->sockets, &guard->counted.timer };
	for (size_t i = 0; i < sizeof timers / sizeof *timers; i++)
		if (*timers[i]) {
			loop_cancel(guard->loop, *timers[i]);
			*timers[i] = NULL;
		}
	sample_end(&guard->look);
	measure_stop(&guard->counted.measure);
	if (guard->oom_fd >= 0)
		loop_unwatch(guard->loop, guard->oom_fd);
	fd_close(&guard->oom_fd);
}

void guard_stop(struct guard *guard)
{
	guard_end(guard);
	fd_close(&guard->proc);
	fd_close(&guard->root);
	fd_close(&guard->workspace);
	fd_close(&guard->upper);
	usage_done(&guard->usage);
}
