/* Maps: what was set is found, what was removed is not, whatever the keys. */
#include <stdio.h>
#include "base/map.h"
#include "unit.h"

static void values_are_found_replaced_and_removed(void **state)
{
	auto_arena struct arena arena;
	struct map m;
	int one, two;

	arena_init(&arena);
	map_init(&m, &arena);
	assert_null(map_get(&m, STR("a")));
	assert_null(map_remove(&m, STR("a")));
	assert_null(map_set(&m, STR("a"), &one));
	assert_ptr_equal(map_get(&m, STR("a")), &one);
	assert_ptr_equal(map_set(&m, STR("a"), &two), &one);
	assert_int_equal(m.live, 1);
	assert_ptr_equal(map_remove(&m, STR("a")), &two);
	assert_null(map_get(&m, STR("a")));
	assert_null(map_remove(&m, STR("a")));
	assert_int_equal(m.live, 0);
	assert_null(map_set(&m, STR("a"), &one));
	assert_ptr_equal(map_get(&m, STR("a")), &one);
	assert_ptr_equal(map_set(&m, STR("a"), NULL), &one);
	assert_int_equal(m.live, 0);
}

static void keys_are_bytes_and_are_copied(void **state)
{
	auto_arena struct arena arena;
	struct map m;
	int values[4];
	char key[3] = "a\0b";

	arena_init(&arena);
	map_init(&m, &arena);
	map_set(&m, (struct str){ key, 3 }, &values[0]);
	map_set(&m, (struct str){ key, 2 }, &values[1]);
	map_set(&m, (struct str){ key, 1 }, &values[2]);
	map_set(&m, STR(""), &values[3]);
	key[0] = 'z';
	assert_ptr_equal(map_get(&m, STR("a\0b")), &values[0]);
	assert_ptr_equal(map_get(&m, STR("a\0")), &values[1]);
	assert_ptr_equal(map_get(&m, STR("a")), &values[2]);
	assert_ptr_equal(map_get(&m, (struct str){ NULL, 0 }), &values[3]);
	assert_null(map_get(&m, (struct str){ key, 3 }));
}

static void thousands_of_keys_keep_their_order(void **state)
{
	enum { COUNT = 5000 };
	static int values[COUNT];
	auto_arena struct arena arena;
	struct map m;
	char key[64];

	arena_init(&arena);
	map_init(&m, &arena);
	/* Keys of every length around the eight bytes that are hashed at a time. */
	for (int i = 0; i < COUNT; i++) {
		snprintf(key, sizeof key, "%0*d", 5 + i % 20, i);
		assert_null(map_set(&m, str_from(key), &values[i]));
	}
	assert_int_equal(m.live, COUNT);
	for (int i = 0; i < COUNT; i++) {
		snprintf(key, sizeof key, "%0*d", 5 + i % 20, i);
		assert_ptr_equal(map_get(&m, str_from(key)), &values[i]);
		assert_ptr_equal(m.entries[i].value, &values[i]);
	}
}

static void removing_as_many_as_are_set_needs_no_more_room(void **state)
{
	auto_arena struct arena arena;
	struct map m;
	char key[32];
	int value;

	arena_init(&arena);
	map_init(&m, &arena);
	for (int i = 0; i < 10000; i++) {
		snprintf(key, sizeof key, "%d", i);
		assert_null(map_set(&m, str_from(key), &value));
		if (i >= 5) {
			snprintf(key, sizeof key, "%d", i - 5);
			assert_ptr_equal(map_remove(&m, str_from(key)), &value);
			assert_null(map_get(&m, str_from(key)));
		}
	}
	assert_int_equal(m.live, 5);
	assert_true(m.capacity <= 32);
	assert_ptr_equal(map_get(&m, STR("9999")), &value);
	assert_null(map_get(&m, STR("9990")));
}

static void two_maps_place_the_same_keys_differently(void **state)
{
	auto_arena struct arena arena;
	struct map a, b;
	char key[32];
	int value;

	arena_init(&arena);
	map_init(&a, &arena);
	map_init(&b, &arena);
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "%d", i);
		map_set(&a, str_from(key), &value);
		map_set(&b, str_from(key), &value);
	}
	assert_int_equal(a.slot_count, b.slot_count);
	assert_memory_not_equal(a.slots, b.slots, a.slot_count * sizeof *a.slots);
}

static void a_map_without_an_arena_keeps_what_comes_and_goes(void **state)
{
	enum { COUNT = 5000 };
	static char keys[COUNT][16];
	struct map m;
	size_t at = 0, seen = 0;

	map_init(&m, NULL);
	for (int i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof keys[i], "key-%d", i);
		map_add(&m, str_from(keys[i]), keys[i]);
	}
	for (int i = 0; i < COUNT; i += 2)
		map_remove(&m, str_from(keys[i]));
	for (int i = 0; i < COUNT; i++)
		assert_ptr_equal(map_get(&m, str_from(keys[i])), i % 2 ? keys[i] : NULL);
	for (char *value; (value = map_next(&m, &at)); seen++)
		assert_ptr_equal(map_remove(&m, str_from(value)), value);
	assert_int_equal(seen, COUNT / 2);
	assert_aborts(map_add(&m, STR("x"), keys); map_add(&m, STR("x"), keys));
	map_done(&m);
	map_init(&m, NULL);
	/* A key that is gone is never looked at again. */
	for (int i = 0; i < 100000; i++) {
		char key[16];
		snprintf(key, sizeof key, "%d", i);
		map_add(&m, str_from(key), key);
		map_remove(&m, str_from(key));
	}
	assert_int_equal(m.live, 0);
	assert_true(m.capacity <= 64);
	map_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_found_replaced_and_removed),
		cmocka_unit_test(keys_are_bytes_and_are_copied),
		cmocka_unit_test(thousands_of_keys_keep_their_order),
		cmocka_unit_test(removing_as_many_as_are_set_needs_no_more_room),
		cmocka_unit_test(two_maps_place_the_same_keys_differently),
		cmocka_unit_test(a_map_without_an_arena_keeps_what_comes_and_goes),
	};

	return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
