#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/pty.h"
#include "unit.h"

struct pair {
	int master, terminal;
};

static struct pair open_pair(void)
{
	struct error err;
	struct pair pair;
	auto_close int dir = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	assert_int_equal(pty_open(dir, &pair.master, &pair.terminal, &err), 0);
	return pair;
}

static void close_pair(struct pair *pair)
{
	fd_close(&pair->master);
	fd_close(&pair->terminal);
}

static void test_bytes_pass_both_ways(void **state)
{
	__attribute__((cleanup(close_pair))) struct pair pair = open_pair();
	char got[32] = "";
	assert_true(isatty(pair.terminal));
	assert_int_equal(write(pair.terminal, "out\n", 4), 4);
	/* The kernel may hand it on in pieces. */
	assert_int_equal(fd_read_full(pair.master, got, 5), 5);
	assert_memory_equal(got, "out\r\n", 5);
	assert_int_equal(write(pair.master, "in\n", 3), 3);
	assert_int_equal(read(pair.terminal, got, sizeof got), 3);
	assert_memory_equal(got, "in\n", 3);
	assert_true(fcntl(pair.master, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(pair.terminal, F_GETFD) & FD_CLOEXEC);
}

static void test_the_size_set_is_the_size_got(void **state)
{
	__attribute__((cleanup(close_pair))) struct pair pair = open_pair();
	struct error err;
	struct pty_size size = { 0 };
	assert_int_equal(pty_set_size(pair.master, (struct pty_size){ 43, 132 }, &err), 0);
	assert_int_equal(pty_get_size(pair.terminal, &size, &err), 0);
	assert_int_equal(size.rows, 43);
	assert_int_equal(size.columns, 132);
}

static void test_every_name_of_a_terminal_has_its_number(void **state)
{
	__attribute__((cleanup(close_pair))) struct pair pair = open_pair(), other = open_pair();
	unsigned device, again, different;
	auto_close int copy = dup(pair.terminal);
	assert_int_equal(pty_get_device(pair.terminal, &device), 0);
	assert_int_equal(pty_get_device(copy, &again), 0);
	assert_int_equal(pty_get_device(other.terminal, &different), 0);
	assert_int_equal(device, again);
	assert_int_not_equal(device, different);
}

static void test_what_is_no_terminal_is_an_error(void **state)
{
	struct error err;
	unsigned device = 7;
	struct pty_size size = { 1, 2 };
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(pty_get_device(null, &device), -1);
	assert_int_equal(device, 7);
	assert_int_equal(pty_get_size(null, &size, &err), -1);
	assert_int_equal(err.sys_errno, ENOTTY);
	assert_int_equal(size.rows, 1);
	assert_int_equal(pty_set_size(null, size, &err), -1);
	auto_close int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct pair pair = { -1, -1 };
	assert_int_equal(pty_open(dir, &pair.master, &pair.terminal, &err), -1);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_int_equal(pair.master, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_pass_both_ways),
		cmocka_unit_test(test_the_size_set_is_the_size_got),
		cmocka_unit_test(test_every_name_of_a_terminal_has_its_number),
		cmocka_unit_test(test_what_is_no_terminal_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
