/* SOCKS5: what is a greeting or a request, and what is refused. */
/* security: network */
#include <string.h>
#include "format/network/socks.h"
#include "unit.h"

#define BYTES(literal) ((struct str){ literal, sizeof(literal) - 1 })

static void test_greetings(void **state)
{
	size_t len = 0;
	bool is_open = false;

	assert_int_equal(socks_parse_greeting(BYTES("\5\2\1\0rest"), &len, &is_open), 1);
	assert_int_equal(len, 4);
	assert_true(is_open);
	assert_int_equal(socks_parse_greeting(BYTES("\5\1\2"), &len, &is_open), 1);
	assert_false(is_open);
	assert_int_equal(socks_parse_greeting(BYTES(""), &len, &is_open), 0);
	assert_int_equal(socks_parse_greeting(BYTES("\5"), &len, &is_open), 0);
	assert_int_equal(socks_parse_greeting(BYTES("\5\2\0"), &len, &is_open), 0);
	assert_int_equal(socks_parse_greeting(BYTES("\4\1"), &len, &is_open), -1);
	assert_int_equal(socks_parse_greeting(BYTES("\5\0"), &len, &is_open), -1);
}

static void test_requests(void **state)
{
	static const struct {
		struct str bytes;
		int status;
		const char *host;
		unsigned port_or_reply;
		bool is_address;
	} rows[] = {
		{ BYTES("\5\1\0\3\11a.example\1\273x"), 1, "a.example", 443, false },
		{ BYTES("\5\1\0\1\177\0\0\1\0\120"), 1, "127.0.0.1", 80, true },
		{ BYTES("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\377\377\177\0\0\1\0\120"), 1,
			"::ffff:127.0.0.1", 80, true },
		{ BYTES("\5\1\0\3\11a.exampl"), 0, NULL, 0, false },
		{ BYTES("\5\2\0\1\177\0\0\1\0\120"), -1, NULL, SOCKS_BAD_COMMAND, false },
		{ BYTES("\5\3\0\1\177\0\0\1\0\120"), -1, NULL, SOCKS_BAD_COMMAND, false },
		{ BYTES("\5\1\0\2\177\0\0\1\0\120"), -1, NULL, SOCKS_BAD_ADDRESS, false },
		{ BYTES("\5\1\1\1\177\0\0\1\0\120"), -1, NULL, SOCKS_FAILED, false },
		{ BYTES("\4\1\0\1\177\0\0\1\0\120"), -1, NULL, SOCKS_FAILED, false },
		{ BYTES("\5\1\0\3\0\0\120"), -1, NULL, SOCKS_NOT_ALLOWED, false },
		{ BYTES("\5\1\0\3\3a\0b\0\120"), -1, NULL, SOCKS_NOT_ALLOWED, false },
		{ BYTES("\5\1\0\1\177\0\0\1\0\0"), -1, NULL, SOCKS_NOT_ALLOWED, false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct socks_request request = { 0 };
		struct error err;
		enum socks_reply reply = SOCKS_SUCCEEDED;
		int status = socks_parse_request(rows[i].bytes, &request, &reply, &err);
		if (status != rows[i].status)
			fail_msg("row %zu: %d", i, status);
		if (status < 0)
			assert_int_equal(reply, rows[i].port_or_reply);
		if (status != 1)
			continue;
		assert_string_equal(request.host, rows[i].host);
		assert_int_equal(request.port, rows[i].port_or_reply);
		assert_int_equal(request.is_address, rows[i].is_address);
	}
	unsigned char out[SOCKS_REPLY_LEN];
	socks_write_reply(SOCKS_REFUSED, out);
	assert_memory_equal(out, "\5\5\0\1\0\0\0\0\0\0", sizeof out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_greetings),
		cmocka_unit_test(test_requests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
