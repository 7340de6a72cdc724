/* Responses and chunks: what a daemon of ours sends is read, what isn't HTTP is said to be corrupt.
 */
/* security: doors */
#include <string.h>
#include "base/buf.h"
#include "format/http/http_response.h"
#include "unit.h"

static int parse(const char *text, bool is_head, struct http_response *response, size_t *used)
{
	return http_response_parse(str_from(text), is_head, used, response, NULL);
}

static void a_response_with_a_length_is_read(void **state)
{
	struct http_response r;
	size_t used;
	const char *text =
		"HTTP/1.1 201 Created\r\nContent-Type:  text/plain \r\nLocation: /v1/x\r\n"
		"Content-Length: 005\r\n\r\nhello";

	assert_int_equal(parse(text, false, &r, &used), 1);
	assert_int_equal(used, strlen(text) - 5);
	assert_int_equal(r.status, 201);
	assert_int_equal(r.length, 5);
	assert_false(r.is_chunked || r.will_close);
	assert_true(str_is(http_response_header(&r, "content-type"), "text/plain"));
	assert_true(str_is(http_response_header(&r, "location"), "/v1/x"));
	assert_null(http_response_header(&r, "date").data);
}

static void a_response_without_a_body_has_length_0(void **state)
{
	struct http_response r;
	size_t used;

	assert_int_equal(parse("HTTP/1.1 100 Continue\r\n\r\n", false, &r, &used), 1);
	assert_int_equal(r.length, 0);
	assert_int_equal(parse("HTTP/1.1 204 No Content\r\n\r\n", false, &r, &used), 1);
	assert_int_equal(r.length, 0);
	assert_int_equal(parse("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true, &r, &used), 1);
	assert_int_equal(r.length, 0);
}

static void a_response_without_a_length_ends_with_the_connection(void **state)
{
	struct http_response r;
	size_t used;

	assert_int_equal(parse("HTTP/1.0 200 OK\r\n\r\nx", false, &r, &used), 1);
	assert_true(r.will_close);
	assert_true(r.length == HTTP_LENGTH_UNKNOWN);
}

static void half_a_head_asks_for_more(void **state)
{
	struct http_response r;
	size_t used;

	assert_int_equal(parse("", false, &r, &used), 0);
	assert_int_equal(parse("HTTP/1.1 200 OK\r\nA: b\r\n\r", false, &r, &used), 0);
}

static void what_is_not_http_is_corrupt(void **state)
{
	static const char *const bad[] = { "SSH-2.0-x\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 999 OK\r\n\r\n", "HTTP/1.1 200OK\r\n\r\n",
		"HTTP/1.1 200 OK\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "HTTP/1.1 200 OK\r\nA\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\x01\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n" };
	struct http_response r;
	struct error err;
	size_t used;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		err.code = ERR_NONE;
		if (http_response_parse(str_from(bad[i]), false, &used, &r, &err) != -1 ||
			err.code != ERR_CORRUPT)
			fail_msg("taken: %s", bad[i]);
	}
}

static void a_head_has_a_maximum(void **state)
{
	static char text[HTTP_RESPONSE_HEAD_MAX + 1];
	struct http_response r;
	struct error err;
	size_t used;

	memset(text, 'a', sizeof text - 1);
	memcpy(text, "HTTP/1.1 200 OK\r\nA: ", 20);
	assert_int_equal(
		http_response_parse((struct str){ text, sizeof text - 2 }, false, &used, &r, &err),
		0);
	assert_int_equal(
		http_response_parse((struct str){ text, sizeof text - 1 }, false, &used, &r, &err),
		-1);
	assert_int_equal(err.code, ERR_LIMIT);
}

static int unchunk(const char *text, size_t step, struct buf *out)
{
	struct http1_chunks chunks = { 0 };
	struct str in = str_from(text), data;
	size_t used;
	int status = 0;

	buf_clear(out);
	while (status == 0 && in.len > 0) {
		struct str part = { in.data, in.len < step ? in.len : step };
		status = http1_chunks_take(&chunks, part, &used, &data, NULL);
		if (status < 0)
			break;
		buf_append(out, data.data, data.len);
		in = (struct str){ in.data + used, in.len - used };
	}
	return status == 1 && in.len > 0 ? 2 : status;
}

static void chunks_are_taken_apart_however_they_come(void **state)
{
	const char *text = "5;x=\"y\"\r\nhello\r\n00A\r\n, you all!\r\n0\r\nTrailer: x\r\n\r\n";
	auto_buf struct buf out;

	buf_init(&out, 1000);
	for (size_t step = 1; step < 60; step++) {
		assert_int_equal(unchunk(text, step, &out), 1);
		assert_string_equal(out.data, "hello, you all!");
	}
	assert_int_equal(unchunk("0\r\n\r\nHTTP", 100, &out), 2);
	assert_int_equal(unchunk("5\r\nhel", 100, &out), 0);
}

static void bad_chunks_are_corrupt(void **state)
{
	static const char *const bad[] = { "\r\n", "x\r\n", "-1\r\n", "0x5\r\nhello\r\n",
		"5\nhello", "5\r\nhelloX\r\n", "5\r\nhello\rX", "1000000000000000\r\n", "0\r\n\n",
		"5\rx", "0\r\na\nb\r\n\r\n" };
	auto_buf struct buf out;

	buf_init(&out, 1000);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (unchunk(bad[i], 100, &out) != -1 || unchunk(bad[i], 1, &out) != -1)
			fail_msg("taken: %s", bad[i]);
}

static void a_frame_is_read_as_it_was_written(void **state)
{
	static const size_t lengths[] = { 1, 9, 15, 16, 255, 256, 4096, 65535, 65536 };
	static char room[HTTP1_CHUNK_FRAME + 65536 + 2 + 8];
	auto_buf struct buf out;

	buf_init(&out, sizeof room);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		char *data = room + HTTP1_CHUNK_FRAME;
		memset(data, 'x', lengths[i]);
		char *frame = http1_chunk_frame(data, lengths[i]);
		assert_true(frame >= room);
		memcpy(data + lengths[i] + 2, "0\r\n\r\n", 6);
		assert_int_equal(unchunk(frame, sizeof room, &out), 1);
		assert_int_equal(out.len, lengths[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_response_with_a_length_is_read),
		cmocka_unit_test(a_response_without_a_body_has_length_0),
		cmocka_unit_test(a_response_without_a_length_ends_with_the_connection),
		cmocka_unit_test(half_a_head_asks_for_more),
		cmocka_unit_test(what_is_not_http_is_corrupt),
		cmocka_unit_test(a_head_has_a_maximum),
		cmocka_unit_test(chunks_are_taken_apart_however_they_come),
		cmocka_unit_test(bad_chunks_are_corrupt),
		cmocka_unit_test(a_frame_is_read_as_it_was_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
