/* Buffers: always terminated, never past their maximum. */
#include <string.h>
#include "base/buf.h"
#include "unit.h"

static void an_empty_buffer_is_an_empty_string(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, 100);
	assert_string_equal(b.data, "");
	assert_true(buf_append(&b, NULL, 0));
	assert_string_equal(b.data, "");
	buf_done(&b);
	assert_string_equal(b.data, "");
	assert_false(buf_char(&b, 'x'));
}

static void what_is_appended_is_there_and_terminated(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, BUF_MAX_DEFAULT);
	for (int i = 0; i < 1000; i++) {
		assert_true(buf_printf(&b, "%03d", i));
		assert_true(buf_text(&b, ","));
		assert_true(buf_char(&b, ' '));
		assert_true(buf_append(&b, "\0z", 2));
	}
	assert_int_equal(b.len, 7000);
	assert_int_equal(b.data[b.len], '\0');
	assert_memory_equal(b.data + 999 * 7, "999, \0z", 7);
	assert_memory_equal(b.data, "000, \0z", 7);
}

static void the_maximum_is_exact(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, 10);
	assert_true(buf_text(&b, "0123456789"));
	assert_false(b.overflow);
	assert_false(buf_char(&b, 'x'));
	assert_true(b.overflow);
	assert_string_equal(b.data, "0123456789");
}

static void an_overflow_changes_nothing_and_stays_refused(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, 4);
	assert_true(buf_text(&b, "abc"));
	assert_false(buf_printf(&b, "%s", "de"));
	assert_string_equal(b.data, "abc");
	assert_false(buf_char(&b, 'd'));
	assert_null(buf_reserve(&b, 0));
	assert_string_equal(b.data, "abc");
	buf_clear(&b);
	assert_string_equal(b.data, "");
	assert_true(buf_text(&b, "abcd"));
	assert_string_equal(b.data, "abcd");
}

static void a_line_is_ended_once(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, 4);
	assert_true(buf_end_line(&b));
	assert_int_equal(b.len, 0);
	buf_text(&b, "ab");
	assert_true(buf_end_line(&b) && buf_end_line(&b));
	assert_string_equal(b.data, "ab\n");
	buf_char(&b, 'c');
	assert_false(buf_end_line(&b));
}

static void a_length_near_the_end_of_memory_is_an_overflow_not_a_wrap(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, SIZE_MAX);
	assert_true(buf_char(&b, 'a'));
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_true(b.overflow);
	assert_string_equal(b.data, "a");
}

static void reserved_room_becomes_content_when_said(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, 1000);
	buf_text(&b, "ab");
	char *at = buf_reserve(&b, 998);
	assert_ptr_equal(at, b.data + 2);
	memset(at, 'c', 998);
	buf_grew(&b, 3);
	assert_string_equal(b.data, "abccc");
	assert_non_null(buf_reserve(&b, 995));
	assert_null(buf_reserve(&b, 996));
}

static void claiming_more_than_was_reserved_aborts(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, 1000);
	buf_text(&b, "ab");
	assert_aborts(buf_grew(&b, b.capacity - b.len));
	assert_aborts(buf_drop_front(&b, 3));
}

static void dropping_the_front_moves_the_rest(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, 100);
	buf_drop_front(&b, 0);
	buf_text(&b, "hello world");
	buf_drop_front(&b, 6);
	assert_string_equal(b.data, "world");
	buf_drop_front(&b, 5);
	assert_string_equal(b.data, "");
	assert_int_equal(b.len, 0);
}

static void quoted_text_is_json(void **state)
{
	auto_buf struct buf b;

	buf_init(&b, 1000);
	buf_quoted(&b, STR("a\"\\/\b\f\n\r\t\x01\x1f\x7f\0."));
	assert_string_equal(b.data, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\u0000.\"");
	buf_clear(&b);
	buf_quoted(&b, STR("\xe2\x82\xac\xff\xc2\x85\xc2\xa0\xe2\x82"));
	assert_string_equal(
		b.data, "\"\xe2\x82\xac\xef\xbf\xbd\\u0085\xc2\xa0\xef\xbf\xbd\xef\xbf\xbd\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_is_an_empty_string),
		cmocka_unit_test(what_is_appended_is_there_and_terminated),
		cmocka_unit_test(the_maximum_is_exact),
		cmocka_unit_test(an_overflow_changes_nothing_and_stays_refused),
		cmocka_unit_test(a_line_is_ended_once),
		cmocka_unit_test(a_length_near_the_end_of_memory_is_an_overflow_not_a_wrap),
		cmocka_unit_test(reserved_room_becomes_content_when_said),
		cmocka_unit_test(claiming_more_than_was_reserved_aborts),
		cmocka_unit_test(dropping_the_front_moves_the_rest),
		cmocka_unit_test(quoted_text_is_json),
	};

	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
