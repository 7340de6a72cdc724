/* The heads of requests to servers in workspaces, and of their answers: what is passed on, and
 * what is left out. */
/* security: doors */
#include "doors/rest/port_head.h"

#include <string.h>
#include "arena_fixture.h"

static const struct port_head head = { 8000, STR("/v1/workspaces/w/ports/8000"), STR("a/b"), { 0 },
	false };

static void add(struct http_request *r, const char *name, const char *value)
{
	vec_push(&arena, &r->headers, (struct http_header){ str_from(name), str_from(value) });
}

static void a_request_loses_what_is_of_the_connection_and_the_daemon(void **state)
{
	struct http_request r = { .method = STR("POST"), .query = STR("c=%2F") };
	auto_buf struct buf out = buf_empty(4096);

	add(&r, "host", "desk.example");
	add(&r, "authorization", "Bearer x");
	add(&r, "content-length", "3");
	add(&r, "connection", "keep-alive, X-Hop");
	add(&r, "x-hop", "1");
	add(&r, "proxy-authorization", "y");
	add(&r, "x-forwarded-for", "10.0.0.1");
	add(&r, "forwarded", "for=10.0.0.1");
	add(&r, "te", "trailers");
	add(&r, "expect", "100-continue");
	add(&r, "accept", "*/*");
	port_head_request(&head, &r, &out);
	assert_string_equal(out.data, "POST /a/b?c=%2F HTTP/1.1\r\nHost: localhost:8000\r\n"
				      "X-Forwarded-Host: desk.example\r\n"
				      "X-Forwarded-Proto: http\r\n"
				      "X-Forwarded-Prefix: /v1/workspaces/w/ports/8000\r\n"
				      "Connection: close\r\nContent-Length: 3\r\n"
				      "accept: */*\r\n\r\n");
}

static void a_change_of_protocol_is_asked_for(void **state)
{
	struct http_request r = { .method = STR("GET") };
	struct port_head wanted = head;
	auto_buf struct buf out = buf_empty(4096);

	wanted.protocol = STR("websocket");
	wanted.rest = STR("");
	add(&r, "sec-websocket-key", "k");
	add(&r, "sec-websocket-protocol", "carrel.bearer.crl_secret, chat ,carrel.bearer.x,v2");
	add(&r, "sec-websocket-protocol", "carrel.bearer.crl_secret");
	add(&r, "host", "inner:80");
	r.peer = (struct http_peer){ .is_tls = true, .host = STR("desk.example") };
	port_head_request(&wanted, &r, &out);
	assert_non_null(strstr(out.data, "GET / HTTP/1.1\r\n"));
	assert_non_null(strstr(out.data, "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
	assert_non_null(strstr(out.data, "sec-websocket-key: k\r\n"));
	/* The token is the daemon's: no server in a workspace sees it. */
	assert_non_null(strstr(out.data, "\r\nSec-WebSocket-Protocol: chat, v2\r\n"));
	assert_null(strstr(out.data, "bearer"));
	assert_non_null(strstr(out.data, "X-Forwarded-Host: desk.example\r\n"
					 "X-Forwarded-Proto: https\r\n"));
}

static void assert_response(const char *headers, const char *expected)
{
	const char *text = arena_printf(&arena, "HTTP/1.1 200 OK\r\n%s\r\n", headers);
	struct http_response response;
	auto_buf struct buf out = buf_empty(4096);
	size_t used;

	assert_int_equal(http_response_parse(str_from(text), false, &used, &response, NULL), 1);
	port_head_response(&head, &response, &out);
	assert_string_equal(out.data, expected);
}

static void a_response_is_about_its_port(void **state)
{
	assert_response("Content-Type: text/html\r\nContent-Length: 3\r\nDate: now\r\n"
			"Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nETag: a\r\n"
			"X-Request-Id: forged\r\n",
		"Content-Type: text/html\r\nETag: a\r\n");
	assert_response("Location: /x\r\n", "Location: /v1/workspaces/w/ports/8000/x\r\n");
	assert_response(
		"Location: http://localhost:8000\r\n", "Location: /v1/workspaces/w/ports/8000\r\n");
	assert_response(
		"Location: http://localhost:80000/\r\n", "Location: http://localhost:80000/\r\n");
	assert_response("Location: //x\r\n", "Location: //x\r\n");
	assert_response("Set-Cookie: a=b;Path=/;Secure; DOMAIN = x\r\n",
		"Set-Cookie: a=b; Secure; Path=/v1/workspaces/w/ports/8000/\r\n");
	assert_response("Set-Cookie: path=1\r\n",
		"Set-Cookie: path=1; Path=/v1/workspaces/w/ports/8000/\r\n");
	assert_response("Service-Worker-Allowed: /\r\nAlt-Svc: h3=\":1\"\r\nX-A: 1\r\n"
			"Clear-Site-Data: \"*\"\r\nStrict-Transport-Security: max-age=1\r\n"
			"WWW-Authenticate: Basic realm=x\r\nProxy-Authenticate: Basic\r\n"
			"Authentication-Info: a=b\r\nSet-Login: logged-in\r\nAccept-CH: dpr\r\n",
		"X-A: 1\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(a_request_loses_what_is_of_the_connection_and_the_daemon),
		TEST(a_change_of_protocol_is_asked_for),
		TEST(a_response_is_about_its_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
