/* Egress: what a sandbox can do to the sockets that it shares with the role, and to what policies
 * share, so that others would lose their network. */
/* security: network */
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include "egress_fixture.h"

struct other { /* the policy of another sandbox */
	struct egress egress;
	int listener;
	uint16_t port;
};

static void close_other(struct other *other)
{
	egress_close(&other->egress);
	fd_close(&other->listener);
}

static void assert_other_is_served(struct world *w, struct other *other, uint16_t port)
{
	struct error err;
	struct forward_host host = { "localhost", port, true };
	assert_int_equal(egress_allow(&other->egress, &host, &err), 0);
	auto_close int fd = dial(other->port);
	ask_tunnel(fd, "localhost", port);
	assert_tunnel(fd);
	assert_echo(fd, "served");
}

/* Whoever has passed a socket shares its flags: accept would wait for a client for ever. */
static void test_a_listener_that_blocks_ends_its_policy_alone(void **state)
{
	struct world *w = *state;
	struct other other;
	uint16_t port = start_server(w, serve_echo);
	start(w);
	open_policy(w, &other.egress, &other.listener, &other.port);
	assert_int_equal(fcntl(w->listener, F_SETFL, 0), 0);
	auto_close int fd = dial(w->port);
	assert_other_is_served(w, &other, port);
	/* Its connections are broken. */
	struct pollfd end = { .fd = fd, .events = POLLIN };
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	assert_int_equal(status_of(w).refused, 1);
	assert_int_equal(status_of(w).open, 0);
	close_other(&other);
}

static void serve_page(int fd)
{
	static char data[16384];
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 16384\r\n\r\n";
	if (read(fd, data, sizeof data) <= 0 || fd_write_full(fd, head, sizeof head - 1) < 0 ||
		fd_write_full(fd, data, sizeof data) < 0)
		_exit(1);
	serve_nothing(fd);
}

/* Sockets that are accepted have the options of the listener: closing one would wait until its
 * client, which reads nothing, has read everything. */
static void test_closing_waits_for_no_client(void **state)
{
	struct world *w = *state;
	struct linger long_time = { .l_onoff = 1, .l_linger = 600 };
	int small = 1;
	char text[256];
	uint16_t port = start_server(w, serve_page);
	allow(w, "localhost", port, true);
	start(w);
	assert_int_equal(
		setsockopt(w->listener, SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons(w->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	str_format(text, sizeof text,
		"GET http://localhost:%u/ HTTP/1.1\r\nHost: localhost:%u\r\nConnection: "
		"close\r\n\r\n",
		port, port);
	say(fd, text);
	await_requests(w, 1);
	uint64_t end = clock_monotonic_ms() + PATIENCE_MS;
	while (status_of(w).open) {
		assert_true(clock_monotonic_ms() < end);
		usleep(10000);
	}
}

/* ---- names that nobody answers ---- */

#define SILENT "127.0.53.77" /* of a name server */
#define NAMES 80

static bool write_text(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd_write_full(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static int resolve_beside_slow_names(struct world *w)
{
	struct error err;
	struct egress_rules rules = { .mode = NETWORK_LIST };
	struct other other;
	struct arena arena = { 0 };
	int clients[NAMES];
	char host[64];
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(53) };
	inet_pton(AF_INET, SILENT, &address.sin_addr);
	auto_close int silent = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("etc", "/etc", "tmpfs", 0, "size=64k") ||
		bind(silent, (struct sockaddr *)&address, sizeof address) ||
		!write_text("/etc/hosts", "127.0.0.1 fast.example localhost\n") ||
		!write_text("/etc/nsswitch.conf", "hosts: files dns\n") ||
		!write_text("/etc/resolv.conf",
			"nameserver " SILENT "\noptions timeout:30 attempts:5\n"))
		return 1;
	uint16_t port = start_server(w, serve_echo);
	w->policy.limits.resolve_ms = 600000;
	start(w);
	vec_push(&arena, &rules.allow, "*.slow.example");
	if (egress_set(&w->egress, &rules, &err))
		return 2;
	for (int i = 0; i < NAMES; i++) {
		str_format(host, sizeof host, "n%d.slow.example", i);
		clients[i] = dial(w->port);
		ask_tunnel(clients[i], host, 443);
	}
	uint64_t end = clock_monotonic_ms() + PATIENCE_MS;
	while (status_of(w).open != NAMES && clock_monotonic_ms() < end)
		usleep(10000);
	open_policy(w, &other.egress, &other.listener, &other.port);
	struct forward_host fast = { "fast.example", port, true };
	if (egress_allow(&other.egress, &fast, &err))
		return 3;
	auto_close int fd = dial(other.port);
	ask_tunnel(fd, "fast.example", port);
	assert_tunnel(fd);
	assert_echo(fd, "found");
	for (int i = 0; i < NAMES; i++)
		close(clients[i]);
	close_other(&other);
	arena_done(&arena);
	return 0;
}

/* Each name that is resolved is a process, of which all policies together have few. */
static void test_slow_names_of_one_policy_hold_up_no_other(void **state)
{
	struct world *w = *state;
	int status = -1;
	if (geteuid() != 0)
		skip();
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int result = resolve_beside_slow_names(w);
		egress_stop(&w->role);
		_exit(result);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* ---- this machine ---- */

#define OWN "203.0.113.5" /* as public as any */

static bool give_address(void)
{
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP }, other = { .ifr_name = "lo:1" };
	struct sockaddr_in address = { .sin_family = AF_INET };
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	inet_pton(AF_INET, OWN, &address.sin_addr);
	memcpy(&other.ifr_addr, &address, sizeof address);
	return ioctl(fd, SIOCSIFFLAGS, &up) == 0 && ioctl(fd, SIOCSIFADDR, &other) == 0;
}

static int reach_own_address(struct world *w)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWNET) ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("etc", "/etc", "tmpfs", 0, "size=64k") || !give_address() ||
		!write_text("/etc/hosts", OWN " own.example\n") ||
		!write_text("/etc/nsswitch.conf", "hosts: files\n"))
		return 1;
	allow(w, "own.example", 443, false);
	start(w);
	auto_close int fd = dial(w->port);
	ask_tunnel(fd, "own.example", 443);
	assert_answer(fd, "HTTP/1.1 403 ", "isn't public");
	return 0;
}

/* What listens there is meant for others on the network, perhaps behind a firewall, which doesn't
 * see connections of this machine to itself. */
static void test_the_machine_s_own_address_is_closed(void **state)
{
	struct world *w = *state;
	int status = -1;
	if (geteuid() != 0)
		skip();
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int result = reach_own_address(w);
		egress_stop(&w->role);
		_exit(result);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* ---- tunnels ---- */

static void exchange(int fd, uint16_t port)
{
	char text[4096] = "";
	size_t len = 0;
	str_format(text, sizeof text, "GET / HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", port);
	say(fd, text);
	for (text[0] = '\0'; !strstr(text, "\r\n\r\n"); text[++len] = '\0')
		assert_int_equal(read(fd, text + len, 1), 1);
	if (!str_starts_with(str_from(text), "HTTP/1.1 200 OK\r\n"))
		fail_msg("'%s'", text);
	const char *length = strstr(text, "Content-Length: ");
	assert_non_null(length);
	size_t body = strtoul(length + 16, NULL, 10);
	assert_true(body < sizeof text);
	assert_int_equal(fd_read_full(fd, text, body), body);
}

/* The server closes after each answer: what tells a client that its tunnel is there must not come
 * again as the answer to its next request. */
static void test_a_tunnel_is_answered_once(void **state)
{
	struct world *w = *state;
	uint16_t port = start_server(w, serve_one_request);
	allow(w, "localhost", port, true);
	start(w);
	auto_close int fd = tunnel(w, "localhost", port);
	for (int i = 0; i < 3; i++)
		exchange(fd, port);
	assert_int_equal(status_of(w).requests, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	if (!strcmp(argv[0], EGRESS_ARGV0)) /* this program is the role, too */
		return egress_main();
	const struct CMUnitTest tests[] = {
		TEST(test_a_listener_that_blocks_ends_its_policy_alone),
		TEST(test_closing_waits_for_no_client),
		TEST(test_slow_names_of_one_policy_hold_up_no_other),
		TEST(test_the_machine_s_own_address_is_closed),
		TEST(test_a_tunnel_is_answered_once),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
