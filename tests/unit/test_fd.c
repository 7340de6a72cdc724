/* Descriptors: whole reads and writes, one owner, standard ones never missing. */
/* security: network */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/foreign.h"
#include "linux/fd_message.h"
#include "unit.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void closing_forgets_the_number_and_keeps_errno(void **state)
{
	int fd = open("/dev/null", O_RDONLY), copy = fd;

	errno = ENOSPC;
	fd_close(&fd);
	assert_int_equal(fd, -1);
	assert_false(is_open(copy));
	errno = ENOSPC;
	fd_close(&fd);
	assert_int_equal(errno, ENOSPC);
	/* A number that isn't open makes close fail; errno must not show it. */
	fd_close(&copy);
	assert_int_equal(errno, ENOSPC);
}

static int open_in_a_scope(bool take)
{
	auto_close int fd = open("/dev/null", O_RDONLY);

	return take ? take_fd(&fd) : fd;
}

static void a_descriptor_ends_with_its_scope_unless_taken(void **state)
{
	int fd = open_in_a_scope(false);

	assert_true(fd >= 0);
	assert_false(is_open(fd));
	fd = open_in_a_scope(true);
	assert_true(is_open(fd));
	fd_close(&fd);
}

static void a_taken_pointer_leaves_null(void **state)
{
	auto_free char *text = strdup("x");
	char *taken = take_ptr(text);

	assert_null(text);
	assert_string_equal(taken, "x");
	free(taken);
}

static void on_alarm(int signal)
{
}

/* A child that hands over `len` bytes piece by piece, and interrupts its parent in between. */
static pid_t start_writer(int fd, size_t len)
{
	pid_t parent = getpid(), child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		for (size_t i = 0; i < len; i++) {
			kill(parent, SIGUSR1);
			if (write(fd, "x", 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	return child;
}

static void reads_go_on_after_short_pieces_and_signals(void **state)
{
	int ends[2], status;
	char data[300] = "";

	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_alarm }, NULL);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t child = start_writer(ends[1], 200);
	close(ends[1]);
	assert_int_equal(fd_read_full(ends[0], data, 150), 150);
	assert_int_equal(strlen(data), 150);
	/* At the end it says how much there was. */
	assert_int_equal(fd_read_full(ends[0], data, sizeof data), 50);
	assert_int_equal(fd_read_full(ends[0], data, sizeof data), 0);
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void writes_go_on_until_all_is_out(void **state)
{
	enum { LEN = 1 << 20 }; /* far more than a pipe holds */
	int ends[2], status;
	char *data = calloc(1, LEN);

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		close(ends[1]);
		_exit(fd_read_full(ends[0], data, LEN) == LEN && data[LEN - 1] == 'e' ? 0 : 1);
	}
	close(ends[0]);
	data[LEN - 1] = 'e';
	assert_int_equal(fd_write_full(ends[1], data, LEN), LEN);
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	free(data);
}

static void errors_of_reads_and_writes_are_reported(void **state)
{
	int ends[2];
	char byte;

	assert_int_equal(fd_read_full(-1, &byte, 1), -1);
	assert_int_equal(errno, EBADF);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblocking(ends[0]), 0);
	assert_int_equal(fd_read_full(ends[0], &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	close(ends[0]);
	assert_int_equal(fd_write_full(ends[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(ends[1]);
	assert_int_equal(fd_set_nonblocking(-1), -1);
}

static void a_small_file_is_read_whole_or_refused(void **state)
{
	char data[8];
	int dir = open("/proc/sys/kernel", O_PATH | O_DIRECTORY);

	assert_int_equal(fd_read_file(dir, "ostype", data, sizeof data), 6);
	assert_string_equal(data, "Linux\n");
	assert_int_equal(fd_read_file(dir, "ostype", data, 7), 6);
	assert_int_equal(fd_read_file(dir, "ostype", data, 6), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(fd_read_file(dir, "ostype", data, 0), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(fd_read_file(dir, "absent", data, sizeof data), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(fd_read_file(AT_FDCWD, "/dev/null", data, sizeof data), 0);
	assert_string_equal(data, "");
	assert_int_equal(fd_read_file(AT_FDCWD, "/proc", data, sizeof data), -1);
	assert_int_equal(errno, EISDIR);
	close(dir);
}

static void writing_a_file_neither_creates_nor_truncates(void **state)
{
	char path[] = "/tmp/test_fd.XXXXXX", data[16];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_file(AT_FDCWD, path, "long text"), 0);
	assert_int_equal(fd_write_file(AT_FDCWD, path, "LONG"), 0);
	assert_int_equal(fd_read_file(AT_FDCWD, path, data, sizeof data), 9);
	assert_string_equal(data, "LONG text");
	unlink(path);
	assert_int_equal(fd_write_file(AT_FDCWD, path, "x"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(access(path, F_OK), -1);
	/* A device that takes nothing: the error of the write comes through. */
	assert_int_equal(fd_write_file(AT_FDCWD, "/dev/full", "x"), -1);
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

/* What each standard descriptor is after `closed` were closed, as exit status: 0 when as promised.
 */
static int sanitize_without(unsigned closed)
{
	struct error err;
	struct stat before[3], after, null;

	if (stat("/dev/null", &null) < 0)
		return 10;
	for (int fd = 0; fd <= 2; fd++) {
		if (closed & 1u << fd)
			close(fd);
		else if (fstat(fd, &before[fd]) < 0)
			return 11;
	}
	if (fd_sanitize_standard(&err) < 0)
		return 12;
	for (int fd = 0; fd <= 2; fd++) {
		if (fstat(fd, &after) < 0)
			return 13;
		if (!(closed & 1u << fd)) {
			if (after.st_ino != before[fd].st_ino || after.st_dev != before[fd].st_dev)
				return 14;
		} else if (after.st_rdev != null.st_rdev || (fcntl(fd, F_GETFD) & FD_CLOEXEC)) {
			return 15;
		} else if (write(fd, "x", 1) != -1 || errno != EBADF) {
			return 16;
		}
	}
	/* What is opened next is none of them. */
	return open("/dev/null", O_RDONLY) > 2 ? 0 : 17;
}

static void closed_standard_descriptors_become_a_null_that_refuses_writes(void **state)
{
	for (unsigned closed = 0; closed < 8; closed++) {
		int status;
		pid_t child = fork();

		if (child == 0)
			_exit(sanitize_without(closed));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

/* A socket that its peer doesn't read, and that would be closed when the peer has, or in an hour.
 */
static int lingering_socket(int *peer)
{
	static char data[65536];
	struct linger hour = { .l_onoff = 1, .l_linger = 3600 };
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof address;
	auto_close int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	*peer = accept(listener, NULL, NULL);
	assert_true(*peer >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof hour), 0);
	while (send(fd, data, sizeof data, MSG_DONTWAIT) > 0)
		;
	return fd;
}

static void closing_what_is_foreign_waits_for_nobody(void **state)
{
	int ends[2], peer, fd = lingering_socket(&peer);
	char byte = 0;
	struct iovec part = { &byte, 1 };

	foreign_close(&fd);
	assert_int_equal(fd, -1);
	fd_close(&peer);
	/* The same within another socket, where the option can't be changed. */
	fd = lingering_socket(&peer);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(fd_message_send(ends[0], &part, 1, &fd, 1, 0), 1);
	close(fd); /* the message holds it still */
	foreign_close(&ends[0]);
	foreign_close(&ends[1]);
	fd_close(&peer);
	assert_int_equal(signal(SIGALRM, SIG_DFL), SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_forgets_the_number_and_keeps_errno),
		cmocka_unit_test(a_descriptor_ends_with_its_scope_unless_taken),
		cmocka_unit_test(a_taken_pointer_leaves_null),
		cmocka_unit_test(reads_go_on_after_short_pieces_and_signals),
		cmocka_unit_test(writes_go_on_until_all_is_out),
		cmocka_unit_test(errors_of_reads_and_writes_are_reported),
		cmocka_unit_test(a_small_file_is_read_whole_or_refused),
		cmocka_unit_test(writing_a_file_neither_creates_nor_truncates),
		cmocka_unit_test(closing_what_is_foreign_waits_for_nobody),
		cmocka_unit_test(closed_standard_descriptors_become_a_null_that_refuses_writes),
	};

	return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
