/* Eviction: what goes, in which order, and what never does. */
#include <string.h>
#include "base/str.h"
#include "model/nouns/eviction.h"
#include "unit.h"

#define NOW 1000000
#define NO_LIMITS .max_envs = UINT64_MAX, .max_bytes = UINT64_MAX, .ttl_ms = 0, .free_bytes = 0
#define LAYERS(...)                                                                                \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}
#define BYTES(...)                                                                                 \
	(const uint64_t[])                                                                         \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* `expected` is "name:reason name:reason". */
static void assert_goes(const struct eviction_candidate *candidates, size_t count,
	struct eviction_limits limits, const char *expected)
{
	auto_arena struct arena arena = { 0 };
	eviction_choices choices;
	char text[500] = "", before[500];

	eviction_choose(candidates, count, &limits, NOW, &arena, &choices);
	for (size_t i = 0; i < choices.count; i++) {
		str_copy(before, sizeof before, text);
		str_format(text, sizeof text, "%s%s%s:%s", before, i ? " " : "",
			candidates[choices.items[i].index].name, choices.items[i].reason);
		assert_non_null(choices.items[i].limit);
	}
	assert_string_equal(text, expected);
}
#define COUNT(list) (sizeof(list) / sizeof *(list))

static const struct eviction_candidate three[] = {
	{ .name = "c", .created_ms = 10, .last_used_ms = 900, .use_count = 5, .size_bytes = 100 },
	{ .name = "a", .created_ms = 30, .last_used_ms = 100, .use_count = 9, .size_bytes = 200 },
	{ .name = "b", .created_ms = 20, .last_used_ms = 500, .use_count = 1, .size_bytes = 400 },
};

static void nothing_goes_while_all_limits_hold(void **state)
{
	assert_goes(three, 3, (struct eviction_limits){ NO_LIMITS }, "");
	assert_goes(three, 3,
		(struct eviction_limits){ .max_envs = 3, .max_bytes = 700, .ttl_ms = NOW }, "");
	assert_goes(NULL, 0, (struct eviction_limits){ 0 }, "");
}

static void the_policy_gives_the_order(void **state)
{
	struct eviction_limits limits = { NO_LIMITS };

	limits.max_envs = 0;
	limits.policy = EVICT_LRU;
	assert_goes(three, 3, limits, "a:lru_eviction b:lru_eviction c:lru_eviction");
	limits.policy = EVICT_LFU;
	assert_goes(three, 3, limits, "b:lfu_eviction c:lfu_eviction a:lfu_eviction");
	limits.policy = EVICT_FIFO;
	assert_goes(three, 3, limits, "c:fifo_eviction b:fifo_eviction a:fifo_eviction");
	limits.max_envs = 2;
	assert_goes(three, 3, limits, "c:fifo_eviction");
	assert_string_equal(eviction_policy_names[EVICT_LRU], "lru");
	assert_string_equal(eviction_policy_names[EVICT_LFU], "lfu");
	assert_string_equal(eviction_policy_names[EVICT_FIFO], "fifo");
}

static void equal_ones_go_by_name(void **state)
{
	static const struct eviction_candidate equal[] = { { .name = "d" }, { .name = "b" },
		{ .name = "a" }, { .name = "c" } };
	struct eviction_limits limits = { NO_LIMITS };

	limits.max_envs = 1;
	for (limits.policy = 0; limits.policy < EVICT_POLICY_COUNT; limits.policy++) {
		char expected[200];
		const char *policy = eviction_policy_names[limits.policy];

		str_format(expected, sizeof expected, "a:%s_eviction b:%s_eviction c:%s_eviction",
			policy, policy, policy);
		assert_goes(equal, 4, limits, expected);
	}
}

static void as_often_used_goes_by_age_of_use(void **state)
{
	static const struct eviction_candidate list[] = {
		{ .name = "a", .use_count = 1, .last_used_ms = 50 },
		{ .name = "b", .use_count = 1, .last_used_ms = -40 },
		{ .name = "c", .use_count = 2, .last_used_ms = 1 },
	};

	assert_goes(list, COUNT(list),
		(struct eviction_limits){ EVICT_LFU, .max_envs = 0, .max_bytes = UINT64_MAX },
		"b:lfu_eviction a:lfu_eviction c:lfu_eviction");
}

static void the_expired_go_first_and_count(void **state)
{
	static const struct eviction_candidate list[] = {
		{ .name = "new", .last_used_ms = NOW, .use_count = 1 },
		{ .name = "just", .last_used_ms = NOW - 100, .use_count = 2 },
		{ .name = "old", .last_used_ms = NOW - 101, .use_count = 9 },
		{ .name = "future", .last_used_ms = NOW + 500, .use_count = 3 },
		{ .name = "ancient", .last_used_ms = INT64_MIN, .use_count = 8 },
		{ .name = "running", .last_used_ms = 0, .is_in_use = true },
	};
	struct eviction_limits limits = { NO_LIMITS };

	limits.policy = EVICT_LFU;
	limits.ttl_ms = 100;
	assert_goes(list, COUNT(list), limits, "ancient:ttl_expired old:ttl_expired");
	limits.max_envs = 3;
	assert_goes(
		list, COUNT(list), limits, "ancient:ttl_expired old:ttl_expired new:lfu_eviction");
	limits.ttl_ms = UINT64_MAX;
	limits.max_envs = UINT64_MAX;
	assert_goes(list, COUNT(list), limits, "");
}

static void what_is_in_use_never_goes(void **state)
{
	static const struct eviction_candidate list[] = {
		{ .name = "a", .last_used_ms = 1, .size_bytes = 100, .is_in_use = true },
		{ .name = "b", .last_used_ms = 2, .size_bytes = 100 },
		{ .name = "c", .last_used_ms = 3, .size_bytes = 100, .is_in_use = true },
	};

	assert_goes(list, 3,
		(struct eviction_limits){
			.max_envs = 0, .max_bytes = 0, .ttl_ms = 1, .free_bytes = UINT64_MAX },
		"b:ttl_expired");
	/* It counts, though. */
	assert_goes(list, 3, (struct eviction_limits){ .max_envs = 2, .max_bytes = UINT64_MAX },
		"b:lru_eviction");
	assert_goes(list, 3, (struct eviction_limits){ .max_envs = 9, .max_bytes = 250 },
		"b:lru_eviction");
}

static void shared_layers_count_once(void **state)
{
	const struct eviction_candidate list[] = {
		{ .name = "a",
			.last_used_ms = 1,
			.size_bytes = 110,
			.layers = LAYERS("base", "x"),
			.layer_bytes = BYTES(100, 10) },
		{ .name = "b",
			.last_used_ms = 2,
			.size_bytes = 120,
			.layers = LAYERS("base", "y"),
			.layer_bytes = BYTES(100, 20) },
		{ .name = "c",
			.last_used_ms = 3,
			.size_bytes = 30,
			.layers = LAYERS("z"),
			.layer_bytes = BYTES(30) },
		{ .name = "d",
			.last_used_ms = 4,
			.size_bytes = 0,
			.layers = LAYERS(NULL),
			.layer_bytes = BYTES(0) },
	};
	struct eviction_limits limits = { NO_LIMITS };

	/* 160 in all, not 260. */
	limits.max_bytes = 160;
	assert_goes(list, COUNT(list), limits, "");
	limits.max_bytes = 159; /* without a 150: its base is b's as well */
	assert_goes(list, COUNT(list), limits, "a:lru_eviction");
	limits.max_bytes = 149; /* without b 30: now the base goes too */
	assert_goes(list, COUNT(list), limits, "a:lru_eviction b:lru_eviction");
	limits.max_bytes = 29; /* d has nothing to give */
	assert_goes(list, COUNT(list), limits, "a:lru_eviction b:lru_eviction c:lru_eviction");
}

static void nothing_goes_for_bytes_that_something_in_use_holds(void **state)
{
	const struct eviction_candidate list[] = {
		{ .name = "a",
			.last_used_ms = 1,
			.layers = LAYERS("base"),
			.layer_bytes = BYTES(100) },
		{ .name = "b",
			.last_used_ms = 2,
			.layers = LAYERS("base", "y"),
			.layer_bytes = BYTES(100, 20) },
		{ .name = "c",
			.last_used_ms = 3,
			.layers = LAYERS("base"),
			.layer_bytes = BYTES(100),
			.is_in_use = true },
	};
	struct eviction_limits limits = { NO_LIMITS };

	limits.max_bytes = 10;
	assert_goes(list, COUNT(list), limits, "b:lru_eviction");
	limits.max_bytes = UINT64_MAX;
	limits.free_bytes = 20;
	assert_goes(list, COUNT(list), limits, "b:disk_full");
	limits.free_bytes = 21;
	assert_goes(list, COUNT(list), limits, "");
	/* For the count it goes. */
	limits.free_bytes = 0;
	limits.max_envs = 2;
	assert_goes(list, COUNT(list), limits, "a:lru_eviction");
}

static void a_full_disk_frees_what_is_asked(void **state)
{
	struct eviction_limits limits = { NO_LIMITS };

	limits.free_bytes = 1;
	assert_goes(three, 3, limits, "a:disk_full");
	limits.free_bytes = 200;
	assert_goes(three, 3, limits, "a:disk_full");
	limits.free_bytes = 201;
	assert_goes(three, 3, limits, "a:disk_full b:disk_full");
	limits.free_bytes = 700;
	assert_goes(three, 3, limits, "a:disk_full b:disk_full c:disk_full");
	/* All of them are not enough: then none goes. */
	limits.free_bytes = 701;
	assert_goes(three, 3, limits, "");
	limits.free_bytes = EVICTION_ALL;
	assert_goes(three, 3, limits, "a:disk_full b:disk_full c:disk_full");
	limits.free_bytes = UINT64_MAX - 1;
	assert_goes(three, 3, limits, "");
	limits.max_envs = 2;
	assert_goes(three, 3, limits, "a:lru_eviction");
	limits.max_envs = UINT64_MAX;
	/* What the limits free counts. */
	limits.free_bytes = 300;
	limits.max_envs = 2;
	assert_goes(three, 3, limits, "a:lru_eviction b:disk_full");
	limits.free_bytes = 200;
	assert_goes(three, 3, limits, "a:lru_eviction");
}

static void a_layer_named_twice_is_one(void **state)
{
	const struct eviction_candidate list[] = {
		{ .name = "a", .layers = LAYERS("x", "x"), .layer_bytes = BYTES(100, 100) },
		{ .name = "b", .layers = LAYERS("y"), .layer_bytes = BYTES(100) },
	};
	struct eviction_limits limits = { NO_LIMITS };

	limits.max_bytes = 200;
	assert_goes(list, 2, limits, "");
	limits.max_bytes = 100;
	assert_goes(list, 2, limits, "a:lru_eviction");
	limits.max_bytes = 0;
	assert_goes(list, 2, limits, "a:lru_eviction b:lru_eviction");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_goes_while_all_limits_hold),
		cmocka_unit_test(the_policy_gives_the_order),
		cmocka_unit_test(equal_ones_go_by_name),
		cmocka_unit_test(as_often_used_goes_by_age_of_use),
		cmocka_unit_test(the_expired_go_first_and_count),
		cmocka_unit_test(what_is_in_use_never_goes),
		cmocka_unit_test(shared_layers_count_once),
		cmocka_unit_test(nothing_goes_for_bytes_that_something_in_use_holds),
		cmocka_unit_test(a_full_disk_frees_what_is_asked),
		cmocka_unit_test(a_layer_named_twice_is_one),
	};

	return cmocka_run_group_tests_name("eviction", tests, NULL, NULL);
}
