/* What is seen of a sandbox from outside: files as control groups of both kinds have them. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "sandbox/native/view.h"
#include "unit.h"

static int file_with(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void take(struct sandbox_view *view, enum plan_limiter limiter, enum launch_fd which, int fd)
{
	int fds[LAUNCH_FD_MAX];
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		fds[i] = -1;
	fds[which] = fd;
	view_init(view);
	view_take(view, limiter, fds);
}

static void test_nothing_is_known_of_no_sandbox(void **state)
{
	struct sandbox_view view;
	struct usage usage;
	struct error err;
	uint64_t value;
	uint32_t events;
	int master, terminal;
	view_init(&view);
	assert_null(view_limiter(&view));
	assert_false(view_cpu_ms(&view, &value));
	assert_false(view_counts_sockets(&view));
	assert_false(view_socket_bytes(&view, &value));
	assert_false(view_is_out_of_memory(&view));
	assert_int_equal(view_memory_events(&view, &events), -1);
	assert_int_equal(view_open_usage(&view, &usage, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(
		view_open_terminal(&view, (struct pty_size){ 24, 80 }, &master, &terminal, &err),
		-1);
	view_done(&view);
}

static void test_what_keeps_its_mounts_can_be_taken_once(void **state)
{
	struct sandbox_view view;
	int fds[LAUNCH_FD_MAX], taken[VIEW_MOUNTS];
	for (int i = 0; i < LAUNCH_FD_MAX; i++) {
		fds[i] = open("/", O_PATH | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	view_init(&view);
	view_take(&view, LIMITER_WATCHDOG, fds);
	size_t count = view_take_mounts(&view, taken);
	assert_int_equal(count, VIEW_MOUNTS);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(close(taken[i]), 0);
	assert_int_equal(view.fds[LAUNCH_FD_PROC], -1);
	assert_int_equal(view.fds[LAUNCH_FD_TERMINALS], -1);
	assert_int_equal(view.fds[LAUNCH_FD_WORKSPACE], -1);
	assert_int_equal(view_take_mounts(&view, taken), 0);
	assert_int_equal(fcntl(fds[LAUNCH_FD_CPU], F_GETFD), FD_CLOEXEC);
	view_done(&view);
	assert_int_equal(fcntl(fds[LAUNCH_FD_CPU], F_GETFD), -1);
}

static void test_cpu_time_is_read_in_the_unit_of_its_control_group(void **state)
{
	struct sandbox_view view;
	uint64_t ms;
	take(&view, LIMITER_CGROUP_V1, LAUNCH_FD_CPU, file_with("1234567890\n"));
	assert_true(view_cpu_ms(&view, &ms));
	assert_int_equal(ms, 1234);
	assert_string_equal(view_limiter(&view), "cgroup-v1");
	view_done(&view);
	assert_null(view_limiter(&view));
	take(&view, LIMITER_CGROUP_V2, LAUNCH_FD_CPU,
		file_with("usage_usec 5678901\nuser_usec 1\n"));
	assert_true(view_cpu_ms(&view, &ms));
	assert_int_equal(ms, 5678);
	view_done(&view);
}

static void test_the_state_of_a_process_is_read_by_its_pid(void **state)
{
	struct sandbox_view view;
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), status;
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_NAME, "a) T (b");
		raise(SIGSTOP);
		_exit(0);
	}
	take(&view, LIMITER_WATCHDOG, LAUNCH_FD_PROC, proc);
	assert_int_equal(view_process_state(&view, getpid()), 'R');
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_int_equal(view_process_state(&view, child), 'T');
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(view_process_state(&view, child), 0);
	view_done(&view);
	assert_int_equal(view_process_state(&view, 1), 0);
}

static void test_a_kill_for_memory_is_seen_and_nothing_else(void **state)
{
	struct sandbox_view view;
	take(&view, LIMITER_CGROUP_V2, LAUNCH_FD_OOM_COUNT, file_with("oom 3\noom_kill 0\n"));
	assert_false(view_is_out_of_memory(&view));
	view_done(&view);
	take(&view, LIMITER_CGROUP_V2, LAUNCH_FD_OOM_COUNT, file_with("oom 3\noom_kill 1\n"));
	assert_true(view_is_out_of_memory(&view));
	view_done(&view);
}

static void test_events_of_memory_are_watched_as_each_kind_has_them(void **state)
{
	struct sandbox_view view;
	uint32_t events;
	uint64_t one = 1;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	take(&view, LIMITER_CGROUP_V1, LAUNCH_FD_OOM, fd);
	assert_int_equal(view_memory_events(&view, &events), fd);
	assert_int_equal(events, EPOLLIN);
	assert_int_equal(write(fd, &one, sizeof one), sizeof one);
	view_rearm_memory(&view);
	assert_int_equal(read(fd, &one, sizeof one), -1); /* emptied */
	view_done(&view);
	take(&view, LIMITER_CGROUP_V2, LAUNCH_FD_OOM, file_with(""));
	assert_int_equal(view_memory_events(&view, &events), view.fds[LAUNCH_FD_OOM]);
	assert_int_equal(events, EPOLLPRI);
	view_done(&view);
}

static void count(void *ctx, int proc, int pid)
{
	*(int *)ctx += pid;
}

static void test_its_processes_are_those_of_its_proc(void **state)
{
	char dir[] = "/tmp/test_view.XXXXXX";
	struct sandbox_view view;
	int sum = 0;
	assert_non_null(mkdtemp(dir));
	int top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	static const char *const names[] = { "1", "17", "self", "sys" };
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(mkdirat(top, names[i], 0700), 0);
	take(&view, LIMITER_WATCHDOG, LAUNCH_FD_PROC, fcntl(top, F_DUPFD_CLOEXEC, 3));
	view_each_process(&view, count, &sum);
	assert_int_equal(sum, 18);
	view_done(&view);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(unlinkat(top, names[i], AT_REMOVEDIR), 0);
	close(top);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_known_of_no_sandbox),
		cmocka_unit_test(test_the_state_of_a_process_is_read_by_its_pid),
		cmocka_unit_test(test_what_keeps_its_mounts_can_be_taken_once),
		cmocka_unit_test(test_cpu_time_is_read_in_the_unit_of_its_control_group),
		cmocka_unit_test(test_a_kill_for_memory_is_seen_and_nothing_else),
		cmocka_unit_test(test_events_of_memory_are_watched_as_each_kind_has_them),
		cmocka_unit_test(test_its_processes_are_those_of_its_proc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
