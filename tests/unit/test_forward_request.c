/* Plain HTTP through egress: the head of a request is read once, and what two readers could take
 * differently is refused. */
/* security: network */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include "egress/forward.h"
#include "egress/internal.h"
#include "unit.h"

static int parse(const char *text, struct forward_request *request, struct error *err)
{
	return forward_parse(str_from(text), request, err);
}

static void test_connect_takes_an_authority(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} good[] = {
		{ "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "a.example",
			443 },
		{ "CONNECT A.Example.:8443 HTTP/1.1\r\nhost:a.example:8443\r\n\r\n", "a.example",
			8443 },
		{ "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example", 443 },
		/* http.client of Python up to 3.11 */
		{ "CONNECT a.example:443 HTTP/1.0\r\n\r\n", "a.example", 443 },
		{ "CONNECT [2001:DB8:0::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n",
			"2001:db8::1", 443 },
		{ "CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", "127.0.0.1", 80 },
		{ "CONNECT xn--bcher-kva.example:80 HTTP/1.0\r\n\r\n", "xn--bcher-kva.example",
			80 },
		{ "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 0\r\n\r\n", "a", 1 },
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct forward_request request;
		struct error err = { 0 };
		if (parse(good[i].text, &request, &err) != 1)
			fail_msg("%zu: %s", i, err.text);
		assert_true(request.is_connect);
		assert_string_equal(request.host, good[i].host);
		assert_int_equal(request.port, good[i].port);
		assert_int_equal(request.head_len, strlen(good[i].text));
	}
}

static void test_what_could_be_read_in_two_ways_is_refused(void **state)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET a.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT http://a:1/ HTTP/1.1\r\nHost: a:1\r\n\r\n",
		"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a:0 HTTP/1.1\r\nHost: a:0\r\n\r\n",
		"CONNECT a:65536 HTTP/1.1\r\nHost: a:65536\r\n\r\n",
		"CONNECT a:0443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
		"CONNECT a:+443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
		"CONNECT a:443/ HTTP/1.1\r\nHost: a:443\r\n\r\n",
		"CONNECT u@a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
		"CONNECT a%2e:443 HTTP/1.1\r\nHost: a%2e:443\r\n\r\n",
		"CONNECT a\\b:443 HTTP/1.1\r\nHost: a\\b:443\r\n\r\n",
		"CONNECT a..:443 HTTP/1.1\r\nHost: a..:443\r\n\r\n",
		"CONNECT .a:443 HTTP/1.1\r\nHost: .a:443\r\n\r\n",
		"CONNECT .:443 HTTP/1.1\r\nHost: .:443\r\n\r\n",
		"CONNECT :443 HTTP/1.1\r\nHost: :443\r\n\r\n",
		"CONNECT \xc3\xa4:443 HTTP/1.1\r\nHost: \xc3\xa4:443\r\n\r\n",
		"CONNECT [::1:443 HTTP/1.1\r\nHost: [::1:443\r\n\r\n",
		"CONNECT [::1]443 HTTP/1.1\r\nHost: [::1]443\r\n\r\n",
		"CONNECT [::1%lo]:443 HTTP/1.1\r\nHost: [::1%lo]:443\r\n\r\n",
		"CONNECT [127.0.0.1]:443 HTTP/1.1\r\nHost: [127.0.0.1]:443\r\n\r\n",
		"CONNECT ::1:443 HTTP/1.1\r\nHost: ::1:443\r\n\r\n",
		"CONNECT 0x7f.1:443 HTTP/1.1\r\nHost: 0x7f.1:443\r\n\r\n",
		"CONNECT 127.1:443 HTTP/1.1\r\nHost: 127.1:443\r\n\r\n",
		"CONNECT []:443 HTTP/1.1\r\nHost: []:443\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n",
		"CONNECT a:8443 HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nHost:\r\n\r\n",
		"CONNECT a:443 HTTP/1.0\r\nHost: b:443\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nHost: a:443\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nContent-Length: 5\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a\\@b/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/#x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/\tx HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/ x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET  http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/ HTTP/1.1 \r\nHost: a\r\n\r\n",
		"GET http://a/ HTTP/2.0\r\nHost: a\r\n\r\n",
		"GET http://a/ HTTP/0.9\r\nHost: a\r\n\r\n",
		"GET http://a/\r\nHost: a\r\n\r\n",
		"G{T http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\n folded\r\nHost: a\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost : a\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\r\n: empty\r\n\r\n",
		"GET http://a/ HTTP/1.1\nHost: a\n\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\r\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",
		"\r\nGET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: "
		"1\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: "
		"99999999999999999999\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
		"Transfer-Encoding: chunked\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		"Transfer-Encoding: chunked\r\n\r\n",
		"POST http://a/ HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct forward_request request = { .port = 7 };
		struct error err = { 0 };
		if (parse(bad[i], &request, &err) != -1)
			fail_msg("passed: %s", bad[i]);
		assert_int_equal(request.port, 7);
		assert_true(err.text[0]);
	}
}

static void test_a_nul_and_what_is_too_long_are_refused(void **state)
{
	struct forward_request request;
	struct error err;
	auto_buf struct buf text;
	const char nul[] = "CONNECT a\0b:443 HTTP/1.1\r\n";

	assert_int_equal(forward_parse((struct str){ nul, sizeof nul - 1 }, &request, &err), -1);
	buf_init(&text, BUF_MAX_DEFAULT);
	buf_text(&text, "GET http://a/ HTTP/1.1\r\nHost: a\r\nX: ");
	while (text.len < FORWARD_HEAD_MAX - 1)
		buf_char(&text, 'x');
	assert_int_equal(forward_parse((struct str){ text.data, text.len }, &request, &err), 0);
	buf_text(&text, "\r\n\r\n");
	assert_int_equal(forward_parse((struct str){ text.data, text.len }, &request, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	buf_clear(&text);
	buf_text(&text, "GET http://a/ HTTP/1.1\r\nHost: a\r\n");
	for (int i = 0; i < 128; i++)
		buf_text(&text, "X: y\r\n");
	buf_text(&text, "\r\n");
	assert_int_equal(forward_parse((struct str){ text.data, text.len }, &request, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	char name[] = "CONNECT "
		      "a.........................................................................:"
		      "1 HTTP/1.0\r\n\r\n";
	memset(name + 9, 'a', 64);
	assert_int_equal(parse(name, &request, &err), -1);
}

static void test_every_beginning_of_a_request_wants_more(void **state)
{
	const char *text = "POST http://a.example/x HTTP/1.1\r\nHost: a.example\r\n"
			   "Content-Length: 3\r\n\r\nabcGET ";
	struct forward_request request;
	struct error err;
	size_t head = (size_t)(strstr(text, "abc") - text);

	for (size_t i = 0; i < strlen(text); i++)
		assert_int_equal(forward_parse((struct str){ text, i }, &request, &err), i >= head);
	assert_int_equal(request.head_len, head);
	assert_int_equal(request.body_bytes, 3);
}

static void assert_rewritten(const char *text, const char *expected)
{
	struct forward_request request;
	struct error err = { 0 };
	auto_buf struct buf out;

	buf_init(&out, 2 * FORWARD_HEAD_MAX);
	if (parse(text, &request, &err) != 1)
		fail_msg("%s", err.text);
	forward_rewrite(&request, &out);
	assert_string_equal(out.data, expected);
}

static void test_a_request_is_passed_on_in_origin_form(void **state)
{
	assert_rewritten("GET HTTP://A.example/x?y=http://b/ HTTP/1.1\r\nAccept:  z \r\n"
			 "Host: a.EXAMPLE:80\r\nProxy-Authorization: Basic x\r\n"
			 "Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Hop\r\n"
			 "Keep-Alive: 5\r\nx-hop: 1\r\nUpgrade: h2c\r\nTE: trailers\r\n\r\n",
		"GET /x?y=http://b/ HTTP/1.1\r\nHost: a.example\r\nAccept: z\r\n\r\n");
	assert_rewritten("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n"
			 "Connection: x, Close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
	assert_rewritten("GET http://a.example:8080 HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: a.example:8080\r\nConnection: close\r\n\r\n");
	/* What frames the body can't be made to go by naming it. */
	assert_rewritten("POST http://[::0001]/ HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 007\r\n"
			 "Connection: Content-Length, Host\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 7\r\n\r\n");
	assert_rewritten("POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
	assert_rewritten("PUT http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
	assert_rewritten("GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n"
			 "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
		"Sec-WebSocket-Key: x\r\n\r\n");
}

static void test_a_request_in_a_tunnel_is_for_its_host(void **state)
{
	static const struct {
		const char *text;
		bool is_good;
	} rows[] = {
		{ "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n", true },
		{ "GET /x HTTP/1.1\r\nHost: A.EXAMPLE.:8080\r\n\r\n", true },
		{ "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", true },
		{ "GET http://a.example:8080/x HTTP/1.1\r\nHost: a.example\r\n\r\n", true },
		{ "GET /x HTTP/1.0\r\nHost: a.example\r\n\r\n", true },
		{ "GET /x HTTP/1.0\r\n\r\n", false },
		{ "GET /x HTTP/1.1\r\n\r\n", false },
		{ "GET /x HTTP/1.1\r\nHost: b.example\r\n\r\n", false },
		{ "GET /x HTTP/1.1\r\nHost: a.example:80\r\n\r\n", false },
		{ "GET /x HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n", false },
		{ "GET http://b.example:8080/ HTTP/1.1\r\nHost: b.example:8080\r\n\r\n", false },
		{ "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", false },
		{ "CONNECT a.example:8080 HTTP/1.1\r\nHost: a.example:8080\r\n\r\n", false },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false },
		{ "GET x HTTP/1.1\r\nHost: a.example\r\n\r\n", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct forward_request request;
		struct error err = { 0 };
		int status = forward_parse_origin(
			str_from(rows[i].text), "a.example", 8080, &request, &err);
		if (status != (rows[i].is_good ? 1 : -1))
			fail_msg("%d: %s", status, rows[i].text);
	}
}

static void test_answers_end_where_they_say(void **state)
{
	static const struct {
		const char *text;
		int status;
		bool keeps, keeps_client;
		const char *rewritten;
	} rows[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nab", 200,
			true, true, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" },
		{ "HTTP/1.1 200\r\nConnection: Close\r\nX: y\r\n\r\n", 200, false, false,
			"HTTP/1.1 200\r\nConnection: close\r\nX: y\r\n\r\n" },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n", 200, false, true,
			"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n" },
		{ "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", 200, true, false,
			"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n" },
		{ "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 101, true,
			true,
			"HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" },
		{ "HTTP/2 200 OK\r\n\r\n", -1, false, false, NULL },
		{ "HTTP/1.1 2000 OK\r\n\r\n", -1, false, false, NULL },
		{ "HTTP/1.1 200 OK\nX: y\n\n", -1, false, false, NULL },
		{ "SSH-2.0-x\r\n\r\n", -1, false, false, NULL },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", -1,
			false, false, NULL },
		{ "HTTP/1.1 200 OK\r\nContent-Le", 0, false, false, NULL },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct forward_answer answer;
		struct str bytes = str_from(rows[i].text);
		auto_buf struct buf out = buf_empty(4096);
		int status = forward_parse_answer(bytes, &answer, NULL);
		if (rows[i].status < 100) {
			assert_int_equal(status, rows[i].status);
			continue;
		}
		assert_int_equal(status, 1);
		assert_int_equal(answer.status, rows[i].status);
		assert_int_equal(answer.keeps, rows[i].keeps);
		forward_rewrite_answer(&answer, rows[i].keeps_client, &out);
		assert_string_equal(out.data, rows[i].rewritten);
	}
}

/* Bytes taken when fed `step` at a time, or -1. */
static long take(const char *text, bool is_chunked, uint64_t length, size_t step, bool *is_done)
{
	struct forward_request request = { .is_chunked = is_chunked, .body_bytes = length };
	struct forward_body body;
	struct error err;
	size_t total = 0, len = strlen(text);

	forward_body_start(&body, &request);
	while (total < len) {
		size_t taken, part = len - total < step ? len - total : step;
		if (forward_body_take(&body, (struct str){ text + total, part }, &taken, &err) < 0)
			return -1;
		total += taken;
		if (taken < part)
			break;
	}
	*is_done = body.is_done;
	return (long)total;
}

static void test_a_body_ends_where_it_says(void **state)
{
	static const struct {
		const char *text;
		bool is_chunked, is_done;
		uint64_t length;
		long taken;
	} cases[] = {
		{ "GET / HTTP/1.1", false, true, 0, 0 },
		{ "abcGET /", false, true, 3, 3 },
		{ "ab", false, false, 3, 2 },
		{ "3\r\nabc\r\n0\r\n\r\nGET /", true, true, 0, 13 },
		{ "0\r\n\r\nx", true, true, 0, 5 },
		{ "00a\r\n0123456789\r\nF", true, false, 0, 18 },
		{ "3\r\nabc\r\n0\r\nX: y\r\n\r\n", true, false, 0, -1 },
		{ "3;x=y\r\nabc\r\n0\r\n\r\n", true, false, 0, -1 },
		{ "3\nabc\n0\n\n", true, false, 0, -1 },
		{ "3\r\nabcd\r\n", true, false, 0, -1 },
		{ "\r\n", true, false, 0, -1 },
		{ "-1\r\n", true, false, 0, -1 },
		{ " 3\r\n", true, false, 0, -1 },
		{ "0x3\r\n", true, false, 0, -1 },
		{ "1000000000000000\r\n", true, false, 0, -1 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t step = 1; step < 24; step++) {
			bool is_done = false;
			long taken = take(cases[i].text, cases[i].is_chunked, cases[i].length, step,
				&is_done);
			if (taken != cases[i].taken || (taken >= 0 && is_done != cases[i].is_done))
				fail_msg("case %zu, step %zu: %ld", i, step, taken);
		}
}

static void test_a_url_names_its_host(void **state)
{
	static const struct {
		const char *url, *host;
		uint16_t port;
	} good[] = { { "https://a.example/simple/", "a.example", 443 },
		{ "HTTP://A.example.", "a.example", 80 },
		{ "https://user:pw@a.example:8080/simple/", "a.example", 8080 },
		{ "https://user:p%40w@a.example?x@b", "a.example", 443 },
		{ "http://[0:0::1]:3141#x", "::1", 3141 },
		{ "http://127.0.0.1:1/", "127.0.0.1", 1 } };
	static const char *const bad[] = { "", "a.example", "//a.example/", "file:///etc",
		"https://", "https:///x", "https://a b/", "https://a\t.example/",
		"https://a.example\n", "https://a@b@c/", "https://a\\@b/", "https://a%2eexample/",
		"https://a:x/", "https://a:/", "https://[::1/", "https://\xc3\x9f/", "ftp://a/",
		"https:/a/" };
	auto_arena struct arena arena;

	arena_init(&arena);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct forward_host host = { 0 };
		struct error err = { 0 };
		if (forward_host_from_url(good[i].url, &arena, &host, &err) < 0)
			fail_msg("%s: %s", good[i].url, err.text);
		assert_string_equal(host.host, good[i].host);
		assert_int_equal(host.port, good[i].port);
		assert_false(host.is_named);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct forward_host host = { .port = 7 };
		struct error err = { 0 };
		if (forward_host_from_url(bad[i], &arena, &host, &err) == 0)
			fail_msg("passed: %s", bad[i]);
		assert_int_equal(err.code, ERR_INVALID);
		assert_int_equal(host.port, 7);
	}
}

static void test_an_error_doesn_t_show_a_password(void **state)
{
	auto_arena struct arena arena;
	struct forward_host host;
	struct error err = { 0 };

	arena_init(&arena);
	assert_int_equal(forward_host_from_url("https://me:hunter2@b@c/", &arena, &host, &err), -1);
	assert_null(strstr(err.text, "hunter2"));
	assert_int_equal(forward_host_from_url("https://me:hunter2/x@c/", &arena, &host, &err), -1);
	assert_null(strstr(err.text, "hunter2"));
}

static void proxies_are_read_from_urls(void **state)
{
	struct forward_proxy proxy;
	struct error err;

	assert_int_equal(
		forward_proxy_parse("http://a%40b:p%2Fw@Proxy.Example:3128/", &proxy, &err), 0);
	assert_string_equal(proxy.host, "proxy.example");
	assert_int_equal(proxy.port, 3128);
	assert_string_equal(proxy.authorization, "Basic YUBiOnAvdw==");
	assert_int_equal(forward_proxy_parse("10.0.0.1:8080", &proxy, &err), 0);
	assert_string_equal(proxy.host, "10.0.0.1");
	assert_string_equal(proxy.authorization, "");
	assert_int_equal(forward_proxy_parse("socks5://secret@x:1", &proxy, &err), -1);
	assert_null(strstr(err.text, "secret"));
	assert_int_equal(forward_proxy_parse("http://u:secret@a b:1", &proxy, &err), -1);
	assert_null(strstr(err.text, "secret"));
}

static void no_proxy_names_hosts_and_domains(void **state)
{
	static const struct {
		const char *except, *host;
		bool is_excepted;
	} rows[] = {
		{ "", "a.example", false },
		{ "*", "a.example", true },
		{ "x, .example", "a.example", true },
		{ "example", "a.example", true },
		{ "ample", "a.example", false },
		{ "a.example:443", "a.example", true },
		{ "a.example:80", "a.example", false },
		{ "127.0.0.1", "127.0.0.1", true },
		{ "::1,[fe80::1]", "fe80::1", true },
		{ "b.a.example", "a.example", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(forward_proxy_is_excepted(rows[i].except, rows[i].host, 443),
			rows[i].is_excepted);
}

/* Also in the spellings that inet_aton() reads, as the proxy's resolver may do. */
static void a_proxy_is_not_asked_for_addresses_that_are_not_public(void **state)
{
	static const char *const closed[] = { "127.0.0.1", "127.1", "2130706433", "0x7f000001",
		"0177.0.0.1", "169.254.169.254", "0xa9fea9fe", "10.1", "::1", "fe80::1",
		"localhost", "a.localhost" };
	static const char *const open[] = { "a.example", "8.8.8.8", "2001:db8::1",
		"localhost.example", "alocalhost", "127.example" };

	for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
		if (!proxy_must_not_reach(closed[i]))
			fail_msg("%s is asked for", closed[i]);
	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		if (proxy_must_not_reach(open[i]))
			fail_msg("%s is refused", open[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proxy_is_not_asked_for_addresses_that_are_not_public),
		cmocka_unit_test(proxies_are_read_from_urls),
		cmocka_unit_test(no_proxy_names_hosts_and_domains),
		cmocka_unit_test(test_connect_takes_an_authority),
		cmocka_unit_test(test_what_could_be_read_in_two_ways_is_refused),
		cmocka_unit_test(test_a_nul_and_what_is_too_long_are_refused),
		cmocka_unit_test(test_every_beginning_of_a_request_wants_more),
		cmocka_unit_test(test_a_request_is_passed_on_in_origin_form),
		cmocka_unit_test(test_a_request_in_a_tunnel_is_for_its_host),
		cmocka_unit_test(test_answers_end_where_they_say),
		cmocka_unit_test(test_a_body_ends_where_it_says),
		cmocka_unit_test(test_a_url_names_its_host),
		cmocka_unit_test(test_an_error_doesn_t_show_a_password),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
