/* What all have together, and how much of it one may hold. */
/* security: limits */
#include "base/share.h"

#include "unit.h"

static void one_name_has_its_share_and_all_have_the_rest(void **state)
{
	struct share one = { 0 }, other = { 0 }, third = { 0 };
	struct shares shares;
	struct error err;
	shares_init(&shares, "running tasks", "wait", 10, 6);
	assert_int_equal(shares_check(&shares, "a", 7, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(shares_check(&shares, "a", 6, &err), 0);
	share_join(&shares, "a", &one);
	share_add(&one, 4);
	share_join(&shares, "a", &other);
	share_add(&other, 2);
	assert_int_equal(shares_check(&shares, "a", 1, &err), -1);
	assert_string_equal(
		err.text, "a has 6 running tasks, and 6 are the limit of one principal");
	assert_string_equal(err.hint, "wait");
	assert_int_equal(shares_check(&shares, "b", 4, &err), 0);
	assert_int_equal(shares_check(&shares, "b", 5, &err), -1);
	assert_string_equal(err.text,
		"there are 6 running tasks, and 10 are the limit of all principals together");
	/* Where the name isn't known only what all have counts. */
	assert_int_equal(shares_check(&shares, NULL, 4, &err), 0);
	share_join(&shares, NULL, &third);
	share_add(&third, 4);
	assert_int_equal(shares_check(&shares, "b", 1, &err), -1);
	share_release(&one);
	assert_int_equal(shares_check(&shares, "a", 4, &err), 0);
	share_release(&other);
	share_release(&other);
	share_release(&third);
	assert_int_equal(shares.held, 0);
	assert_int_equal(shares.holders.live, 0);
	shares_done(&shares);
}

static void what_is_cleared_may_hold_again_and_what_has_not_joined_holds_nothing(void **state)
{
	struct share share = { 0 };
	struct shares shares;
	struct error err;
	shares_init(&shares, "things", "", 4, 2);
	share_add(&share, 3);
	share_clear(&share);
	share_release(&share);
	assert_int_equal(shares.held, 0);
	assert_null(share_name(&share));
	assert_false(shares_has(&shares, "a"));
	assert_false(shares_has(&shares, NULL));
	share_join(&shares, "a", &share);
	assert_true(shares_has(&shares, "a"));
	assert_false(shares_has(&shares, NULL));
	assert_string_equal(share_name(&share), "a");
	share_add(&share, 2);
	share_clear(&share);
	assert_int_equal(shares_check(&shares, "a", 2, &err), 0);
	share_add(&share, 2);
	assert_int_equal(shares_check(&shares, "a", 1, &err), -1);
	share_release(&share);
	assert_false(shares_has(&shares, "a"));
	assert_int_equal(shares.holders.live, 0);
	shares_done(&shares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_name_has_its_share_and_all_have_the_rest),
		cmocka_unit_test(
			what_is_cleared_may_hold_again_and_what_has_not_joined_holds_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
