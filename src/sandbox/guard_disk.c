#include "sandbox/guard_disk.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "sandbox/init_client.h"
#include "sandbox/pace.h"
#include "sandbox/start.h"

#define COST_SHARE 10 /* a measurement of n ms without need is followed by n * 10 ms of rest */

static const struct plan_mount *find_measured(const struct plan *plan)
{
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (!strcmp(plan->mounts.items[i].target, plan->measured))
			return &plan->mounts.items[i];
	return NULL;
}

int guard_disk_check(const struct plan *plan, struct held_base *base, struct error *err)
{
	uint64_t bytes;
	const struct plan_mount *mount = find_measured(plan);
	auto_close int path = -1;
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

static uint64_t room_left(const struct guard_disk *disk)
{
	return disk->limit_bytes > disk->known_bytes ? disk->limit_bytes - disk->known_bytes : 0;
}

uint64_t guard_disk_first_ms(const struct guard_disk *disk)
{
	uint64_t used = disk->base.counted_bytes;
	return pace_look_ms(disk->limit_bytes > used ? disk->limit_bytes - used : 0);
}

/* A tree that was made too deep or unreadable to be measured is over every limit. */
static uint64_t find_bytes(void *ctx)
{
	struct guard_disk *disk = ctx;
	struct guard_disk_found *found = &disk->found;
	struct error err;
	struct stat st;
	auto_close int dir = openat(disk->tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) || path_charge_tree(dir, &found->counted_bytes, &err))
		return UINT64_MAX;
	const uint64_t device = st.st_dev;

	held_count(disk->proc, &device, 1, &found->held);
	found->free_bytes = held_free_bytes(dir);
	found->free_room = held_free_room(dir);
	found->counted_bytes += found->held.bytes;
	return found->counted_bytes + held_hidden_bytes(&disk->base, &found->held,
					      found->counted_bytes, found->free_bytes);
}

/* The freezer where the group has one; else SIGSTOP, which a process can undo by a timer: then it
 * is measured while it runs, as it would be without. */
static void stop_writers(struct guard_disk *disk, bool stop)
{
	struct error err;
	if (disk->is_stopped == stop)
		return;
	disk->is_stopped = stop;
	if (cgroup_freeze(disk->cgroup, stop, &err))
		init_client_signal(disk->init_socket, 0, stop ? SIGSTOP : SIGCONT, &err);
}

static void look(struct loop *loop, void *ctx);

static void arm(struct guard_disk *disk)
{
	disk->timer = loop_after(disk->loop, pace_look_ms(room_left(disk)), look, disk);
}

static void on_bytes(void *ctx, bool ok, uint64_t bytes)
{
	struct guard_disk *disk = ctx;
	uint64_t now_ms = clock_monotonic_ms();
	if (ok && bytes > disk->limit_bytes) {
		disk->hit(disk->ctx, REASON_DISK_LIMIT);
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
	stop_writers(disk, false);
	arm(disk);
}

/* What others free on the file system hides what is written here: it is also measured after a
 * while without a loss. */
static void look(struct loop *loop, void *ctx)
{
	struct guard_disk *disk = ctx;
	uint64_t now_ms = clock_monotonic_ms();
	enum pace_due due = pace_due(room_left(disk), disk->doubt, disk->free_room,
		held_free_room(disk->tree), now_ms - disk->known_at_ms);
	disk->timer = NULL;
	if (due == PACE_NOT_YET && now_ms >= disk->known_at_ms + PACE_MOST_MS)
		due = PACE_MEASURE;
	if (due == PACE_MEASURE_STOPPED && now_ms < disk->stop_after_ms)
		due = PACE_MEASURE;
	if (due == PACE_NOT_YET || (due == PACE_MEASURE && now_ms < disk->rest_until_ms)) {
		arm(disk);
		return;
	}
	if (due == PACE_MEASURE_STOPPED)
		stop_writers(disk, true);
	disk->began_ms = now_ms;
	measure_start(&disk->measure);
}

void guard_disk_start(struct guard_disk *disk)
{
	disk->known_bytes = disk->base.counted_bytes;
	disk->free_room = disk->base.free_room;
	disk->known_at_ms = clock_monotonic_ms();
	disk->measure = (struct measure){ .loop = disk->loop,
		.find = find_bytes,
		.found = on_bytes,
		.ctx = disk,
		.detail = &disk->found,
		.detail_len = sizeof disk->found };
	look(disk->loop, disk); /* it has run for a while already */
}

bool guard_disk_is_full(struct guard_disk *disk)
{
	return find_bytes(disk) >= disk->limit_bytes;
}

void guard_disk_stop(struct guard_disk *disk)
{
	loop_cancel(disk->loop, disk->timer);
	disk->timer = NULL;
	measure_stop(&disk->measure);
}
