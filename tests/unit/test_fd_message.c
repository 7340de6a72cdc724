/* Descriptors over unix sockets: they arrive in order, and none is leaked. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "base/fd.h"
#include "linux/fd_message.h"
#include "unit.h"

struct pair {
	int ours, theirs;
};

static int set_up(void **state)
{
	static struct pair pair;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pair = (struct pair){ ends[0], ends[1] };
	*state = &pair;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *pair = *state;

	fd_close(&pair->ours);
	fd_close(&pair->theirs);
	return 0;
}

static struct iovec text(const char *bytes)
{
	return (struct iovec){ (char *)(uintptr_t)bytes, strlen(bytes) };
}

static void descriptors_arrive_in_order_and_close_on_exec(void **state)
{
	const struct pair *pair = *state;
	struct iovec parts[] = { text("one"), text("two") };
	struct fd_message got;
	char data[16];
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(fd_message_send(pair->ours, parts, 2, pipes, 2, 0), 6);
	assert_int_equal(fd_message_receive(pair->theirs, data, sizeof data, 0, &got), 6);
	assert_memory_equal(data, "onetwo", 6);
	assert_int_equal(got.fd_count, 2);
	assert_false(got.is_cut || got.has_lost_fds);
	assert_int_equal(write(got.fds[1], "x", 1), 1);
	assert_int_equal(read(pipes[0], data, sizeof data), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fcntl(got.fds[i], F_GETFD), FD_CLOEXEC);
		close(pipes[i]);
	}
	fd_message_close(&got, 1);
	assert_int_equal(got.fd_count, 1);
	assert_true(fcntl(got.fds[0], F_GETFD) >= 0);
	assert_int_equal(fcntl(got.fds[1], F_GETFD), -1);
	fd_message_close(&got, 0);
}

static void an_empty_packet_leaves_no_descriptor(void **state)
{
	const struct pair *pair = *state;
	struct iovec nothing = { NULL, 0 };
	struct fd_message got;
	int pipes[2];
	char byte;

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(fd_message_send(pair->ours, &nothing, 1, &pipes[1], 1, 0), 0);
	close(pipes[1]);
	assert_int_equal(fd_message_receive(pair->theirs, &byte, 1, 0, &got), 0);
	assert_int_equal(got.fd_count, 0);
	/* The end of the pipe: nobody holds the other side. */
	assert_int_equal(read(pipes[0], &byte, 1), 0);
	close(pipes[0]);
}

static void a_cut_packet_and_a_lost_descriptor_are_told(void **state)
{
	const struct pair *pair = *state;
	struct iovec part = text("longer");
	struct rlimit limit, none;
	struct fd_message got;
	char data[3];

	assert_int_equal(fd_message_send(pair->ours, &part, 1, &pair->ours, 1, 0), 6);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	ssize_t len = fd_message_receive(pair->theirs, data, sizeof data, 0, &got);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(len, 3);
	assert_true(got.is_cut);
	assert_true(got.has_lost_fds);
	assert_int_equal(got.fd_count, 0);
}

static void nothing_and_the_end_bring_no_descriptors(void **state)
{
	struct pair *pair = *state;
	struct fd_message got = { .fd_count = 7 };
	char data[3];

	assert_int_equal(
		fd_message_receive(pair->theirs, data, sizeof data, MSG_DONTWAIT, &got), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(got.fd_count, 0);
	fd_close(&pair->ours);
	assert_int_equal(fd_message_receive(pair->theirs, data, sizeof data, 0, &got), 0);
	assert_int_equal(got.fd_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_empty_packet_leaves_no_descriptor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			descriptors_arrive_in_order_and_close_on_exec, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_cut_packet_and_a_lost_descriptor_are_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			nothing_and_the_end_bring_no_descriptors, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
