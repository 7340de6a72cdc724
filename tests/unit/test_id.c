/* Ids: well formed, different, from the whole alphabet. */
#include <string.h>
#include "base/id.h"
#include "unit.h"

static void ids_are_valid_and_never_the_same(void **state)
{
	enum { COUNT = 200 };
	char ids[COUNT][ID_LEN + 1];

	for (int i = 0; i < COUNT; i++) {
		id_make(ids[i]);
		assert_int_equal(strlen(ids[i]), ID_LEN);
		assert_true(id_is_valid(ids[i]));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(ids[i], ids[j]);
	}
}

static void every_place_takes_every_letter(void **state)
{
	unsigned seen[ID_LEN] = { 0 };
	char id[ID_LEN + 1];

	/* 1,000 draws of 32 letters: that one is missing somewhere has a chance below 1e-11. */
	for (int i = 0; i < 1000; i++) {
		id_make(id);
		for (int at = 0; at < ID_LEN; at++)
			seen[at] |= 1u << (id[at] <= '9' ? id[at] - '0' : id[at] - 'a' + 10);
	}
	for (int at = 0; at < ID_LEN; at++)
		assert_int_equal(seen[at], UINT32_MAX);
}

static void anything_else_is_not_an_id(void **state)
{
	static const char *const wrong[] = { "", "0123456789abcdefghi", "0123456789abcdefghijk",
		"0123456789abcdefghiw", "0123456789ABCDEFGHIJ", "0123456789abcdefgh/.",
		"../../../../../../../", "0123456789abcdefgh\n0" };

	assert_true(id_is_valid("0123456789abcdefghij"));
	assert_true(id_is_valid("klmnopqrstuv00000000"));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(id_is_valid(wrong[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_valid_and_never_the_same),
		cmocka_unit_test(every_place_takes_every_letter),
		cmocka_unit_test(anything_else_is_not_an_id),
	};

	return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
