/* Growing arrays: order and content survive every move. */
#include "base/vec.h"
#include "unit.h"

struct pair {
	int a, b;
};

static void pushed_items_stay_in_order(void **state)
{
	auto_arena struct arena arena;
	VEC(struct pair) pairs = { 0 };
	text_list names = { 0 };

	arena_init(&arena);
	for (int i = 0; i < 1000; i++) {
		vec_push(&arena, &pairs, (struct pair){ i, -i });
		vec_push(&arena, &names, arena_printf(&arena, "%d", i));
	}
	assert_int_equal(pairs.count, 1000);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(pairs.items[i].a, i);
		assert_int_equal(pairs.items[i].b, -i);
	}
	assert_string_equal(names.items[0], "0");
	assert_string_equal(names.items[999], "999");
}

static void storage_moves_only_when_full(void **state)
{
	auto_arena struct arena arena;
	VEC(int) v = { 0 };

	arena_init(&arena);
	vec_push(&arena, &v, 1);
	int *first = v.items;
	while (v.count < v.capacity)
		vec_push(&arena, &v, 2);
	assert_ptr_equal(v.items, first);
	vec_push(&arena, &v, 3);
	assert_ptr_not_equal(v.items, first);
	assert_true(v.capacity > v.count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushed_items_stay_in_order),
		cmocka_unit_test(storage_moves_only_when_full),
	};

	return cmocka_run_group_tests_name("vec", tests, NULL, NULL);
}
