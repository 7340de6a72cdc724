/* Forked processes of ours: their answer, their end, and the end of their parent. */
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include "base/fd.h"
#include "linux/child.h"
#include "unit.h"

static void an_answer_comes_through_the_pipe(void **state)
{
	struct child child;
	struct error err;
	char data[16];

	assert_int_equal(child_fork(&child, CHILD_PIPE | CHILD_PIDFD, SIGKILL, &err), 0);
	if (child.pid == 0)
		_exit(write(child.pipe, "hello", 5) == 5 ? 7 : 1);
	assert_int_equal(fd_read_full(child.pipe, data, sizeof data), 5);
	assert_memory_equal(data, "hello", 5);
	struct pollfd end = { .fd = child.pidfd, .events = POLLIN };
	assert_int_equal(poll(&end, 1, -1), 1);
	assert_int_equal(WEXITSTATUS(child_wait(&child)), 7);
	assert_true(child.pid == -1 && child.pipe == -1 && child.pidfd == -1);
	assert_int_equal(child_wait(&child), -1);
}

static void a_child_that_is_killed_is_reaped(void **state)
{
	struct child child;
	struct error err;
	char byte;

	assert_int_equal(child_fork(&child, CHILD_PIPE | CHILD_PIPE_ASYNC, SIGKILL, &err), 0);
	if (child.pid == 0)
		for (;;)
			pause();
	assert_int_equal(read(child.pipe, &byte, 1), -1); /* nothing yet, and no waiting */
	int status = child_kill(&child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* The pipe is held by the grandchild alone once its parent has ended. */
static void a_child_ends_with_its_parent(void **state)
{
	struct child middle, last;
	struct error err;
	char byte;

	assert_int_equal(child_fork(&middle, CHILD_PIPE, SIGKILL, &err), 0);
	if (middle.pid == 0) {
		if (child_fork(&last, 0, SIGTERM, &err))
			_exit(1);
		if (last.pid == 0)
			for (;;)
				pause();
		_exit(0);
	}
	assert_int_equal(read(middle.pipe, &byte, 1), 0);
	assert_int_equal(child_wait(&middle), 0);
}

static void streams_become_the_null_device(void **state)
{
	struct child child;
	struct error err;
	char data[4];

	assert_int_equal(child_fork(&child, CHILD_PIPE, SIGKILL, &err), 0);
	if (child.pid == 0) {
		if (dup2(child.pipe, 1) < 0 || child_leave_streams(1) || read(0, data, 1) != 0 ||
			write(1, "out", 3) != 3 || write(2, "err", 3) != 3)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(fd_read_full(child.pipe, data, sizeof data), 3);
	assert_int_equal(child_wait(&child), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_comes_through_the_pipe),
		cmocka_unit_test(a_child_that_is_killed_is_reaped),
		cmocka_unit_test(a_child_ends_with_its_parent),
		cmocka_unit_test(streams_become_the_null_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
