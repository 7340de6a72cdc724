/* A process and all below it are found and ended, also those whose parents are gone. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "sandbox/native/family.h"
#include "unit.h"

static void count(void *ctx, int proc, int pid)
{
	++*(int *)ctx;
}

/* A child with a child that has lost its parent, and one in a session of its own; each says so. */
static _Noreturn void raise_family(int said)
{
	if (!fork() && !fork()) {
		setsid();
		(void)!write(said, "1", 1);
		pause();
	}
	(void)!write(said, "2", 1);
	for (;;)
		pause();
}

static void test_all_below_are_ended_and_nobody_else(void **state)
{
	int said[2], seen = 0;
	char byte;
	auto_close int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		raise_family(said[1]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(said[0], &byte, 1), 1);
	family_each(proc, getpid(), count, &seen);
	assert_true(seen >= 3); /* this process, the child, and who has lost its parent */
	pid_t reaped;
	do {
		family_kill(proc, getpid());
		reaped = waitpid(-1, NULL, WNOHANG);
	} while (reaped >= 0);
	assert_int_equal(errno, ECHILD);
	close(said[0]);
	close(said[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_below_are_ended_and_nobody_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
