/* Egress: rules of policies, SOCKS5, what is spoken in tunnels, and records of decisions. */
/* security: network */
#include "egress_fixture.h"

/* ---- rules ---- */
struct given {
	struct arena arena;
	struct egress_rules rules;
};

static void add(struct given *g, text_list *list, const char *entry)
{
	vec_push(&g->arena, list, arena_text(&g->arena, entry));
}

static void set(struct world *w, struct given *g)
{
	struct error err = { 0 };
	if (egress_set(&w->egress, &g->rules, &err) < 0)
		fail_msg("%s", err.text);
}

/* "origin.example" is this machine; its ports are `first` and, when not 0, `second`. */
static void give_origin(struct given *g, uint16_t first, uint16_t second)
{
	char entry[64];
	g->rules.mode = NETWORK_LIST;
	vec_push(&g->arena, &g->rules.hosts, (struct text_pair){ "origin.example", "127.0.0.1" });
	for (int i = 0; i < (second ? 2 : 1); i++) {
		str_format(entry, sizeof entry, "origin.example:%u", i ? second : first);
		add(g, &g->rules.allow, entry);
	}
}

static void assert_refused(struct world *w, const char *host, uint16_t port, const char *why)
{
	auto_close int fd = dial(w->port);
	ask_tunnel(fd, host, port);
	assert_answer(fd, "HTTP/1.1 403 ", why);
}

static void test_new_rules_hold_at_once(void **state)
{
	struct world *w = *state;
	struct given g = { 0 }, none = { 0 };
	struct error err;
	uint16_t port = start_server(w, serve_echo);
	start(w);
	assert_refused(w, "origin.example", port, "no network");
	give_origin(&g, port, 0);
	set(w, &g);
	auto_close int fd = tunnel(w, "origin.example", port);
	assert_echo(fd, "listed");
	assert_refused(w, "x.origin.example", port, "isn't a host");
	/* Connections that are open stay; new ones are judged by the new list. */
	add(&g, &g.rules.deny, "*.example");
	set(w, &g);
	assert_refused(w, "origin.example", port, "denied");
	assert_echo(fd, "still open");
	/* Rules that are invalid change nothing, and the entry is named. */
	add(&none, &none.rules.allow, "a.example");
	add(&none, &none.rules.allow, "https://a.example/x");
	assert_int_equal(egress_set(&w->egress, &none.rules, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.text, "'https://a.example/x'"));
	assert_refused(w, "origin.example", port, "denied");
	none.rules = (struct egress_rules){ .mode = NETWORK_NONE };
	add(&none, &none.rules.allow, "origin.example");
	set(w, &none);
	assert_refused(w, "origin.example", port, "no network");
	arena_done(&g.arena);
	arena_done(&none.arena);
}

static void test_names_lead_to_public_addresses_and_the_operator_s(void **state)
{
	struct world *w = *state;
	struct given g = { .rules.mode = NETWORK_LIST };
	char entry[64];
	uint16_t port = start_server(w, serve_echo);
	start(w);
	str_format(entry, sizeof entry, "localhost:%u", port);
	add(&g, &g.rules.allow, entry);
	str_format(entry, sizeof entry, "127.0.0.1:%u", port);
	add(&g, &g.rules.allow, entry);
	set(w, &g);
	assert_refused(w, "localhost", port, "isn't public");
	assert_refused(w, "127.0.0.1", port, "isn't public");
	add(&g, &g.rules.ranges, "127.0.0.0/8");
	add(&g, &g.rules.ranges, "::1");
	set(w, &g);
	auto_close int name = tunnel(w, "localhost", port);
	assert_echo(name, "by name");
	auto_close int literal = tunnel(w, "127.0.0.1", port);
	assert_echo(literal, "by address");
	/* A denied address is closed for names, too. */
	add(&g, &g.rules.deny, "127.0.0.1");
	add(&g, &g.rules.deny, "::1");
	set(w, &g);
	assert_refused(w, "localhost", port, "isn't public");
	/* `*` is no address, and no name of this machine. */
	g.rules = (struct egress_rules){ .mode = NETWORK_OPEN, .ports = &port, .port_count = 1 };
	set(w, &g);
	assert_refused(w, "localhost", port, "isn't a host");
	assert_refused(w, "127.0.0.1", port, "isn't a host");
	vec_push(&g.arena, &g.rules.hosts, (struct text_pair){ "origin.example", "127.0.0.1" });
	set(w, &g);
	auto_close int fd = tunnel(w, "origin.example", port);
	say(fd, "GET / HTTP/1.1\r\nHost: origin.example\r\n\r\n");
	await_requests(w, 1);
	arena_done(&g.arena);
}

/* ---- SOCKS5 ---- */
static void say_bytes(int fd, const void *data, size_t len)
{
	assert_int_equal(fd_write_full(fd, data, len), len);
}

static int greet(struct world *w)
{
	unsigned char back[2] = { 0 };
	int fd = dial(w->port);
	say_bytes(fd, "\5\2\1\0", 4);
	assert_int_equal(fd_read_full(fd, back, 2), 2);
	assert_int_equal(back[0], 5);
	assert_int_equal(back[1], 0);
	return fd;
}

static void ask_socks(int fd, unsigned command, const char *name, uint16_t port)
{
	unsigned char request[300] = { 5, (unsigned char)command, 0, 3,
		(unsigned char)strlen(name) };
	size_t len = 5 + strlen(name);
	memcpy(request + 5, name, strlen(name));
	request[len++] = (unsigned char)(port >> 8);
	request[len++] = (unsigned char)port;
	/* In pieces, none of which is whole. */
	say_bytes(fd, request, 3);
	usleep(2000);
	say_bytes(fd, request + 3, len - 3);
}

static int read_reply(int fd)
{
	unsigned char reply[10] = { 0 };
	assert_int_equal(fd_read_full(fd, reply, sizeof reply), sizeof reply);
	assert_int_equal(reply[0], 5);
	assert_int_equal(reply[3], 1);
	return reply[1];
}

static int socks(struct world *w, const char *name, uint16_t port)
{
	auto_close int fd = greet(w);
	ask_socks(fd, 1, name, port);
	return read_reply(fd);
}

static void test_socks_by_name(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	struct error err;
	uint16_t port = start_server(w, serve_echo);
	auto_close int closed = -1;
	assert_int_equal(netns_listen(0, &closed, &err), 0);
	uint16_t gone = port_of(closed);
	fd_close(&closed);
	start(w);
	give_origin(&g, port, gone);
	set(w, &g);
	auto_close int fd = greet(w);
	ask_socks(fd, 1, "Origin.Example.", port);
	assert_int_equal(read_reply(fd), 0);
	assert_echo(fd, "by socks");
	assert_int_equal(socks(w, "other.example", port), 2);
	assert_int_equal(socks(w, "origin.example", (uint16_t)(port ^ 1)), 2);
	assert_int_equal(socks(w, "127.0.0.1", port), 2);
	assert_int_equal(socks(w, "127.1", port), 2);
	assert_int_equal(socks(w, "origin.example%00", port), 2);
	assert_int_equal(socks(w, "user@origin.example", port), 2);
	assert_int_equal(socks(w, "origin.example", gone), 5);
	/* BIND and UDP ASSOCIATE. */
	for (unsigned command = 2; command < 4; command++) {
		auto_close int other = greet(w);
		ask_socks(other, command, "origin.example", port);
		assert_int_equal(read_reply(other), 7);
	}
	/* An address that isn't listed; then it is. */
	unsigned char literal[10] = { 5, 1, 0, 1, 127, 0, 0, 1, (unsigned char)(port >> 8),
		(unsigned char)port };
	for (int round = 0; round < 2; round++) {
		char entry[64];
		auto_close int by_address = greet(w);
		say_bytes(by_address, literal, sizeof literal);
		assert_int_equal(read_reply(by_address), round ? 0 : 2);
		if (round)
			assert_echo(by_address, "listed");
		str_format(entry, sizeof entry, "127.0.0.1:%u", port);
		add(&g, &g.rules.allow, entry);
		add(&g, &g.rules.ranges, "127.0.0.1");
		set(w, &g);
	}
	/* No method without credentials, SOCKS4, an unknown kind of address. */
	unsigned char back[2];
	auto_close int closed_method = dial(w->port), old = dial(w->port), kind = greet(w);
	say_bytes(closed_method, "\5\1\2", 3);
	assert_int_equal(fd_read_full(closed_method, back, 2), 2);
	assert_int_equal(back[1], 0xff);
	say_bytes(old, "\4\1\0\120\177\0\0\1\0", 9);
	assert_answer(old, "HTTP/1.1 400 ", "carrel: ");
	say_bytes(kind, "\5\1\0\2\1\1\1\1\0\120", 10);
	assert_int_equal(read_reply(kind), 8);
	arena_done(&g.arena);
}

/* ---- what is spoken in a tunnel ---- */
/* A ClientHello; name NULL: without one; with ECH when is_encrypted. */
static size_t make_hello(unsigned char *out, const char *name, bool is_encrypted)
{
	unsigned char extensions[512];
	size_t len = 0, name_len = name ? strlen(name) : 0, total;
	if (name) {
		unsigned char head[] = { 0, 0, 0, (unsigned char)(name_len + 5), 0,
			(unsigned char)(name_len + 3), 0, 0, (unsigned char)name_len };
		memcpy(extensions, head, sizeof head);
		memcpy(extensions + sizeof head, name, name_len);
		len = sizeof head + name_len;
	}
	if (is_encrypted) {
		static const unsigned char ech[] = { 0xfe, 0x0d, 0, 1, 0 };
		memcpy(extensions + len, ech, sizeof ech);
		len += sizeof ech;
	}
	total = 2 + 32 + 1 + 2 + 2 + 1 + 1 + 2 + len;
	unsigned char head[] = { 0x16, 3, 1, 0, (unsigned char)(total + 4), 1, 0, 0,
		(unsigned char)total, 3, 3 };
	memcpy(out, head, sizeof head);
	memset(out + sizeof head, 7, 32);
	unsigned char rest[] = { 0, 0, 2, 0x13, 1, 1, 0, 0, (unsigned char)len };
	memcpy(out + sizeof head + 32, rest, sizeof rest);
	memcpy(out + sizeof head + 32 + sizeof rest, extensions, len);
	return sizeof head + 32 + sizeof rest + len;
}

static const unsigned char alert[] = { 0x15, 3, 1, 0, 2, 2, 49 };

static void test_a_tls_hello_names_the_host(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	unsigned char hello[1024], back[1024];
	uint16_t port = start_server(w, serve_echo);
	static const struct {
		const char *name;
		bool is_encrypted, passes;
	} rows[] = { { "origin.example", false, true }, { "ORIGIN.example", false, true },
		{ "other.example", false, false }, { NULL, false, false },
		{ "origin.example", true, false }, { "x.origin.example", false, false } };
	start(w);
	give_origin(&g, port, 0);
	set(w, &g);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t len = make_hello(hello, rows[i].name, rows[i].is_encrypted);
		auto_close int fd = tunnel(w, "origin.example", port);
		/* A piece of a hello is not passed on. */
		say_bytes(fd, hello, 20);
		usleep(2000);
		say_bytes(fd, hello + 20, len - 20);
		size_t expected = rows[i].passes ? len : sizeof alert;
		assert_int_equal(fd_read_full(fd, back, expected), expected);
		assert_memory_equal(back, rows[i].passes ? hello : alert, expected);
	}
	/* In one packet with the request. */
	char text[1024];
	size_t len = make_hello(hello, "origin.example", false);
	str_format(text, sizeof text, "CONNECT origin.example:%u HTTP/1.0\r\n\r\n", port);
	size_t head = strlen(text);
	memcpy(text + head, hello, len);
	auto_close int fd = dial(w->port);
	say_bytes(fd, text, head + len);
	assert_tunnel(fd);
	assert_int_equal(fd_read_full(fd, back, len), len);
	/* Bytes that look like TLS and aren't. */
	auto_close int bad = tunnel(w, "origin.example", port);
	memset(hello, 0xff, sizeof hello);
	memcpy(hello, "\x16\3\1\2\0", 5);
	say_bytes(bad, hello, 600);
	assert_int_equal(fd_read_full(bad, back, sizeof alert), sizeof alert);
	assert_memory_equal(back, alert, sizeof alert);
	assert_int_equal(status_of(w).refused, 5);
	arena_done(&g.arena);
}

static void test_http_in_a_tunnel_is_judged_request_by_request(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	char text[512], back[4096] = "";
	uint16_t port = start_server(w, serve_requests);
	start(w);
	give_origin(&g, port, 0);
	set(w, &g);
	auto_close int fd = tunnel(w, "origin.example", port);
	for (int i = 0; i < 3; i++) {
		str_format(text, sizeof text, "GET /%d HTTP/1.1\r\nHost: origin.example:%u\r\n\r\n",
			i, port);
		say(fd, text);
		str_format(text, sizeof text, "Host: origin.example:%u\r\n\r\n", port);
		memset(back, 0, sizeof back);
		for (size_t len = 0; !strstr(back, text); len++)
			assert_int_equal(read(fd, back + len, 1), 1);
	}
	say(fd, "GET /3 HTTP/1.1\r\nHost: other.example\r\n\r\n");
	assert_answer(fd, "HTTP/1.1 400 ", "Host header differs");
	assert_int_equal(status_of(w).requests, 3);
	static const char *const bad[] = { "GET / HTTP/1.1\r\n\r\n",
		"GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n",
		"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: origin.example\r\nContent-Length: 1\r\n"
		"Transfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\nHost: origin.example\n\n",
		"GET / HTTP/1.1\r\nHost: origin.example\r\n x\r\n\r\n" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		auto_close int other = tunnel(w, "origin.example", port);
		say(other, bad[i]);
		assert_answer(other, "HTTP/1.1 400 ", "carrel: ");
	}
	arena_done(&g.arena);
}

/* What a request of its own connection is answered, in a tunnel or in absolute form. */
static void ask_once(struct world *w, bool is_tunnel, uint16_t port, const char *method,
	const char *headers, char *back, size_t size)
{
	char text[512], origin[64];
	auto_close int fd = is_tunnel ? tunnel(w, "origin.example", port) : dial(w->port);
	str_format(origin, sizeof origin, "http://origin.example:%u", port);
	str_format(text, sizeof text, "%s %s/x HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n",
		method, is_tunnel ? "" : origin, origin + 7, headers);
	say(fd, text);
	receive(fd, back, size);
}

static void test_a_policy_of_reads_lets_no_other_request_through(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	char back[4096];
	uint16_t port = start_server(w, serve_one_request);
	static const struct {
		const char *method, *headers;
		bool passes;
	} rows[] = { { "GET", "", true }, { "HEAD", "", true },
		{ "PUT", "Content-Length: 0\r\n", false },
		{ "POST", "Content-Length: 0\r\n", false }, { "DELETE", "", false },
		{ "PATCH", "", false }, { "OPTIONS", "", false }, { "get", "", false },
		{ "GET", "Upgrade: websocket\r\n", true }, /* not announced: dropped */
		{ "GET", "Connection: Upgrade\r\nUpgrade: websocket\r\n", false } };
	w->policy.only_reads = 1;
	start(w);
	give_origin(&g, port, 0);
	set(w, &g);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int is_tunnel = 0; is_tunnel < 2; is_tunnel++) {
			ask_once(w, is_tunnel, port, rows[i].method, rows[i].headers, back,
				sizeof back);
			if (rows[i].passes != str_starts_with(str_from(back), "HTTP/1.1 200 ") ||
				(!rows[i].passes && strstr(back, "GET /x")))
				fail_msg("%s %d: %s", rows[i].method, is_tunnel, back);
		}
	/* What is neither TLS nor HTTP, on a port that the rule names. */
	auto_close int other = tunnel(w, "origin.example", port);
	say(other, "\1\2\3 something else");
	assert_true(receive(other, back, sizeof back) <= 0);
	assert_null(strstr(back, "something"));
	arena_done(&g.arena);
}

static void serve_banner(int fd)
{
	fd_write_full(fd, "hello\n", 6);
	serve_echo(fd);
}

static void test_other_protocols_need_a_rule_that_names_the_port(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	char back[16] = "";
	uint16_t port = start_server(w, serve_banner);
	start(w);
	give_origin(&g, port, 0);
	set(w, &g);
	/* A server that speaks first. */
	auto_close int fd = tunnel(w, "origin.example", port);
	assert_int_equal(fd_read_full(fd, back, 6), 6);
	assert_string_equal(back, "hello\n");
	assert_echo(fd, "SSH-2.0-x\r\n");
	/* The same port as a default of the operator. */
	g.rules.allow.count = 0;
	add(&g, &g.rules.allow, "origin.example");
	g.rules.ports = &port;
	g.rules.port_count = 1;
	set(w, &g);
	auto_close int other = tunnel(w, "origin.example", port);
	say(other, "SSH-2.0-x\r\n");
	assert_int_equal(receive(other, back, sizeof back), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(status_of(w).refused, 1);
	arena_done(&g.arena);
}

static void test_first_bytes_of_a_tunnel_have_their_time(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	char back[16];
	uint16_t port = start_server(w, serve_echo);
	w->policy.limits.head_ms = 200;
	start(w);
	give_origin(&g, port, 0);
	g.rules.allow.count = 0;
	add(&g, &g.rules.allow, "origin.example");
	g.rules.ports = &port;
	g.rules.port_count = 1;
	set(w, &g);
	/* Their time begins when the role goes on: all is said by then. */
	int status;
	assert_int_equal(kill(w->role.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(w->role.pid, &status, WUNTRACED), w->role.pid);
	auto_close int silent = dial(w->port), slow = dial(w->port);
	ask_tunnel(silent, "origin.example", port);
	ask_tunnel(slow, "origin.example", port);
	say_bytes(slow, "\x16\3\1", 3);
	assert_int_equal(kill(w->role.pid, SIGCONT), 0);
	assert_tunnel(silent);
	assert_tunnel(slow);
	assert_int_equal(receive(silent, back, sizeof back), -1);
	assert_int_equal(receive(slow, back, sizeof back), 0);
	assert_memory_equal(back, alert, sizeof alert);
	/* SOCKS, too. */
	auto_close int socks_fd = dial(w->port);
	say_bytes(socks_fd, "\5", 1);
	assert_true(receive(socks_fd, back, sizeof back) <= 0);
	arena_done(&g.arena);
}

/* ---- upgrades ---- */
static void serve_upgrade(int fd)
{
	char data[4096] = "";
	for (size_t len = 0; len < sizeof data - 1 && !strstr(data, "\r\n\r\n"); len++)
		if (read(fd, data + len, 1) != 1)
			return;
	if (!strstr(data, "Upgrade: websocket\r\n"))
		return;
	static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
				     "Upgrade: websocket\r\n\r\n";
	fd_write_full(fd, answer, sizeof answer - 1);
	serve_echo(fd);
}

static void test_a_websocket_goes_through(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	char text[256], back[256] = "";
	uint16_t port = start_server(w, serve_upgrade);
	start(w);
	give_origin(&g, port, 0);
	set(w, &g);
	auto_close int fd = dial(w->port);
	str_format(text, sizeof text,
		"GET http://origin.example:%u/ HTTP/1.1\r\nHost: origin.example:%u\r\n"
		"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		port, port);
	say(fd, text);
	for (size_t len = 0; !strstr(back, "\r\n\r\n"); len++)
		assert_int_equal(read(fd, back + len, 1), 1);
	assert_memory_equal(back, "HTTP/1.1 101 ", 13);
	assert_non_null(strstr(back, "Upgrade: websocket\r\n"));
	assert_echo(fd, "\x81\x01x");
	arena_done(&g.arena);
}

/* ---- answers ---- */
/* One answer for each path. */
static void serve_answers(int fd)
{
	static const struct {
		const char *path, *answer;
		bool is_last;
	} rows[] = {
		{ "/chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			     "3;x=y\r\nabc\r\n0\r\nTrailer: z\r\n\r\n" },
		{ "/empty", "HTTP/1.1 204 No Content\r\n\r\n" },
		{ "/hints", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"
			    "Content-Length: 2\r\n\r\nok" },
		{ "/until-close", "HTTP/1.0 200 OK\r\n\r\nto the end", true },
		{ "/bare", "HTTP/1.0 200 OK\nX: y\n\nold", true },
		{ "/short", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true },
		{ "/switch", "HTTP/1.1 101 Switching Protocols\r\n\r\n" },
		{ "/nothing", "", true },
	};
	char head[4096];
	while (read_head(fd, head, sizeof head)) {
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			if (!strstr(head, rows[i].path))
				continue;
			fd_write_full(fd, rows[i].answer, strlen(rows[i].answer));
			if (rows[i].is_last)
				return;
		}
	}
}

static void ask_path(int fd, const char *method, const char *path, uint16_t port)
{
	char text[256];
	str_format(text, sizeof text,
		"%s http://origin.example:%u%s HTTP/1.1\r\nHost: origin.example:%u\r\n\r\n", method,
		port, path, port);
	say(fd, text);
}

static void test_answers_of_all_kinds_end_where_they_end(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	char back[4096];
	uint16_t port = start_server(w, serve_answers);
	start(w);
	give_origin(&g, port, 0);
	set(w, &g);
	auto_close int fd = dial(w->port);
	for (int i = 0; i < 2; i++) {
		static const char chunks[] = "3;x=y\r\nabc\r\n0\r\nTrailer: z\r\n\r\n";
		ask_path(fd, "GET", "/chunks", port);
		assert_true(read_head(fd, back, sizeof back));
		assert_int_equal(fd_read_full(fd, back, sizeof chunks - 1), sizeof chunks - 1);
		assert_memory_equal(back, chunks, sizeof chunks - 1);
		ask_path(fd, "GET", "/empty", port);
		assert_true(read_head(fd, back, sizeof back));
		assert_memory_equal(back, "HTTP/1.1 204 ", 13);
		ask_path(fd, "GET", "/hints", port);
		assert_true(read_head(fd, back, sizeof back));
		assert_memory_equal(back, "HTTP/1.1 103 ", 13);
		assert_true(read_head(fd, back, sizeof back));
		assert_int_equal(fd_read_full(fd, back, 2), 2);
		assert_memory_equal(back, "ok", 2);
	}
	assert_int_equal(status_of(w).connections, 1);
	ask_path(fd, "GET", "/until-close", port);
	assert_answer(fd, "HTTP/1.0 200 OK\r\nConnection: close\r\n", "\r\n\r\nto the end");
	auto_close int bare = dial(w->port), cut = dial(w->port), other = dial(w->port),
		       none = dial(w->port);
	ask_path(bare, "GET", "/bare", port);
	assert_answer(bare, "HTTP/1.0 200 OK\nX: y\n\nold", "old");
	ask_path(cut, "GET", "/short", port);
	assert_int_equal(receive(cut, back, sizeof back), -1);
	ask_path(other, "GET", "/switch", port); /* nobody has asked for that */
	assert_int_equal(receive(other, back, sizeof back), -1);
	ask_path(none, "GET", "/nothing", port);
	assert_answer(none, "HTTP/1.1 502 ", "closed the connection");
	arena_done(&g.arena);
}

/* ---- records ---- */
static void await_news(struct egress *egress, struct egress_news *news)
{
	struct error err = { 0 };
	int got;
	while ((got = egress_read(egress, news, &err)) == 0) {
		struct pollfd ready = { .fd = egress->channel, .events = POLLIN };
		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	}
	if (got < 0)
		fail_msg("%s", err.text);
}

static void await_done(struct egress *egress)
{
	struct egress_news news;
	await_news(egress, &news);
	assert_false(news.is_record);
	assert_int_equal(news.failure.code, ERR_NONE);
}

static struct egress_record await_record(struct egress *egress)
{
	struct egress_news news;
	await_news(egress, &news);
	assert_true(news.is_record);
	return news.record;
}

static void test_decisions_are_recorded(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	struct egress egress;
	struct egress_news news;
	struct error err;
	auto_close int listener = -1;
	uint16_t port = start_server(w, serve_echo);
	char rule[64];
	assert_int_equal(start_role(w, &err), 0);
	w->policy.has_records = 1;
	give_origin(&g, port, 0);
	assert_int_equal(netns_listen(0, &listener, &err), 0);
	w->port = port_of(listener);
	/* Nothing waits for an answer. */
	assert_int_equal(egress_begin(w->role.service, &w->policy, &egress, &err), 0);
	assert_int_equal(egress_post_rules(&egress, &g.rules, &err), 0);
	assert_int_equal(egress_post_listener(&egress, EGRESS_PROXY, listener, &err), 0);
	for (int i = 0; i < 3; i++)
		await_done(&egress);
	int fd = tunnel(w, "origin.example", port);
	struct egress_record record = await_record(&egress);
	assert_int_equal(record.event, EGRESS_OPENED);
	assert_int_equal(record.front, EGRESS_FRONT_CONNECT);
	assert_string_equal(record.host, "origin.example");
	assert_string_equal(record.address, "127.0.0.1");
	assert_int_equal(record.port, port);
	str_format(rule, sizeof rule, "origin.example:%u", port);
	assert_string_equal(record.rule, rule);
	uint64_t id = record.id;
	assert_echo(fd, "12345");
	fd_close(&fd);
	record = await_record(&egress);
	assert_int_equal(record.event, EGRESS_CLOSED);
	assert_int_equal(record.id, id);
	assert_int_equal(record.bytes_in, 5);
	assert_int_equal(record.bytes_out, 5);
	assert_refused(w, "other.example", 443, "isn't a host");
	record = await_record(&egress);
	assert_int_equal(record.event, EGRESS_REFUSED);
	assert_string_equal(record.host, "other.example");
	assert_string_equal(record.rule, "");
	assert_non_null(strstr(record.reason, "isn't a host"));
	/* A holder that doesn't read is told how many it has lost; answers still come. */
	for (int i = 0; i < 400; i++)
		assert_refused(w, "other.example", 443, "isn't a host");
	assert_int_equal(egress_post_look(&egress, &err), 0);
	uint64_t read_records = 0;
	do {
		await_news(&egress, &news);
		read_records += news.is_record;
	} while (news.is_record);
	assert_true(news.status.lost > 0 && read_records > 10);
	assert_int_equal(news.status.lost + read_records, 400);
	assert_int_equal(news.status.refused, 401);
	assert_refused(w, "other.example", 443, "isn't a host");
	assert_int_equal(await_record(&egress).lost, news.status.lost);
	assert_string_equal(egress_event_name(EGRESS_REFUSED), "refused");
	assert_string_equal(egress_front_name(EGRESS_FRONT_SOCKS), "socks");
	/* Wrong rules are answered with the reason. */
	add(&g, &g.rules.allow, "a*b");
	assert_int_equal(egress_post_rules(&egress, &g.rules, &err), 0);
	await_news(&egress, &news);
	assert_int_equal(news.failure.code, ERR_INVALID);
	assert_non_null(strstr(news.failure.text, "a*b"));
	kill(w->role.pid, SIGKILL);
	struct pollfd ready = { .fd = egress.channel, .events = POLLIN };
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	assert_int_equal(egress_read(&egress, &news, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	egress_drop(&egress);
	arena_done(&g.arena);
}

/* ---- many ---- */
static void test_a_thousand_policies_share_their_rules(void **state)
{
	struct world *w = *state;
	struct given g = { .rules.mode = NETWORK_LIST };
	struct error err = { 0 };
	char entry[64];
	struct egress *many = test_calloc(1000, sizeof *many);
	for (unsigned i = 0; i < 200; i++) {
		str_format(entry, sizeof entry, "host%u.example", i);
		add(&g, &g.rules.allow, entry);
	}
	start(w);
	set(w, &g);
	unsigned long before = read_status(w->role.pid, "RssAnon:", 10);
	for (size_t i = 0; i < 1000; i++) {
		auto_close int listener = -1;
		if (egress_open(w->role.service, &w->policy, &many[i], &err) < 0 ||
			egress_set(&many[i], &g.rules, &err) < 0 ||
			netns_listen(0, &listener, &err) < 0 ||
			egress_serve(&many[i], listener, &err) < 0)
			fail_msg("%zu: %s", i, err.text);
		/* Two descriptors for each in this process are enough. */
		fd_close(&many[i].lock);
	}
	unsigned long after = read_status(w->role.pid, "RssAnon:", 10);
#ifndef __SANITIZE_ADDRESS__
	assert_true(after - before < 8192);
#endif
	assert_true(after >= before);
	assert_refused(w, "other.example", 443, "isn't a host");
	for (size_t i = 0; i < 1000; i++)
		egress_drop(&many[i]);
	test_free(many);
	arena_done(&g.arena);
}

static void test_a_policy_has_its_bandwidth(void **state)
{
	struct world *w = *state;
	struct given g = { 0 };
	static char data[65536];
	size_t total = 0;
	uint16_t port = start_server(w, serve_flood);
	w->policy.limits.bandwidth = 1 << 20;
	start(w);
	give_origin(&g, port, 0);
	set(w, &g);
	auto_close int fd = tunnel(w, "origin.example", port);
	uint64_t begin = clock_monotonic_ms();
	while (total < 768 << 10) {
		ssize_t got = read(fd, data, sizeof data);
		assert_true(got > 0);
		total += (size_t)got;
	}
	/* A quarter of a second's bytes at once, then as many as it may have. */
	assert_true(clock_monotonic_ms() - begin >= 400);
	arena_done(&g.arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	if (!strcmp(argv[0], EGRESS_ARGV0)) /* this program is the role, too */
		return egress_main();
	role_raise_fds();
	const struct CMUnitTest tests[] = {
		TEST(test_new_rules_hold_at_once),
		TEST(test_names_lead_to_public_addresses_and_the_operator_s),
		TEST(test_socks_by_name),
		TEST(test_a_tls_hello_names_the_host),
		TEST(test_http_in_a_tunnel_is_judged_request_by_request),
		TEST(test_a_policy_of_reads_lets_no_other_request_through),
		TEST(test_other_protocols_need_a_rule_that_names_the_port),
		TEST(test_first_bytes_of_a_tunnel_have_their_time),
		TEST(test_a_websocket_goes_through),
		TEST(test_answers_of_all_kinds_end_where_they_end),
		TEST(test_decisions_are_recorded),
		TEST(test_a_thousand_policies_share_their_rules),
		TEST(test_a_policy_has_its_bandwidth),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
