/* The master's side of init against a socket whose other end the test plays. */
/* security: daemon */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "base/fd.h"
#include "linux/fd_message.h"
#include "linux/pidfd.h"
#include "sandbox/init/wire.h"
#include "sandbox/native/init_client.h"
#include "unit.h"

struct ends {
	int master, init;
};

static int setup(void **state)
{
	struct ends *ends = test_calloc(1, sizeof *ends);
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	*ends = (struct ends){ fds[0], fds[1] };
	*state = ends;
	return 0;
}

static int teardown(void **state)
{
	struct ends *ends = *state;
	fd_close(&ends->master);
	fd_close(&ends->init);
	test_free(ends);
	return 0;
}

struct packet {
	struct init_request request;
	char body[INIT_INLINE_MAX];
	size_t len;
	struct fd_message came;
};

static void take_packet(int socket, struct packet *packet)
{
	ssize_t len = fd_message_receive(
		socket, packet, offsetof(struct packet, len), MSG_DONTWAIT, &packet->came);
	assert_true(len > 0);
	assert_false(packet->came.is_cut || packet->came.has_lost_fds);
	packet->len = (size_t)len;
}

static const char *const argv[] = { "sh", "-c", "true", NULL };
static const char *const env[] = { "PATH=/bin", "EMPTY=", NULL };
static const int standard[3] = { 0, 1, 2 };

static void test_a_spawn_is_what_init_takes(void **state)
{
	struct ends *ends = *state;
	struct error err;
	struct packet packet;
	struct init_spawn spawn = { argv, env, "/workspace", INIT_TTY | INIT_NO_STARTED };
	const char *pointers[16], *cwd;
	assert_int_equal(init_client_spawn(ends->master, 7, &spawn, standard, &err), 0);
	take_packet(ends->init, &packet);
	assert_int_equal(wire_check_request(&packet.request, packet.len, packet.came.fd_count), 0);
	assert_int_equal(packet.request.id, 7);
	assert_int_equal(packet.request.flags, INIT_TTY | INIT_NO_STARTED);
	assert_int_equal(wire_cut_body(&packet.request, packet.body, pointers, &cwd), 0);
	for (int i = 0; i < 3; i++)
		assert_string_equal(pointers[i], argv[i]);
	for (int i = 0; i < 2; i++)
		assert_string_equal(pointers[4 + i], env[i]);
	assert_string_equal(cwd, "/workspace");
	fd_message_close(&packet.came, 0);
}

static const char **repeat(const char *text, size_t count)
{
	const char **strings = test_calloc(count + 1, sizeof *strings);
	for (size_t i = 0; i < count; i++)
		strings[i] = text;
	return strings;
}

static void test_a_large_vector_goes_into_a_sealed_memfd(void **state)
{
	struct ends *ends = *state;
	struct error err;
	static const struct {
		const char *text;
		size_t count;
	} cases[] = { { "0123456789abcdef", 5000 }, { "", INIT_INLINE_STRINGS + 1 } };
	for (size_t i = 0; i < 2; i++) {
		struct packet packet;
		const char **many = repeat(cases[i].text, cases[i].count), *cwd;
		const char **pointers = test_calloc(cases[i].count + 4, sizeof *pointers);
		struct init_spawn spawn = { many, env, "/", 0 };
		assert_int_equal(init_client_spawn(ends->master, 8, &spawn, standard, &err), 0);
		take_packet(ends->init, &packet);
		assert_int_equal(
			wire_check_request(&packet.request, packet.len, packet.came.fd_count), 0);
		assert_int_equal(packet.request.flags, INIT_BODY_IN_FD);
		assert_int_equal(fcntl(packet.came.fds[3], F_GET_SEALS),
			F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
		size_t len = packet.request.body_len;
		char *body = mmap(NULL, len, PROT_READ, MAP_PRIVATE, packet.came.fds[3], 0);
		assert_ptr_not_equal(body, MAP_FAILED);
		assert_int_equal(wire_cut_body(&packet.request, body, pointers, &cwd), 0);
		assert_string_equal(pointers[cases[i].count - 1], cases[i].text);
		assert_string_equal(cwd, "/");
		munmap(body, len);
		fd_message_close(&packet.came, 0);
		test_free(many);
		test_free(pointers);
	}
}

static void test_more_than_any_kernel_takes_is_not_sent(void **state)
{
	struct ends *ends = *state;
	struct error err;
	char *long_text = test_malloc(INIT_BODY_MAX + 1);
	memset(long_text, 'x', INIT_BODY_MAX);
	long_text[INIT_BODY_MAX] = 0;
	const char *one[] = { "cat", long_text, NULL };
	const char **many = repeat("", INIT_STRINGS_MAX + 1);
	struct init_spawn cases[] = { { one, env, "/", 0 }, { many, env, "/", 0 },
		{ argv, many, "/", 0 }, { argv, env, long_text, 0 } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(init_client_spawn(ends->master, 1, &cases[i], standard, &err), -1);
		assert_int_equal(err.code, ERR_NOT_EXECUTABLE);
		assert_int_equal(err.sys_errno, E2BIG);
	}
	char byte;
	assert_int_equal(recv(ends->init, &byte, 1, MSG_DONTWAIT), -1);
	test_free(long_text);
	test_free(many);
}

static void test_the_small_requests_are_what_init_takes(void **state)
{
	struct ends *ends = *state;
	struct error err;
	struct packet packet;
	assert_int_equal(init_client_signal(ends->master, 3, SIGTERM, &err), 0);
	take_packet(ends->init, &packet);
	assert_int_equal(wire_check_request(&packet.request, packet.len, packet.came.fd_count), 0);
	assert_int_equal(packet.request.type, INIT_SIGNAL);
	assert_int_equal(packet.request.value, SIGTERM);
	assert_int_equal(init_client_ack(ends->master, 3, &err), 0);
	take_packet(ends->init, &packet);
	assert_int_equal(wire_check_request(&packet.request, packet.len, packet.came.fd_count), 0);
	assert_int_equal(init_client_stats(ends->master, &err), 0);
	take_packet(ends->init, &packet);
	assert_int_equal(wire_check_request(&packet.request, packet.len, packet.came.fd_count), 0);
	assert_int_equal(init_client_connect(ends->master, 3, 8000, true, &err), 0);
	take_packet(ends->init, &packet);
	assert_int_equal(wire_check_request(&packet.request, packet.len, packet.came.fd_count), 0);
	assert_int_equal(packet.request.value, 8000);
	fd_close(&ends->init);
	assert_int_equal(init_client_stats(ends->master, &err), -1);
	assert_int_equal(err.sys_errno, EPIPE);
}

static void send_bytes(int socket, const void *data, size_t len, const int *fds, int fd_count)
{
	struct iovec part = { (void *)(uintptr_t)data, len };
	assert_int_equal(fd_message_send(socket, &part, 1, fds, fd_count, 0), (ssize_t)len);
}

#define REPLY(...)                                                                                 \
	(struct init_reply)                                                                        \
	{                                                                                          \
		.magic = INIT_MAGIC, __VA_ARGS__                                                   \
	}

static void test_possible_replies_are_taken(void **state)
{
	struct ends *ends = *state;
	struct error err;
	const struct init_reply replies[] = {
		REPLY(.type = INIT_STARTED, .id = 1, .value = 2),
		REPLY(.type = INIT_FAILED, .id = 1, .value = ENOENT, .stage = INIT_STAGE_EXEC),
		REPLY(.type = INIT_EXITED, .id = UINT64_MAX, .value = 255 << 8, .utime_us = 5,
			.max_rss_kb = 1000),
		REPLY(.type = INIT_EXITED, .id = 1, .value = 0, .stage = 1),
		REPLY(.type = INIT_EXITED, .id = 1, .value = SIGKILL),
		REPLY(.type = INIT_EXITED, .id = 1, .value = SIGSEGV | 0x80),
		REPLY(.type = INIT_EXITED, .id = 1, .value = 64),
		REPLY(.type = INIT_STATS_ARE, .value = INIT_EXECS_MAX, .shm_bytes = 4096),
		REPLY(.type = INIT_REFUSED, .value = EINVAL),
		REPLY(.type = INIT_REFUSED, .id = 9, .value = EAGAIN),
	};
	struct init_reply got;
	int pidfd = 99;
	assert_int_equal(
		init_client_receive(ends->master, &got, &pidfd, &err), INIT_CLIENT_NOTHING);
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		send_bytes(ends->init, &replies[i], sizeof *replies, NULL, 0);
		assert_int_equal(
			init_client_receive(ends->master, &got, &pidfd, &err), INIT_CLIENT_REPLY);
		assert_memory_equal(&got, &replies[i], sizeof got);
		assert_int_equal(pidfd, -1);
	}
	fd_close(&ends->init);
	assert_int_equal(init_client_receive(ends->master, &got, &pidfd, &err), INIT_CLIENT_EOF);
}

static void test_impossible_replies_are_corrupt(void **state)
{
	struct ends *ends = *state;
	const struct init_reply replies[] = {
		{ .magic = INIT_MAGIC + 1, .type = INIT_STARTED, .id = 1, .value = 2 },
		REPLY(.type = 0, .id = 1),
		REPLY(.type = INIT_SPAWN, .id = 1),
		REPLY(.type = INIT_REFUSED + 1, .id = 1, .value = 1),
		REPLY(.type = INIT_STARTED, .id = 0, .value = 2),
		REPLY(.type = INIT_STARTED, .id = 1, .value = 0),
		REPLY(.type = INIT_STARTED, .id = 1, .value = -1),
		REPLY(.type = INIT_STARTED, .id = 1, .value = 4194305),
		REPLY(.type = INIT_STARTED, .id = 1, .value = 2, .stage = 1),
		REPLY(.type = INIT_STARTED, .id = 1, .value = 2, .shm_bytes = 1),
		REPLY(.type = INIT_FAILED, .id = 1, .value = 0, .stage = INIT_STAGE_EXEC),
		REPLY(.type = INIT_FAILED, .id = 1, .value = 4096, .stage = INIT_STAGE_EXEC),
		REPLY(.type = INIT_FAILED, .id = 1, .value = ENOENT, .stage = 0),
		REPLY(.type = INIT_FAILED, .id = 1, .value = ENOENT, .stage = INIT_STAGE_COUNT),
		REPLY(.type = INIT_FAILED, .id = 1, .value = ENOENT, .stage = -1),
		REPLY(.type = INIT_FAILED, .id = 1, .value = ENOENT, .stage = 1, .utime_us = 1),
		REPLY(.type = INIT_EXITED, .id = 0, .value = 0),
		REPLY(.type = INIT_EXITED, .id = 1, .value = 0, .stage = 2),
		REPLY(.type = INIT_EXITED, .id = 1, .value = 0, .stage = -1),
		REPLY(.type = INIT_EXITED, .id = 1, .value = -1),
		REPLY(.type = INIT_EXITED, .id = 1, .value = 0x10000),
		REPLY(.type = INIT_EXITED, .id = 1, .value = 0x137f), /* stopped */
		REPLY(.type = INIT_EXITED, .id = 1, .value = 0xffff), /* continued */
		REPLY(.type = INIT_EXITED, .id = 1, .value = 65),
		REPLY(.type = INIT_EXITED, .id = 1, .value = 0x0109),
		REPLY(.type = INIT_EXITED, .id = 1, .utime_us = 1ull << 62),
		REPLY(.type = INIT_EXITED, .id = 1, .stime_us = UINT64_MAX),
		REPLY(.type = INIT_EXITED, .id = 1, .max_rss_kb = UINT64_MAX),
		REPLY(.type = INIT_STATS_ARE, .id = 1),
		REPLY(.type = INIT_STATS_ARE, .value = -1),
		REPLY(.type = INIT_STATS_ARE, .value = INIT_EXECS_MAX + 1),
		REPLY(.type = INIT_STATS_ARE, .shm_bytes = UINT64_MAX),
		REPLY(.type = INIT_REFUSED, .value = 0),
		REPLY(.type = INIT_REFUSED, .value = INT_MIN),
	};
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		struct error err;
		struct init_reply got = { .magic = 1 };
		int pidfd = 99;
		send_bytes(ends->init, &replies[i], sizeof *replies, NULL, 0);
		assert_int_equal(init_client_receive(ends->master, &got, &pidfd, &err), -1);
		assert_int_equal(err.code, ERR_CORRUPT);
		assert_int_equal(got.magic, 1);
		assert_int_equal(pidfd, 99);
	}
}

static void test_a_reply_of_another_size_is_corrupt(void **state)
{
	struct ends *ends = *state;
	char bytes[sizeof(struct init_reply) + 8] = { 0 };
	struct init_reply whole = REPLY(.type = INIT_STARTED, .id = 1, .value = 2);
	memcpy(bytes, &whole, sizeof whole);
	for (size_t len = 1; len <= sizeof bytes; len++) {
		struct error err;
		struct init_reply got;
		int pidfd;
		send_bytes(ends->init, bytes, len, NULL, 0);
		assert_int_equal(init_client_receive(ends->master, &got, &pidfd, &err),
			len == sizeof got ? INIT_CLIENT_REPLY : -1);
	}
}

static void test_a_pidfd_comes_with_started_and_nothing_else_does(void **state)
{
	struct ends *ends = *state;
	struct error err;
	struct init_reply got, started = REPLY(.type = INIT_STARTED, .id = 1, .value = 2);
	struct init_reply exited = REPLY(.type = INIT_EXITED, .id = 1);
	auto_close int self = -1;
	int pidfd = -1;
	assert_int_equal(pidfd_open_process(getpid(), &self, &err), 0);
	send_bytes(ends->init, &started, sizeof started, &self, 1);
	assert_int_equal(init_client_receive(ends->master, &got, &pidfd, &err), INIT_CLIENT_REPLY);
	assert_true(pidfd >= 0);
	assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	close(pidfd);

	/* Refused, and none of them stays open here: each is the last writer's end of a pipe. */
	const struct {
		const struct init_reply *reply;
		size_t fd_count;
		bool is_pidfd;
	} cases[] = { { &started, 1, false }, { &started, 2, true }, { &started, 5, true },
		{ &exited, 1, true } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int ends_of_pipe[2];
		assert_int_equal(pipe2(ends_of_pipe, O_CLOEXEC | O_NONBLOCK), 0);
		int fds[5] = { cases[i].is_pidfd ? self : ends_of_pipe[1], ends_of_pipe[1],
			ends_of_pipe[1], ends_of_pipe[1], ends_of_pipe[1] };
		send_bytes(ends->init, cases[i].reply, sizeof started, fds, cases[i].fd_count);
		close(ends_of_pipe[1]);
		assert_int_equal(init_client_receive(ends->master, &got, &pidfd, &err), -1);
		assert_int_equal(err.code, ERR_CORRUPT);
		char byte;
		assert_int_equal(read(ends_of_pipe[0], &byte, 1), 0);
		close(ends_of_pipe[0]);
	}
}

/* What a forged init could send instead of a connection. */
static void test_a_connection_is_a_tcp_socket_that_does_not_listen(void **state)
{
	static const struct {
		int domain, type;
	} kinds[] = { { AF_INET, SOCK_STREAM }, { AF_INET6, SOCK_STREAM }, { AF_INET, SOCK_DGRAM },
		{ AF_UNIX, SOCK_STREAM }, { AF_UNIX, SOCK_SEQPACKET } };
	struct ends *ends = *state;
	struct error err;
	struct init_reply got, connected = REPLY(.type = INIT_CONNECTED, .id = 1);
	int came = -1;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		auto_close int made = socket(kinds[i].domain, kinds[i].type | SOCK_CLOEXEC, 0);
		if (made < 0)
			continue; /* a host without IPv6 */
		send_bytes(ends->init, &connected, sizeof connected, &made, 1);
		assert_int_equal(init_client_receive(ends->master, &got, &came, &err),
			i < 2 ? INIT_CLIENT_REPLY : -1);
		fd_close(&came);
	}
	auto_close int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(listen(listening, 1), 0);
	send_bytes(ends->init, &connected, sizeof connected, &listening, 1);
	assert_int_equal(init_client_receive(ends->master, &got, &came, &err), -1);
	auto_close int file = open("/dev/null", O_RDWR | O_CLOEXEC);
	send_bytes(ends->init, &connected, sizeof connected, &file, 1);
	assert_int_equal(init_client_receive(ends->master, &got, &came, &err), -1);
	send_bytes(ends->init, &connected, sizeof connected, NULL, 0);
	assert_int_equal(init_client_receive(ends->master, &got, &came, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
}

static void test_a_failure_is_named_with_its_object(void **state)
{
	struct init_spawn spawn = { argv, env, "/nowhere", 0 };
	static const struct {
		uint32_t type;
		int value, stage;
		enum error_code code;
		const char *named;
	} cases[] = {
		{ INIT_FAILED, ENOENT, INIT_STAGE_EXEC, ERR_COMMAND_NOT_FOUND, "'sh'" },
		{ INIT_FAILED, ENOTDIR, INIT_STAGE_EXEC, ERR_COMMAND_NOT_FOUND, "'sh'" },
		{ INIT_FAILED, EACCES, INIT_STAGE_EXEC, ERR_NOT_EXECUTABLE, "'sh'" },
		{ INIT_FAILED, ENOEXEC, INIT_STAGE_EXEC, ERR_NOT_EXECUTABLE, "'sh'" },
		{ INIT_FAILED, E2BIG, INIT_STAGE_EXEC, ERR_NOT_EXECUTABLE, "'sh'" },
		{ INIT_FAILED, ENOENT, INIT_STAGE_CWD, ERR_INVALID, "'/nowhere'" },
		{ INIT_FAILED, EACCES, INIT_STAGE_CWD, ERR_INVALID, "'/nowhere'" },
		{ INIT_REFUSED, EMFILE, 0, ERR_FAILED, "'sh'" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err = { 0 };
		struct init_reply reply = REPLY(.type = cases[i].type, .id = 1,
			.value = cases[i].value, .stage = cases[i].stage);
		assert_int_equal(init_client_failure(&reply, &spawn, &err), -1);
		assert_int_equal(err.code, cases[i].code);
		assert_non_null(strstr(err.text, cases[i].named));
	}
	struct error err = { 0 };
	struct init_reply reply =
		REPLY(.type = INIT_FAILED, .id = 1, .value = EAGAIN, .stage = INIT_STAGE_FORK);
	assert_int_equal(init_client_failure(&reply, &spawn, &err), -1);
	assert_string_not_equal(err.hint, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_spawn_is_what_init_takes),
		TEST(test_a_large_vector_goes_into_a_sealed_memfd),
		TEST(test_more_than_any_kernel_takes_is_not_sent),
		TEST(test_the_small_requests_are_what_init_takes),
		TEST(test_possible_replies_are_taken),
		TEST(test_impossible_replies_are_corrupt),
		TEST(test_a_reply_of_another_size_is_corrupt),
		TEST(test_a_pidfd_comes_with_started_and_nothing_else_does),
		TEST(test_a_connection_is_a_tcp_socket_that_does_not_listen),
		TEST(test_a_failure_is_named_with_its_object),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
