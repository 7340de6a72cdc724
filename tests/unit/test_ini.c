/* pip.conf: sections, keys as pip takes them, long values, comments; and what it can't be. */
#include <string.h>
#include "format/text/ini.h"
#include "arena_fixture.h"

static ini_list parse(const char *text)
{
	struct error err;
	ini_list list = { 0 };

	if (ini_parse(str_from(text), &arena, &list, &err) < 0)
		fail_msg("'%s': %s", text, err.text);
	return list;
}

static void assert_refused(struct str text, const char *message)
{
	struct error err = { 0 };
	ini_list list = { 0 };

	assert_int_equal(ini_parse(text, &arena, &list, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.text, message);
}

static void entries_have_sections_and_normal_keys(void **state)
{
	ini_list list =
		parse("\xef\xbb\xbf# c\r\n[global]\r\nIndex_URL = https://index.example/a=b\r\n"
		      "; c\ntimeout:5\nempty =\n[install] ; x\nno-deps = yes # kept\n");

	assert_int_equal(list.count, 4);
	assert_string_equal(ini_find(&list, "global", "index-url"), "https://index.example/a=b");
	assert_string_equal(ini_find(&list, "global", "timeout"), "5");
	assert_string_equal(ini_find(&list, "global", "empty"), "");
	assert_string_equal(ini_find(&list, "install", "no-deps"), "yes # kept");
	assert_null(ini_find(&list, "install", "index-url"));
	assert_int_equal(list.items[3].line, 8);
	assert_int_equal(parse("").count, 0);
}

static void indented_lines_continue_a_value(void **state)
{
	ini_list list = parse("[global]\nextra-index-url =\n    https://a.example\n\n  # c\n"
			      "\thttps://b.example = x\n[s]\n  a = 1\n  b = 2\n   more\na = 3\n");

	assert_string_equal(ini_find(&list, "global", "extra-index-url"),
		"https://a.example\nhttps://b.example = x");
	assert_string_equal(ini_find(&list, "s", "b"), "2\nmore");
	assert_string_equal(ini_find(&list, "s", "a"), "3");
	assert_string_equal(list.items[1].value, "1");
}

static void other_lines_are_refused(void **state)
{
	assert_refused(STR("a = 1\n"), "line 1: a section such as [global] must come first");
	assert_refused(STR("[g]\n\nabc\n"), "line 3: neither a section nor key = value");
	assert_refused(STR("[g]\n = 1\n"), "line 2: neither a section nor key = value");
	assert_refused(STR("[g\n"), "line 1: '[' without a section's name and ']'");
	assert_refused(STR("[]\n"), "line 1: '[' without a section's name and ']'");
	assert_refused(STR("[g]\na = \0\n"), "the file contains a NUL byte");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(entries_have_sections_and_normal_keys),
		TEST(indented_lines_continue_a_value),
		TEST(other_lines_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
