#include "core/execs/watch_disk.h"

#include <signal.h>
#include "base/clock.h"
#include "core/execs/internal.h"
#include "core/internal.h"
#include "linux/disk_quota.h"
#include "sandbox/native/pace.h"
#include "sandbox/native/usage.h"

#define OWN_BLOCKS_SHARE 256 /* of a file system, at most, and for small ones */
#define OWN_BLOCKS_BYTES 65536
#define OVER_MS 20	      /* between two looks at a tree that is over its limit */
#define LEFT_SHARE 4	      /* samples are rarer by this while only leftovers run */
#define LOOKS_A_MS 4	      /* at all sandboxes together */
#define COST_SHARE 10	      /* a walk of n ms is followed by n * 10 ms of rest */
#define MEASURES_MOST 2	      /* trees that are walked at once, */
#define MEASURES_COST_SHARE 3 /* and as much rest in between for all of them */
#define MASKED_MS 5000	      /* while space freed by others may hide writes */

/* How a limit is kept. */
struct disk_mechanism {
	bool is_counted;      /* by core, which looks, measures, stops and ends; else by a quota */
	bool shows_full;      /* statfs of the workspace says whether it is */
	uint64_t nodes_bytes; /* of the limit, that are kept for the file system's own trees */
};
static const struct disk_mechanism mechanisms[QUOTA_MECHANISM_COUNT] = {
	[QUOTA_COUNTED] = { .is_counted = true },
	[QUOTA_PROJECT] = { .shows_full = true },
	[QUOTA_QGROUP] = { .nodes_bytes = 65536 },
};

/* NULL: no limit */
static const struct disk_mechanism *mechanism_of(const struct workspace *model)
{
	if (!model->limits.disk_bytes)
		return NULL;
	for (size_t i = 0; model->disk_mechanism && i < QUOTA_MECHANISM_COUNT; i++)
		if (!strcmp(model->disk_mechanism, quota_names[i]))
			return &mechanisms[i];
	return &mechanisms[QUOTA_COUNTED];
}

static bool is_counted(const struct watch_disk *disk)
{
	return disk->mechanism && disk->mechanism->is_counted;
}

/* Usage at which a failed write is attributed to the limit. */
static uint64_t full_bytes(const struct watch_disk *disk)
{
	uint64_t limit = disk->w->model.limits.disk_bytes;
	uint64_t nodes = disk->mechanism ? disk->mechanism->nodes_bytes : 0;
	return limit > nodes ? limit - nodes : limit;
}

static uint64_t room_left(const struct watch_disk *disk)
{
	uint64_t full = full_bytes(disk);
	return full > disk->known_bytes ? full - disk->known_bytes : 0;
}

/* Whether any exec can write there. Background processes of ended execs are limited by a quota
 * only. */
static bool has_writers(const struct watch_disk *disk)
{
	const struct core_workspace *w = disk->w;
	return w->sandbox.exec_count ||
	       (is_counted(disk) && w->sandbox.state == SANDBOX_UP && sandbox_has_processes(w));
}

/* ---- looks ---- */

static void on_look(struct loop *loop, void *ctx);

static void disarm(struct watch_disk *disk)
{
	if (disk->timer) {
		loop_cancel(disk->execs->core->loop, disk->timer);
		disk->execs->disk_looks--;
	}
	disk->timer = NULL;
}

static void arm(struct watch_disk *disk)
{
	uint64_t room = room_left(disk);
	uint64_t ms = !is_counted(disk) ? PACE_MOST_MS : room ? pace_look_ms(room) : OVER_MS;
	if (!disk->mechanism || (!is_counted(disk) && !disk->mechanism->shows_full) ||
		disk->timer || disk->is_measuring)
		return;
	if (!disk->w->sandbox.exec_count)
		ms *= LEFT_SHARE;
	if (ms < disk->execs->disk_looks / LOOKS_A_MS)
		ms = disk->execs->disk_looks / LOOKS_A_MS;
	disk->timer_ms = ms;
	disk->timer = loop_after(disk->execs->core->loop, ms, on_look, disk);
	disk->execs->disk_looks++;
}

/* By init, with signals. A process can undo that by a timer: then its tree is measured while it
 * runs, as it would be without. */
static void stop_writers(struct watch_disk *disk, bool stop)
{
	if (disk->is_stopped == stop)
		return;
	disk->is_stopped = stop;
	if (!disk->w->is_paused) /* watch_pause lets them go on */
		connection_send(disk->w, INIT_SIGNAL, 0, stop ? SIGSTOP : SIGCONT);
}

/* ---- execs that wait for a measurement ---- */

static void set_disk_limit(struct core_exec *e)
{
	if (!e->limit)
		e->limit = REASON_DISK_LIMIT;
}

/* Whether it failed by itself, not by a signal that a client sent. */
static bool has_failed(const struct core_exec *e)
{
	const struct result *result = &e->record.result;
	return result_has_failed(result) && !(result->signal && result->signal == e->signal_sent);
}

/* Those whose end waited for a walk up to this one. */
static void judge_all(struct watch_disk *disk, unsigned walk, bool is_over)
{
	struct core_exec **at = &disk->judged, *e, *found = NULL;
	while ((e = *at)) {
		if (e->judged_by > walk) {
			at = &e->judged_next;
			continue;
		}
		*at = e->judged_next;
		e->judged_next = found;
		found = e;
	}
	while ((e = found)) {
		found = e->judged_next;
		e->judgement = JUDGEMENT_GIVEN;
		if (is_over && has_failed(e))
			set_disk_limit(e);
		exec_go_on_ending(e);
	}
}

void watch_disk_forget(struct watch_disk *disk, struct core_exec *e)
{
	for (struct core_exec **at = &disk->judged; *at; at = &(*at)->judged_next)
		if (*at == e) {
			*at = e->judged_next;
			return;
		}
}

/* ---- a measurement: the walk, and what the launcher says ---- */

/* So much that what runs is ended for it: since the first walk over its limit while this ran. The
 * file system's own blocks, which come when files get to the disk, aren't its doing. */
static bool has_grown(const struct watch_disk *disk, uint64_t bytes)
{
	uint64_t over = disk->over_bytes;
	return bytes == TREE_ENDLESS ||
	       bytes > (over ? over + over / OWN_BLOCKS_SHARE + OWN_BLOCKS_BYTES
			     : disk->known_bytes);
}

static void note(struct watch_disk *disk, uint64_t counted, uint64_t bytes, bool is_first)
{
	struct core_workspace *w = disk->w;
	uint64_t limit = w->model.limits.disk_bytes;
	uint64_t free_after = held_free_room(w->core->workspaces);
	if (bytes <= limit)
		w->is_overgrown = false;
	else if (disk->known_bytes > limit && bytes > disk->known_bytes)
		w->is_overgrown = true;
	if (bytes <= limit || !disk->over_bytes || is_first)
		disk->over_bytes = bytes <= limit ? 0 : bytes == TREE_ENDLESS ? limit : bytes;
	disk->doubt =
		pace_doubt(disk->doubt, disk->free_room, free_after, disk->known_bytes, bytes);
	disk->known_bytes = bytes;
	disk->known_at_ms = disk->began_ms;
	/* What was removed during the walk must hide nothing that is written after it. */
	disk->free_room = disk->free_before > free_after ? disk->free_before : free_after;
	disk->unmeasured_ms = 0;
	if (bytes != TREE_ENDLESS)
		w->model.disk_usage_bytes = counted;
	disk_usage_changed(w);
	if (bytes != TREE_ENDLESS && !disk->held.hidden)
		disk->base = (struct held_base){ held_free_bytes(w->core->workspaces), free_after,
			counted, disk->held.written };
}

static void measure_tree(struct watch_disk *disk);

/* Walk and question are both answered. */
static void settle(struct watch_disk *disk)
{
	struct core_workspace *w = disk->w;
	bool ok = disk->is_walk_ok, was_over = disk->was_over;
	uint64_t limit = w->model.limits.disk_bytes, now_ms = clock_monotonic_ms();
	uint64_t counted = disk->walked_bytes, bytes = counted;
	if (!disk->is_walked || disk->question)
		return;
	if (bytes != TREE_ENDLESS) {
		counted += disk->held.bytes;
		bytes = counted + held_hidden_bytes(&disk->base, &disk->held, counted,
					  held_free_bytes(w->core->workspaces));
	}
	/* What was over its limit before an exec began is not that exec's doing: it may be there to
	 * clear up, and goes on as long as nothing grows. */
	bool is_grown = bytes == TREE_ENDLESS || (has_grown(disk, bytes) && !was_over);
	disk->was_over = disk->is_measuring = false;
	disk->execs->measures--;
	disk->stop_after_ms = now_ms + (now_ms - disk->began_ms) * disk->doubt;
	disk->after_ms = now_ms + (now_ms - disk->began_ms) * COST_SHARE;
	disk->execs->tree_after_ms = now_ms + (now_ms - disk->began_ms) * MEASURES_COST_SHARE;
	if (ok)
		note(disk, counted, bytes, was_over);
	core_hold(w);
	bool ends = ok && bytes > limit && is_grown && is_counted(disk);
	if (!ends)
		stop_writers(disk, false);
	/* Without a result, don't keep waiters for another measurement. */
	judge_all(disk, ok ? disk->walks : UINT_MAX, ok && bytes >= full_bytes(disk));
	if (watch_disk_of(w) == disk && disk->judged)
		measure_tree(disk);
	if (watch_disk_of(w) == disk && has_writers(disk)) {
		if (ends)
			watch_disk_hit(w);
		else
			arm(disk);
	} else if (watch_disk_of(w) == disk)
		stop_writers(disk, false);
	core_release(w);
}

static void on_walked(void *ctx, bool ok, uint64_t bytes)
{
	struct watch_disk *disk = ctx;
	disk->closed = NULL;
	if (ok && bytes == TREE_CLOSED) {
		disk->closed = tree_measure_closed(disk->w, on_walked, disk);
		return;
	}
	disk->is_walked = true;
	disk->is_walk_ok = ok;
	disk->walked_bytes = ok ? bytes : 0;
	settle(disk);
}

/* A tree that was made too deep to be measured is over every limit. Runs in a child. */
static uint64_t walk(void *ctx)
{
	struct watch_disk *disk = ctx;
	return tree_measure(disk->w);
}

static void on_held(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct watch_disk *disk = ctx;
	disk->question = 0;
	if (packet && packet->head.type == LAUNCH_HELD_ARE) {
		const struct launch_held *held = &packet->head.held;
		disk->held = (struct held){ held->bytes, held->hidden, held->written,
			held->has_written };
	}
	settle(disk);
}

/* The processes of a sandbox can't be looked into by core: as root they have another uid, as a
 * plain user another user namespace. */
static void ask_held(struct watch_disk *disk)
{
	struct core_workspace *w = disk->w;
	struct launch_message head = { .type = LAUNCH_HELD };
	disk->held = (struct held){ 0 };
	if (!w->core->launcher.loop || !is_counted(disk) || w->sandbox.state != SANDBOX_UP ||
		!has_writers(disk))
		return;
	memcpy(head.id, w->model.id, sizeof head.id);
	disk->question = launcher_ask(&w->core->launcher, &head, NULL, 0, NULL, 0, on_held, disk);
}

static void measure_tree(struct watch_disk *disk)
{
	if (disk->is_measuring)
		return;
	disk->is_measuring = true;
	disk->is_walked = false;
	disk->began_ms = clock_monotonic_ms();
	disk->free_before = held_free_room(disk->w->core->workspaces);
	disk->execs->measures++;
	disk->walks++;
	disk->tree.keep[0] = disk->w->core->workspaces;
	disk->tree.keep_count = 1;
	ask_held(disk);
	measure_start(&disk->tree);
}

/* ---- when to measure ---- */

static bool had_time_to_write(const struct watch_disk *disk, uint64_t bytes)
{
	uint64_t written;
	return __builtin_mul_overflow(disk->unmeasured_ms, PACE_BYTES_A_MS, &written) ||
	       written >= bytes;
}

static bool is_lost(const struct watch_disk *disk, uint64_t bytes)
{
	uint64_t left = held_free_room(disk->w->core->workspaces);
	return (!left && had_time_to_write(disk, bytes)) ||
	       (left < disk->free_room && disk->free_room - left >= bytes);
}

static bool looks_full(const struct watch_disk *disk)
{
	uint64_t room = room_left(disk);
	return !room || is_lost(disk, room);
}

/* Whether the commands since the last measurement can have filled it: the file system lost as much
 * room, or they had the time, and what others have freed may hide it. */
static bool could_be_full(const struct watch_disk *disk)
{
	uint64_t room = room_left(disk);
	return looks_full(disk) || (clock_monotonic_ms() >= disk->known_at_ms + MASKED_MS &&
					   had_time_to_write(disk, room));
}

/* The same for one that has failed, perhaps for that: what it could not write isn't lost, and an
 * answer without the reason is worse than one that takes a walk longer. */
static bool could_have_hit(const struct watch_disk *disk)
{
	uint64_t room = room_left(disk);
	return !room || had_time_to_write(disk, room) || is_lost(disk, room / 2);
}

static bool may_measure(const struct watch_disk *disk)
{
	const struct execs *execs = disk->execs;
	return execs->measures < MEASURES_MOST && clock_monotonic_ms() >= execs->tree_after_ms;
}

static bool is_quota_full(const struct watch_disk *disk)
{
	return view_is_workspace_full(&disk->w->sandbox.view);
}

static void look_at_loss(struct watch_disk *disk)
{
	uint64_t room = room_left(disk), now_ms = clock_monotonic_ms();
	enum pace_due due = !room ? PACE_NOT_YET
				  : pace_due(room, disk->doubt, disk->free_room,
					    held_free_room(disk->w->core->workspaces),
					    now_ms - disk->known_at_ms);
	if (due == PACE_NOT_YET && could_be_full(disk))
		due = PACE_MEASURE;
	if (due == PACE_MEASURE_STOPPED && now_ms < disk->stop_after_ms)
		due = PACE_MEASURE;
	if (disk->is_stopped) /* and waits for its turn */
		due = PACE_MEASURE_STOPPED;
	if (due == PACE_MEASURE_STOPPED)
		stop_writers(disk, true);
	/* What is stopped waits for its turn among all trees, but doesn't rest. */
	if (due != PACE_NOT_YET && may_measure(disk) &&
		(due == PACE_MEASURE_STOPPED || now_ms >= disk->after_ms))
		measure_tree(disk); /* and on from there */
	else
		arm(disk);
}

static void on_look(struct loop *loop, void *ctx)
{
	struct watch_disk *disk = ctx;
	disk->timer = NULL;
	disk->execs->disk_looks--;
	disk->unmeasured_ms += disk->timer_ms;
	if (disk->w->sandbox.state == SANDBOX_ENDING || !has_writers(disk)) {
		stop_writers(disk, false);
		return;
	}
	if (is_counted(disk)) {
		look_at_loss(disk);
		return;
	}
	disk->was_full |= is_quota_full(disk);
	arm(disk);
}

/* It ends when a walk has begun and ended after this moment. */
static enum watch_verdict judge_by_tree(struct watch_disk *disk, struct core_exec *e)
{
	unsigned next = disk->walks + 1;
	measure_tree(disk);
	if (!disk->is_measuring)
		return e->limit ? WATCH_HIT : WATCH_NOTHING;
	e->judged_by = next;
	e->judged_next = disk->judged;
	disk->judged = e;
	return WATCH_LATER;
}

enum watch_verdict watch_disk_last_look(struct watch_disk *disk, struct core_exec *e)
{
	bool failed = has_failed(e);
	if (!disk->mechanism)
		return WATCH_NOTHING;
	if (disk->mechanism->shows_full)
		return failed && (disk->was_full || is_quota_full(disk)) ? WATCH_HIT
									 : WATCH_NOTHING;
	disk->unmeasured_ms += (clock_monotonic_ns() - e->began_ns) / 1000000 + 1;
	/* A shell reports its child's signal as 128 + n. */
	if (e->may_not_grow && result_exit_code(&e->record.result) == 128 + SIGXFSZ)
		set_disk_limit(e);
	if (failed ? !could_have_hit(disk) : !could_be_full(disk))
		return e->limit ? WATCH_HIT : WATCH_NOTHING;
	if (failed || (is_counted(disk) && disk->known_bytes >= disk->w->model.limits.disk_bytes))
		return judge_by_tree(disk, e);
	if (clock_monotonic_ms() >= disk->after_ms && may_measure(disk))
		measure_tree(disk);
	return WATCH_NOTHING;
}

bool watch_disk_forbids_growth(const struct watch_disk *disk)
{
	const struct core_workspace *w = disk->w;
	/* Others may have made room, or the limit larger, since a walk. */
	return w->is_overgrown && is_counted(disk) &&
	       (disk->known_bytes == TREE_ENDLESS ||
		       w->model.disk_usage_bytes > w->model.limits.disk_bytes);
}

void watch_disk_spawning(struct watch_disk *disk)
{
	const struct core_workspace *w = disk->w;
	if (!w->sandbox.exec_count) {
		disk->was_full = false;
		/* Also if earlier commands seem to have filled it since the last walk: the walk
		 * that shows it must not end the command that begins now. */
		disk->was_over = is_counted(disk) && looks_full(disk) &&
				 !(w->sandbox.state == SANDBOX_UP && sandbox_has_processes(w));
		/* It may be an exec with more time. */
		disarm(disk);
	}
	arm(disk);
}

void watch_disk_open(struct watch_disk *disk, bool is_adopted)
{
	struct core_workspace *w = disk->w;
	uint64_t used = w->model.disk_usage_bytes, limit = w->model.limits.disk_bytes;
	disk->mechanism = mechanism_of(&w->model);
	disk->known_bytes = used;
	disk->over_bytes = used > limit ? used : 0;
	if (is_counted(disk))
		disk->free_room = held_free_room(w->core->workspaces);
	disk->tree = (struct measure){
		.loop = w->core->loop, .find = walk, .found = on_walked, .ctx = disk
	};
	if (!is_adopted) {
		disk->base = (struct held_base){ held_free_bytes(w->core->workspaces),
			disk->free_room, used, 0 };
		return;
	}
	/* A core that was killed may have stopped it. */
	disk->is_stopped = true;
	stop_writers(disk, false);
	arm(disk);
}

void watch_disk_close(struct watch_disk *disk)
{
	disarm(disk);
	if (disk->is_measuring)
		disk->execs->measures--;
	disk->is_measuring = false;
	launcher_forget(&disk->w->core->launcher, disk->question);
	disk->question = 0;
	measure_stop(&disk->tree);
	tree_measure_forget(disk->closed);
	disk->closed = NULL;
}
