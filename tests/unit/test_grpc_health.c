#include "unit.h"
#include <string.h>
#include "format/http/grpc_health.h"

#define SETTINGS "\0\0\0\4\0\0\0\0\0"
#define HEAD "\0\0\1\1\4\0\0\0\1\x88"
#define TRAILER "\0\0\1\1\5\0\0\0\1\x88"
#define STATUS(value) "\0\0\7\0\0\0\0\0\1\0\0\0\0\2\x08" value
#define BYTES(text) ((struct str){ text, sizeof text - 1 })

static enum grpc_health judge(struct str bytes)
{
	enum grpc_health health = GRPC_HEALTH_MORE;
	assert_int_equal(grpc_health_read(bytes, &health, NULL), 0);
	return health;
}

static void the_status_of_the_message_is_the_answer(void **state)
{
	assert_int_equal(judge(BYTES(SETTINGS HEAD STATUS("\1") TRAILER)), GRPC_HEALTH_SERVING);
	assert_int_equal(judge(BYTES(SETTINGS HEAD STATUS("\2") TRAILER)), GRPC_HEALTH_NOT_SERVING);
	assert_int_equal(judge(BYTES(SETTINGS TRAILER)), GRPC_HEALTH_NO_SERVICE);
}

static void an_answer_that_is_cut_is_awaited(void **state)
{
	struct str whole = BYTES(SETTINGS HEAD STATUS("\1"));
	for (size_t len = 0; len < whole.len; len++)
		assert_int_equal(judge((struct str){ whole.data, len }), GRPC_HEALTH_MORE);
	assert_int_equal(judge(whole), GRPC_HEALTH_SERVING);
}

static void what_is_not_http2_is_refused(void **state)
{
	enum grpc_health health;
	struct error err;
	assert_int_equal(
		grpc_health_read(BYTES("HTTP/1.1 400 Bad Request\r\n\r\n"), &health, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(grpc_health_read(BYTES(HEAD), &health, &err), -1);
}

static void the_request_is_a_call_of_the_health_service(void **state)
{
	auto_buf struct buf out = buf_empty(4096);
	grpc_health_request(&out);
	assert_memory_equal(out.data, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
	assert_non_null(memmem(out.data, out.len, "/grpc.health.v1.Health/Check", 28));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_of_the_message_is_the_answer),
		cmocka_unit_test(an_answer_that_is_cut_is_awaited),
		cmocka_unit_test(what_is_not_http2_is_refused),
		cmocka_unit_test(the_request_is_a_call_of_the_health_service),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
