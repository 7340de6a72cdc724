/* The JSON writer: what comes out is JSON, and misuse doesn't come out at all. */
#include <string.h>
#include "format/text/json.h"
#include "unit.h"

static void nested_values_are_separated_and_closed(void **state)
{
	auto_buf struct buf out;
	struct json j;

	buf_init(&out, 1000);
	j = json_to(&out, false);
	json_object(&j, NULL);
	json_text(&j, "text", "a\"b");
	json_text(&j, "absent", NULL);
	json_u64(&j, "big", UINT64_MAX);
	json_i64(&j, "small", INT64_MIN);
	json_bool(&j, "yes", true);
	json_bool(&j, "no", false);
	json_array(&j, "list");
	json_u64(&j, NULL, 1);
	json_object(&j, NULL);
	json_end(&j);
	json_array(&j, NULL);
	json_end(&j);
	json_null(&j, NULL);
	json_end(&j);
	json_str(&j, "st\nr", (struct str){ "abcdef", 3 });
	json_end(&j);
	json_finish(&j);
	assert_string_equal(out.data,
		"{\"text\":\"a\\\"b\",\"absent\":null,\"big\":18446744073709551615,"
		"\"small\":-9223372036854775808,\"yes\":true,\"no\":false,"
		"\"list\":[1,{},[],null],\"st\\nr\":\"abc\"}");
}

static void pretty_output_is_indented_by_two(void **state)
{
	auto_buf struct buf out;
	struct json j;

	buf_init(&out, 1000);
	j = json_to(&out, true);
	json_object(&j, NULL);
	json_u64(&j, "a", 1);
	json_array(&j, "b");
	json_u64(&j, NULL, 2);
	json_u64(&j, NULL, 3);
	json_end(&j);
	json_object(&j, "c");
	json_end(&j);
	json_end(&j);
	assert_string_equal(
		out.data, "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    3\n  ],\n  \"c\": {}\n}");
}

static void a_single_value_needs_no_container(void **state)
{
	auto_buf struct buf out;
	struct json j;

	buf_init(&out, 1000);
	j = json_to(&out, true);
	json_text(&j, NULL, "x");
	json_finish(&j);
	assert_string_equal(out.data, "\"x\"");
}

static void real_numbers_have_at_most_three_decimals(void **state)
{
	static const double values[] = { 45.2, 3, 0.0012, 0, -1.5, 1.0 / 0.0, 1e308 };
	auto_buf struct buf out;
	struct json j;

	buf_init(&out, 1000);
	j = json_to(&out, false);
	json_array(&j, NULL);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		json_real(&j, NULL, values[i]);
	json_end(&j);
	struct str all = { out.data, out.len };
	assert_true(str_starts_with(all, "[45.2,3.0,0.001,0.0,-1.5,null,1000000000"));
	assert_string_equal(out.data + out.len - 3, ".0]");
}

static void base64_is_padded_as_in_the_rfc(void **state)
{
	static const char *const cases[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" }, { "\xfb\xff\xfe", "+//+" } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_buf struct buf out;
		struct json j;
		char expected[32];

		buf_init(&out, 1000);
		j = json_to(&out, false);
		json_base64(&j, NULL, cases[i][0], strlen(cases[i][0]));
		str_format(expected, sizeof expected, "\"%s\"", cases[i][1]);
		assert_string_equal(out.data, expected);
	}
}

static void too_much_is_an_overflow_of_the_buffer(void **state)
{
	auto_buf struct buf out;
	struct json j;

	buf_init(&out, 10);
	j = json_to(&out, false);
	json_array(&j, NULL);
	for (int i = 0; i < 100; i++)
		json_u64(&j, NULL, 12345);
	json_end(&j);
	assert_true(out.overflow);
	assert_true(out.len <= 10);
}

static struct json started(struct buf *out, char kind)
{
	struct json j;

	buf_init(out, 1000);
	j = json_to(out, false);
	if (kind == '[')
		json_array(&j, NULL);
	if (kind == '{')
		json_object(&j, NULL);
	return j;
}

static void misuse_aborts(void **state)
{
	auto_buf struct buf out = { 0 };
	struct json j = started(&out, '[');

	assert_aborts(json_u64(&j, "key", 1));
	assert_aborts(json_finish(&j));
	buf_done(&out);
	j = started(&out, '{');
	assert_aborts(json_u64(&j, NULL, 1));
	assert_aborts(json_object(&j, NULL));
	buf_done(&out);
	j = started(&out, ' ');
	assert_aborts(json_end(&j));
	assert_aborts(json_u64(&j, "key", 1));
	assert_aborts(json_finish(&j));
	json_u64(&j, NULL, 1);
	assert_aborts(json_u64(&j, NULL, 2));
}

static void depth_has_an_end(void **state)
{
	auto_buf struct buf out = { 0 };
	struct json j = started(&out, ' ');

	for (int i = 1; i < JSON_DEPTH_MAX; i++)
		json_array(&j, NULL);
	assert_aborts(json_array(&j, NULL));
	for (int i = 1; i < JSON_DEPTH_MAX; i++)
		json_end(&j);
	json_finish(&j);
}

/* Every way to cut a text in two must measure the same as the whole of it. */
static void a_measure_does_not_depend_on_the_pieces(void **state)
{
	static const struct {
		const char *text;
		bool is_binary;
		unsigned tail_len;
	} cases[] = { { "plain", false, 0 }, { "a\n\"\\\x01\x7f", false, 0 },
		{ "\xc2\x85 \xe2\x82\xac \xf0\x9f\x98\x80", false, 0 }, { "a\xe2\x82", false, 2 },
		{ "\xe2\x82z", true, 0 }, { "\xf0\x9f\x98", false, 3 }, { "a\xff", true, 0 },
		{ "\x80", true, 0 }, { "\xed\xa0\x80", true, 0 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct str text = str_from(cases[i].text);

		for (size_t cut = 0; cut <= text.len; cut++) {
			struct json_measure m = { 0 };
			auto_buf struct buf escaped;

			buf_init(&escaped, 1000);
			json_measure_add(&m, (struct str){ text.data, cut });
			json_measure_add(&m, (struct str){ text.data + cut, text.len - cut });
			assert_int_equal(m.is_binary, cases[i].is_binary);
			if (m.is_binary)
				continue;
			assert_int_equal(m.tail_len, cases[i].tail_len);
			assert_int_equal(m.bytes, text.len - m.tail_len);
			buf_escaped(&escaped, (struct str){ text.data, text.len - m.tail_len });
			assert_int_equal(m.escaped, escaped.len);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_measure_does_not_depend_on_the_pieces),
		cmocka_unit_test(nested_values_are_separated_and_closed),
		cmocka_unit_test(pretty_output_is_indented_by_two),
		cmocka_unit_test(a_single_value_needs_no_container),
		cmocka_unit_test(real_numbers_have_at_most_three_decimals),
		cmocka_unit_test(base64_is_padded_as_in_the_rfc),
		cmocka_unit_test(too_much_is_an_overflow_of_the_buffer),
		cmocka_unit_test(misuse_aborts),
		cmocka_unit_test(depth_has_an_end),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
