/* The YAML reader: its part of YAML as YAML has it, and an error for all the rest. */
#include <string.h>
#include "base/buf.h"
#include "format/text/yaml.h"
#include "unit.h"

/* A tree in one line: null as ~, plain scalars as they are, quoted ones in '', [lists], {maps}. */
static void print(const struct yaml_value *v, struct buf *out)
{
	if (v->key)
		buf_printf(out, "%s:", v->key);
	if (v->kind == YAML_NULL)
		buf_char(out, '~');
	if (v->kind == YAML_SCALAR)
		buf_printf(out, v->is_quoted ? "'%s'" : "%s", v->text);
	if (v->kind < YAML_LIST)
		return;
	buf_char(out, v->kind == YAML_LIST ? '[' : '{');
	for (const struct yaml_value *m = v->first; m; m = m->next) {
		if (m != v->first)
			buf_char(out, ' ');
		print(m, out);
	}
	buf_char(out, v->kind == YAML_LIST ? ']' : '}');
}

static void assert_reads(const char *text, const char *expected)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct yaml_value *root;
	struct error err = { 0 };

	if (yaml_read(str_from(text), &arena, &root, &err) < 0)
		fail_msg("'%s': %s", text, err.text);
	buf_init(&out, 100000);
	print(root, &out);
	assert_string_equal(out.data, expected);
}

static void assert_error_str(struct str text, enum error_code code, const char *expected)
{
	auto_arena struct arena arena = { 0 };
	struct yaml_value untouched, *root = &untouched;
	struct error err = { 0 };

	if (yaml_read(text, &arena, &root, &err) == 0)
		fail_msg("'%s' was read", text.data);
	assert_ptr_equal(root, &untouched);
	assert_int_equal(err.code, code);
	assert_string_equal(err.text, expected);
}

static void assert_error(const char *text, const char *expected)
{
	assert_error_str(str_from(text), ERR_INVALID, expected);
}
#define assert_unsupported(text, what) assert_error(text, what ": not supported in this file")

static void nothing_is_null(void **state)
{
	assert_reads("", "~");
	assert_reads("\n\n", "~");
	assert_reads("# only\n   # comments\n\t\n", "~");
	assert_reads("---\n", "~");
	assert_reads("--- # begins\n# ends", "~");
}

static void maps_are_nested_by_indentation(void **state)
{
	assert_reads("a: 1", "{a:1}");
	assert_reads("---\na: 1\nb:\n  c: 2\n  d:\n      e: 3\n  f: 4\ng: 5\n",
		"{a:1 b:{c:2 d:{e:3} f:4} g:5}");
	assert_reads("a: 1\r\nb:\r\n  c: 2\r\n", "{a:1 b:{c:2}}");
	assert_reads("a:\nb:\n", "{a:~ b:~}");
	assert_reads("a:\n\n  # deep\n  b: 1\n# shallow\n  c: 2\n", "{a:{b:1 c:2}}");
	assert_reads("a : 1\n'b c' : 2\n\"d: e\": 3\n", "{a:1 b c:2 d: e:3}");
	assert_reads("\xc3\xa9: \xe2\x82\xac\n", "{\xc3\xa9:\xe2\x82\xac}");
}

static void scalars_are_plain_or_quoted(void **state)
{
	assert_reads("a: b c  d  \n", "{a:b c  d}");
	assert_reads("a: it's \"so\"\n", "{a:it's \"so\"}");
	assert_reads("a: x#y # z\n", "{a:x#y}");
	assert_reads("a: https://x.example/y#z\n", "{a:https://x.example/y#z}");
	assert_reads("a: -1\nb: -x\nc: ?y\nd: :z\n", "{a:-1 b:-x c:?y d::z}");
	assert_reads("a: ''\nb: \"\"\n", "{a:'' b:''}");
	assert_reads("a: 'it''s # [x]: ,' # c\n", "{a:'it's # [x]: ,'}");
	assert_reads("a: \"\\\"\\\\\\/\\n\\t'\"\n", "{a:'\"\\/\n\t''}");
	assert_reads("a: 2026-01-01\nb: true\nc: 10G\n", "{a:2026-01-01 b:true c:10G}");
}

static void null_has_four_names_unless_quoted(void **state)
{
	assert_reads("a: ~\nb: null\nc: Null\nd: NULL\ne: # none\nf: 'null'\ng: nulls\n",
		"{a:~ b:~ c:~ d:~ e:~ f:'null' g:nulls}");
}

static void lists_are_items_or_brackets(void **state)
{
	assert_reads("a:\n  - x\n  - 'y z'\n  - \"w\" # c\nb: 1\n", "{a:[x 'y z' 'w'] b:1}");
	assert_reads("a:\n- x\n- y\nb: 1\n", "{a:[x y] b:1}");
	assert_reads("- x\n- y\n", "[x y]");
	assert_reads("a: []\nb: [ ]\nc: [x]\n", "{a:[] b:[] c:[x]}");
	assert_reads("a: [x, 'y, z' , \"w\",q r ,] # c\n", "{a:[x 'y, z' 'w' q r]}");
	assert_reads("a: [b:c, d#e, ~]\n", "{a:[b:c d#e ~]}");
}

static void values_know_their_line(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct yaml_value *root;

	assert_int_equal(
		yaml_read(STR("# c\na: 1\n\nb:\n  c:\n  - x\n  - y\n"), &arena, &root, NULL), 0);
	assert_int_equal(root->first->line, 2);
	assert_int_equal(root->first->next->line, 4);
	const struct yaml_value *c = root->first->next->first;
	assert_int_equal(c->line, 5);
	assert_int_equal(c->first->line, 6);
	assert_int_equal(c->first->next->line, 7);
	assert_int_equal(c->count, 2);
}

static void the_rest_of_yaml_is_refused_by_name(void **state)
{
	assert_unsupported("a: &x 1", "line 1: a: an anchor (&)");
	assert_unsupported("a:\n  b: *x", "line 2: a.b: an alias (*)");
	assert_unsupported("a: !!str 1", "line 1: a: a tag (!)");
	assert_unsupported("!x a: 1", "line 1: a tag (!)");
	assert_unsupported("a: |\n  x", "line 1: a: text of several lines (|)");
	assert_unsupported("a: >-\n  x", "line 1: a: text of several lines (>)");
	assert_unsupported("a: {b: 1}", "line 1: a: a map in braces ({})");
	assert_unsupported("{a: 1}", "line 1: a map in braces ({})");
	assert_unsupported("[a, b]", "line 1: a list in brackets here");
	assert_unsupported("a: [b, [c]]", "line 1: a: a list in brackets here");
	assert_unsupported("a: [{b: c}]", "line 1: a: a map in braces ({})");
	assert_unsupported("a:\n  - - b", "line 2: a: a list in a list");
	assert_unsupported("a:\n  - [b]", "line 2: a: a list in brackets here");
	assert_unsupported("? a\n: b", "line 1: a key that begins with '?'");
	assert_unsupported("<<: x", "line 1: a merge key (<<)");
	assert_unsupported("%YAML 1.2\n---\na: 1", "line 1: a directive (%)");
	assert_unsupported("a: 1\n---\nb: 2", "line 2: more than one document");
	assert_unsupported("---\n---\na: 1", "line 2: more than one document");
	assert_unsupported("a: 1\n...\n", "line 2: more than one document");
	assert_unsupported("- a\n---\n- b", "line 2: more than one document");
	assert_unsupported("\xef\xbb\xbf"
			   "a: 1",
		"line 1: a byte order mark");
	assert_unsupported(
		"a: \"\\u0041\"", "line 1: a: an escape other than \\\" \\\\ \\/ \\n \\t");
	assert_unsupported("a: x\n  y", "line 2: a: indented more than the line it follows; a "
					"value of several lines");
	assert_unsupported("a: 'x'\n  y: 1", "line 2: a: indented more than the line it follows; "
					     "a value of several lines");
	assert_unsupported("a:\n- x\n  y", "line 3: a: indented more than the line it follows; a "
					   "value of several lines");
	assert_error("a:\n  - b: c",
		"line 2: a: a map is not allowed here; text that contains ': ' must be in quotes");
	assert_error("--- a", "line 1: something follows the value");
}

static void tabs_are_refused(void **state)
{
	static const struct {
		const char *text, *place;
	} cases[] = { { "a:\n\tb: 1", "line 2: a: " }, { "\ta: 1", "line 1: " },
		{ "a:\t1", "line 1: a: " }, { "a: x\ty", "line 1: a: " },
		{ "a: 'x\ty'", "line 1: a: " }, { "a: \"x\ty\"", "line 1: a: " },
		{ "a\tb: 1", "line 1: " }, { "a: [x,\ty]", "line 1: a: " },
		{ "a:\n-\tx", "line 2: a: " }, { "a: 'x'\t# c", "line 1: a: " },
		{ "a: x\t# c", "line 1: a: " } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char expected[100];

		str_format(expected, sizeof expected, "%sa tab: use spaces", cases[i].place);
		assert_error(cases[i].text, expected);
	}
	assert_reads("a: 1 #\tcomment\n", "{a:1}");
}

static void broken_structure_is_an_error(void **state)
{
	assert_error("a", "line 1: 'key: value' expected");
	assert_error("a:1", "line 1: 'key: value' expected");
	assert_error("a # b: 1", "line 1: 'key: value' expected");
	assert_error("'a' b: 1", "line 1: 'key: value' expected");
	assert_error(": 1", "line 1: text that begins with ':' must be in quotes");
	assert_error("a: b: c",
		"line 1: a: a map is not allowed here; text that contains ': ' must be in quotes");
	assert_error("a: b:",
		"line 1: a: a map is not allowed here; text that contains ': ' must be in quotes");
	assert_error("a: [b:, c]",
		"line 1: a: a map is not allowed here; text that contains ': ' must be in quotes");
	assert_error("a: @x", "line 1: a: text that begins with '@' must be in quotes");
	assert_error("a: `x`", "line 1: a: text that begins with '`' must be in quotes");
	assert_error("a: ]", "line 1: a: text that begins with ']' must be in quotes");
	assert_error("a: - b", "line 1: a: a list must begin on its own line");
	assert_error("a: [b", "line 1: a: a list in brackets must end on the same line");
	assert_error("a: [b,\n  c]", "line 1: a: a list in brackets must end on the same line");
	assert_error("a: [b # c]", "line 1: a: a list in brackets must end on the same line");
	assert_error("a: [,]", "line 1: a: text that begins with ',' must be in quotes");
	assert_error("a: ['b' c]", "line 1: a: ',' or ']' expected");
	assert_error("a: [b}]", "line 1: a: text that contains '}' must be in quotes");
	assert_error("a: [b] c", "line 1: a: something follows the value");
	assert_error("a: 'b' c", "line 1: a: something follows the value");
	assert_error("a: 'b'#c", "line 1: a: something follows the value");
	assert_error("a: 'b", "line 1: a: text in quotes must end on the same line");
	assert_error("a: \"b\n  c\"", "line 1: a: text in quotes must end on the same line");
	assert_error("a: \"b\\", "line 1: a: an escape other than \\\" \\\\ \\/ \\n \\t: not "
				 "supported in this file");
	assert_error("a:\n  -", "line 2: a: an item without a value");
	assert_error("a:\n  - x\n  b: 1", "line 3: indented more than the line it follows");
	assert_error("a:\n    b: 1\n  c: 2", "line 3: indented more than the line it follows");
	assert_error("a:\n  b: 1\n c: 2", "line 3: indented more than the line it follows");
	assert_error(" a: 1\nb: 2", "line 1: the first line must not be indented");
	assert_error("a: 1\n- b", "line 2: 'key: value' expected, found an item of a list");
	assert_error("- a\nb: 1", "line 2: indented less than the lines it follows");
}

static void duplicate_keys_are_errors(void **state)
{
	assert_error("a: 1\nb: 2\na: 3", "line 3: a: already given in line 1");
	assert_error("x:\n  a: 1\n  'a': 3", "line 3: x.a: already given in line 2");
	assert_reads("a:\n  a: 1\nb:\n  a: 2\n", "{a:{a:1} b:{a:2}}");
}

static void bytes_are_checked(void **state)
{
	assert_error("a: 1\nb: \xff", "line 2: bytes that are not UTF-8");
	assert_error("# \xc3\n", "line 1: bytes that are not UTF-8");
	assert_error("a: \x1b[0m", "line 1: a control character");
	assert_error("a: \x7f", "line 1: a control character");
	assert_error("a: \xc2\x85", "line 1: a control character");
	assert_error("a: 1\rb: 2\n", "line 1: a control character");
	assert_error_str(STR("a: 1\0"), ERR_INVALID, "line 1: a control character");
}

static void sizes_have_limits(void **state)
{
	auto_buf struct buf text;
	char key[YAML_KEY_MAX + 2];

	buf_init(&text, BUF_MAX_DEFAULT);
	for (int i = 0; i < 9; i++)
		buf_printf(&text, "%*sk:\n", i, "");
	assert_error_str((struct str){ text.data, text.len }, ERR_LIMIT,
		"line 9: k.k.k.k.k.k.k.k: maps nested deeper than 8");
	buf_clear(&text);
	memset(key, 'k', sizeof key);
	key[YAML_KEY_MAX] = '\0';
	buf_printf(&text, "%s: 1", key);
	auto_arena struct arena arena = { 0 };
	struct yaml_value *root;
	assert_int_equal(yaml_read((struct str){ text.data, text.len }, &arena, &root, NULL), 0);
	buf_clear(&text);
	buf_printf(&text, "k%s: 1", key);
	assert_error_str((struct str){ text.data, text.len }, ERR_LIMIT,
		"line 1: a key of more than 128 bytes");
	buf_clear(&text);
	for (size_t i = 0; i <= YAML_VALUES_MAX; i++)
		buf_printf(&text, "k%zu:\n", i);
	assert_error_str((struct str){ text.data, text.len }, ERR_LIMIT,
		"line 65536: more than 65536 values");
	buf_clear(&text);
	while (text.len <= YAML_MAX)
		buf_text(&text, "# comment comment comment comment comment comment comment\n");
	assert_error_str((struct str){ text.data, text.len }, ERR_LIMIT, "more than 1 MiB of YAML");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_null),
		cmocka_unit_test(maps_are_nested_by_indentation),
		cmocka_unit_test(scalars_are_plain_or_quoted),
		cmocka_unit_test(null_has_four_names_unless_quoted),
		cmocka_unit_test(lists_are_items_or_brackets),
		cmocka_unit_test(values_know_their_line),
		cmocka_unit_test(the_rest_of_yaml_is_refused_by_name),
		cmocka_unit_test(tabs_are_refused),
		cmocka_unit_test(broken_structure_is_an_error),
		cmocka_unit_test(duplicate_keys_are_errors),
		cmocka_unit_test(bytes_are_checked),
		cmocka_unit_test(sizes_have_limits),
	};

	return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
