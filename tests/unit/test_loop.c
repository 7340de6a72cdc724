#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "proc/loop.h"
#include "unit.h"

struct seen {
	struct loop *loop;
	int pipe[2][2];
	int calls, order[64];
	int timer_calls;
	struct loop_timer *timer;
};

static int setup(void **state)
{
	struct seen *seen = test_calloc(1, sizeof *seen);
	struct error err;
	assert_int_equal(loop_new(&seen->loop, &err), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pipe2(seen->pipe[i], O_CLOEXEC | O_NONBLOCK), 0);
	*state = seen;
	return 0;
}

static int teardown(void **state)
{
	struct seen *seen = *state;
	loop_free(seen->loop);
	for (int i = 0; i < 4; i++)
		fd_close(&seen->pipe[i / 2][i % 2]);
	test_free(seen);
	return 0;
}

static void stop(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

static void read_one_and_stop(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct seen *seen = ctx;
	char byte;
	assert_true(events & EPOLLIN);
	assert_int_equal(read(fd, &byte, 1), 1);
	seen->order[seen->calls++] = byte;
	loop_stop(loop);
}

static void test_a_readable_descriptor_is_told_to_its_watcher(void **state)
{
	struct seen *seen = *state;
	struct error err;
	int fd = seen->pipe[0][0];
	assert_int_equal(loop_watch(seen->loop, fd, EPOLLIN, read_one_and_stop, seen, &err), 0);
	assert_int_equal(loop_watch(seen->loop, fd, EPOLLIN, read_one_and_stop, seen, &err), -1);
	assert_int_equal(write(seen->pipe[0][1], "x", 1), 1);
	assert_int_equal(loop_run(seen->loop, &err), 0);
	assert_int_equal(seen->calls, 1);
	assert_int_equal(seen->order[0], 'x');
	/* Changed to wait for nothing, then back, then not at all. */
	assert_int_equal(loop_change(seen->loop, fd, 0, &err), 0);
	assert_int_equal(write(seen->pipe[0][1], "y", 1), 1);
	loop_after(seen->loop, 1, stop, NULL);
	assert_int_equal(loop_run(seen->loop, &err), 0);
	assert_int_equal(seen->calls, 1);
	assert_int_equal(loop_change(seen->loop, fd, EPOLLIN, &err), 0);
	assert_int_equal(loop_run(seen->loop, &err), 0);
	assert_int_equal(seen->calls, 2);
	loop_unwatch(seen->loop, fd);
	loop_unwatch(seen->loop, fd);
	assert_int_equal(loop_change(seen->loop, fd, EPOLLIN, &err), -1);
}

static void never(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	assert_true(!"a removed watch was called");
}

/* Both pipes are readable in the same turn: whichever comes first takes the other one's watch away,
 * and gives its descriptor number to a new file with a new watch that has no event. */
static void replace_the_other(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct seen *seen = ctx;
	struct error err;
	int other = fd == seen->pipe[0][0] ? 1 : 0;
	int other_fd = seen->pipe[other][0];
	loop_unwatch(loop, other_fd);
	int fresh[2];
	assert_int_equal(pipe2(fresh, O_CLOEXEC), 0);
	assert_int_equal(dup3(fresh[0], other_fd, O_CLOEXEC), other_fd);
	close(fresh[0]);
	assert_int_equal(loop_watch(loop, other_fd, EPOLLIN, never, NULL, &err), 0);
	loop_unwatch(loop, fd);
	seen->calls++;
	/* Kept open: closing it would be an event of the new watch. */
	seen->order[0] = fresh[1];
	loop_after(loop, 2, stop, NULL);
}

static void test_a_removed_watch_is_never_called_even_if_its_number_is_used_again(void **state)
{
	struct seen *seen = *state;
	struct error err;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(write(seen->pipe[i][1], "x", 1), 1);
		assert_int_equal(loop_watch(seen->loop, seen->pipe[i][0], EPOLLIN,
					 replace_the_other, seen, &err),
			0);
	}
	assert_int_equal(loop_run(seen->loop, &err), 0);
	assert_int_equal(seen->calls, 1);
	close(seen->order[0]);
}

struct numbered {
	struct seen *seen;
	int number;
};

static void note(struct loop *loop, void *ctx)
{
	struct numbered *numbered = ctx;
	struct seen *seen = numbered->seen;
	seen->order[seen->timer_calls++] = numbered->number;
}

/* Adds timers with delays of these ms, all within one: each is due after those with a smaller
 * delay, also when the test is kept from running in between. */
static void add_timers(struct seen *seen, const int *delays, struct numbered *numbered,
	struct loop_timer **timers, int count)
{
	for (;;) {
		uint64_t before = clock_monotonic_ns();
		for (int i = 0; i < count; i++)
			timers[i] = loop_after(seen->loop, (uint64_t)delays[i], note, &numbered[i]);
		if (clock_monotonic_ns() - before < 1000000)
			return;
		for (int i = 0; i < count; i++)
			loop_cancel(seen->loop, timers[i]);
	}
}

static void test_timers_run_in_order_and_not_early(void **state)
{
	struct seen *seen = *state;
	struct error err;
	static const int delays[] = { 9, 3, 7, 3, 0, 12, 1, 5, 11, 2, 8, 4 };
	struct numbered numbered[12];
	struct loop_timer *timers[12];
	for (int i = 0; i < 12; i++)
		numbered[i] = (struct numbered){ seen, delays[i] };
	add_timers(seen, delays, numbered, timers, 12);
	loop_cancel(seen->loop, timers[5]);
	loop_cancel(seen->loop, timers[4]);
	loop_cancel(seen->loop, timers[7]);
	loop_cancel(seen->loop, NULL);
	uint64_t before = clock_monotonic_ns();
	loop_after(seen->loop, 15, stop, NULL);
	loop_after(seen->loop, UINT64_MAX, stop, NULL);
	assert_int_equal(loop_run(seen->loop, &err), 0);
	assert_true(clock_monotonic_ns() - before >= 15000000);
	static const int expected[] = { 1, 2, 3, 3, 4, 7, 8, 9, 11 };
	assert_int_equal(seen->timer_calls, 9);
	for (int i = 0; i < 9; i++)
		assert_int_equal(seen->order[i], expected[i]);
}

static void test_many_timers_cancelled_from_the_middle_keep_their_order(void **state)
{
	struct seen *seen = *state;
	struct error err;
	struct loop_timer *timers[200];
	struct numbered numbered[200];
	int delays[200];
	for (int i = 0; i < 200; i++) {
		numbered[i] = (struct numbered){ seen, i * 37 % 200 };
		delays[i] = numbered[i].number / 10;
	}
	add_timers(seen, delays, numbered, timers, 200);
	for (int i = 0; i < 200; i++)
		if (i % 4)
			loop_cancel(seen->loop, timers[i]);
	loop_after(seen->loop, 25, stop, NULL);
	assert_int_equal(loop_run(seen->loop, &err), 0);
	assert_int_equal(seen->timer_calls, 50);
	for (int i = 1; i < 50; i++)
		assert_true(seen->order[i - 1] / 10 <= seen->order[i] / 10);
}

static void renew(struct loop *loop, void *ctx)
{
	struct seen *seen = ctx;
	seen->timer_calls++;
	seen->timer = loop_after(loop, 0, renew, seen);
}

static void test_a_timer_that_renews_itself_does_not_starve_descriptors(void **state)
{
	struct seen *seen = *state;
	struct error err;
	renew(seen->loop, seen);
	assert_int_equal(write(seen->pipe[0][1], "x", 1), 1);
	assert_int_equal(
		loop_watch(seen->loop, seen->pipe[0][0], EPOLLIN, read_one_and_stop, seen, &err),
		0);
	assert_int_equal(loop_run(seen->loop, &err), 0);
	assert_int_equal(seen->calls, 1);
	loop_cancel(seen->loop, seen->timer);
}

static void cancel_other(struct loop *loop, void *ctx)
{
	struct seen *seen = ctx;
	seen->timer_calls++;
	loop_cancel(loop, seen->timer);
	loop_after(loop, 1, stop, NULL);
}

static void fail_timer(struct loop *loop, void *ctx)
{
	assert_true(!"a cancelled timer was called");
}

static void test_a_timer_cancelled_by_one_of_the_same_time_is_not_called(void **state)
{
	struct seen *seen = *state;
	struct error err;
	loop_after(seen->loop, 0, cancel_other, seen);
	seen->timer = loop_after(seen->loop, 0, fail_timer, NULL);
	assert_int_equal(loop_run(seen->loop, &err), 0);
	assert_int_equal(seen->timer_calls, 1);
}

static void note_signal(struct loop *loop, const struct signalfd_siginfo *info, void *ctx)
{
	struct seen *seen = ctx;
	seen->order[seen->calls++] = (int)info->ssi_signo;
	if (seen->calls == 2)
		loop_stop(loop);
}

static void test_signals_are_delivered_in_the_loop(void **state)
{
	struct seen *seen = *state;
	struct error err;
	sigset_t set, before;
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &before), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	assert_int_equal(loop_signals(seen->loop, &set, note_signal, seen, &err), 0);
	assert_int_equal(loop_signals(seen->loop, &set, note_signal, seen, &err), -1);
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(loop_run(seen->loop, &err), 0);
	assert_int_equal(seen->calls, 2);
	assert_int_equal(seen->order[0] + seen->order[1], SIGTERM + SIGUSR1);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

static void test_what_can_not_be_watched_is_an_error(void **state)
{
	struct seen *seen = *state;
	struct error err;
	auto_close int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(loop_watch(seen->loop, file, EPOLLIN, never, NULL, &err), -1);
	assert_int_equal(err.sys_errno, EPERM);
	assert_int_equal(loop_watch(seen->loop, -1, EPOLLIN, never, NULL, &err), -1);
	assert_int_equal(loop_watch(seen->loop, 9999, EPOLLIN, never, NULL, &err), -1);
	assert_int_equal(err.sys_errno, EBADF);
	loop_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_readable_descriptor_is_told_to_its_watcher),
		TEST(test_a_removed_watch_is_never_called_even_if_its_number_is_used_again),
		TEST(test_timers_run_in_order_and_not_early),
		TEST(test_many_timers_cancelled_from_the_middle_keep_their_order),
		TEST(test_a_timer_that_renews_itself_does_not_starve_descriptors),
		TEST(test_a_timer_cancelled_by_one_of_the_same_time_is_not_called),
		TEST(test_signals_are_delivered_in_the_loop),
		TEST(test_what_can_not_be_watched_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
