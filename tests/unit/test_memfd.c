/* A memfd for a program can be executed, whatever vm.memfd_noexec says but 2. */
/* security: sandbox */
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "linux/memfd.h"
#include "unit.h"

static bool is_executable(void)
{
	auto_close int fd = memfd_create_program("test");
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_mode & 0100 && fchmod(fd, 0111) == 0 &&
	       fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_WRITE) == 0;
}

static void test_a_program_can_be_executed(void **state)
{
	assert_true(is_executable());
}

/* The setting is that of a pid namespace. */
static void test_a_program_can_be_executed_where_others_cannot(void **state)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		pid_t inside = fork();
		if (inside == 0) {
			int fd = open("/proc/sys/vm/memfd_noexec", O_WRONLY | O_CLOEXEC);
			_exit(fd < 0 || write(fd, "1", 1) != 1 ? 77 : is_executable() ? 0 : 1);
		}
		_exit(waitpid(inside, &status, 0) == inside && WIFEXITED(status)
				? WEXITSTATUS(status)
				: 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* not root, or an older kernel */
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_program_can_be_executed),
		cmocka_unit_test(test_a_program_can_be_executed_where_others_cannot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
