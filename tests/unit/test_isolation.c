/* Isolation backends are found by the name that a plan has. */
#include "base/arena.h"
#include "sandbox/native/isolation.h"
#include "unit.h"

static void test_native_is_there_and_whole(void **state)
{
	const struct isolation *isolation = NULL;
	struct error err;
	assert_int_equal(isolation_find("native", &isolation, &err), 0);
	assert_string_equal(isolation->name, "native");
	assert_true(isolation->prepare && isolation->start && isolation->receive &&
		    isolation->find && isolation->measure && isolation->end && isolation->run);
}

static void test_another_is_refused_by_its_name(void **state)
{
	const struct isolation *isolation = NULL;
	struct error err;
	assert_int_equal(isolation_find("gvisor", &isolation, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_string_equal(err.text, "--isolation gvisor is not available in this version");
	assert_null(isolation);
}

static void test_a_plan_is_carried_out_by_the_backend_that_it_names(void **state)
{
	struct plan plan = { .isolation = "oci" };
	struct sandbox_io io = { 0 };
	struct result result;
	struct error err;
	assert_int_equal(isolation_run(&plan, NULL, &io, &result, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
}

static void test_landlock_runs_commands_and_keeps_nothing(void **state)
{
	const struct isolation *isolation = NULL;
	struct error err;
	pid_t pid;
	int setup;
	assert_int_equal(isolation_find("landlock", &isolation, &err), 0);
	assert_non_null(isolation->run);
	assert_int_equal(isolation->start(NULL, NULL, &pid, &setup, &err), -1);
	assert_string_equal(err.text, "--isolation landlock is for carrel run alone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_native_is_there_and_whole),
		cmocka_unit_test(test_another_is_refused_by_its_name),
		cmocka_unit_test(test_landlock_runs_commands_and_keeps_nothing),
		cmocka_unit_test(test_a_plan_is_carried_out_by_the_backend_that_it_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
