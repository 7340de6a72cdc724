/* An exec as data: its result, how it is shown, and the store's document. */
#include <string.h>
#include "base/buf.h"
#include "model/nouns/exec.h"
#include "unit.h"

#define STARTED 1771063200000 /* 2026-02-14T10:00:00Z */

/* The members of a result with this output, in *text. */
static void print_result(const struct result *result, struct str out, struct str errors,
	const char *limiter, struct buf *text)
{
	struct exec_output output = exec_output_whole(out, errors, result->truncated);
	struct json j;

	buf_clear(text);
	j = json_to(text, false);
	json_object(&j, NULL);
	exec_print_result(&j, NULL, result, &output, limiter, NULL);
	json_end(&j);
	json_finish(&j);
}

static void a_result_is_shown_exactly_as_the_contract_says(void **state)
{
	auto_buf struct buf text;
	struct result result = { .reason = REASON_EXITED,
		.exit_status = 3,
		.duration_ms = 12,
		.cpu_ms = 4,
		.max_rss_bytes = 1048576 };

	buf_init(&text, BUF_MAX_DEFAULT);
	print_result(&result, STR("hi\n"), STR(""), "cgroup-v2", &text);
	assert_string_equal(text.data,
		"{\"exit_code\":3,\"signal\":null,\"reason\":\"exited\",\"stdout\":\"hi\\n\","
		"\"stderr\":\"\",\"encoding\":\"utf-8\",\"truncated\":false,\"duration_ms\":12,"
		"\"cpu_ms\":4,\"max_rss_bytes\":1048576,\"limits\":\"cgroup-v2\"}");
	result = (struct result){ .reason = REASON_SIGNALED, .signal = 9 };
	print_result(&result, STR(""), STR(""), NULL, &text);
	assert_non_null(strstr(
		text.data, "{\"exit_code\":137,\"signal\":9,\"reason\":\"signaled\",\"stdout\""));
	assert_non_null(strstr(text.data, "\"limits\":null}"));
	result = (struct result){ .reason = REASON_TIMEOUT, .signal = 9 };
	print_result(&result, STR(""), STR(""), NULL, &text);
	assert_non_null(
		strstr(text.data, "{\"exit_code\":124,\"signal\":9,\"reason\":\"timeout\""));
}

static void output_that_is_not_text_is_base64_on_both_streams(void **state)
{
	auto_buf struct buf text;
	struct result result = { .reason = REASON_EXITED };

	buf_init(&text, BUF_MAX_DEFAULT);
	print_result(&result, STR("a\xff"), STR("b"), NULL, &text);
	assert_non_null(strstr(
		text.data, "\"stdout\":\"Yf8=\",\"stderr\":\"Yg==\",\"encoding\":\"base64\""));
	print_result(&result, STR("a\xe2\x82"), STR(""), NULL, &text);
	assert_non_null(strstr(text.data, "\"encoding\":\"base64\""));
}

static void text_that_json_makes_much_longer_is_base64_when_it_is_long(void **state)
{
	static char control[20000], newlines[70000];
	auto_buf struct buf text;
	struct result result = { .reason = REASON_EXITED };

	buf_init(&text, BUF_MAX_DEFAULT);
	memset(control, 1, sizeof control);
	memset(newlines, '\n', sizeof newlines);
	print_result(&result, (struct str){ control, 10000 }, STR(""), NULL, &text);
	assert_non_null(strstr(text.data, "\"encoding\":\"utf-8\""));
	print_result(&result, (struct str){ control, sizeof control }, STR("b"), NULL, &text);
	assert_non_null(strstr(text.data, "\"stderr\":\"Yg==\",\"encoding\":\"base64\""));
	print_result(&result, (struct str){ newlines, sizeof newlines }, STR(""), NULL, &text);
	assert_non_null(strstr(text.data, "\"encoding\":\"utf-8\""));
}

static void text_cut_within_a_character_is_still_text(void **state)
{
	auto_buf struct buf text;
	struct result result = { .reason = REASON_OUTPUT_LIMIT, .truncated = true };

	buf_init(&text, BUF_MAX_DEFAULT);
	print_result(&result, STR("a\xe2\x82"), STR(""), NULL, &text);
	assert_non_null(strstr(text.data,
		"\"stdout\":\"a\",\"stderr\":\"\",\"encoding\":\"utf-8\",\"truncated\":true"));
}

static struct exec_record sample(struct arena *arena)
{
	struct exec_record e = { .id = "0123456789abcdefghij",
		.workspace = "abcdefghij0123456789",
		.state = EXEC_ENDED,
		.cwd = "/workspace",
		.background = true,
		.started_ms = STARTED,
		.ended_ms = STARTED + 1500,
		.result = { .reason = REASON_SIGNALED,
			.signal = 15,
			.duration_ms = 1500,
			.cpu_ms = 7,
			.max_rss_bytes = 4096,
			.truncated = true },
		.output_bytes = 42,
		.output_dropped = 5,
		.timeout_ms = 60000,
		.cpu_time_ms = 30000,
		.output_cap_bytes = 47 };
	vec_push(arena, &e.argv, "sh");
	vec_push(arena, &e.argv, "-c");
	vec_push(arena, &e.argv, "echo \"\xe2\x82\xac\"");
	return e;
}

static void show(const struct exec_record *e, struct buf *text)
{
	struct json j;

	buf_clear(text);
	j = json_to(text, false);
	exec_print(&j, NULL, e);
	json_finish(&j);
}

static void it_is_shown_exactly_as_the_contract_says(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text;
	struct exec_record e = sample(&arena);

	buf_init(&text, BUF_MAX_DEFAULT);
	show(&e, &text);
	assert_string_equal(text.data,
		"{\"id\":\"0123456789abcdefghij\",\"workspace\":\"abcdefghij0123456789\","
		"\"state\":\"ended\",\"argv\":[\"sh\",\"-c\",\"echo \\\"\xe2\x82\xac\\\"\"],"
		"\"cwd\":\"/workspace\",\"background\":true,\"tty\":false,"
		"\"started_at\":\"2026-02-14T10:00:00.000Z\","
		"\"ended_at\":\"2026-02-14T10:00:01.500Z\",\"exit_code\":143,\"signal\":15,"
		"\"reason\":\"signaled\",\"output_bytes\":42,\"output_dropped_bytes\":5,\"duration_"
		"ms\":1500,\"cpu_ms\":7,"
		"\"max_rss_bytes\":4096,\"error\":null}");
}

static void one_that_runs_has_no_end_yet(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text;
	struct exec_record e = sample(&arena);

	buf_init(&text, BUF_MAX_DEFAULT);
	e.state = EXEC_RUNNING;
	e.ended_ms = 0;
	show(&e, &text);
	assert_non_null(strstr(text.data, "\"state\":\"running\""));
	assert_non_null(strstr(text.data,
		"\"ended_at\":null,\"exit_code\":null,\"signal\":null,\"reason\":null,"
		"\"output_bytes\":42,\"output_dropped_bytes\":5,\"duration_ms\":null,\"cpu_ms\":"
		"null,\"max_rss_bytes\":null,"
		"\"error\":null}"));
}

static void one_that_never_started_has_a_code_and_an_error_but_no_reason(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text;
	struct exec_record e = sample(&arena);

	buf_init(&text, BUF_MAX_DEFAULT);
	e.result = (struct result){ 0 };
	e.error = "'x' is not there";
	e.error_exit_code = 127;
	show(&e, &text);
	assert_non_null(
		strstr(text.data, "\"exit_code\":127,\"signal\":null,\"reason\":null,\"output"));
	assert_non_null(strstr(text.data, "\"error\":\"'x' is not there\"}"));
	/* An end that was lost is an end. */
	e.error_exit_code = 0;
	e.result.reason = REASON_CANCELED;
	show(&e, &text);
	assert_non_null(strstr(text.data, "\"exit_code\":130,"));
	assert_non_null(strstr(text.data, "\"reason\":\"canceled\""));
}

static void its_document_comes_back_as_it_was(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out, again;
	struct exec_record e = sample(&arena), back = { .id = "kept", .started_ms = 5 };
	struct error err;

	buf_init(&out, BUF_MAX_DEFAULT);
	buf_init(&again, BUF_MAX_DEFAULT);
	for (int reason = 0; reason < REASON_COUNT; reason++) {
		buf_clear(&out);
		buf_clear(&again);
		e.result.reason = (enum reason)reason;
		record_print_kept(&exec_fields, &e, &out);
		assert_int_equal(record_read_kept(&exec_fields, (struct str){ out.data, out.len },
					 &arena, &back, &err),
			0);
		assert_int_equal(back.result.reason, reason);
		record_print_kept(&exec_fields, &back, &again);
		assert_string_equal(out.data, again.data);
	}
	assert_string_equal(back.id, "kept");
	assert_int_equal(back.started_ms, 5);
	assert_int_equal(back.argv.count, 3);
	assert_string_equal(back.argv.items[2], "echo \"\xe2\x82\xac\"");
	assert_null(back.argv.items[3]);
	assert_string_equal(back.cwd, "/workspace");
	assert_true(back.background && !back.tty && back.result.truncated);
	assert_int_equal(back.result.signal, 15);
	assert_int_equal(back.result.duration_ms, 1500);
	assert_int_equal(back.output_dropped, 5);
	assert_int_equal(back.timeout_ms, 60000);
	assert_int_equal(back.cpu_time_ms, 30000);
	assert_int_equal(back.output_cap_bytes, 47);
}

/* The document with `was` replaced by `is` is refused, and the error has `name` in it. */
static void check_damage(const char *text, const char *was, const char *is, const char *name)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf damaged;
	struct exec_record e = { 0 };
	struct error err;
	const char *at = strstr(text, was);

	assert_non_null(at);
	buf_init(&damaged, BUF_MAX_DEFAULT);
	buf_append(&damaged, text, (size_t)(at - text));
	buf_text(&damaged, is);
	buf_text(&damaged, at + strlen(was));
	assert_int_equal(record_read_kept(&exec_fields, (struct str){ damaged.data, damaged.len },
				 &arena, &e, &err),
		-1);
	assert_int_equal(err.code, ERR_CORRUPT);
	if (!strstr(err.text, name))
		fail_msg("'%s' not in: %s", name, err.text);
}

static void a_document_that_is_not_exactly_one_is_refused(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct exec_record e = sample(&arena);

	buf_init(&out, BUF_MAX_DEFAULT);
	record_print_kept(&exec_fields, &e, &out);
	check_damage(out.data, "\"signaled\"", "\"bored\"", "reason");
	check_damage(out.data, "\"signaled\"", "1", "reason");
	check_damage(out.data, "\"signal\":15", "\"signal\":-1", "signal");
	check_damage(out.data, "\"signal\":15", "\"signal\":2147483648", "signal");
	check_damage(out.data, "\"signal\":15", "\"x\":15", "result");
	check_damage(out.data, "[\"sh\"", "[[\"sh\"]", "argv");
	check_damage(out.data, "\"background\":true", "\"background\":\"true\"", "background");
	check_damage(out.data, "\"output_bytes\":42", "\"output_bytes\":null", "output_bytes");
	check_damage(out.data, "{\"argv\"", "{\"more\":[],\"argv\"", "unknown fields");
	check_damage(out.data, "}", "", "line 1");
}

static void the_oldest_output_is_dropped_beyond_the_cap(void **state)
{
	static const struct {
		uint64_t kept[2], cap, drop[2];
	} cases[] = {
		{ { 60, 40 }, 100, { 0, 0 } },
		{ { 100, 1 }, 100, { 26, 0 } }, /* 74 and 1 stay */
		{ { 1, 100 }, 100, { 0, 26 } },
		{ { 90, 80 }, 100, { 52, 43 } }, /* 38 and 37 stay */
		{ { 1000, 30 }, 100, { 955, 0 } },
		{ { 5, 0 }, 1, { 4, 0 } },
		{ { 0, 1ull << 40 }, 4, { 0, (1ull << 40) - 3 } },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t drop[2] = { 7, 7 };

		exec_rotate(cases[i].kept, cases[i].cap, drop);
		assert_int_equal(drop[0], cases[i].drop[0]);
		assert_int_equal(drop[1], cases[i].drop[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_is_shown_exactly_as_the_contract_says),
		cmocka_unit_test(output_that_is_not_text_is_base64_on_both_streams),
		cmocka_unit_test(text_that_json_makes_much_longer_is_base64_when_it_is_long),
		cmocka_unit_test(text_cut_within_a_character_is_still_text),
		cmocka_unit_test(it_is_shown_exactly_as_the_contract_says),
		cmocka_unit_test(one_that_runs_has_no_end_yet),
		cmocka_unit_test(the_oldest_output_is_dropped_beyond_the_cap),
		cmocka_unit_test(one_that_never_started_has_a_code_and_an_error_but_no_reason),
		cmocka_unit_test(its_document_comes_back_as_it_was),
		cmocka_unit_test(a_document_that_is_not_exactly_one_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
