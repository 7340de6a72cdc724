/* Channels: a message arrives whole with its descriptors, or not at all. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "proc/channel.h"
#include "unit.h"

static void a_message_brings_its_descriptors(void **state)
{
	int ends[2], fds[CHANNEL_FDS_MAX], count = -1, pipes[2];
	char data[16];
	size_t len;
	struct error err;
	assert_int_equal(channel_pair(ends, &err), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(channel_receive(ends[1], data, sizeof data, &len, fds, 2, &count, &err),
		CHANNEL_NOTHING);
	assert_int_equal(channel_send(ends[0], "hello", 5, pipes, 2, &err), 0);
	assert_int_equal(channel_receive(ends[1], data, sizeof data, &len, fds, 2, &count, &err),
		CHANNEL_MESSAGE);
	assert_int_equal(len, 5);
	assert_int_equal(count, 2);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(read(pipes[0], data, 1), 1);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(pipes[i]);
	}
	close(ends[0]);
	assert_int_equal(channel_receive(ends[1], data, sizeof data, &len, fds, 2, &count, &err),
		CHANNEL_EOF);
	close(ends[1]);
}

static void what_is_cut_is_refused_and_leaks_nothing(void **state)
{
	int ends[2], fds[CHANNEL_FDS_MAX], count, pipes[2];
	char data[4];
	size_t len;
	struct error err;
	assert_int_equal(channel_pair(ends, &err), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(channel_send(ends[0], "hello", 5, pipes, 2, &err), 0);
	close(pipes[1]);
	assert_int_equal(
		channel_receive(ends[1], data, sizeof data, &len, fds, 2, &count, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
	assert_int_equal(read(pipes[0], data, 1), 0); /* the writing end is closed everywhere */
	assert_int_equal(channel_send(ends[0], "hey", 3, pipes, 1, &err), 0);
	assert_int_equal(
		channel_receive(ends[1], data, sizeof data, &len, fds, 0, &count, &err), -1);
	close(pipes[0]);
	close(ends[0]);
	close(ends[1]);
}

static void a_full_channel_is_said_to_be_full(void **state)
{
	int ends[2];
	struct error err = { 0 };
	static char data[CHANNEL_SIZE_MAX];
	assert_int_equal(channel_pair(ends, &err), 0);
	while (!channel_send(ends[0], data, sizeof data, NULL, 0, &err))
		;
	assert_int_equal(err.code, ERR_LIMIT);
	close(ends[1]);
	assert_int_equal(channel_send(ends[0], data, 1, NULL, 0, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_brings_its_descriptors),
		cmocka_unit_test(what_is_cut_is_refused_and_leaks_nothing),
		cmocka_unit_test(a_full_channel_is_said_to_be_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
