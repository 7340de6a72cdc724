/* pool.h -- parts of sandboxes that are slow to make, made ahead: kits (by a child process, so that
 * the launcher never waits for one) and control groups. 1. Nothing is used twice. 2. When a pool is
 * empty, the sandbox makes its own: pools only save time. */
#pragma once
#include "base/error.h"
#include "linux/cgroup.h"
#include "proc/loop.h"
#include "sandbox/native/slot.h"

#define POOL_MAX 32

/* A uid with the map that shows it the files of the home's owner as its own, and a network
 * namespace that is ready. */
struct pool_kit {
	uint32_t uid; /* of the slots */
	int idmap, netns;
};
#define POOL_KIT_NONE                                                                              \
	{                                                                                          \
		.idmap = -1, .netns = -1                                                           \
	}
void pool_kit_done(struct pool_kit *kit); /* closes the descriptors; the caller releases the uid */

struct pool {
	struct loop *loop;
	const struct cgroup_host *cgroups;
	struct slots *slots;
	uint32_t owner_uid, owner_gid;
	/* kits */
	int maker; /* socket to the child that makes them, or -1 */
	pid_t maker_pid;
	struct pool_kit kits[POOL_MAX];
	uint32_t asked[POOL_MAX]; /* uids of those that are being made */
	unsigned kits_ready, kits_asked, kits_wanted;
	uint64_t kits_missed;
	/* control groups */
	struct cgroup *groups; /* groups_ready of POOL_MAX */
	struct cgroup_want each;
	unsigned numbers[POOL_MAX];
	unsigned groups_ready, groups_wanted, next_number;
	unsigned *leaving; /* numbers of those that were used, to be removed */
	size_t leaving_count, leaving_room;
	struct loop_timer *removal;
	uint64_t groups_missed;
	struct loop_timer *refill;
	/* Why one of the two isn't filled any more (called at most once for each), or a group
	 * can't be removed. */
	void (*failed)(void *ctx, const char *what, const struct error *err);
	void *ctx;
};
/* `each`: the limits that most will have. wanted: how many of both to keep (at most POOL_MAX; 0:
 * none). Without `has_privilege` there are no kits. loop, cgroups, slots, owner, failed and ctx are
 * set before. Filling begins with the loop. */
int pool_start(struct pool *pool, const struct cgroup_want *each, unsigned wanted,
	bool has_privilege, struct error *err);
/* Ends the child, removes what wasn't used. */
void pool_stop(struct pool *pool);
/* The child that makes kits has ended. */
void pool_maker_died(struct pool *pool);

/* false: the pool is empty, make your own. */
bool pool_take_kit(struct pool *pool, struct pool_kit *kit);
/* A group for `want`, whose number is set: one that is ready, changed where it has to be, or one
 * made now. cgroup_done and, in the end, pool_drop_cgroup are the caller's. */
int pool_take_cgroup(
	struct pool *pool, struct cgroup_want *want, struct cgroup *group, struct error *err);
/* Its last process is gone: it is removed when there is time, and again while something is just
 * leaving it. */
void pool_drop_cgroup(struct pool *pool, unsigned number);
