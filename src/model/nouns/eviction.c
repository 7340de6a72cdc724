#include "base/map.h"
#include "model/nouns/eviction.h"

const char *const eviction_policy_names[EVICT_POLICY_COUNT] = {
	[EVICT_LRU] = "lru",
	[EVICT_LFU] = "lfu",
	[EVICT_FIFO] = "fifo",
};
static const char *const policy_reasons[EVICT_POLICY_COUNT] = {
	[EVICT_LRU] = "lru_eviction",
	[EVICT_LFU] = "lfu_eviction",
	[EVICT_FIFO] = "fifo_eviction",
};

struct layer {
	uint64_t bytes;
	size_t holders;	   /* environments that stay, as far as decided */
	bool is_held_fast; /* by one in use: it stays whatever else goes */
	bool is_counted;   /* by most_that_frees */
};
/* A candidate in the order of the policy. */
struct entry {
	uint64_t first, second; /* smaller goes earlier */
	const struct eviction_candidate *candidate;
	struct layer **layers;
	size_t layer_count, index;
	bool is_gone;
};
struct choosing {
	const struct eviction_limits *limits;
	struct arena *arena;
	struct entry *entries;
	size_t count, left;
	uint64_t bytes, freed;
	eviction_choices *choices;
};

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* int64 in the order of uint64. */
static uint64_t ordered(int64_t value)
{
	return (uint64_t)value ^ (uint64_t)1 << 63;
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->second != y->second)
		return x->second < y->second ? -1 : 1;
	return strcmp(x->candidate->name, y->candidate->name);
}

/* The layers of an environment; one that names none is a single layer of its own. */
static void find_layers(struct choosing *c, struct map *known, struct entry *entry)
{
	const struct eviction_candidate *candidate = entry->candidate;
	size_t count = 0;
	while (candidate->layers && candidate->layers[count])
		count++;
	entry->layer_count = candidate->layers ? count : 1;
	entry->layers = arena_array(c->arena, entry->layer_count, sizeof(struct layer *));
	for (size_t i = 0; i < entry->layer_count; i++) {
		struct layer *layer = NULL;
		if (candidate->layers)
			layer = map_get(known, str_from(candidate->layers[i]));
		if (!layer) {
			layer = arena_alloc(c->arena, sizeof *layer);
			layer->bytes = candidate->layers ? candidate->layer_bytes[i]
							 : candidate->size_bytes;
			c->bytes = add(c->bytes, layer->bytes);
			if (candidate->layers)
				map_set(known, str_from(candidate->layers[i]), layer);
		}
		layer->holders++;
		layer->is_held_fast |= candidate->is_in_use;
		entry->layers[i] = layer;
	}
}

static void prepare(struct choosing *c, const struct eviction_candidate *candidates)
{
	struct map known;
	map_init(&known, c->arena);
	c->entries = arena_array(c->arena, c->count, sizeof *c->entries);
	for (size_t i = 0; i < c->count; i++) {
		const struct eviction_candidate *candidate = &candidates[i];
		struct entry *entry = &c->entries[i];
		*entry = (struct entry){ .candidate = candidate, .index = i };
		if (c->limits->policy == EVICT_FIFO) {
			entry->first = ordered(candidate->created_ms);
		} else if (c->limits->policy == EVICT_LFU) {
			entry->first = candidate->use_count;
			entry->second = ordered(candidate->last_used_ms);
		} else {
			entry->first = ordered(candidate->last_used_ms);
		}
		find_layers(c, &known, entry);
	}
	if (c->count > 0)
		qsort(c->entries, c->count, sizeof *c->entries, compare);
}

static void choose(struct choosing *c, struct entry *entry, const char *reason, const char *limit)
{
	entry->is_gone = true;
	c->left--;
	for (size_t i = 0; i < entry->layer_count; i++) {
		if (--entry->layers[i]->holders == 0) {
			c->bytes -= entry->layers[i]->bytes;
			c->freed = add(c->freed, entry->layers[i]->bytes);
		}
	}
	vec_push(c->arena, c->choices, (struct eviction_choice){ entry->index, reason, limit });
}

/* Whether its removal frees bytes, now or with others that hold the same layers. */
static bool may_free(const struct entry *entry)
{
	for (size_t i = 0; i < entry->layer_count; i++) {
		if (!entry->layers[i]->is_held_fast && entry->layers[i]->bytes > 0)
			return true;
	}
	return false;
}

/* What is freed when all goes that isn't in use. */
static uint64_t most_that_frees(const struct choosing *c)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < c->count; i++) {
		for (size_t k = 0; k < c->entries[i].layer_count; k++) {
			struct layer *layer = c->entries[i].layers[k];
			if (!layer->is_held_fast && !layer->is_counted)
				bytes = add(bytes, layer->bytes);
			layer->is_counted = true;
		}
	}
	return bytes;
}

static bool is_expired(const struct entry *entry, uint64_t ttl_ms, int64_t now_ms)
{
	int64_t last = entry->candidate->last_used_ms;
	return ttl_ms > 0 && last < now_ms && (uint64_t)now_ms - (uint64_t)last > ttl_ms;
}

void eviction_choose(const struct eviction_candidate *candidates, size_t count,
	const struct eviction_limits *limits, int64_t now_ms, struct arena *arena,
	eviction_choices *choices)
{
	struct choosing c = {
		.limits = limits, .arena = arena, .count = count, .left = count, .choices = choices
	};
	*choices = (eviction_choices){ 0 };
	prepare(&c, candidates);
	uint64_t most = most_that_frees(&c), free_bytes = limits->free_bytes;
	if (free_bytes == EVICTION_ALL)
		free_bytes = most;
	else if (most < free_bytes)
		free_bytes = 0;
	for (size_t i = 0; i < count; i++) {
		struct entry *entry = &c.entries[i];
		if (!entry->candidate->is_in_use && is_expired(entry, limits->ttl_ms, now_ms))
			choose(&c, entry, "ttl_expired", "ttl");
	}
	for (size_t i = 0; i < count; i++) {
		struct entry *entry = &c.entries[i];
		if (entry->is_gone || entry->candidate->is_in_use)
			continue;
		/* One that shares all it has with what runs goes only when there are too many. */
		if (c.left > limits->max_envs)
			choose(&c, entry, policy_reasons[limits->policy], "max_envs");
		else if (c.bytes > limits->max_bytes && may_free(entry))
			choose(&c, entry, policy_reasons[limits->policy], "max_bytes");
		else if (c.freed < free_bytes && may_free(entry))
			choose(&c, entry, "disk_full", "disk full");
	}
}
