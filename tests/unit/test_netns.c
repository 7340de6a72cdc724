#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "linux/netns.h"
#include "unit.h"

static struct sockaddr_in address_of(int fd)
{
	struct sockaddr_in address = { 0 };
	socklen_t len = sizeof address;
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	return address;
}

static int reach(const struct sockaddr_in *address)
{
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	return connect(fd, (const struct sockaddr *)address, sizeof *address);
}

static int enter_new(struct error *err)
{
	auto_close int made = -1;
	return netns_leave_for_new(&made, err);
}

static void test_listens_on_loopback_only(void **state)
{
	auto_close int fd = -1, second = -1;
	struct error err;
	assert_int_equal(netns_listen(0, &fd, &err), 0);
	struct sockaddr_in address = address_of(fd);
	assert_int_equal(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_not_equal(address.sin_port, 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(reach(&address), 0);
	assert_int_equal(netns_listen(ntohs(address.sin_port), &second, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(second, -1);
	/* A connection that this side closed first lingers; the port is free all the same. */
	auto_close int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
	fcntl(fd, F_SETFL, 0);
	for (int i = 0; i < 2; i++)
		close(accept(fd, NULL, NULL));
	fd_close(&client);
	fd_close(&fd);
	assert_int_equal(netns_listen(ntohs(address.sin_port), &second, &err), 0);
}

static void test_a_listener_stays_in_the_namespace_where_it_was_made(void **state)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct error err;
		int fd = -1;
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(77);
		if (enter_new(&err) < 0 || netns_listen(3128, &fd, &err) < 0)
			_exit(1);
		struct sockaddr_in address = address_of(fd);
		if (ntohs(address.sin_port) != 3128 || reach(&address) < 0)
			_exit(2);
		/* From a namespace of another, the socket that is held can't be reached. */
		if (enter_new(&err) < 0)
			_exit(3);
		_exit(reach(&address) == 0 ? 4 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_a_maker_that_may_not_make_one_says_so(void **state)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct error err;
		if (geteuid() == 0 && setresuid(12345, 12345, 12345) < 0)
			_exit(1);
		_exit(enter_new(&err) == 0 || !strstr(err.text, "make a network namespace"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_one_that_is_made_is_ready_and_its_maker_is_home_again(void **state)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct error err;
		int own = -1, made = -1, fd = -1, host = -1;
		if (geteuid() != 0 || netns_open_own(&own, &err) < 0)
			_exit(77);
		if (netns_make(own, &made, &err) < 0)
			_exit(1);
		struct stat before, now, there;
		if (netns_open_own(&host, &err) < 0 || fstat(own, &before) < 0 ||
			fstat(host, &now) < 0 || fstat(made, &there) < 0 ||
			before.st_ino != now.st_ino || before.st_ino == there.st_ino)
			_exit(2);
		/* Everybody may listen at any port there, and be reached. */
		if (setns(made, CLONE_NEWNET) < 0 || setresuid(12345, 12345, 12345) < 0 ||
			netns_listen(80, &fd, &err) < 0)
			_exit(3);
		struct sockaddr_in address = address_of(fd);
		_exit(reach(&address) < 0 ? 4 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listens_on_loopback_only),
		cmocka_unit_test(test_a_listener_stays_in_the_namespace_where_it_was_made),
		cmocka_unit_test(test_a_maker_that_may_not_make_one_says_so),
		cmocka_unit_test(test_one_that_is_made_is_ready_and_its_maker_is_home_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
