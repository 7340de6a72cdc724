/* When a surface that ended is started again. */
#include "services/backoff.h"
#include "unit.h"

static void delays_double_up_to_a_minute(void **state)
{
	static const uint64_t wanted[] = { 500, 1000, 2000, 4000, 8000, 16000, 32000, 60000,
		60000 };
	unsigned ends = 0;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		assert_int_equal(backoff_next_ms(&ends, 0), wanted[i]);
	ends = UINT32_MAX - 1;
	assert_int_equal(backoff_next_ms(&ends, 0), BACKOFF_MOST_MS);
}

static void a_minute_of_health_begins_anew(void **state)
{
	unsigned ends = 0;
	for (int i = 0; i < 5; i++)
		backoff_next_ms(&ends, 0);
	/* A short time isn't enough: one that crashes a second after it answers is in a loop. */
	assert_int_equal(backoff_next_ms(&ends, BACKOFF_HEALTHY_MS - 1), BACKOFF_SERVED_MS);
	assert_int_equal(backoff_next_ms(&ends, 0), 32000);
	assert_int_equal(backoff_next_ms(&ends, BACKOFF_HEALTHY_MS), BACKOFF_FIRST_MS);
	assert_int_equal(backoff_next_ms(&ends, 0), 1000);
	assert_int_equal(ends, 2);
}

static void one_that_was_healthy_waits_five_seconds_at_most(void **state)
{
	static const uint64_t wanted[] = { 500, 1000, 2000, 4000, 5000, 5000, 5000, 5000 };
	unsigned ends = 0;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		assert_int_equal(backoff_next_ms(&ends, 1), wanted[i]);
	assert_int_equal(backoff_next_ms(&ends, 0), BACKOFF_MOST_MS); /* not healthy since */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_double_up_to_a_minute),
		cmocka_unit_test(a_minute_of_health_begins_anew),
		cmocka_unit_test(one_that_was_healthy_waits_five_seconds_at_most),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
