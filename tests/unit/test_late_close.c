#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include "linux/late_close.h"
#include "unit.h"

#define PATIENCE_MS 60000

/* In a process of its own: gives the pipe's end to the kernel, says so, and ends when told to. */
static _Noreturn void give_away(int end, int said, int go)
{
	bool is_late = late_close(end);
	char byte = is_late ? 'y' : 'n';
	close(end);
	if (write(said, &byte, 1) != 1 || read(go, &byte, 1) != 0)
		_exit(2);
	_exit(0);
}

static void test_a_descriptor_is_closed_after_the_process_and_not_before(void **state)
{
	int ends[2], said[2], go[2], status;
	char is_late;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(go[1]);
		give_away(ends[1], said[1], go[0]);
	}
	assert_true(pid > 0);
	close(ends[1]);
	assert_int_equal(read(said[0], &is_late, 1), 1);
	struct pollfd end = { .fd = ends[0] };
	/* Without io_uring it was closed as any other. */
	assert_int_equal(poll(&end, 1, 0), is_late == 'y' ? 0 : 1);
	close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	assert_true(end.revents & POLLHUP);
	close(ends[0]);
	close(said[0]);
	close(said[1]);
	close(go[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_descriptor_is_closed_after_the_process_and_not_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
