/* Numbers that a child finds. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "proc/measure.h"
#include "unit.h"

struct seen {
	struct loop *loop;
	int dir;
	bool ok;
	uint64_t value;
	int count;
};

static void on_found(void *ctx, bool ok, uint64_t value)
{
	struct seen *seen = ctx;
	seen->ok = ok;
	seen->value = value;
	seen->count++;
	loop_stop(seen->loop);
}

/* A directory is still there: trees are measured by it. */
static uint64_t find_forty_two(void *ctx)
{
	const struct seen *seen = ctx;
	auto_close int fd = openat(seen->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? 0 : 42;
}

static uint64_t find_never(void *ctx)
{
	pause();
	return 0;
}

static uint64_t find_and_die(void *ctx)
{
	raise(SIGKILL);
	return 1;
}

static struct measure start(struct seen *seen, uint64_t (*find)(void *ctx))
{
	struct error err;
	*seen = (struct seen){ .dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	assert_int_equal(loop_new(&seen->loop, &err), 0);
	return (struct measure){ .loop = seen->loop,
		.find = find,
		.found = on_found,
		.ctx = seen,
		.keep = { seen->dir },
		.keep_count = 1 };
}

static void finish(struct seen *seen, struct measure *measure)
{
	measure_stop(measure);
	loop_free(seen->loop);
	fd_close(&seen->dir);
}

static void refuse_close_range(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(2);
}

static void test_a_child_that_keeps_other_descriptors_finds_nothing(void **state)
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct seen seen;
		struct error err;
		struct measure measure = start(&seen, find_forty_two);
		refuse_close_range();
		measure_start(&measure);
		_exit(loop_run(seen.loop, &err) || seen.ok || seen.count != 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_the_answer_comes_once(void **state)
{
	struct seen seen;
	struct error err;
	struct measure measure = start(&seen, find_forty_two);
	measure_start(&measure);
	assert_true(measure.is_running);
	assert_int_equal(loop_run(seen.loop, &err), 0);
	assert_true(seen.ok);
	assert_int_equal(seen.value, 42);
	assert_int_equal(seen.count, 1);
	assert_false(measure.is_running);
	finish(&seen, &measure);
}

static void test_a_child_that_dies_has_no_answer(void **state)
{
	struct seen seen;
	struct error err;
	struct measure measure = start(&seen, find_and_die);
	measure_start(&measure);
	assert_int_equal(loop_run(seen.loop, &err), 0);
	assert_false(seen.ok);
	assert_int_equal(seen.count, 1);
	finish(&seen, &measure);
}

static void test_ends_of_pipes_and_sockets_dont_wait_for_the_child(void **state)
{
	struct seen seen;
	int pipes[2], sockets[2];
	char byte;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	struct measure measure = start(&seen, find_never);
	measure_start(&measure);
	assert_true(measure.is_running);
	fd_close(&pipes[1]);
	fd_close(&sockets[1]);
	struct pollfd ends[] = { { pipes[0], POLLIN, 0 }, { sockets[0], POLLIN, 0 } };
	for (int i = 0; i < 2; i++) {
		assert_int_equal(poll(&ends[i], 1, 60000), 1);
		assert_int_equal(read(ends[i].fd, &byte, 1), 0);
		fd_close(&ends[i].fd);
	}
	finish(&seen, &measure);
	assert_int_equal(seen.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_child_that_keeps_other_descriptors_finds_nothing),
		cmocka_unit_test(test_the_answer_comes_once),
		cmocka_unit_test(test_a_child_that_dies_has_no_answer),
		cmocka_unit_test(test_ends_of_pipes_and_sockets_dont_wait_for_the_child),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
