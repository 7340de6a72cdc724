/* guard_disk.h -- keeps a directory of the host to a number of bytes where no quota does it, while
 * a sandbox works there (`carrel run --dir D --disk N`).
 * 1. Counted are the tree, at least a block an inode, and what the processes hold outside it
 * (held.h).
 * 2. It is looked at more often the less room is left (pace.h). When the limit may be passed,
 * everything in the sandbox is stopped until the tree is measured. */
#pragma once
#include "linux/cgroup.h"
#include "model/result.h"
#include "plan/plan.h"
#include "proc/loop.h"
#include "sandbox/held.h"
#include "proc/measure.h"

struct guard_disk {
	struct loop *loop;
	const struct cgroup *cgroup; /* whose freezer is used, where it has one */
	int init_socket;
	uint64_t limit_bytes;
	struct held_base base;
	void (*hit)(void *ctx, enum reason reason);
	void *ctx;
	int tree, proc; /* descriptors of the directory and of the sandbox's /proc, once known */
	/* private */
	struct loop_timer *timer;
	struct measure measure;
	struct guard_disk_found {
		struct held held;
		uint64_t counted_bytes, free_bytes, free_room;
	} found;
	uint64_t known_bytes, free_room; /* of the last measurement */
	uint64_t began_ms, known_at_ms, rest_until_ms, stop_after_ms;
	unsigned doubt; /* pace_doubt */
	bool is_stopped;
};

/* Measures the directory before the start. ERR_LIMIT: it is over its limit already. */
int guard_disk_check(const struct plan *plan, struct held_base *base, struct error *err);
/* The time to the first look. */
uint64_t guard_disk_first_ms(const struct guard_disk *disk);
/* `tree` and `proc` are set, too. */
void guard_disk_start(struct guard_disk *disk);
/* Now, by this process. */
bool guard_disk_is_full(struct guard_disk *disk);
void guard_disk_stop(struct guard_disk *disk); /* idempotent */
