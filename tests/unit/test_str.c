/* Views of bytes: exact at their ends, strict about numbers and UTF-8. */
#include <stdlib.h>
#include "base/str.h"
#include "unit.h"

static void assert_str(struct str s, const char *expected)
{
	assert_int_equal(s.len, strlen(expected));
	assert_memory_equal(s.data, expected, s.len);
}

static void equality_counts_length_and_every_byte(void **state)
{
	assert_true(str_equal(STR("a\0b"), STR("a\0b")));
	assert_false(str_equal(STR("a\0b"), STR("a\0c")));
	assert_false(str_equal(STR("ab"), STR("abc")));
	assert_true(str_equal((struct str){ NULL, 0 }, STR("")));
	assert_true(str_is((struct str){ "hello", 4 }, "hell"));
	assert_false(str_is(STR("hell"), "hello"));
	assert_true(str_starts_with(STR("shared:1"), "shared:"));
	assert_true(str_starts_with((struct str){ NULL, 0 }, ""));
	assert_false(str_starts_with(STR("sha"), "shared:"));
}

static void trim_takes_blanks_off_both_ends_only(void **state)
{
	assert_str(str_trim(STR(" \t\r\na b\n ")), "a b");
	assert_str(str_trim(STR(" \n ")), "");
	assert_str(str_trim((struct str){ NULL, 0 }), "");
	assert_str(str_last_line(STR("a\n b c \n\t\n")), " b c");
	assert_str(str_last_line(STR(" a ")), "a");
	assert_str(str_last_line(STR("\n ")), "");
	assert_str(str_last_line((struct str){ NULL, 0 }), "");
}

static void cut_splits_at_the_first_separator(void **state)
{
	struct str head, tail;

	assert_true(str_cut(STR("a:b:c"), ':', &head, &tail));
	assert_str(head, "a");
	assert_str(tail, "b:c");
	assert_true(str_cut(STR("a:"), ':', &head, &tail));
	assert_str(tail, "");
	assert_false(str_cut(STR("abc"), ':', &head, &tail));
	assert_str(head, "abc");
	assert_str(tail, "");
	assert_false(str_cut((struct str){ NULL, 0 }, ':', &head, &tail));
	assert_int_equal(head.len + tail.len, 0);
}

static void next_walks_pieces_and_keeps_empty_ones_inside(void **state)
{
	struct str rest = STR("a,,b,"), piece;

	assert_true(str_next(&rest, ',', &piece));
	assert_str(piece, "a");
	assert_true(str_next(&rest, ',', &piece));
	assert_str(piece, "");
	assert_true(str_next(&rest, ',', &piece));
	assert_str(piece, "b");
	assert_false(str_next(&rest, ',', &piece));
}

static void only_whole_decimal_numbers_are_numbers(void **state)
{
	static const char *const wrong[] = { "", "-1", "+1", " 1", "1 ", "0x1", "1a", "1.0",
		"18446744073709551616", "99999999999999999999", "\xd9\xa1" };
	uint64_t value = 77;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(str_to_u64(str_from(wrong[i]), &value));
		assert_int_equal(value, 77);
	}
	assert_true(str_to_u64(STR("18446744073709551615"), &value));
	assert_true(value == UINT64_MAX);
	assert_true(str_to_u64(STR("0007"), &value));
	assert_int_equal(value, 7);
	/* A view of part of a longer text ends where it ends. */
	assert_true(str_to_u64((struct str){ "123456", 3 }, &value));
	assert_int_equal(value, 123);
}

static void bounded_copies_end_with_nul_and_say_when_they_cut(void **state)
{
	char out[4] = "zzz";

	assert_true(str_copy(out, sizeof out, "abc"));
	assert_string_equal(out, "abc");
	assert_false(str_copy(out, sizeof out, "abcd"));
	assert_string_equal(out, "abc");
	assert_false(str_copy(out, 1, "a"));
	assert_string_equal(out, "");
	out[0] = 'q';
	assert_false(str_copy(out, 0, ""));
	assert_int_equal(out[0], 'q');
	assert_true(str_format(out, sizeof out, "%d", 123));
	assert_false(str_format(out, sizeof out, "%d", 1234));
	assert_string_equal(out, "123");
	assert_false(str_format(out, 0, "x"));
}

static void utf8_is_judged_by_the_standard(void **state)
{
	static const struct {
		const char *text;
		size_t len, valid;
	} cases[] = {
		{ "", 0, 0 },
		{ "abc\0d", 5, 5 },
		{ "\xc3\xa9", 2, 2 },
		{ "\xc3", 1, 0 },	      /* cut */
		{ "\xc0\x80", 2, 0 },	      /* overlong NUL */
		{ "\xc1\xbf", 2, 0 },	      /* overlong */
		{ "\xe0\x9f\xbf", 3, 0 },     /* overlong */
		{ "\xe0\xa0\x80", 3, 3 },     /* U+0800 */
		{ "\xed\x9f\xbf", 3, 3 },     /* U+D7FF */
		{ "\xed\xa0\x80", 3, 0 },     /* surrogate */
		{ "\xee\x80\x80", 3, 3 },     /* U+E000 */
		{ "\xf0\x8f\xbf\xbf", 4, 0 }, /* overlong */
		{ "\xf0\x90\x80\x80", 4, 4 }, /* U+10000 */
		{ "\xf4\x8f\xbf\xbf", 4, 4 }, /* U+10FFFF */
		{ "\xf4\x90\x80\x80", 4, 0 }, /* U+110000 */
		{ "\xf5\x80\x80\x80", 4, 0 },
		{ "\x80", 1, 0 },
		{ "ok\xe2\x82\xac\xe2\x82", 7, 5 },
		{ "a\xe2\x28\xa1", 4, 1 },
		{ "\xe2\x82\x28", 3, 0 },
		{ "\xf0\x9f\x98\x28", 4, 0 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(str_utf8_prefix(cases[i].text, cases[i].len), cases[i].valid);
}

static void printable_text_fits_is_one_line_and_marks_its_cut(void **state)
{
	char out[16];

	assert_true(str_printable(out, sizeof out, STR("a\nb\0c")));
	assert_string_equal(out, "a\\x0ab\\x00c");
	assert_true(str_printable(out, sizeof out, STR("exactly 15 long")));
	assert_string_equal(out, "exactly 15 long");
	assert_false(str_printable(out, sizeof out, STR("sixteen is long!")));
	assert_string_equal(out, "sixteen is l...");
	assert_false(str_printable(out, sizeof out, STR("0123456789\n\n")));
	assert_string_equal(out, "0123456789...");
	assert_false(str_printable(out, 3, STR("abcdef")));
	assert_string_equal(out, "..");
	assert_false(str_printable(out, 1, STR("a")));
	assert_string_equal(out, "");
	assert_false(str_printable(out, 0, STR("a")));
	/* Whatever the room, it never writes past it. */
	for (size_t size = 1; size < 40; size++) {
		char *exact = malloc(size);

		str_printable(exact, size, STR("ab\xe2\x82\xac\x01\xff\xf0\x9f\x98\x80 tail \n"));
		assert_true(strlen(exact) < size);
		assert_int_equal(str_utf8_prefix(exact, strlen(exact)), strlen(exact));
		free(exact);
	}
}

static void hints_come_from_close_words_only(void **state)
{
	static const struct {
		const char *typed, *known;
		bool is_near;
	} rows[] = {
		{ "rnu", "run", true },
		{ "craete", "create", true },
		{ "ruun", "run", true },
		{ "requirments", "requirements", true },
		{ "exit", "exec", false },
		{ "push", "ps", false },
		{ "l", "ls", false },
		{ "list", "ls", false },
		{ "agent-9", "my-tools", false },
		{ "timeout", "ttl", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t distance = SIZE_MAX;
		assert_int_equal(
			str_is_nearer(rows[i].typed, rows[i].known, &distance), rows[i].is_near);
	}
	size_t one = 1;
	assert_false(str_is_nearer("crate", "create", &one)); /* another is as near */
	assert_int_equal(str_distance("abcd", "acbd"), 1);
	assert_int_equal(str_distance("", "abc"), 3);
	assert_int_equal(str_distance("abc", ""), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hints_come_from_close_words_only),
		cmocka_unit_test(equality_counts_length_and_every_byte),
		cmocka_unit_test(trim_takes_blanks_off_both_ends_only),
		cmocka_unit_test(cut_splits_at_the_first_separator),
		cmocka_unit_test(next_walks_pieces_and_keeps_empty_ones_inside),
		cmocka_unit_test(only_whole_decimal_numbers_are_numbers),
		cmocka_unit_test(bounded_copies_end_with_nul_and_say_when_they_cut),
		cmocka_unit_test(utf8_is_judged_by_the_standard),
		cmocka_unit_test(printable_text_fits_is_one_line_and_marks_its_cut),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
