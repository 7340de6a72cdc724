/* eviction.h -- which environments have to go. Pure.
 * 1. What is in use is never chosen, though it counts; so the limits may still not hold afterwards.
 * 2. Bytes are those of the layers, each once; they are freed when the last holder of a layer goes.
 * 3. For the sake of bytes alone nothing goes whose layers are all held by something in use: it
 * would free nothing. Nor does anything go for free_bytes when all together don't have as many: the
 * disk would be as full as before. */
#pragma once
#include "base/arena.h"
#include "base/vec.h"

enum eviction_policy { EVICT_LRU, EVICT_LFU, EVICT_FIFO, EVICT_POLICY_COUNT };
extern const char *const eviction_policy_names[EVICT_POLICY_COUNT]; /* "lru" … */

struct eviction_candidate {
	const char *name;
	int64_t created_ms, last_used_ms;
	uint64_t use_count;
	uint64_t size_bytes; /* what removing it alone would free is less when layers are shared */
	const char *const *layers;   /* NULL-terminated ids; NULL itself: size_bytes, unshared */
	const uint64_t *layer_bytes; /* of each of them */
	bool is_in_use;		     /* never chosen */
};
struct eviction_limits {
	enum eviction_policy policy;
	uint64_t max_envs, max_bytes; /* 0: none allowed … UINT64_MAX: no limit */
	uint64_t ttl_ms;	      /* unused for longer: goes; 0: no TTL */
	uint64_t free_bytes;	/* that all removals together must free (disk full); 0: none */
#define EVICTION_ALL UINT64_MAX /* … as many as there are */
};
struct eviction_choice {
	size_t index;
	const char *reason; /* "lru_eviction", "lfu_eviction", "fifo_eviction", "ttl_expired",
			       "disk_full" */
	const char *limit;  /* what is to hold again: "max_envs", "max_bytes", "ttl", "disk full" */
};
typedef VEC(struct eviction_choice) eviction_choices;
/* In the order of removal: expired ones first, then by policy until all limits hold. lru: longest
 * unused first; lfu: fewest uses, then longest unused; fifo: oldest; equal ones by name. */
void eviction_choose(const struct eviction_candidate *candidates, size_t count,
	const struct eviction_limits *limits, int64_t now_ms, struct arena *arena,
	eviction_choices *choices);
