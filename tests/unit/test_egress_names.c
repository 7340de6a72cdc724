/* Names without a proxy: a network namespace that the test makes, in which the role's sockets are
 * its resolver and listen on every address. */
/* security: network */
#include <sched.h>
#include "egress_fixture.h"
#include "format/network/dns.h"

static struct inside {
	int outside, inside; /* namespaces */
	int udp, tcp;
	int http, tls; /* listeners on the ports of the servers */
	uint16_t http_port, tls_port;
	bool is_skipped;
} in;
static struct world *world;

static void set_rules(const char *const *allow, size_t count)
{
	struct error err = { 0 };
	struct text_pair hosts[] = { { "app.example", "127.0.0.1" },
		{ "tls.example", "127.0.0.1" } };
	struct egress_rules rules = { .mode = NETWORK_LIST,
		.allow = { .items = (const char **)(uintptr_t)allow, .count = count },
		.hosts = { .items = hosts, .count = 2 } };
	if (egress_set(&world->egress, &rules, &err) < 0)
		fail_msg("%s", err.text);
}

static void set_all_rules(void)
{
	char http[64], tls[64];
	str_format(http, sizeof http, "app.example:%u", in.http_port);
	str_format(tls, sizeof tls, "tls.example:%u", in.tls_port);
	set_rules((const char *const[]){ http, tls, "*.wild.example", "192.0.2.1" }, 4);
}

static void open_inside(void)
{
	struct error err = { 0 };
	if (netns_leave_for_new(&in.inside, &err) < 0 || netns_add_ranges(&err) < 0 ||
		netns_bind(53, &in.udp, &err) < 0 || netns_listen(53, &in.tcp, &err) < 0 ||
		netns_listen_all(in.http_port, &in.http, &err) < 0 ||
		netns_listen_all(in.tls_port, &in.tls, &err) < 0)
		fail_msg("%s", err.text);
}

/* A plain user has the rights for a network namespace in a user namespace of his own. */
static int become_owner(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();
	if (unshare(CLONE_NEWUSER) < 0 ||
		fd_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
		return -1;
	str_format(map, sizeof map, "%u %u 1", uid, uid);
	if (fd_write_file(AT_FDCWD, "/proc/self/uid_map", map) < 0)
		return -1;
	str_format(map, sizeof map, "%u %u 1", gid, gid);
	return fd_write_file(AT_FDCWD, "/proc/self/gid_map", map);
}

static int set_up_all(void **state)
{
	struct error err = { 0 };
	setup((void **)&world);
	in = (struct inside){ -1, -1, -1, -1, -1, -1, 0, 0, false };
	if (geteuid() == 0 ? netns_open_own(&in.outside, &err)
			   : become_owner() || netns_leave_for_new(&in.outside, &err)) {
		in.is_skipped = true;
		return 0;
	}
	if (start_role(world, &err) < 0 ||
		egress_open(world->role.service, &world->policy, &world->egress, &err) < 0)
		fail_msg("%s", err.text);
	in.http_port = start_server(world, serve_requests);
	in.tls_port = start_server(world, serve_echo);
	open_inside();
	if (egress_listen(&world->egress, EGRESS_RESOLVER, in.udp, &err) < 0 ||
		egress_listen(&world->egress, EGRESS_RESOLVER, in.tcp, &err) < 0 ||
		egress_listen(&world->egress, EGRESS_NAMES, in.http, &err) < 0 ||
		egress_listen(&world->egress, EGRESS_NAMES, in.tls, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int tear_down_all(void **state)
{
	teardown((void **)&world);
	int *const fds[] = { &in.outside, &in.inside, &in.udp, &in.tcp, &in.http, &in.tls };
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		fd_close(fds[i]);
	return 0;
}

static int set_up_one(void **state)
{
	if (!in.is_skipped)
		set_all_rules();
	return 0;
}

/* ---- a client of DNS ---- */

static size_t write_query(char *out, const char *name, uint16_t type)
{
	static const char head[] = "\x12\x34\1\0\0\1\0\0\0\0\0";
	size_t len = sizeof head;
	memcpy(out, head, sizeof head);
	for (struct str rest = str_from(name), label; str_next(&rest, '.', &label);) {
		out[len++] = (char)label.len;
		memcpy(out + len, label.data, label.len);
		len += label.len;
	}
	out[len++] = '\0';
	memcpy(out + len, (char[]){ (char)(type >> 8), (char)type, 0, 1 }, 4);
	return len + 4;
}

/* The code of an answer; *address: what it holds, or "". */
static int read_answer(const char *answer, size_t len, size_t query_len, char address[48])
{
	address[0] = '\0';
	assert_true(len >= 12 && !memcmp(answer, "\x12\x34", 2));
	size_t size = len > query_len ? len - query_len - 12 : 0;
	if (answer[7])
		assert_non_null(inet_ntop(
			size == 4 ? AF_INET : AF_INET6, answer + query_len + 12, address, 48));
	return answer[3] & 15;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int resolve(const char *name, uint16_t type, char address[48])
{
	char query[512], answer[1024];
	struct sockaddr_in to = loopback(53);
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	size_t len = write_query(query, name, type);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	assert_int_equal(send(fd, query, len, 0), len);
	ssize_t got = recv(fd, answer, sizeof answer, 0);
	assert_true(got > 0);
	return read_answer(answer, (size_t)got, len, address);
}

static int dial_address(const char *address, uint16_t port)
{
	struct sockaddr_in ipv4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 ipv6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool is_ipv4 = inet_pton(AF_INET, address, &ipv4.sin_addr) == 1;
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!is_ipv4)
		assert_int_equal(inet_pton(AF_INET6, address, &ipv6.sin6_addr), 1);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	assert_int_equal(is_ipv4 ? connect(fd, (struct sockaddr *)&ipv4, sizeof ipv4)
				 : connect(fd, (struct sockaddr *)&ipv6, sizeof ipv6),
		0);
	return fd;
}

static int dial_name(const char *name, uint16_t type, uint16_t port)
{
	char address[48];
	assert_int_equal(resolve(name, type, address), DNS_OK);
	return dial_address(address, port);
}

static void assert_over(int fd)
{
	char byte;
	ssize_t got = read(fd, &byte, 1);
	assert_true(got == 0 || (got < 0 && errno == ECONNRESET));
}

/* ---- tests ---- */

#define NEEDS_NAMESPACE                                                                            \
	if (in.is_skipped)                                                                         \
	skip()

static void test_a_listed_name_has_an_address_of_its_own(void **state)
{
	char first[48], again[48], other[48];
	NEEDS_NAMESPACE;
	assert_int_equal(resolve("app.example", DNS_A, first), DNS_OK);
	assert_memory_equal(first, "198.18.", 7);
	assert_int_equal(resolve("App.Example", DNS_A, again), DNS_OK);
	assert_string_equal(first, again);
	assert_int_equal(resolve("tls.example", DNS_A, other), DNS_OK);
	assert_string_not_equal(first, other);
	assert_int_equal(resolve("app.example", DNS_AAAA, other), DNS_OK);
	if (access("/proc/net/if_inet6", F_OK) == 0)
		assert_memory_equal(other, "fd00:ca::", 9);
	assert_int_equal(resolve("a.wild.example", DNS_A, other), DNS_OK);
	assert_memory_equal(other, "198.18.", 7);
}

static void test_other_names_and_types_are_answered_at_once(void **state)
{
	static const char *const others[] = { "other.example", "wild.example", "localhost",
		"app.example.evil.example", "192.0.2.1", "1.2.0.192.in-addr.arpa", "" };
	char address[48];
	NEEDS_NAMESPACE;
	uint64_t refused = status_of(world).refused;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		assert_int_equal(resolve(others[i], DNS_A, address), DNS_NO_NAME);
		assert_string_equal(address, "");
	}
	/* Neither an address nor the root is the name of a host. */
	assert_int_equal(status_of(world).refused, refused + 5);
	assert_string_equal(status_of(world).last_refused, "1.2.0.192.in-addr.arpa");
	assert_int_equal(resolve("app.example", 15, address), DNS_OK); /* MX */
	assert_string_equal(address, "");
	assert_int_equal(resolve("app.example", 65, address), DNS_OK); /* HTTPS */
	assert_string_equal(address, "");
	assert_int_equal(resolve("other.example", 15, address), DNS_NO_NAME);
}

static void test_queries_come_over_tcp_too(void **state)
{
	char query[512] = { 0 }, answer[1024], address[48];
	NEEDS_NAMESPACE;
	size_t len = write_query(query + 2, "app.example", DNS_A);
	query[1] = (char)len;
	auto_close int fd = dial_address("127.0.0.1", 53);
	for (int i = 0; i < 2; i++) { /* byte by byte, then at once and two of them */
		for (size_t at = 0; !i && at < len + 2; at++)
			assert_int_equal(send(fd, query + at, 1, 0), 1);
		for (int k = 0; i && k < 2; k++)
			assert_int_equal(send(fd, query, len + 2, 0), len + 2);
		for (int k = 0; k <= i; k++) {
			assert_int_equal(fd_read_full(fd, answer, 2), 2);
			assert_int_equal(
				fd_read_full(fd, answer + 2, (size_t)answer[1]), answer[1]);
			assert_int_equal(
				read_answer(answer + 2, (size_t)answer[1], len, address), DNS_OK);
			assert_memory_equal(address, "198.18.", 7);
		}
	}
	assert_int_equal(send(fd, "\0\3abc", 5, 0), 5); /* no query is so short */
	assert_over(fd);
	int many[20];
	for (size_t i = 0; i < 20; i++)
		many[i] = dial_address("127.0.0.1", 53);
	assert_over(many[19]);
	for (size_t i = 0; i < 20; i++)
		close(many[i]);
}

static void test_a_connection_to_the_address_is_one_to_the_name(void **state)
{
	char text[512], back[1024] = "", head[128];
	NEEDS_NAMESPACE;
	auto_close int fd = dial_name("app.example", DNS_A, in.http_port);
	str_format(text, sizeof text, "GET /one HTTP/1.1\r\nHost: app.example:%u\r\n\r\n",
		in.http_port);
	for (int i = 0; i < 2; i++) {
		say(fd, text);
		size_t len = 0;
		while (!strstr(back, "\r\n\r\nGET /one") ||
			!strstr(strstr(back, "GET"), "\r\n\r\n")) {
			ssize_t got = read(fd, back + len, sizeof back - 1 - len);
			assert_true(got > 0);
			back[len += (size_t)got] = '\0';
		}
		memset(back, 0, sizeof back);
	}
	/* The next request of the kept connection is for somebody else. */
	say(fd, "GET /two HTTP/1.1\r\nHost: other.example\r\n\r\n");
	ssize_t got = read(fd, head, sizeof head);
	assert_true(got > 12 && !memcmp(head, "HTTP/1.1 4", 10));
	if (access("/proc/net/if_inet6", F_OK) == 0) {
		auto_close int six = dial_name("app.example", DNS_AAAA, in.http_port);
		say(six, text);
		assert_true(read(six, back, 12) == 12 && !memcmp(back, "HTTP/1.1 200", 12));
	}
	/* A name on a port of another one. */
	auto_close int wrong = dial_name("tls.example", DNS_A, in.http_port);
	assert_over(wrong);
}

/* A ClientHello with one extension, the server's name. */
static size_t write_hello(unsigned char *out, const char *name)
{
	size_t n = strlen(name), at = 0;
	const unsigned char head[] = { 22, 3, 1, 0, (unsigned char)(n + 56), 1, 0, 0,
		(unsigned char)(n + 52), 3, 3 };
	memcpy(out, head, sizeof head);
	at += sizeof head;
	memset(out + at, 7, 32);
	at += 32;
	const unsigned char rest[] = { 0, 0, 2, 0x13, 1, 1, 0, 0, (unsigned char)(n + 9), 0, 0, 0,
		(unsigned char)(n + 5), 0, (unsigned char)(n + 3), 0, 0, (unsigned char)n };
	memcpy(out + at, rest, sizeof rest);
	at += sizeof rest;
	memcpy(out + at, name, n);
	return at + n;
}

static void test_tls_must_be_for_the_name_of_the_address(void **state)
{
	unsigned char hello[256], back[256];
	NEEDS_NAMESPACE;
	size_t len = write_hello(hello, "TLS.example");
	auto_close int fd = dial_name("tls.example", DNS_A, in.tls_port);
	assert_int_equal(send(fd, hello, len, 0), len);
	assert_int_equal(fd_read_full(fd, back, len), len);
	assert_memory_equal(hello, back, len);
	len = write_hello(hello, "app.example");
	auto_close int other = dial_name("tls.example", DNS_A, in.tls_port);
	assert_int_equal(send(other, hello, len, 0), len);
	assert_int_equal(read(other, back, sizeof back), 7);
	assert_int_equal(back[0], 0x15); /* an alert */
}

static void test_an_address_without_a_name_is_closed(void **state)
{
	NEEDS_NAMESPACE;
	static const char *const addresses[] = { "198.19.200.1", "198.18.0.0", "198.19.255.255",
		"127.0.0.1" };
	struct egress_status before = status_of(world);
	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
		auto_close int fd = dial_address(addresses[i], in.http_port);
		assert_over(fd);
	}
	struct egress_status after = status_of(world);
	assert_int_equal(after.refused, before.refused + sizeof addresses / sizeof *addresses);
	assert_string_equal(after.last_refused, before.last_refused);
}

static void test_new_rules_hold_for_names_that_have_an_address(void **state)
{
	char address[48], again[48];
	NEEDS_NAMESPACE;
	assert_int_equal(resolve("app.example", DNS_A, address), DNS_OK);
	set_rules((const char *const[]){ "other.example" }, 1);
	assert_int_equal(resolve("app.example", DNS_A, again), DNS_NO_NAME);
	auto_close int fd = dial_address(address, in.http_port);
	assert_over(fd);
	assert_int_equal(resolve("other.example", DNS_A, again), DNS_OK);
	assert_string_not_equal(address, again);
}

/* Last: it fills the table. */
static void test_names_are_counted(void **state)
{
	char name[64], address[48], last[48] = "";
	int code = DNS_OK;
	size_t count = 0;
	NEEDS_NAMESPACE;
	for (; count < 2000 && code == DNS_OK; count++) {
		str_format(name, sizeof name, "n%zu.wild.example", count);
		code = resolve(name, DNS_A, address);
		assert_string_not_equal(address, last);
		str_copy(last, sizeof last, address);
	}
	assert_int_equal(code, DNS_FAILED);
	assert_in_range(count, 1000, 1025);
	/* Those that have one keep it. */
	assert_int_equal(resolve("n1.wild.example", DNS_A, address), DNS_OK);
}

int main(int argc, char **argv)
{
	if (!strcmp(argv[0], EGRESS_ARGV0)) /* this program is the role, too */
		return egress_main();
	const struct CMUnitTest tests[] = {
#define NAMES_TEST(name) cmocka_unit_test_setup(name, set_up_one)
		NAMES_TEST(test_a_listed_name_has_an_address_of_its_own),
		NAMES_TEST(test_other_names_and_types_are_answered_at_once),
		NAMES_TEST(test_queries_come_over_tcp_too),
		NAMES_TEST(test_a_connection_to_the_address_is_one_to_the_name),
		NAMES_TEST(test_tls_must_be_for_the_name_of_the_address),
		NAMES_TEST(test_an_address_without_a_name_is_closed),
		NAMES_TEST(test_new_rules_hold_for_names_that_have_an_address),
		NAMES_TEST(test_names_are_counted),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
