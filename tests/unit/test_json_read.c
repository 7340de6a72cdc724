/* The JSON reader: all of RFC 8259, nothing else, and errors that say where. */
#include <string.h>
#include <time.h>
#include "base/buf.h"
#include "format/text/json_read.h"
#include "unit.h"

static struct json_value *read_text(struct arena *arena, struct str text)
{
	struct json_value *v = NULL;
	struct error err = { 0 };

	if (json_read(text, arena, &v, &err) < 0)
		fail_msg("%s", err.text);
	return v;
}

static void assert_error(struct str text, enum error_code code, const char *expected)
{
	auto_arena struct arena arena = { 0 };
	struct json_value untouched, *v = &untouched;
	struct error err = { 0 };

	if (json_read(text, &arena, &v, &err) == 0)
		fail_msg("'%s' was read", text.data);
	assert_ptr_equal(v, &untouched);
	assert_int_equal(err.code, code);
	assert_string_equal(err.text, expected);
}

static void values_keep_their_order_and_kind(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *v = read_text(&arena,
		STR(" {\"a\" : [1, -2.5e1,\ttrue,false,null , \"x\"],\r\n\"b\":{},\"c\":[]} "));

	assert_int_equal(v->kind, JSON_OBJECT);
	assert_int_equal(v->count, 3);
	const struct json_value *a = v->first, *item = a->first;
	assert_true(str_is(a->key, "a"));
	assert_int_equal(a->kind, JSON_ARRAY);
	assert_int_equal(a->count, 6);
	assert_true(item->kind == JSON_NUMBER && item->is_integer && item->integer == 1);
	item = item->next;
	assert_true(item->kind == JSON_NUMBER && !item->is_integer && item->number == -25);
	item = item->next;
	assert_true(item->kind == JSON_BOOL && item->boolean);
	item = item->next;
	assert_true(item->kind == JSON_BOOL && !item->boolean);
	item = item->next;
	assert_true(item->kind == JSON_NULL);
	item = item->next;
	assert_true(item->kind == JSON_STRING && str_is(item->string, "x"));
	assert_null(item->next);
	assert_true(a->next->kind == JSON_OBJECT && a->next->count == 0 && !a->next->first);
	assert_true(a->next->next->kind == JSON_ARRAY && !a->next->next->first);
	assert_null(a->next->next->next);
	assert_int_equal(read_text(&arena, STR("null"))->kind, JSON_NULL);
}

static void strings_are_unescaped(void **state)
{
	static const struct {
		struct str json, value;
	} cases[] = {
		{ STR("\"\""), STR("") },
		{ STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), STR("\"\\/\b\f\n\r\t") },
		{ STR("\"\\u0041\\u00e9\\u20AC\""), STR("A\xc3\xa9\xe2\x82\xac") },
		{ STR("\"\\ud83d\\uDE00\\uffff\""), STR("\xf0\x9f\x98\x80\xef\xbf\xbf") },
		{ STR("\"\\uDBFF\\udfff\""), STR("\xf4\x8f\xbf\xbf") },
		{ STR("\"a\\u0000b\""), STR("a\0b") },
		{ STR("\"\xc3\xa9\xf0\x9f\x98\x80\x7f\""), STR("\xc3\xa9\xf0\x9f\x98\x80\x7f") },
	};
	auto_arena struct arena arena = { 0 };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_value *v = read_text(&arena, cases[i].json);

		assert_int_equal(v->kind, JSON_STRING);
		assert_true(str_equal(v->string, cases[i].value));
		assert_int_equal(v->string.data[v->string.len], '\0');
	}
}

static void broken_strings_are_errors(void **state)
{
	static const char lone[] = "line 1, column 2: a surrogate without its other half";

	assert_error(STR("\"\\ud800\""), ERR_INVALID, lone);
	assert_error(STR("\"\\ud800x\""), ERR_INVALID, lone);
	assert_error(STR("\"\\udc00\""), ERR_INVALID, lone);
	assert_error(STR("\"\\ud800\\n\""), ERR_INVALID, lone);
	assert_error(STR("\"\\ud800\\u0041\""), ERR_INVALID, lone);
	assert_error(STR("\"\\ud800\\ud800\""), ERR_INVALID, lone);
	assert_error(STR("\"\\u12g4\""), ERR_INVALID,
		"line 1, column 6: four hexadecimal digits expected after \\u");
	assert_error(STR("\"\\u12"), ERR_INVALID,
		"line 1, column 6: four hexadecimal digits expected after \\u");
	assert_error(STR("\"\\x\""), ERR_INVALID, "line 1, column 2: unknown escape in a string");
	assert_error(STR("\"\\\0\""), ERR_INVALID, "line 1, column 2: unknown escape in a string");
	assert_error(STR("\"\\"), ERR_INVALID, "line 1, column 2: unknown escape in a string");
	assert_error(STR("\"abc"), ERR_INVALID, "line 1, column 1: a string without an end");
	assert_error(STR("\"abc\\\""), ERR_INVALID, "line 1, column 1: a string without an end");
	assert_error(
		STR("\"a\nb\""), ERR_INVALID, "line 1, column 3: a control character in a string");
	assert_error(
		STR("\"\0\""), ERR_INVALID, "line 1, column 2: a control character in a string");
}

static void bytes_that_are_not_utf8_are_errors(void **state)
{
	static const struct str cases[] = { STR("\"a\xff\""), STR("\"a\xc3\""), STR("\"a\x80\""),
		STR("\"a\xc0\x80\""), STR("\"a\xed\xa0\x80\""), STR("\"a\xf4\x90\x80\x80\""),
		STR("\"a\xe2\x82") };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_error(cases[i], ERR_INVALID, "line 1, column 3: bytes that are not UTF-8");
	/* Not even the mark some editors put in front. */
	assert_error(STR("\xef\xbb\xbf{}"), ERR_INVALID, "line 1, column 1: a value expected");
}

static void numbers_are_integers_where_int64_holds_them(void **state)
{
	static const struct {
		const char *json;
		bool is_integer;
		int64_t integer;
		double number;
	} cases[] = {
		{ "0", true, 0, 0 },
		{ "-0", true, 0, 0 },
		{ "9223372036854775807", true, INT64_MAX, 0x1p63 },
		{ "-9223372036854775808", true, INT64_MIN, -0x1p63 },
		{ "9223372036854775808", false, 0, 0x1p63 },
		{ "-9223372036854775809", false, 0, -0x1p63 },
		{ "18446744073709551616", false, 0, 0x1p64 },
		{ "1.0", false, 0, 1 },
		{ "1e3", false, 0, 1000 },
		{ "1E+3", false, 0, 1000 },
		{ "25e-2", false, 0, 0.25 },
		{ "0.1", false, 0, 0.1 },
		{ "1e308", false, 0, 1e308 },
		{ "1e-400", false, 0, 0 },
	};
	auto_arena struct arena arena = { 0 };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_value *v = read_text(&arena, str_from(cases[i].json));

		assert_int_equal(v->kind, JSON_NUMBER);
		assert_int_equal(v->is_integer, cases[i].is_integer);
		assert_true(v->integer == cases[i].integer);
		assert_true(v->number == cases[i].number);
	}
}

static void other_spellings_are_not_numbers(void **state)
{
	static const char *const cases[] = { "01", "-01", "+1", ".5", "1.", "1.e1", "1e", "1e+",
		"-", "--1", "0x10", "NaN", "Infinity", "-Infinity", "1_000", "1 2", "1e1.5" };
	char longest[1002];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_arena struct arena arena = { 0 };
		struct json_value *v;
		struct error err;

		if (json_read(str_from(cases[i]), &arena, &v, &err) == 0)
			fail_msg("'%s' was read", cases[i]);
		assert_int_equal(err.code, ERR_INVALID);
	}
	assert_error(STR("[1e400]"), ERR_INVALID, "line 1, column 2: a number that is too large");
	assert_error(STR("-1e400"), ERR_INVALID, "line 1, column 1: a number that is too large");
	memset(longest, '1', sizeof longest);
	memcpy(longest, "0.", 2);
	assert_error((struct str){ longest, 1001 }, ERR_INVALID,
		"line 1, column 1: a number of more than 1000 characters");
	auto_arena struct arena arena = { 0 };
	assert_true(read_text(&arena, (struct str){ longest, 1000 })->number > 0.1);
}

static void structure_is_strict(void **state)
{
	assert_error(STR(""), ERR_INVALID, "line 1, column 1: a value expected, found the end");
	assert_error(STR(" \n "), ERR_INVALID, "line 2, column 2: a value expected, found the end");
	assert_error(STR("[1,]"), ERR_INVALID, "line 1, column 4: a value expected");
	assert_error(STR("[,1]"), ERR_INVALID, "line 1, column 2: a value expected");
	assert_error(STR("[1 2]"), ERR_INVALID, "line 1, column 4: ',' or ']' expected");
	assert_error(STR("[1"), ERR_INVALID, "line 1, column 3: ',' or ']' expected");
	assert_error(STR("{\"a\":1,}"), ERR_INVALID, "line 1, column 8: a string expected");
	assert_error(STR("{a:1}"), ERR_INVALID, "line 1, column 2: a string expected");
	assert_error(STR("{\"a\" 1}"), ERR_INVALID, "line 1, column 6: ':' expected");
	assert_error(STR("{\"a\":1"), ERR_INVALID, "line 1, column 7: ',' or '}' expected");
	assert_error(STR("{\"a\":1]"), ERR_INVALID, "line 1, column 7: ',' or '}' expected");
	assert_error(STR("'a'"), ERR_INVALID, "line 1, column 1: a value expected");
	assert_error(STR("True"), ERR_INVALID, "line 1, column 1: a value expected");
	assert_error(STR("nul"), ERR_INVALID, "line 1, column 1: a value expected");
	assert_error(STR("// x\n1"), ERR_INVALID, "line 1, column 1: a value expected");
	assert_error(STR("\f1"), ERR_INVALID, "line 1, column 1: a value expected");
}

static void trailing_bytes_are_errors(void **state)
{
	static const char expected[] = "line 1, column 3: something follows the value";

	assert_error(STR("{}x"), ERR_INVALID, expected);
	assert_error(STR("{}{}"), ERR_INVALID, expected);
	assert_error(STR("{}\0"), ERR_INVALID, expected);
	assert_error(STR("{},"), ERR_INVALID, expected);
	assert_error(STR("nulls"), ERR_INVALID, "line 1, column 5: something follows the value");
}

static void errors_say_line_and_column_in_characters(void **state)
{
	assert_error(STR("{\n  \"\xc3\xa9\xe2\x82\xac\": ?\n}"), ERR_INVALID,
		"line 2, column 9: a value expected");
	assert_error(STR("[\r\n1,\r\n\t]"), ERR_INVALID, "line 3, column 2: a value expected");
}

static void depth_ends_at_32(void **state)
{
	auto_arena struct arena arena = { 0 };
	char text[80];

	memset(text, '[', 32);
	memset(text + 32, ']', 32);
	assert_int_equal(read_text(&arena, (struct str){ text, 64 })->kind, JSON_ARRAY);
	memset(text, '[', 33);
	memset(text + 33, ']', 33);
	assert_error((struct str){ text, 66 }, ERR_LIMIT,
		"line 1, column 33: arrays and objects nested deeper than 32");
	auto_buf struct buf deep;
	buf_init(&deep, BUF_MAX_DEFAULT);
	for (int i = 0; i < 100000; i++)
		buf_text(&deep, "{\"a\":");
	assert_error((struct str){ deep.data, deep.len }, ERR_LIMIT,
		"line 1, column 161: arrays and objects nested deeper than 32");
}

static void duplicate_keys_are_errors(void **state)
{
	assert_error(
		STR("{\"a\":1,\n \"a\":2}"), ERR_INVALID, "line 2, column 2: duplicate key 'a'");
	/* The same key in another spelling. */
	assert_error(
		STR("{\"a\":1,\"\\u0061\":2}"), ERR_INVALID, "line 1, column 8: duplicate key 'a'");
	assert_error(STR("{\"\\n\":1,\"\\n\":2}"), ERR_INVALID,
		"line 1, column 9: duplicate key '\\x0a'");
	auto_arena struct arena arena = { 0 };
	read_text(&arena, STR("{\"a\":{\"a\":1},\"A\":2,\"a\\u0000\":3,\"\":4}"));
}

static void big_object(struct buf *out, int count, const char *last)
{
	buf_init(out, BUF_MAX_DEFAULT);
	buf_char(out, '{');
	for (int i = 0; i < count; i++)
		buf_printf(out, "\"key%d\":%d,", i, i);
	buf_printf(out, "\"%s\":0}", last);
}

static void keys_of_big_objects_are_checked_in_linear_time(void **state)
{
	static const char *const again[] = { "key0", "key15", "key16", "key17", "key299998" };
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;

	big_object(&out, 300000, "last");
	clock_t before = clock();
	struct json_value *v = read_text(&arena, (struct str){ out.data, out.len });
	/* Pair by pair it would be 4.5e10 comparisons: minutes. */
	assert_true(clock() - before < 20 * CLOCKS_PER_SEC);
	assert_int_equal(v->count, 300001);
	for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
		auto_arena struct arena other = { 0 };
		auto_buf struct buf twice;
		struct error err = { 0 };

		big_object(&twice, i < 4 ? 20 : 300000, again[i]);
		assert_int_equal(
			json_read((struct str){ twice.data, twice.len }, &other, &v, &err), -1);
		assert_non_null(strstr(err.text, "duplicate key 'key"));
	}
}

static void too_much_is_a_limit(void **state)
{
	auto_buf struct buf out;

	buf_init(&out, BUF_MAX_DEFAULT);
	buf_char(&out, '[');
	for (size_t i = 0; i < JSON_READ_VALUES_MAX; i++)
		buf_text(&out, "0,");
	assert_error((struct str){ out.data, out.len }, ERR_LIMIT,
		"line 1, column 2097152: more than 1048576 values");
	char *spaces = buf_reserve(&out, JSON_READ_MAX);
	memset(spaces, ' ', JSON_READ_MAX);
	buf_grew(&out, JSON_READ_MAX);
	assert_error((struct str){ out.data, out.len }, ERR_LIMIT, "JSON of more than 32 MiB");
}

static void members_are_found_by_key_and_kind(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *v = read_text(
		&arena, STR("{\"t\":\"x\",\"z\":\"a\\u0000\",\"n\":7,\"m\":-7,\"f\":7.0,\"a\":[1],"
			    "\"big\":9223372036854775808}"));
	uint64_t value = 99;

	assert_string_equal(json_member_text(v, "t"), "x");
	assert_null(json_member_text(v, "z"));
	assert_null(json_member_text(v, "n"));
	assert_null(json_member_text(v, "absent"));
	assert_null(json_member_text(NULL, "t"));
	assert_false(json_member_u64(v, "m", &value));
	assert_false(json_member_u64(v, "f", &value));
	assert_false(json_member_u64(v, "big", &value));
	assert_false(json_member_u64(v, "t", &value));
	assert_false(json_member_u64(v, "absent", &value));
	assert_int_equal(value, 99);
	assert_true(json_member_u64(v, "n", &value));
	assert_int_equal(value, 7);
	assert_null(json_member(json_member(v, "a"), "x"));
	assert_int_equal(json_member(v, "a")->count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_keep_their_order_and_kind),
		cmocka_unit_test(strings_are_unescaped),
		cmocka_unit_test(broken_strings_are_errors),
		cmocka_unit_test(bytes_that_are_not_utf8_are_errors),
		cmocka_unit_test(numbers_are_integers_where_int64_holds_them),
		cmocka_unit_test(other_spellings_are_not_numbers),
		cmocka_unit_test(structure_is_strict),
		cmocka_unit_test(trailing_bytes_are_errors),
		cmocka_unit_test(errors_say_line_and_column_in_characters),
		cmocka_unit_test(depth_ends_at_32),
		cmocka_unit_test(duplicate_keys_are_errors),
		cmocka_unit_test(keys_of_big_objects_are_checked_in_linear_time),
		cmocka_unit_test(too_much_is_a_limit),
		cmocka_unit_test(members_are_found_by_key_and_kind),
	};

	return cmocka_run_group_tests_name("json_read", tests, NULL, NULL);
}
