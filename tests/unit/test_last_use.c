/* What was used last stays. */
#include "base/last_use.h"

#include "unit.h"

static void those_used_last_stay(void **state)
{
	struct last_use_list list = { .most = 100 };
	struct last_use a = { 0 }, b = { 0 }, c = { 0 };

	last_use_put(&list, &a, 40);
	last_use_put(&list, &b, 40);
	assert_null(last_use_surplus(&list));
	last_use_put(&list, &a, 40); /* again */
	assert_int_equal(list.bytes, 80);
	last_use_put(&list, &c, 40);
	assert_ptr_equal(last_use_surplus(&list), &b);
	last_use_remove(&b);
	assert_null(last_use_surplus(&list));
	assert_int_equal(list.bytes, 80);
	assert_ptr_equal(list.newest, &c);
	assert_ptr_equal(list.oldest, &a);
	assert_ptr_equal(c.older, &a);
	assert_ptr_equal(a.newer, &c);
}

static void one_that_is_too_large_goes_too(void **state)
{
	struct last_use_list list = { .most = 100 };
	struct last_use small = { 0 }, large = { 0 };

	last_use_put(&list, &small, 10);
	last_use_put(&list, &large, 101);
	assert_ptr_equal(last_use_surplus(&list), &small);
	last_use_remove(&small);
	assert_ptr_equal(last_use_surplus(&list), &large);
	last_use_remove(&large);
	assert_null(last_use_surplus(&list));
	assert_int_equal(list.bytes, 0);
	assert_null(list.newest);
	assert_null(list.oldest);
}

static void sizes_change_with_use(void **state)
{
	struct last_use_list list = { .most = 100 };
	struct last_use a = { 0 }, b = { 0 };

	last_use_put(&list, &a, 60);
	last_use_put(&list, &b, 60);
	last_use_put(&list, &a, 20);
	assert_int_equal(list.bytes, 80);
	assert_null(last_use_surplus(&list));
}

static void one_leaves_from_anywhere_and_twice_is_nothing(void **state)
{
	struct last_use_list list = { 0 };
	struct last_use uses[3] = { 0 };

	for (size_t i = 0; i < 3; i++)
		last_use_put(&list, &uses[i], 1);
	last_use_remove(&uses[1]);
	last_use_remove(&uses[1]);
	assert_int_equal(list.bytes, 2);
	assert_ptr_equal(uses[2].older, &uses[0]);
	last_use_remove(&uses[2]);
	assert_ptr_equal(list.newest, &uses[0]);
	last_use_remove(&uses[0]);
	assert_null(list.newest);
	assert_null(list.oldest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_used_last_stay),
		cmocka_unit_test(one_that_is_too_large_goes_too),
		cmocka_unit_test(sizes_change_with_use),
		cmocka_unit_test(one_leaves_from_anywhere_and_twice_is_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
