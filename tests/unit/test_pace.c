/* When a counted tree is measured, and what hidden files are charged. */
/* security: limits */
#include "sandbox/native/held.h"
#include "sandbox/native/pace.h"
#include "unit.h"

#define MB (1ull << 20)

static void looks_come_sooner_the_less_room_is_left(void **state)
{
	assert_int_equal(pace_look_ms(1ull << 40), PACE_MOST_MS);
	assert_int_equal(pace_look_ms(400 * MB), 100);
	assert_int_equal(pace_look_ms(40 * MB), 10);
	assert_int_equal(pace_look_ms(0), PACE_LEAST_MS);
}

static void half_of_the_room_is_measured_and_all_of_it_stopped(void **state)
{
	assert_int_equal(pace_due(10 * MB, 0, 100 * MB, 96 * MB, 1), PACE_NOT_YET);
	assert_int_equal(pace_due(10 * MB, 0, 100 * MB, 95 * MB, 1), PACE_MEASURE);
	assert_int_equal(pace_due(10 * MB, 0, 100 * MB, 90 * MB, 1), PACE_MEASURE_STOPPED);
	/* Room that others have made is no loss. */
	assert_int_equal(pace_due(10 * MB, 0, 100 * MB, 300 * MB, 1), PACE_NOT_YET);
	/* A few blocks are lost all the time. */
	assert_int_equal(pace_due(0, 0, 100 * MB, 100 * MB - 4096, 1), PACE_NOT_YET);
	/* A file system that doesn't say. */
	assert_int_equal(pace_due(40 * MB, 0, 0, 0, 9), PACE_NOT_YET);
	assert_int_equal(pace_due(40 * MB, 0, 0, 0, 10), PACE_MEASURE);
}

static void a_sandbox_is_not_stopped_again_and_again_for_its_neighbours(void **state)
{
	unsigned doubt = 0;
	for (int i = 0; i < 20; i++)
		doubt = pace_doubt(doubt, 100 * MB, 90 * MB, 5 * MB, 5 * MB);
	assert_int_equal(doubt, PACE_DOUBT_MAX);
	assert_int_equal(pace_due(10 * MB, doubt, 100 * MB, 90 * MB, 1), PACE_NOT_YET);
	assert_int_equal(pace_due(UINT64_MAX / 2, doubt, 100 * MB, 90 * MB, 1), PACE_NOT_YET);
	/* What it wrote itself ends the doubt. */
	assert_int_equal(pace_doubt(doubt, 100 * MB, 90 * MB, 5 * MB, 12 * MB), 0);
	assert_int_equal(pace_doubt(doubt, 100 * MB, 100 * MB, 5 * MB, 5 * MB), 0);
}

static void hidden_files_are_charged_what_is_lost_and_was_written(void **state)
{
	const struct held_base base = {
		.free_bytes = 500 * MB, .counted_bytes = 10 * MB, .written = 20 * MB
	};
	struct held held = { .hidden = 1, .written = 90 * MB, .has_written = true };
	/* 80 lost, of which the tree explains 20; 70 written. */
	assert_int_equal(held_hidden_bytes(&base, &held, 30 * MB, 420 * MB), 60 * MB);
	/* Others have written more than the sandbox did. */
	assert_int_equal(held_hidden_bytes(&base, &held, 10 * MB, 100 * MB), 70 * MB);
	held.written = base.written;
	assert_int_equal(held_hidden_bytes(&base, &held, 10 * MB, 100 * MB), 0);
	/* It has rewritten what is there: nothing is lost. */
	held.written = 900 * MB;
	assert_int_equal(held_hidden_bytes(&base, &held, 10 * MB, 600 * MB), 0);
	held.hidden = 0;
	assert_int_equal(held_hidden_bytes(&base, &held, 10 * MB, 100 * MB), 0);
	held = (struct held){ .hidden = 1, .written = 900 * MB };
	assert_int_equal(held_hidden_bytes(&base, &held, 10 * MB, 100 * MB), 0);
}

static void a_tree_is_not_walked_while_nothing_changes_on_the_file_system(void **state)
{
	const struct pace_counters then = { 100 * MB, 5000, 10000 };
	struct pace_counters now = then;
	assert_true(pace_is_near(&then, &now, 0));
	now.free_files--; /* an empty file */
	assert_true(pace_is_near(&then, &now, 1000 * MB));
	now.free_files = then.free_files - 256; /* as much as a megabyte, all empty */
	assert_false(pace_is_near(&then, &now, 1000 * MB));
	now = then;
	now.free_bytes += 4096; /* freed counts as well as taken */
	assert_true(pace_is_near(&then, &now, 1000 * MB));
	now.free_bytes = then.free_bytes - MB;
	assert_false(pace_is_near(&then, &now, 1000 * MB));
	now.free_bytes = then.free_bytes - MB / 2;
	assert_true(pace_is_near(&then, &now, 0));
	assert_false(pace_is_near(&then, &now, 16 * MB));
	/* Nothing was measured yet, or inodes are not counted there. */
	const struct pace_counters none = { 0 };
	assert_false(pace_is_near(&none, &now, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_come_sooner_the_less_room_is_left),
		cmocka_unit_test(half_of_the_room_is_measured_and_all_of_it_stopped),
		cmocka_unit_test(a_sandbox_is_not_stopped_again_and_again_for_its_neighbours),
		cmocka_unit_test(a_tree_is_not_walked_while_nothing_changes_on_the_file_system),
		cmocka_unit_test(hidden_files_are_charged_what_is_lost_and_was_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
