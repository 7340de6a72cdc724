/* Answers of scripts: whatever they print, lines that are whole and safe, or an error. */
#include "format/text/answer.h"
#include "unit.h"

static int parse(struct str text, struct answer *answer, struct arena *arena, struct error *err)
{
	*err = (struct error){ 0 };
	return answer_parse(text, arena, answer, err);
}

static void lines_come_in_order_and_may_repeat(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct answer answer = { 0 };
	struct error err;

	assert_int_equal(
		parse(STR("version 3.11\nhost a b\nhost \nx_1 \303\244\n"), &answer, &arena, &err),
		0);
	assert_int_equal(answer.lines.count, 4);
	assert_string_equal(answer_get(&answer, "version"), "3.11");
	assert_string_equal(answer_get(&answer, "host"), "a b");
	assert_string_equal(answer.lines.items[2].value, "");
	assert_null(answer_get(&answer, "hos"));
	assert_int_equal(parse(STR(""), &answer, &arena, &err), 0);
	assert_int_equal(answer.lines.count, 0);
}

static void what_is_no_answer_is_refused(void **state)
{
	const struct str bad[] = { STR("version 3"), STR("Version 3\n"), STR("\n"), STR(" x\n"),
		STR("key\n"), STR("key a\x1b[1m\n"), STR("key a\0b\n"), STR("key \xff\n"),
		STR("key \302\205\n"), STR("a b\nkey \r\n"),
		STR("abcdefghijklmnopqrstuvwxyzabcdefghi x\n") };
	auto_arena struct arena arena = { 0 };
	struct answer answer = { 0 };
	struct error err;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(parse(bad[i], &answer, &arena, &err), -1);
		assert_int_equal(err.code, ERR_CORRUPT);
		assert_int_equal(answer.lines.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_in_order_and_may_repeat),
		cmocka_unit_test(what_is_no_answer_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
