/* uv.toml: every way to write a string, an array or a table; the rest passes by. */
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "format/text/toml_lite.h"
#include "arena_fixture.h"

/* One line an entry: "table#instance key=text", strings in quotes. */
static void assert_parsed(const char *text, const char *expected)
{
	auto_buf struct buf out;
	struct error err;
	toml_list list;

	buf_init(&out, BUF_MAX_DEFAULT);
	if (toml_parse(str_from(text), &arena, &list, &err) < 0)
		fail_msg("'%s': %s", text, err.text);
	for (size_t i = 0; i < list.count; i++) {
		const struct toml_entry *e = &list.items[i];

		buf_printf(&out, e->is_string ? "%s#%d %s='%s'\n" : "%s#%d %s=%s\n", e->table,
			e->instance, e->key, e->text);
	}
	assert_string_equal(out.data, expected);
}

static void assert_refused(struct str text, const char *message)
{
	struct error err = { 0 };
	toml_list list = { 0 };

	if (toml_parse(text, &arena, &list, &err) == 0)
		fail_msg("'%.*s' is taken", (int)text.len, text.data);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.text, message);
}

static void tables_are_told_apart(void **state)
{
	assert_parsed(
		"\xef\xbb\xbfindex-url = \"u\" # c\r\n\r\n[[index]]\nurl='a'\ndefault = true\n"
		"[[ index ]]\nurl = 'b'\n[pip]\nindex-url = 'c'\n[a.\"b c\"]\nx.y = 1\n",
		"#0 index-url='u'\nindex#1 url='a'\nindex#1 default=true\nindex#2 url='b'\n"
		"pip#3 index-url='c'\na.b c#4 x.y=1\n");
	assert_parsed("", "");
	assert_parsed("# only\n", "");
}

static void arrays_and_inline_tables_are_entered(void **state)
{
	assert_parsed("e = [ 'a', # c\n \"b\",\n]\nd = 1979-05-27T07:32:00Z\nf = [[1, 2], []]\n",
		"#0 e='a'\n#0 e='b'\n#0 d=1979-05-27T07:32:00Z\n#0 f=1\n#0 f=2\n#0 f=[]\n");
	assert_parsed("index = [{ url = 'a', default = true }, {url='b'}]\n[t]\nq = { r = {s=1} }",
		"index#1 url='a'\nindex#1 default=true\nindex#2 url='b'\nt.q.r#5 s=1\n");
}

static void strings_of_all_kinds_are_read(void **state)
{
	assert_parsed("a = \"x\\t\\\"\\\\\\u00e4\\U0001F600\\x41 # [\"\nb = 'c:\\d'\n",
		"#0 a='x\t\"\\\xc3\xa4\xf0\x9f\x98\x80"
		"A # ['\n#0 b='c:\\d'\n");
	assert_parsed("a = \"\"\"\nx\\\n   y\nz\"\"\"\"\nb = '''\r\nu = \"v\"\\'''\nc=\"\"\nd=''",
		"#0 a='xy\nz\"'\n#0 b='u = \"v\"\\'\n#0 c=''\n#0 d=''\n");
}

static void broken_files_are_refused_with_a_line(void **state)
{
	assert_refused(STR("a = 'x\n"), "line 1: a string isn't closed");
	assert_refused(STR("\na = \"\"\"x\n\n"), "line 4: a string isn't closed");
	assert_refused(STR("a = \"\\q\""), "line 1: an invalid escape after a backslash");
	assert_refused(STR("a = \"\\u12\""), "line 1: an escape with too few digits");
	assert_refused(STR("a = \"\\u0000\""), "line 1: an escape of an invalid character");
	assert_refused(STR("a = \"\\ud800\""), "line 1: an escape of an invalid character");
	assert_refused(STR("a = \"\\"), "line 1: an invalid escape after a backslash");
	assert_refused(STR("a\n"), "line 1: '=' is expected after a key");
	assert_refused(STR("= 1\n"), "line 1: a key is expected here");
	assert_refused(STR("a =\n"), "line 1: a value is expected here");
	assert_refused(STR("a = [1,\n2"), "line 2: an array isn't closed");
	assert_refused(STR("a = {b=1"), "line 1: an inline table isn't closed");
	assert_refused(STR("[a\nb=1"), "line 1: a table's header isn't closed");
	assert_refused(STR("[[a]\n"), "line 1: a table's header isn't closed");
	assert_refused(STR("a = 'x' y\n"), "line 1: the end of the line is expected here");
	assert_refused(STR("a = [[[[[[[[[[[[[[[[[["), "line 1: values are nested too deeply");
	assert_refused(STR("a = 'x\0y'"), "the file contains a NUL byte");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tables_are_told_apart),
		TEST(arrays_and_inline_tables_are_entered),
		TEST(strings_of_all_kinds_are_read),
		TEST(broken_files_are_refused_with_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
