/* Requests whose work is long are served one in a turn of the loop: others get their answers
 * between them. */
/* security: doors */
#include "net/turns.h"

#include <sys/epoll.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "unit.h"

struct request {
	struct turn turn;
	char name;
	bool is_long;
};
static struct loop *loop;
static struct turns turns;
static struct request requests[4];
static char served[16]; /* in order; '!' is the probe */
static size_t count;
static int probe[2];

static void note(char name)
{
	served[count++] = name;
}

static void work(void *ctx)
{
	const struct request *request = ctx;
	uint64_t began_ns = clock_monotonic_ns();
	note(request->name);
	while (request->is_long && clock_monotonic_ns() - began_ns < TURN_NS)
		;
}

static void on_probe(struct loop *unused, int fd, uint32_t events, void *ctx)
{
	char byte;
	if (read(fd, &byte, 1) == 1)
		note('!');
	if (count < 9)
		assert_int_equal(write(probe[1], "x", 1), 1);
}

static void stop(struct loop *unused, void *ctx)
{
	loop_stop(loop);
}

static int setup(void **state)
{
	struct error err;
	assert_int_equal(loop_new(&loop, &err), 0);
	turns_init(&turns, loop);
	memset(served, 0, sizeof served);
	count = 0;
	for (size_t i = 0; i < 4; i++)
		requests[i] = (struct request){ .turn = { .serve = work, .ctx = &requests[i] },
			.name = (char)('a' + i) };
	return pipe(probe);
}

static int teardown(void **state)
{
	turns_done(&turns);
	loop_free(loop);
	fd_close(&probe[0]);
	fd_close(&probe[1]);
	return 0;
}

static void take_all(void)
{
	for (size_t i = 0; i < 4; i++)
		turns_take(&turns, &requests[i].turn);
}

static void run_a_while(void)
{
	struct error err;
	loop_after(loop, 5 * TURN_NS / 1000000 + 50, stop, NULL);
	assert_int_equal(loop_run(loop, &err), 0);
}

static void test_short_requests_are_served_at_once(void **state)
{
	take_all();
	assert_string_equal(served, "abcd");
}

static void test_a_probe_is_answered_between_long_requests(void **state)
{
	struct error err;
	for (size_t i = 0; i < 4; i++)
		requests[i].is_long = true;
	assert_int_equal(loop_watch(loop, probe[0], EPOLLIN, on_probe, NULL, &err), 0);
	take_all();
	assert_string_equal(served, "a"); /* the others wait */
	assert_int_equal(write(probe[1], "x", 1), 1);
	run_a_while();
	assert_memory_equal(served, "a!b!c!d!", 8);
}

static void test_short_ones_that_wait_share_a_turn(void **state)
{
	struct error err;
	requests[0].is_long = true;
	assert_int_equal(loop_watch(loop, probe[0], EPOLLIN, on_probe, NULL, &err), 0);
	take_all();
	assert_int_equal(write(probe[1], "x", 1), 1);
	run_a_while();
	assert_memory_equal(served, "a!bcd!", 6);
}

static void test_one_that_is_gone_is_not_served(void **state)
{
	requests[0].is_long = true;
	take_all();
	turns_leave(&turns, &requests[3].turn);
	turns_leave(&turns, &requests[1].turn);
	turns_leave(&turns, &requests[1].turn);
	run_a_while();
	assert_string_equal(served, "ac");
	turns_take(&turns, &requests[1].turn); /* the queue is whole */
	assert_string_equal(served, "acb");
}

static void test_holders_take_turns_however_many_one_has(void **state)
{
	const char *holders[] = { "one", "one", "one", "other" };
	for (size_t i = 0; i < 4; i++)
		requests[i].turn.holder = holders[i];
	requests[0].is_long = true;
	take_all();
	run_a_while();
	assert_string_equal(served, "abdc");
}

static void test_a_holder_that_comes_later_is_next(void **state)
{
	requests[0].is_long = requests[1].is_long = true;
	for (size_t i = 0; i < 3; i++) {
		requests[i].turn.holder = "one";
		turns_take(&turns, &requests[i].turn);
	}
	turns_leave(&turns, &requests[2].turn);
	turns_take(&turns, &requests[3].turn); /* of no holder */
	turns_take(&turns, &requests[2].turn);
	run_a_while();
	assert_string_equal(served, "abdc");
}

static void test_none_is_served_after_the_end(void **state)
{
	requests[0].is_long = true;
	take_all();
	turns_done(&turns);
	run_a_while();
	assert_string_equal(served, "a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_short_requests_are_served_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_probe_is_answered_between_long_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_short_ones_that_wait_share_a_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_one_that_is_gone_is_not_served, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_holders_take_turns_however_many_one_has, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_holder_that_comes_later_is_next, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none_is_served_after_the_end, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
