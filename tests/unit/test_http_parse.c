/* Requests: what is HTTP is read however it is cut, what could be two requests to somebody else is
 * refused. */
/* security: doors */
#include <stdlib.h>
#include <string.h>
#include "net/parse.h"
#include "unit.h"

struct seen {
	int status; /* of the error, or 0 */
	int requests;
	char body[256], path[256], query[64];
	size_t header_count;
	bool keep_alive, expects_continue;
};

/* Reads all requests of `in`, at most `step` bytes at a time. */
static struct seen read_requests(struct str in, size_t step, const struct http_limits *limits)
{
	struct seen seen = { 0 };
	bool is_more = true;

	while (is_more && !seen.status) {
		struct http_request r = { 0 };
		struct parser parser;
		enum parse_event event;
		size_t len = 0;

		arena_init(&r.arena);
		parser_init(&parser, &r, limits);
		do {
			size_t used = 0;
			event = parser_next(&parser,
				(struct str){ in.data, in.len < step ? in.len : step }, &used);
			in = (struct str){ in.data + used, in.len - used };
			if (event == PARSE_HEAD) {
				str_format(seen.path, sizeof seen.path, "%.*s", (int)r.path.len,
					r.path.data);
				str_format(seen.query, sizeof seen.query, "%.*s", (int)r.query.len,
					r.query.data);
				seen.header_count = r.headers.count;
				seen.keep_alive = parser.keep_alive;
				seen.expects_continue = parser.expects_continue;
			} else if (event == PARSE_BODY &&
				   len + parser.piece.len < sizeof seen.body) {
				memcpy(seen.body + len, parser.piece.data, parser.piece.len);
				len += parser.piece.len;
			}
			seen.body[len] = '\0';
			seen.requests += event == PARSE_END;
			is_more = in.len > 0;
		} while (event == PARSE_HEAD || event == PARSE_BODY ||
			 (event == PARSE_MORE && is_more));
		if (event == PARSE_ERROR)
			seen.status = parser.status;
		parser_done(&parser);
		arena_done(&r.arena);
	}
	return seen;
}

static struct seen read_text(const char *text)
{
	return read_requests(str_from(text), SIZE_MAX, &http_limits_default);
}

static void a_request_is_the_same_however_it_is_cut(void **state)
{
	const char *text =
		"POST /a/b?c=d HTTP/1.1\r\nHost: localhost\r\nX-Empty:\r\nX-Blank:  x  \r\n"
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n00A;x=\"y\"\r\n, you all!"
		"\r\n0\r\nTrailer: x\r\n\r\n";

	for (size_t step = 1; step <= strlen(text); step++) {
		struct seen seen = read_requests(str_from(text), step, &http_limits_default);
		assert_int_equal(seen.status, 0);
		assert_int_equal(seen.requests, 1);
		assert_string_equal(seen.path, "/a/b");
		assert_string_equal(seen.query, "c=d");
		assert_string_equal(seen.body, "hello, you all!");
		assert_int_equal(seen.header_count, 4);
		assert_true(seen.keep_alive);
	}
}

static void requests_behind_each_other_are_all_read(void **state)
{
	const char *text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\n"
			   "Content-Length: 4\r\n\r\nGET GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

	for (size_t step = 1; step <= strlen(text); step++) {
		struct seen seen = read_requests(str_from(text), step, &http_limits_default);
		assert_int_equal(seen.requests, 3);
		assert_int_equal(seen.status, 0);
	}
}

static void values_are_trimmed_and_names_are_lower_case(void **state)
{
	const char *text = "GET / HTTP/1.1\r\nHOST: A\r\nX-Thing: \t b c\t \r\nEmpty:\r\n\r\n";
	struct http_request r = { 0 };
	struct parser parser;
	size_t used;

	arena_init(&r.arena);
	parser_init(&parser, &r, &http_limits_default);
	assert_int_equal(parser_next(&parser, str_from(text), &used), PARSE_HEAD);
	assert_true(str_is(http_header(&r, "host"), "A"));
	assert_true(str_is(http_header(&r, "x-thing"), "b c"));
	assert_true(str_is(http_header(&r, "empty"), ""));
	assert_non_null(http_header(&r, "empty").data);
	assert_null(http_header(&r, "none").data);
	parser_done(&parser);
	arena_done(&r.arena);
}

static void targets_are_paths(void **state)
{
	struct seen seen = read_text("GET http://a:80/b?c HTTP/1.1\r\nHost: A:80\r\n\r\n");

	assert_int_equal(seen.requests, 1);
	assert_string_equal(seen.path, "/b");
	assert_string_equal(seen.query, "c");
	seen = read_text("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_string_equal(seen.path, "/");
	seen = read_text("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_string_equal(seen.path, "*");
}

static void an_offer_of_another_protocol_is_an_ordinary_request(void **state)
{
	struct seen seen =
		read_text("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"
			  "GET /second HTTP/1.1\r\nHost: a\r\n\r\n");

	assert_int_equal(seen.status, 0);
	assert_int_equal(seen.requests, 2);
	assert_string_equal(seen.path, "/second");
}

static void http_1_0_needs_no_host_and_is_closed(void **state)
{
	struct seen seen = read_text("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");

	assert_int_equal(seen.requests, 1);
	assert_false(seen.keep_alive);
	seen = read_text("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	assert_false(seen.keep_alive);
}

static void expectations_count_only_with_a_body(void **state)
{
	struct seen seen = read_text(
		"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n");

	assert_true(seen.expects_continue);
	seen = read_text("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n");
	assert_false(seen.expects_continue);
}

#define BEGIN "POST / HTTP/1.1\r\nHost: a\r\n"
#define SECOND "GET /second HTTP/1.1\r\nHost: a\r\n\r\n"
static void what_others_could_read_differently_is_refused(void **state)
{
	static const struct {
		int status;
		const char *text;
	} bad[] = {
		{ 400, BEGIN
			"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SECOND },
		{ 400, BEGIN
			"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" SECOND },
		{ 400, BEGIN "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" SECOND },
		{ 400, BEGIN "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" SECOND },
		{ 400, BEGIN "Content-Length: 5, 5\r\n\r\nhello" SECOND },
		{ 400, BEGIN "Content-Length: +5\r\n\r\nhello" SECOND },
		{ 400, BEGIN "Content-Length: -5\r\n\r\nhello" SECOND },
		{ 400, BEGIN "Content-Length: 0x5\r\n\r\nhello" SECOND },
		{ 400, BEGIN "Content-Length: 5 5\r\n\r\nhello" SECOND },
		{ 400, BEGIN "Content-Length: 5_0\r\n\r\nhello" SECOND },
		{ 400, BEGIN "Content-Length: \r\n\r\n" SECOND },
		{ 400, BEGIN "Content-Length: 18446744073709551621\r\n\r\nhello" SECOND },
		{ 400, BEGIN "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" SECOND },
		{ 400, BEGIN "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" SECOND },
		{ 400, BEGIN "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" SECOND },
		{ 400, BEGIN "Transfer-Encoding: identity\r\n\r\n" SECOND },
		{ 400, BEGIN "Transfer-Encoding: \x0b"
			     "chunked\r\n\r\n0\r\n\r\n" SECOND },
		{ 400, BEGIN "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" SECOND },
		{ 400, BEGIN "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
			     "chunked\r\n\r\n0\r\n\r\n" },
		{ 400, BEGIN "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" SECOND },
		{ 400, BEGIN "A: b\r\n c\r\n\r\n" SECOND },
		{ 400, BEGIN "A : b\r\n\r\n" SECOND },
		{ 400, BEGIN "A\r\n\r\n" SECOND },
		{ 400, BEGIN ": b\r\n\r\n" SECOND },
		{ 400, BEGIN "A: b\rc: d\r\n\r\n" SECOND },
		{ 400, BEGIN "A: b\nContent-Length: 5\r\n\r\nhello" SECOND },
		{ 400, BEGIN "A: b\x01\r\n\r\n" SECOND },
		{ 400, "POST / HTTP/1.1\nHost: a\n\n" SECOND },
		{ 400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n" },
		{ 400, "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ 400, "GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n" },
		{ 400, "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ 400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ 400, "GET a HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ 400, "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ 400, "GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ 400, "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ 505, "GET /\r\n\r\n" },
		{ 400, "NONE / HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ 400, "get / HTTP/1.1\r\nHost: a\r\n\r\n" },
		{ 400, "\x16\x03\x01\x02" },
		{ 400, "GET / HTTP/1.2\r\nHost: a\r\n\r\n" },
		{ 400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
		{ 405, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n" },
		{ 417, BEGIN "Expect: x\r\nContent-Length: 1\r\n\r\nx" },
		{ 505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n" },
		{ 505, "GET / HTTP/0.9\r\nHost: a\r\n\r\n" },
#define CHUNKED BEGIN "Transfer-Encoding: chunked\r\n\r\n"
		{ 400, CHUNKED "0x5\r\nhello\r\n0\r\n\r\n" },
		{ 400, CHUNKED "+5\r\nhello\r\n0\r\n\r\n" },
		{ 400, CHUNKED "5 \r\nhello\r\n0\r\n\r\n" },
		{ 400, CHUNKED " 5\r\nhello\r\n0\r\n\r\n" },
		{ 400, CHUNKED "5\nhello\r\n0\r\n\r\n" },
		{ 400, CHUNKED "5\r\nhello0\r\n\r\n" },
		{ 400, CHUNKED "5\r\nhelloXX0\r\n\r\n" },
		{ 400, CHUNKED "FFFFFFFFFFFFFFFFF\r\nx" },
		{ 400, CHUNKED "\r\n\r\n" },
		{ 400, CHUNKED "5;a\nb\r\nhello\r\n0\r\n\r\n" },
		{ 400, CHUNKED "0\r\nA : b\r\n\r\n" SECOND },
		{ 400, CHUNKED "0\r\nA: b\r\n c\r\n\r\n" SECOND },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		for (size_t step = 1; step < 200; step += 99) {
			struct seen seen = read_requests(str_from(bad[i].text),
				step == 199 ? SIZE_MAX : step, &http_limits_default);
			if (seen.status != bad[i].status || seen.requests > 0)
				fail_msg("status %d, %d requests: %s", seen.status, seen.requests,
					bad[i].text);
		}
}

static void a_nul_in_the_head_is_refused(void **state)
{
	static const char in_value[] = "GET / HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n";
	static const char in_name[] = "GET / HTTP/1.1\r\nHost: a\r\nA\0: b\r\n\r\n";
	static const char in_target[] = "GET /\0a HTTP/1.1\r\nHost: a\r\n\r\n";

#define READ(text)                                                                                 \
	read_requests((struct str){ text, sizeof text - 1 }, SIZE_MAX, &http_limits_default).status
	assert_int_equal(READ(in_value), 400);
	assert_int_equal(READ(in_name), 400);
	assert_int_equal(READ(in_target), 400);
}

static void leading_zeros_mean_the_same(void **state)
{
	struct seen seen = read_text(BEGIN "Content-Length: 0005\r\n\r\nhello" SECOND);

	assert_int_equal(seen.requests, 2);
	assert_string_equal(seen.path, "/second");
	seen = read_text(CHUNKED "005\r\nhello\r\n00\r\n\r\n" SECOND);
	assert_int_equal(seen.requests, 2);
	assert_string_equal(seen.path, "/second");
}

/* `count` times `piece` between two texts. */
static struct str repeat(const char *before, const char *piece, size_t count, const char *after)
{
	struct buf out;

	buf_init(&out, BUF_MAX_DEFAULT);
	buf_text(&out, before);
	for (size_t i = 0; i < count; i++)
		buf_text(&out, piece);
	buf_text(&out, after);
	return (struct str){ out.data, out.len };
}

static void everything_in_a_request_has_a_maximum(void **state)
{
	const struct http_limits *d = &http_limits_default;
	const struct {
		int status;
		struct str text;
	} rows[] = {
		{ 0, repeat("GET /", "a", d->line_bytes - 1, " HTTP/1.1\r\nHost: a\r\n\r\n") },
		{ 414, repeat("GET /", "a", d->line_bytes, " HTTP/1.1\r\nHost: a\r\n\r\n") },
		{ 414, repeat("GET /", "a", 100000, "") },
		{ 0, repeat("GET / HTTP/1.1\r\nHost: a\r\n", "a: b\r\n", d->header_count - 1,
			     "\r\n") },
		{ 431, repeat("GET / HTTP/1.1\r\nHost: a\r\n", "a: b\r\n", d->header_count,
			       "\r\n") },
		{ 0, repeat("GET / HTTP/1.1\r\nHost: a\r\na: ", "b", d->header_bytes - 6,
			     "\r\n\r\n") },
		{ 431, repeat("GET / HTTP/1.1\r\nHost: a\r\na: ", "b", d->header_bytes - 5,
			       "\r\n\r\n") },
		{ 431, repeat("GET / HTTP/1.1\r\nHost: a\r\n", "a", 100000, "") },
		{ 431, repeat("", "\r\n", 100000, "") },
		{ 431, repeat("GET / HTTP/1.1\r\nHost: a\r\nA:", " ", 100000, "b\r\n\r\n") },
		{ 400, repeat(CHUNKED "5;", "x", 100000, "\r\nhello\r\n0\r\n\r\n") },
		{ 400, repeat(CHUNKED "5", ";x=y", 100000, "\r\nhello\r\n0\r\n\r\n") },
		{ 400, repeat(CHUNKED, "0", 100000, "5\r\nhello\r\n0\r\n\r\n") },
		{ 400, repeat(CHUNKED "0\r\n", "a: b\r\n", 20000, "\r\n") },
		{ 0, repeat(CHUNKED, "1\r\nx\r\n", 100000, "0\r\n\r\n") },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		for (size_t step = 1; step <= 100000; step *= 40) {
			struct seen seen = read_requests(rows[i].text, step, d);
			if (seen.status != rows[i].status)
				fail_msg("row %zu, step %zu: status %d", i, step, seen.status);
		}
		free((char *)rows[i].text.data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_the_same_however_it_is_cut),
		cmocka_unit_test(requests_behind_each_other_are_all_read),
		cmocka_unit_test(values_are_trimmed_and_names_are_lower_case),
		cmocka_unit_test(targets_are_paths),
		cmocka_unit_test(an_offer_of_another_protocol_is_an_ordinary_request),
		cmocka_unit_test(http_1_0_needs_no_host_and_is_closed),
		cmocka_unit_test(expectations_count_only_with_a_body),
		cmocka_unit_test(what_others_could_read_differently_is_refused),
		cmocka_unit_test(a_nul_in_the_head_is_refused),
		cmocka_unit_test(leading_zeros_mean_the_same),
		cmocka_unit_test(everything_in_a_request_has_a_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
