#include <stdio.h>
#include "base/table.h"
#include "unit.h"

static void what_was_added_is_found_and_what_was_removed_is_not(void **state)
{
	enum { COUNT = 5000 };
	static char keys[COUNT][16];
	struct table t;
	(void)state;
	table_init(&t);
	assert_null(table_get(&t, STR("x")));
	for (int i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof keys[i], "key-%d", i);
		table_add(&t, str_from(keys[i]), keys[i]);
	}
	for (int i = 0; i < COUNT; i += 2)
		table_remove(&t, str_from(keys[i]));
	for (int i = 0; i < COUNT; i++)
		assert_ptr_equal(table_get(&t, str_from(keys[i])), i % 2 ? keys[i] : NULL);
	size_t at = 0, seen = 0;
	while (table_next(&t, &at))
		seen++;
	assert_int_equal(seen, COUNT / 2);
	table_done(&t);
}

static void coming_and_going_needs_no_more_room(void **state)
{
	struct table t;
	(void)state;
	table_init(&t);
	for (int i = 0; i < 100000; i++) {
		char key[16];
		snprintf(key, sizeof key, "%d", i);
		table_add(&t, str_from(key), key);
		table_remove(&t, str_from(key));
	}
	assert_int_equal(t.count, 0);
	assert_true(t.capacity <= 64);
	table_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_found_and_what_was_removed_is_not),
		cmocka_unit_test(coming_and_going_needs_no_more_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
