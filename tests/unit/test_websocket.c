/* Frames of WebSocket and URLs of daemons. */
/* security: doors */
#include <string.h>
#include "format/http/uri.h"
#include "format/http/websocket.h"
#include "unit.h"

#define MAX 100000

static void the_key_of_the_rfc_is_answered_as_the_rfc_says(void **state)
{
	char key[WEBSOCKET_KEY_LEN + 1], accept[WEBSOCKET_ACCEPT_LEN + 1];

	websocket_key((const unsigned char *)"the sample nonce", key);
	assert_string_equal(key, "dGhlIHNhbXBsZSBub25jZQ==");
	assert_true(websocket_key_is_valid(str_from(key)));
	assert_false(websocket_key_is_valid(STR("dGhlIHNhbXBsZSBub25jZQ")));
	assert_false(websocket_key_is_valid(STR("dGhlIHNhbXBsZSBub25jZSAg")));
	websocket_accept(str_from(key), accept);
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void a_masked_frame_is_as_the_rfc_says(void **state)
{
	const unsigned char mask[4] = { 0x37, 0xfa, 0x21, 0x3d };
	static const char hello[] = "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
	const struct str parts[] = { STR("He"), STR(""), STR("llo") };
	auto_buf struct buf out = buf_empty(1 << 20);

	assert_true(websocket_print(&out, WEBSOCKET_TEXT, mask, parts, 3));
	assert_int_equal(out.len, 11);
	assert_memory_equal(out.data, hello, 11);
}

static void lengths_are_in_their_shortest_form(void **state)
{
	static const struct {
		size_t len, head;
	} rows[] = { { 0, 6 }, { 125, 6 }, { 126, 8 }, { 65535, 8 }, { 65536, 14 } };
	const unsigned char mask[4] = { 0 };
	static char zeros[65536];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_buf struct buf out = buf_empty(1 << 20);
		const struct str part = { zeros, rows[i].len };
		assert_true(websocket_print(&out, WEBSOCKET_BINARY, mask, &part, 1));
		assert_int_equal(out.len, rows[i].head + rows[i].len);
	}
	auto_buf struct buf small = buf_empty(100);
	const struct str part = { zeros, 100 };
	assert_false(websocket_print(&small, WEBSOCKET_BINARY, mask, &part, 1));
}

static int read_one(struct str bytes, size_t max, struct websocket_message *message, char *data,
	struct error *err)
{
	struct websocket_reader reader;
	size_t used;

	websocket_reader_init(&reader, max);
	int status = websocket_read(&reader, bytes, &used, message, err);
	if (status == 1)
		str_format(data, 256, "%.*s", (int)message->data.len, message->data.data);
	websocket_reader_done(&reader);
	return status;
}

static void messages_are_read_whole_and_in_pieces(void **state)
{
	static const char bytes[] = "\x81\x05hello"
				    "\x02\x02\x01"
				    "a\x89\x01p\x00\x01"
				    "b\x80\x01"
				    "c\x88\x04\x03\xe8ok";
	static const struct {
		enum websocket_opcode opcode;
		const char *data;
		unsigned code;
	} rows[] = { { WEBSOCKET_TEXT, "hello", 0 }, { WEBSOCKET_PING, "p", 0 },
		{ WEBSOCKET_BINARY,
			"\x01"
			"abc",
			0 },
		{ WEBSOCKET_CLOSE, "ok", 1000 } };
	struct str rest = { bytes, sizeof bytes - 1 };
	struct websocket_reader reader;
	struct websocket_message message;
	struct error err;
	size_t used;

	websocket_reader_init(&reader, MAX);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(websocket_read(&reader, rest, &used, &message, &err), 1);
		assert_int_equal(message.opcode, rows[i].opcode);
		assert_int_equal(message.code, rows[i].code);
		assert_true(str_is(message.data, rows[i].data));
		rest = (struct str){ rest.data + used, rest.len - used };
	}
	assert_int_equal(rest.len, 0);
	assert_int_equal(websocket_read(&reader, rest, &used, &message, &err), 0);
	websocket_reader_done(&reader);
}

static void frames_that_break_the_protocol_are_refused(void **state)
{
	static const struct {
		struct str bytes;
		const char *text;
	} rows[] = {
		{ STR("\xc1\x01x"), "reserved bits" },
		{ STR("\x83\x01x"), "unknown opcode 3" },
		{ STR("\x8b\x01x"), "unknown opcode 11" },
		{ STR("\x82\x81\x00\x00\x00\x00x"), "is masked" },
		{ STR("\x09\x01x"), "control frame" },
		{ STR("\x89\x7e\x00\x80"), "control frame" },
		{ STR("\x82\x7e\x00\x7d"), "shortest form" },
		{ STR("\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff"), "shortest form" },
		{ STR("\x80\x01x"), "without a beginning" },
		{ STR("\x01\x01x\x81\x01y"), "in the middle of another" },
		{ STR("\x82\x7f\xff\x00\x00\x00\x00\x00\x00\x00"), "longer than" },
		{ STR("\x82\x7f\x00\x00\x00\x00\x00\x10\x00\x00"), "longer than" },
		{ STR("\x81\x02\xc3\x28"), "not valid UTF-8" },
		{ STR("\x88\x01x"), "invalid code 0" },
		{ STR("\x88\x02\x03\xee"), "invalid code 1006" },
		{ STR("\x88\x04\x03\xe8\xff\xff"), "not valid UTF-8" },
	};
	struct websocket_message message;
	char data[256];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		if (read_one(rows[i].bytes, MAX, &message, data, &err) != -1)
			fail_msg("row %zu was taken", i);
		if (!strstr(err.text, rows[i].text))
			fail_msg("row %zu: %s", i, err.text);
	}
}

static void a_message_in_pieces_has_the_same_maximum(void **state)
{
	struct websocket_message message;
	struct error err = { 0 };
	char data[256];

	assert_int_equal(read_one(STR("\x02\x03"
				      "abc\x80\x01"
				      "d"),
				 4, &message, data, &err),
		1);
	assert_string_equal(data, "abcd");
	assert_int_equal(read_one(STR("\x02\x03"
				      "abc\x80\x01"
				      "d"),
				 3, &message, data, &err),
		-1);
	assert_int_equal(err.code, ERR_LIMIT);
}

static void a_url_of_a_daemon_is_a_scheme_a_host_and_a_port(void **state)
{
	static const struct {
		const char *url, *authority, *name;
		uint16_t port;
		bool is_tls;
	} rows[] = {
		{ "https://lab.example:7443", "lab.example:7443", "lab.example", 7443, true },
		{ "https://lab/", "lab", "lab", 443, true },
		{ "http://127.0.0.1:80", "127.0.0.1:80", "127.0.0.1", 80, false },
		{ "http://localhost", "localhost", "localhost", 80, false },
		{ "https://[::1]:7443/", "[::1]:7443", "::1", 7443, true },
	};
	static const char *const bad[] = { "", "lab:7443", "unix:/x", "ftp://lab", "HTTPS://lab",
		"https://", "https:///", "https://:7443", "https://lab:0", "https://lab:65536",
		"https://lab:x", "https://u@lab", "https://u:p@lab:1", "https://@lab",
		"https://lab/path", "https://lab?x=1", "https://lab#x", "https://lab//",
		"https://la b", "https://[::1", "https://-lab", "https://lab\r\nX: y" };
	struct uri_base base;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(uri_parse_base(rows[i].url, &base));
		assert_true(str_is(base.authority, rows[i].authority));
		assert_true(str_is(base.name, rows[i].name));
		assert_int_equal(base.port, rows[i].port);
		assert_int_equal(base.is_tls, rows[i].is_tls);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (uri_parse_base(bad[i], &base))
			fail_msg("taken: %s", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_key_of_the_rfc_is_answered_as_the_rfc_says),
		cmocka_unit_test(a_masked_frame_is_as_the_rfc_says),
		cmocka_unit_test(lengths_are_in_their_shortest_form),
		cmocka_unit_test(messages_are_read_whole_and_in_pieces),
		cmocka_unit_test(frames_that_break_the_protocol_are_refused),
		cmocka_unit_test(a_message_in_pieces_has_the_same_maximum),
		cmocka_unit_test(a_url_of_a_daemon_is_a_scheme_a_host_and_a_port),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
