#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <fcntl.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/pidfd.h"
#include "unit.h"

static pid_t start(void (*fn)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		fn();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void wait_forever(void)
{
	for (;;)
		pause();
}

static void exit_7(void)
{
	_exit(7);
}

static void use_cpu(void)
{
	struct timespec time;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	while (time.tv_nsec < 20 * 1000 * 1000);
}

static void test_reap_gives_the_exit_status(void **state)
{
	struct error err;
	auto_close int fd = -1;
	int status = -1;
	assert_int_equal(pidfd_open_process(start(exit_7), &fd, &err), 0);
	assert_int_equal(pidfd_reap(fd, true, &status, NULL, &err), 1);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(pidfd_reap(fd, true, &status, NULL, &err), -1);
	assert_int_equal(err.sys_errno, ECHILD);
}

static void test_a_signal_ends_it_and_the_descriptor_polls(void **state)
{
	struct error err;
	auto_close int fd = -1;
	int status = -1;
	assert_int_equal(pidfd_open_process(start(wait_forever), &fd, &err), 0);
	assert_int_equal(pidfd_reap(fd, false, &status, NULL, &err), 0);
	assert_int_equal(status, -1);
	assert_int_equal(pidfd_signal(fd, SIGTERM, &err), 0);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	assert_int_equal(poll(&poll_fd, 1, 60000), 1);
	assert_int_equal(pidfd_reap(fd, false, &status, NULL, &err), 1);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	/* It is gone: nothing to tell, no error. */
	assert_int_equal(pidfd_signal(fd, SIGTERM, &err), 0);
}

static void test_reap_gives_the_usage(void **state)
{
	struct error err;
	auto_close int fd = -1;
	int status = -1;
	struct pidfd_usage usage = { 0 };
	assert_int_equal(pidfd_open_process(start(use_cpu), &fd, &err), 0);
	assert_int_equal(pidfd_reap(fd, true, &status, &usage, &err), 1);
	assert_true(usage.utime_us + usage.stime_us >= 15000);
	assert_true(usage.max_rss_kb > 0);
}

static void test_a_pid_that_is_nobodys_is_not_found(void **state)
{
	struct error err;
	int fd = -1;
	pid_t pid = start(exit_7);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(pidfd_open_process(pid, &fd, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(fd, -1);
}

static void test_only_a_pidfd_is_valid(void **state)
{
	struct error err;
	auto_close int fd = -1;
	auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int status;
	assert_int_equal(pidfd_open_process(start(exit_7), &fd, &err), 0);
	assert_true(pidfd_is_valid(fd));
	assert_int_equal(pidfd_reap(fd, true, &status, NULL, &err), 1);
	assert_true(pidfd_is_valid(fd));
	assert_false(pidfd_is_valid(null));
	assert_false(pidfd_is_valid(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reap_gives_the_exit_status),
		cmocka_unit_test(test_a_signal_ends_it_and_the_descriptor_polls),
		cmocka_unit_test(test_reap_gives_the_usage),
		cmocka_unit_test(test_a_pid_that_is_nobodys_is_not_found),
		cmocka_unit_test(test_only_a_pidfd_is_valid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
