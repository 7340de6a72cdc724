/* Messages of execs on WebSockets: what is read, and what is refused. */
/* security: doors */
#include "model/nouns/exec_message.h"

#include <string.h>
#include "arena_fixture.h"

static int read_message(const char *text, struct exec_message *message, struct error *err)
{
	return exec_message_read(str_from(text), &arena, message, err);
}

static void the_three_messages_are_read(void **state)
{
	struct exec_message message;
	struct error err;

	assert_int_equal(read_message("{\"argv\":[\"ls\",\"-l\"],\"type\":\"start\",\"tty\":true,"
				      "\"cols\":90,\"rows\":30,\"env\":{\"A\":\"b\"}}",
				 &message, &err),
		0);
	assert_int_equal(message.kind, EXEC_MESSAGE_START);
	assert_int_equal(message.spec.argv.count, 2);
	assert_string_equal(message.spec.argv.items[1], "-l");
	assert_true(message.spec.tty && message.spec.columns == 90 && message.spec.rows == 30);
	assert_int_equal(message.spec.env.count, 1);

	assert_int_equal(
		read_message("{\"type\":\"resize\",\"rows\":1,\"columns\":65535}", &message, &err),
		0);
	assert_int_equal(message.kind, EXEC_MESSAGE_RESIZE);
	assert_true(message.rows == 1 && message.columns == 65535);

	assert_int_equal(
		read_message("{\"type\":\"signal\",\"signal\":\"INT\"}", &message, &err), 0);
	assert_int_equal(message.kind, EXEC_MESSAGE_SIGNAL);
	assert_int_equal(message.signal, 2);
}

static void others_are_refused(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "", "message" },
		{ "{", "message" },
		{ "null", "no 'type'" },
		{ "[]", "no 'type'" },
		{ "{}", "no 'type'" },
		{ "{\"type\":1}", "no 'type'" },
		{ "{\"type\":\"\"}", "unknown message type" },
		{ "{\"type\":\"exit\"}", "unknown message type 'exit'" },
		{ "{\"type\":\"start\"}", "argv" },
		{ "{\"type\":\"start\",\"argv\":[\"a\"],\"exec\":1}", "exec" },
		{ "{\"type\":\"resize\",\"rows\":1}", "columns" },
		{ "{\"type\":\"resize\",\"rows\":0,\"cols\":1}", "rows" },
		{ "{\"type\":\"resize\",\"rows\":1,\"cols\":65536}", "columns" },
		{ "{\"type\":\"resize\",\"rows\":1,\"cols\":1,\"columns\":1}", "both" },
		{ "{\"type\":\"signal\",\"signal\":\"NONE\"}", "signal" },
		{ "{\"type\":\"signal\",\"signal\":65}", "signal" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct exec_message message;
		struct error err;

		assert_int_equal(read_message(rows[i].text, &message, &err), -1);
		if (!strstr(err.text, rows[i].words))
			fail_msg("%s: %s", rows[i].text, err.text);
	}
}

static void the_end_has_the_result_without_streams(void **state)
{
	struct exec_record e = { .state = EXEC_ENDED,
		.result = { .reason = REASON_EXITED, .exit_status = 3 } };
	auto_buf struct buf out = buf_empty(4096), never = buf_empty(4096);
	struct json j = json_to(&out, false), k = json_to(&never, false);

	exec_print_exit(&j, &e, "cgroup-v2");
	assert_string_equal(out.data,
		"{\"type\":\"exit\",\"id\":\"\",\"exit_code\":3,\"signal\":null,"
		"\"reason\":\"exited\",\"truncated\":false,\"duration_ms\":0,\"cpu_ms\":0,"
		"\"max_rss_bytes\":0,\"limits\":\"cgroup-v2\",\"error\":null}");
	e.error = "no such file";
	e.error_exit_code = 127;
	exec_print_exit(&k, &e, NULL);
	assert_non_null(strstr(never.data, "\"exit_code\":127,\"signal\":null,\"reason\":null"));
	assert_non_null(strstr(never.data, "\"limits\":null,\"error\":\"no such file\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_three_messages_are_read),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(the_end_has_the_result_without_streams),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
