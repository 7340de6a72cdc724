/* Network namespaces of sandboxes: what `lo` has, and sockets that are made in another one. */
/* security: network */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
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

static int reach_v6(const char *text, uint16_t port)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	auto_close int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	inet_pton(AF_INET6, text, &address.sin6_addr);
	return connect(fd, (struct sockaddr *)&address, sizeof address);
}

static int reach_v4(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, text, &address.sin_addr);
	return reach(&address);
}

static bool can_bind(const char *text, uint16_t port, int type)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	auto_close int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	int on = 1;
	inet_pton(AF_INET, text, &address.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
	return bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
	       (type == SOCK_DGRAM || listen(fd, 1) == 0);
}

/* What a child finds in a namespace with ranges and listeners; 0, or the number of the check. */
/* Whether `lo`, and nothing else, has it. */
static bool has_address(int family, const char *wanted)
{
	struct ifaddrs *all = NULL;
	bool is_found = false;
	if (getifaddrs(&all) < 0)
		return false;
	for (struct ifaddrs *one = all; one; one = one->ifa_next) {
		char text[64] = "";
		if (!one->ifa_addr || one->ifa_addr->sa_family != family)
			continue;
		if (family == AF_INET6)
			inet_ntop(family, &((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, text,
				sizeof text);
		else
			inet_ntop(family, &((struct sockaddr_in *)one->ifa_addr)->sin_addr, text,
				sizeof text);
		is_found |= strcmp(text, wanted) == 0 && strcmp(one->ifa_name, "lo") == 0;
	}
	freeifaddrs(all);
	return is_found;
}

static int check_ranges(void)
{
	struct error err;
	int names = -1, resolver = -1;
	struct sockaddr_in6 local;
	socklen_t len = sizeof local;
	char text[64] = "";
	if (enter_new(&err) < 0 || reach_v4("198.18.0.1", 8443) == 0)
		return 1;
	if (netns_add_ranges(&err) < 0 || netns_listen_all(8443, &names, &err) < 0 ||
		netns_bind(5353, &resolver, &err) < 0)
		return 2;
	if (reach_v4("198.18.0.1", 8443) < 0 || reach_v4("198.19.255.254", 8443) < 0 ||
		reach_v4("127.0.0.1", 8443) < 0)
		return 3;
	if (reach_v4("198.20.0.1", 8443) == 0 || reach_v4("198.17.0.1", 8443) == 0)
		return 4;
	if (address_of(names).sin_family == AF_INET6 &&
		(reach_v6("fd00:ca::7", 8443) < 0 || reach_v6("fd00:cb::7", 8443) == 0))
		return 5;
	/* Resolvers with AI_ADDRCONFIG look for an address that isn't loopback. */
	if (!has_address(AF_INET, "198.18.0.0") ||
		(address_of(names).sin_family == AF_INET6 && !has_address(AF_INET6, "fd00:ca::")))
		return 9;
	/* The address that was connected to is that of the accepted socket. */
	fcntl(names, F_SETFL, 0);
	int accepted = accept(names, NULL, NULL);
	if (getsockname(accepted, (struct sockaddr *)&local, &len) < 0)
		return 6;
	if (local.sin6_family == AF_INET6)
		inet_ntop(AF_INET6, &local.sin6_addr, text, sizeof text);
	else
		inet_ntop(AF_INET, &((struct sockaddr_in *)&local)->sin_addr, text, sizeof text);
	if (!strstr(text, "198.18.0.1"))
		return 7;
	/* No other socket takes these ports, whatever it asks for. */
	if (can_bind("0.0.0.0", 8443, SOCK_STREAM) || can_bind("198.18.0.1", 8443, SOCK_STREAM) ||
		can_bind("127.0.0.1", 8443, SOCK_STREAM) ||
		can_bind("127.0.0.1", 5353, SOCK_DGRAM) || can_bind("0.0.0.0", 5353, SOCK_DGRAM))
		return 8;
	return 0;
}

static void test_ranges_are_local_and_their_ports_are_kept(void **state)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(unshare(CLONE_NEWUSER) < 0 ? 77 : check_ranges());
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
		cmocka_unit_test(test_ranges_are_local_and_their_ports_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
