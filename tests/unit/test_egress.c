/* Egress: who is let through, and what happens to their bytes. */
/* security: network */
#include "egress_fixture.h"

/* ---- tunnels ---- */
static void test_a_tunnel_carries_megabytes_both_ways_and_half_closes(void **state)
{
	struct world *w = *state;
	uint16_t port = start_server(w, serve_echo);
	allow(w, "127.0.0.1", port, true);
	start(w);
	auto_close int fd = tunnel(w, "127.0.0.1", port);
	pid_t writer = fork();
	uint32_t *numbers = test_malloc(65536);
	size_t total = 0;
	assert_true(writer >= 0);
	if (writer == 0) {
		uint32_t block[1024];
		for (uint32_t i = 0; i < BIG / 4; i++) {
			block[i % 1024] = i;
			if (i % 1024 == 1023 &&
				fd_write_full(fd, block, sizeof block) != (ssize_t)sizeof block)
				_exit(1);
		}
		_exit(shutdown(fd, SHUT_WR) < 0);
	}
	for (;;) {
		ssize_t got = fd_read_full(fd, numbers, 65536);
		assert_true(got >= 0 && got % 4 == 0);
		for (ssize_t i = 0; i < got / 4; i++)
			assert_int_equal(numbers[i], total / 4 + (size_t)i);
		total += (size_t)got;
		if (!got)
			break;
	}
	assert_int_equal(total, BIG);
	int status = -1;
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
	test_free(numbers);
	assert_int_equal(status_of(w).connections, 1);
	assert_int_equal(status_of(w).bytes_out, BIG);
	assert_int_equal(status_of(w).bytes_in, BIG);
	assert_int_equal(status_of(w).refused, 0);
}

static void test_bytes_that_come_with_the_request_go_on(void **state)
{
	struct world *w = *state;
	char text[256], back[6] = "";
	uint16_t port = start_server(w, serve_echo);
	allow(w, "127.0.0.1", port, true);
	start(w);
	auto_close int fd = dial(w->port);
	str_format(text, sizeof text, "CONNECT 127.0.0.1:%u HTTP/1.0\r\n\r\nearly", port);
	say(fd, text);
	assert_tunnel(fd);
	assert_int_equal(fd_read_full(fd, back, 5), 5);
	assert_string_equal(back, "early");
}

static void test_two_hundred_tunnels_at_once_and_nothing_stays(void **state)
{
	struct world *w = *state;
	int fds[200];
	uint16_t port = start_server(w, serve_echo);
	allow(w, "127.0.0.1", port, true);
	start(w);
	size_t before = count_fds(w->role.pid);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < 200; i++)
			fds[i] = tunnel(w, "127.0.0.1", port);
		for (size_t i = 0; i < 200; i++) {
			char text[16];
			str_format(text, sizeof text, "number %zu", i);
			assert_echo(fds[i], text);
		}
		for (size_t i = 0; i < 200; i++)
			fd_close(&fds[i]);
		await_fds(w->role.pid, before);
	}
	assert_int_equal(status_of(w).connections, 400);
}

static void test_more_than_the_most_connections_wait_their_turn(void **state)
{
	struct world *w = *state;
	int fds[8];
	uint16_t port = start_server(w, serve_echo);
	allow(w, "127.0.0.1", port, true);
	w->policy.limits.connections = 4;
	start(w);
	for (size_t i = 0; i < 8; i++)
		ask_tunnel(fds[i] = dial(w->port), "127.0.0.1", port);
	for (size_t i = 0; i < 4; i++)
		assert_tunnel(fds[i]);
	struct pollfd ready = { .fd = fds[4], .events = POLLIN };
	assert_int_equal(poll(&ready, 1, 100), 0);
	for (size_t i = 0; i < 4; i++)
		fd_close(&fds[i]);
	for (size_t i = 4; i < 8; i++) {
		assert_tunnel(fds[i]);
		fd_close(&fds[i]);
	}
}

static unsigned long read_ticks(pid_t pid)
{
	char path[64], text[1024];
	unsigned long user, system_time;
	str_format(path, sizeof path, "/proc/%d/stat", (int)pid);
	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	assert_int_equal(
		sscanf(strrchr(text, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			&user, &system_time),
		2);
	return user + system_time;
}

static void test_a_client_that_doesn_t_read_holds_the_server_back(void **state)
{
	struct world *w = *state;
	int fds[16];
	uint64_t bytes;
	unsigned long ticks;
	uint16_t port = start_server(w, serve_flood);
	allow(w, "127.0.0.1", port, true);
	start(w);
	for (size_t i = 0; i < 16; i++)
		fds[i] = tunnel(w, "127.0.0.1", port);
	/* And it waits without turning: in a while without a byte it does nothing. */
	do {
		bytes = status_of(w).bytes_in;
		ticks = read_ticks(w->role.pid);
		usleep(500000);
		ticks = read_ticks(w->role.pid) - ticks;
	} while (!bytes || status_of(w).bytes_in != bytes);
	assert_true(ticks < 10);
	unsigned long used = read_status(w->role.pid, "RssAnon:", 10);
#ifndef __SANITIZE_ADDRESS__
	assert_true(used < 16384);
#endif
	assert_true(used > 0);
	for (size_t i = 0; i < 16; i++)
		fd_close(&fds[i]);
}

/* ---- what is refused ---- */
static void test_an_unlisted_host_is_refused_by_name(void **state)
{
	struct world *w = *state;
	uint16_t port = start_server(w, serve_echo);
	allow(w, "127.0.0.1", port, true);
	start(w);
	assert_string_equal(status_of(w).last_refused, "");
	auto_close int other = dial(w->port);
	ask_tunnel(other, "other.example", 443);
	assert_answer(other, "HTTP/1.1 403 ", "other.example:443");
	auto_close int other_port = dial(w->port);
	ask_tunnel(other_port, "127.0.0.1", (uint16_t)(port ^ 1));
	assert_answer(other_port, "HTTP/1.1 403 ", "127.0.0.1:");
	assert_memory_equal(status_of(w).last_refused, "127.0.0.1:", 10);
	/* Other spellings of an address that is listed are refused. */
	auto_close int number = dial(w->port);
	ask_tunnel(number, "2130706433", port);
	assert_answer(number, "HTTP/1.1 400 ", "IPv4");
	assert_int_equal(status_of(w).refused, 3);
	assert_int_equal(status_of(w).connections, 0);
}

static void test_a_listed_name_at_a_closed_address_needs_the_operator_s_word(void **state)
{
	struct world *w = *state;
	struct error err;
	uint16_t port = start_server(w, serve_echo);
	allow(w, "localhost", port, false);
	allow(w, "127.0.0.1", port, false);
	start(w);
	auto_close int name = dial(w->port), literal = dial(w->port);
	ask_tunnel(name, "localhost", port);
	assert_answer(name, "HTTP/1.1 403 ", "isn't public");
	ask_tunnel(literal, "127.0.0.1", port);
	assert_answer(literal, "HTTP/1.1 403 ", "isn't public");
	assert_int_equal(status_of(w).refused, 2);
	assert_int_equal(
		egress_allow(&w->egress, &(struct forward_host){ "localhost", port, true }, &err),
		0);
	auto_close int named = tunnel(w, "LocalHost.", port);
	assert_echo(named, "named");
}

static void test_garbage_is_answered_and_closed(void **state)
{
	struct world *w = *state;
	start(w);
	static const char *const garbage[] = { "\x16\x03\x01\x02", "hello\n",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT a@b:1 HTTP/1.1\r\n\r\n", "\r\n\r\n" };
	for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
		auto_close int fd = dial(w->port);
		say(fd, garbage[i]);
		assert_answer(fd, "HTTP/1.1 400 ", "carrel: ");
	}
	/* An answer is read whole by a client that has sent far more than was looked at. */
	auto_close int fd = dial(w->port);
	char *lots = test_calloc(1, 1 << 20);
	memset(lots, 'x', 1 << 20);
	send(fd, lots, 1 << 20, MSG_NOSIGNAL | MSG_DONTWAIT);
	test_free(lots);
	shutdown(fd, SHUT_WR);
	assert_answer(fd, "HTTP/1.1 400 ", "head is longer than");
	auto_close int silent = dial(w->port);
	shutdown(silent, SHUT_WR);
	assert_answer(silent, "", "");
}

static void test_a_slow_head_has_its_time(void **state)
{
	struct world *w = *state;
	w->policy.limits.head_ms = 300;
	start(w);
	/* Its time begins when it is accepted, which may be before dial() returns. */
	uint64_t begin = clock_monotonic_ms();
	auto_close int fd = dial(w->port);
	for (int i = 0; i < 40 && send(fd, "X", 1, MSG_NOSIGNAL) == 1; i++)
		usleep(20000);
	assert_answer(fd, "HTTP/1.1 408 ", "carrel: ");
	assert_true(clock_monotonic_ms() - begin >= 300);
}

static void test_a_silent_tunnel_is_closed(void **state)
{
	struct world *w = *state;
	char text[16];
	uint16_t port = start_server(w, serve_nothing);
	allow(w, "127.0.0.1", port, true);
	w->policy.limits.idle_ms = 200;
	start(w);
	auto_close int fd = tunnel(w, "127.0.0.1", port);
	assert_int_equal(receive(fd, text, sizeof text), -1);
	assert_int_equal(errno, ECONNRESET);
}

/* ---- waiting ---- */
static void test_requests_wait_until_the_list_is_settled(void **state)
{
	struct world *w = *state;
	struct error err;
	uint16_t port = start_server(w, serve_echo);
	w->policy.is_settled = false;
	start(w);
	auto_close int first = dial(w->port), second = dial(w->port);
	ask_tunnel(first, "127.0.0.1", port);
	ask_tunnel(second, "other.example", 443);
	struct pollfd ready[2] = { { .fd = first, .events = POLLIN },
		{ .fd = second, .events = POLLIN } };
	assert_int_equal(poll(ready, 2, 100), 0);
	struct forward_host host = { "127.0.0.1", port, true };
	assert_int_equal(egress_allow(&w->egress, &host, &err), 0);
	assert_tunnel(first);
	assert_echo(first, "waited");
	assert_int_equal(poll(&ready[1], 1, 0), 0);
	assert_int_equal(egress_settle(&w->egress, &err), 0);
	assert_answer(second, "HTTP/1.1 403 ", "other.example:443");
	/* From now on nothing waits. */
	auto_close int third = dial(w->port);
	ask_tunnel(third, "third.example", 443);
	assert_answer(third, "HTTP/1.1 403 ", "third.example:443");
}

static void test_waiting_ends_by_itself(void **state)
{
	struct world *w = *state;
	w->policy.is_settled = false;
	w->policy.limits.wait_ms = 200;
	start(w);
	auto_close int fd = dial(w->port), gone = dial(w->port);
	ask_tunnel(gone, "gone.example", 443);
	fd_close(&gone);
	ask_tunnel(fd, "other.example", 443);
	assert_answer(fd, "HTTP/1.1 403 ", "other.example:443");
}

/* ---- absolute form ---- */
static void test_a_client_that_closes_has_one_request(void **state)
{
	struct world *w = *state;
	char text[1024], back[4096], expected[512];
	uint16_t port = start_server(w, serve_requests);
	allow(w, "127.0.0.1", port, true);
	start(w);
	auto_close int fd = dial(w->port);
	str_format(text, sizeof text,
		"POST http://127.0.0.1:%u/a?b HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Length: "
		"4\r\n"
		"Proxy-Authorization: x\r\nConnection: close\r\nAccept: y\r\n\r\nbody"
		"GET /second HTTP/1.1\r\nHost: secret\r\n\r\n",
		port, port);
	/* In two pieces, the second of which has the rest of the body and the other request. */
	size_t cut = (size_t)(strstr(text, "dyGET") - text);
	assert_int_equal(fd_write_full(fd, text, cut), cut);
	await_connections(w, 1);
	say(fd, text + cut);
	assert_int_equal(receive(fd, back, sizeof back), 0);
	assert_non_null(strstr(back, "\r\nConnection: close\r\n"));
	str_format(expected, sizeof expected,
		"\r\n\r\nPOST /a?b HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n"
		"Content-Length: 4\r\nAccept: y\r\n\r\nbody",
		port);
	assert_non_null(strstr(back, expected));
	assert_string_equal(strstr(back, expected), expected);
	assert_int_equal(status_of(w).requests, 1);
}

static void ask_for(char *text, size_t size, uint16_t port, const char *path)
{
	str_format(text, size, "GET http://127.0.0.1:%u/%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
		port, path, port);
}

/* Reads one answer of serve_requests, whose body is the request; returns that. */
static const char *read_answer(int fd, char *out, size_t size)
{
	size_t len = 0;
	char *body = NULL;
	while (!(body = strstr(out, "\r\n\r\n")) && len + 1 < size) {
		if (read(fd, out + len, 1) != 1)
			fail_msg("the connection ended after '%s'", out);
		out[++len] = '\0';
	}
	const char *length = strstr(out, "Content-Length: ");
	assert_non_null(length);
	size_t body_len = strtoul(length + 16, NULL, 10);
	assert_true(len + body_len < size);
	assert_int_equal(fd_read_full(fd, body + 4, body_len), body_len);
	body[4 + body_len] = '\0';
	return body + 4;
}

static void test_every_request_of_a_kept_connection_is_judged(void **state)
{
	struct world *w = *state;
	char text[2048], back[8192];
	uint16_t port = start_server(w, serve_requests), other = start_server(w, serve_requests);
	allow(w, "127.0.0.1", port, true);
	allow(w, "127.0.0.1", other, true);
	start(w);
	auto_close int fd = dial(w->port);
	for (int i = 0; i < 3; i++) {
		ask_for(text, sizeof text, i == 1 ? other : port, "x");
		say(fd, text);
		memset(back, 0, sizeof back);
		assert_memory_equal(read_answer(fd, back, sizeof back), "GET /x HTTP/1.1\r\n", 17);
	}
	/* Two of the same host share a connection upstream. */
	say(fd, text);
	memset(back, 0, sizeof back);
	read_answer(fd, back, sizeof back);
	assert_int_equal(status_of(w).connections, 3);
	assert_int_equal(status_of(w).requests, 4);
	/* Two at once are answered in their order; the second is judged, too. */
	ask_for(text, sizeof text, port, "third");
	str_format(text + strlen(text), sizeof text - strlen(text),
		"GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n");
	say(fd, text);
	memset(back, 0, sizeof back);
	assert_memory_equal(read_answer(fd, back, sizeof back), "GET /third ", 11);
	assert_answer(fd, "HTTP/1.1 403 ", "other.example:80");
	assert_int_equal(status_of(w).refused, 1);
	/* A second request that can't be read ends the connection. */
	auto_close int bad = dial(w->port);
	ask_for(text, sizeof text, port, "x");
	say(bad, text);
	memset(back, 0, sizeof back);
	read_answer(bad, back, sizeof back);
	say(bad, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	assert_answer(bad, "HTTP/1.1 400 ", "this is a proxy");
}

static void test_a_server_that_closes_between_requests_is_asked_again(void **state)
{
	struct world *w = *state;
	char text[256], back[4096];
	uint16_t port = start_server(w, serve_one_request);
	allow(w, "127.0.0.1", port, true);
	start(w);
	auto_close int fd = dial(w->port);
	for (int i = 0; i < 8; i++) {
		ask_for(text, sizeof text, port, "again");
		say(fd, text);
		memset(back, 0, sizeof back);
		assert_memory_equal(read_answer(fd, back, sizeof back), "GET /again ", 11);
	}
}

static void test_chunks_and_bodies_pass_both_ways(void **state)
{
	struct world *w = *state;
	char text[512], back[8192];
	uint16_t port = start_server(w, serve_requests);
	allow(w, "127.0.0.1", port, true);
	start(w);
	auto_close int fd = dial(w->port);
	for (int i = 0; i < 3; i++) {
		str_format(text, sizeof text,
			"PUT http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
			"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
			port, port);
		for (const char *at = text; *at; at += i == 1 ? 1 : strlen(at)) /* byte by byte */
			assert_int_equal(fd_write_full(fd, at, i == 1 ? 1 : strlen(at)),
				i == 1 ? 1 : strlen(at));
		memset(back, 0, sizeof back);
		assert_non_null(
			strstr(read_answer(fd, back, sizeof back), "4\r\nbody\r\n0\r\n\r\n"));
	}
}

static void test_a_broken_answer_doesn_t_look_whole(void **state)
{
	struct world *w = *state;
	char text[256];
	uint16_t port = start_server(w, serve_reset);
	allow(w, "127.0.0.1", port, true);
	start(w);
	auto_close int fd = dial(w->port);
	str_format(text, sizeof text, "GET http://127.0.0.1:%u/ HTTP/1.0\r\n\r\n", port);
	say(fd, text);
	assert_int_equal(receive(fd, text, sizeof text), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_non_null(strstr(text, "half"));
}

#define LONG_HEAD 60000
#define LONG_BODY 200000

/* A long head in two parts, the second together with the body, when the client has sent a byte. */
static void serve_long_head(int fd)
{
	static char text[LONG_HEAD + LONG_BODY + 256];
	char head[4096];
	size_t len;
	if (!read_head(fd, head, sizeof head))
		return;
	str_copy(text, sizeof text, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nX: ");
	len = strlen(text);
	memset(text + len, 'x', LONG_HEAD);
	fd_write_full(fd, text, len + LONG_HEAD);
	if (read(fd, head, 1) != 1)
		return;
	str_format(text, sizeof text, "\r\nContent-Length: %d\r\n\r\n", LONG_BODY);
	len = strlen(text);
	memset(text + len, 'b', LONG_BODY);
	fd_write_full(fd, text, len + LONG_BODY);
	(void)!read(fd, head, 1); /* the client ends first */
}

static void test_a_long_head_may_come_in_parts(void **state)
{
	struct world *w = *state;
	static char back[LONG_BODY];
	char text[256];
	uint16_t port = start_server(w, serve_long_head);
	allow(w, "127.0.0.1", port, true);
	start(w);
	auto_close int fd = dial(w->port);
	str_format(text, sizeof text,
		"PUT http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
		"Content-Length: 1\r\n\r\n",
		port, port);
	say(fd, text);
	assert_true(read_head(fd, back, sizeof back));
	assert_memory_equal(back, "HTTP/1.1 103 ", 13);
	say(fd, "x");
	assert_true(read_head(fd, back, sizeof back));
	assert_memory_equal(back, "HTTP/1.1 200 ", 13);
	assert_int_equal(fd_read_full(fd, back, LONG_BODY), LONG_BODY);
	assert_int_equal(back[0], 'b');
	assert_int_equal(back[LONG_BODY - 1], 'b');
}

static void test_a_malformed_body_breaks_the_connection(void **state)
{
	struct world *w = *state;
	char text[256];
	uint16_t port = start_server(w, serve_nothing);
	allow(w, "127.0.0.1", port, true);
	start(w);
	for (int together = 0; together < 2; together++) {
		auto_close int fd = dial(w->port);
		str_format(text, sizeof text,
			"PUT http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
			"Transfer-Encoding: chunked\r\n\r\n%s",
			port, port, together ? "zz" : "");
		say(fd, text);
		if (!together) {
			await_connections(w, 1);
			say(fd, "zz");
			assert_int_equal(receive(fd, text, sizeof text), -1);
		} else {
			assert_answer(fd, "HTTP/1.1 400 ", "chunk");
		}
	}
}

/* ---- hosts that can't be reached ---- */
static void test_a_host_that_refuses_is_a_502(void **state)
{
	struct world *w = *state;
	char expected[64];
	/* Taken, so that it is nobody else's, and not listened at. */
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	auto_close int closed = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(closed, (struct sockaddr *)&address, sizeof address), 0);
	uint16_t port = port_of(closed), other = start_server(w, serve_echo);
	allow(w, "127.0.0.1", port, true);
	allow(w, "127.0.0.1", other, true);
	start(w);
	auto_close int fd = dial(w->port);
	ask_tunnel(fd, "127.0.0.1", port);
	assert_answer(fd, "HTTP/1.1 502 ", "refused");
	str_format(expected, sizeof expected, "127.0.0.1:%u: Connection refused", port);
	assert_string_equal(status_of(w).last_failure, expected);
	assert_int_equal(status_of(w).refused, 0);
	/* The success of another host doesn't hide the reason. */
	auto_close int reached = tunnel(w, "127.0.0.1", other);
	assert_string_equal(status_of(w).last_failure, expected);
}

static void test_a_host_that_doesn_t_answer_is_a_504_and_no_name_a_502_or_504(void **state)
{
	struct world *w = *state;
	struct error err;
	auto_close int full = -1;
	int fillers[8];
	assert_int_equal(netns_listen(0, &full, &err), 0);
	uint16_t port = port_of(full);
	/* A full queue answers nobody. */
	assert_int_equal(listen(full, 0), 0);
	for (size_t i = 0; i < 8; i++) {
		struct sockaddr_in address = { .sin_family = AF_INET,
			.sin_port = htons(port),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)!connect(fillers[i], (struct sockaddr *)&address, sizeof address);
	}
	allow(w, "127.0.0.1", port, true);
	allow(w, "nobody.invalid", 443, true);
	w->policy.limits.connect_ms = 200;
	w->policy.limits.resolve_ms = 1500;
	start(w);
	auto_close int slow = dial(w->port), lost = dial(w->port);
	ask_tunnel(lost, "nobody.invalid", 443);
	ask_tunnel(slow, "127.0.0.1", port);
	assert_answer(slow, "HTTP/1.1 504 ", "answer");
	/* Without a name server there is no answer at all. */
	assert_answer(lost, "HTTP/1.1 50", "nobody.invalid:443 can't be resolved");
	assert_int_equal(status_of(w).refused, 0);
	for (size_t i = 0; i < 8; i++)
		fd_close(&fillers[i]);
}

/* ---- policies ---- */
static void assert_closed(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	auto_close int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(late, (void *)&address, sizeof address), -1);
}

/* A second policy of the same role, for `port` of localhost alone. */
static void open_other(
	struct world *w, uint16_t allowed, struct egress *other, uint16_t *listens_at)
{
	struct error err;
	int listener;
	open_policy(w, other, &listener, listens_at);
	close(listener);
	assert_int_equal(
		egress_allow(other, &(struct forward_host){ "localhost", allowed, true }, &err), 0);
}

static void test_each_listener_has_its_policy_and_ends_with_it(void **state)
{
	struct world *w = *state;
	uint16_t first = start_server(w, serve_echo), second = start_server(w, serve_echo), port;
	struct egress other;
	char byte;

	allow(w, "localhost", first, true);
	start(w);
	open_other(w, second, &other, &port);
	auto_close int ours = tunnel(w, "localhost", first);
	assert_echo(ours, "first");
	auto_close int theirs = dial(port);
	ask_tunnel(theirs, "localhost", second);
	assert_tunnel(theirs);
	assert_echo(theirs, "second");
	auto_close int refused = dial(port), refused_too = dial(w->port);
	ask_tunnel(refused, "localhost", first);
	assert_answer(refused, "HTTP/1.1 403 ", "may not be reached");
	ask_tunnel(refused_too, "localhost", second);
	assert_answer(refused_too, "HTTP/1.1 403 ", "may not be reached");
	/* Each has its own numbers. */
	struct egress_status status;
	struct error err;
	assert_int_equal(egress_look(&other, &status, &err), 0);
	assert_int_equal(status.connections, 1);
	assert_int_equal(status.bytes_in, 6);
	assert_int_equal(status_of(w).bytes_in, 5);

	egress_close(&other);
	assert_int_not_equal(recv(theirs, &byte, 1, 0), 1);
	assert_closed(port);
	assert_echo(ours, "still there");
	/* A new policy knows nothing of the last one. */
	open_other(w, first, &other, &port);
	auto_close int again = dial(port);
	ask_tunnel(again, "localhost", second);
	assert_answer(again, "HTTP/1.1 403 ", "may not be reached");
	egress_close(&other);
}

static void test_a_policy_ends_with_its_holder(void **state)
{
	struct world *w = *state;
	uint16_t server = start_server(w, serve_echo), port;
	struct egress other;
	char byte;

	start(w);
	open_other(w, server, &other, &port);
	auto_close int theirs = dial(port);
	ask_tunnel(theirs, "localhost", server);
	assert_tunnel(theirs);
	/* As when the process that holds it is killed: nothing is sent. */
	fd_close(&other.channel);
	assert_int_not_equal(recv(theirs, &byte, 1, 0), 1);
	egress_close(&other);
	assert_int_equal(status_of(w).connections, 0);
}

static void test_a_policy_that_takes_all_connections_leaves_others_their_share(void **state)
{
	struct world *w = *state;
	uint16_t server = start_server(w, serve_echo), port;
	struct egress others[5];
	uint16_t ports[5];
	int *fds = test_calloc(1024, sizeof *fds);

	start(w);
	for (size_t i = 0; i < 5; i++)
		open_other(w, server, &others[i], &ports[i]);
	/* Four policies hold all that there is, silently. */
	for (size_t i = 0; i < 1024; i++)
		fds[i] = dial(ports[i / 256]);
	port = ports[4];
	for (size_t i = 0; i < 4; i++) {
		auto_close int fd = dial(port);
		ask_tunnel(fd, "localhost", server);
		assert_tunnel(fd);
		assert_echo(fd, "mine");
	}
	for (size_t i = 0; i < 1024; i++)
		fd_close(&fds[i]);
	for (size_t i = 0; i < 5; i++)
		egress_close(&others[i]);
	test_free(fds);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	if (!strcmp(argv[0], EGRESS_ARGV0)) /* this program is the role, too */
		return egress_main();
	role_raise_fds(); /* for a thousand connections */
	const struct CMUnitTest tests[] = {
		TEST(test_a_tunnel_carries_megabytes_both_ways_and_half_closes),
		TEST(test_bytes_that_come_with_the_request_go_on),
		TEST(test_two_hundred_tunnels_at_once_and_nothing_stays),
		TEST(test_more_than_the_most_connections_wait_their_turn),
		TEST(test_a_client_that_doesn_t_read_holds_the_server_back),
		TEST(test_an_unlisted_host_is_refused_by_name),
		TEST(test_a_listed_name_at_a_closed_address_needs_the_operator_s_word),
		TEST(test_each_listener_has_its_policy_and_ends_with_it),
		TEST(test_a_policy_ends_with_its_holder),
		TEST(test_a_policy_that_takes_all_connections_leaves_others_their_share),
		TEST(test_garbage_is_answered_and_closed),
		TEST(test_a_slow_head_has_its_time),
		TEST(test_a_silent_tunnel_is_closed),
		TEST(test_requests_wait_until_the_list_is_settled),
		TEST(test_waiting_ends_by_itself),
		TEST(test_a_client_that_closes_has_one_request),
		TEST(test_every_request_of_a_kept_connection_is_judged),
		TEST(test_a_server_that_closes_between_requests_is_asked_again),
		TEST(test_chunks_and_bodies_pass_both_ways),
		TEST(test_a_broken_answer_doesn_t_look_whole),
		TEST(test_a_long_head_may_come_in_parts),
		TEST(test_a_malformed_body_breaks_the_connection),
		TEST(test_a_host_that_refuses_is_a_502),
		TEST(test_a_host_that_doesn_t_answer_is_a_504_and_no_name_a_502_or_504),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
