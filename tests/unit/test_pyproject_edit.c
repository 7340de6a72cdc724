/* project.dependencies of a pyproject.toml changed as text. */
#include <string.h>
#include "format/packages/pyproject_edit.h"
#include "arena_fixture.h"

static const char *finish(int failed, const struct buf *out, const struct error *err)
{
	if (failed)
		return arena_printf(&arena, "error: %s", err->text);
	return arena_bytes(&arena, out->data ? out->data : "", out->len);
}

static const char *add(const char *text, const char *requirement)
{
	text_list list = { 0 };
	struct error err;
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	vec_push(&arena, &list, requirement);
	int failed = pyproject_add(str_from(text), &list, "3.11", &arena, &out, &err);
	return finish(failed, &out, &err);
}

static const char *cut(const char *text, const char *name)
{
	text_list list = { 0 };
	struct error err;
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	vec_push(&arena, &list, name);
	int failed = pyproject_remove(str_from(text), &list, &arena, &out, &err);
	return finish(failed, &out, &err);
}

#define P "[project]\nname = \"x\"\n"
#define TOOL "\n[tool.x]\ndependencies = [\"y\"]\n"

static void a_missing_file_or_project_is_made(void **state)
{
	const char *made = "[project]\nname = \"workspace\"\nversion = \"0.1.0\"\n"
			   "requires-python = \">=3.11\"\ndependencies = [\n    \"a>=2\",\n]\n";
	assert_string_equal(add("", "a>=2"), made);
	assert_string_equal(add("# mine\n[tool.x]\ny = 1", "a>=2"),
		arena_printf(&arena, "# mine\n[tool.x]\ny = 1\n\n%s", made));
}

static void an_entry_is_one_more_line(void **state)
{
	static const char *const rows[][2] = {
		{ P TOOL, P "dependencies = [\"a\"]\n" TOOL },
		{ P "dependencies = []\n", P "dependencies = [\"a\"]\n" },
		{ P "dependencies = [\n]" TOOL, P "dependencies = [\n    \"a\",\n]" TOOL },
		{ P "dependencies = [ # none\n]", P "dependencies = [ # none\n    \"a\",\n]" },
		{ P "dependencies = [\"b\"] # c\n", P "dependencies = [\"b\", \"a\"] # c\n" },
		{ P "dependencies = ['b', ]\n", P "dependencies = ['b', \"a\", ]\n" },
		{ P "dependencies = [\n\t\"b\", # why\n\t# after\n]\n",
			P "dependencies = [\n\t\"b\", # why\n\t\"a\",\n\t# after\n]\n" },
		{ P "dependencies = [\n  \"b\"\n]\n",
			P "dependencies = [\n  \"b\",\n  \"a\"\n]\n" },
		{ P "dependencies = [\n  \"b\"  # c]\n]\n",
			P "dependencies = [\n  \"b\",  # c]\n  \"a\"\n]\n" },
		{ P "dependencies = [\n  \"b\"]\n", P "dependencies = [\n  \"b\",\n  \"a\"]\n" },
		{ P "dependencies = [\"b\",\n  \"c\"]\n",
			P "dependencies = [\"b\",\n  \"c\",\n  \"a\"]\n" },
		{ "[project]\r\ndependencies = [\r\n  \"b\",\r\n]\r\n",
			"[project]\r\ndependencies = [\r\n  \"b\",\r\n  \"a\",\r\n]\r\n" },
		{ "[project]\r\nname = 'x'\r\n",
			"[project]\r\nname = 'x'\r\ndependencies = [\"a\"]\r\n" },
		{ "[project]", "[project]\ndependencies = [\"a\"]\n" },
		{ "project.name = 'x'\n[tool.y]\nz = \"\"\"\n[project]\n\"\"\"\n",
			"project.name = 'x'\nproject.dependencies = [\"a\"]\n[tool.y]\nz = "
			"\"\"\"\n[project]\n\"\"\"\n" },
		{ "project.dependencies = ['b']\n", "project.dependencies = ['b', \"a\"]\n" },
		{ "[ project ] # t\n\"dependencies\" = ['b']\n",
			"[ project ] # t\n\"dependencies\" = ['b', \"a\"]\n" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(add(rows[i][0], "a"), rows[i][1]);
}

static void an_entry_of_the_package_is_replaced(void **state)
{
	assert_string_equal(add(P "dependencies = ['A_b>=1', # c\n]", "a-b>=2"),
		P "dependencies = [\"a-b>=2\", # c\n]");
	assert_string_equal(
		add(P "dependencies = ['A_b>=1']", "a.b"), P "dependencies = ['A_b>=1']");
	assert_string_equal(add(P "dependencies = ['a>=1']", "a; python_version < \"3.9\""),
		P "dependencies = ['a; python_version < \"3.9\"']");
	assert_string_equal(add(P "dependencies = [\"a ; os_name=='nt'\", \"a==1\"]", "a==2"),
		P "dependencies = [\"a ; os_name=='nt'\", \"a==2\"]");
}

static void an_entry_goes_with_its_line(void **state)
{
	static const char *const rows[][2] = {
		{ P "dependencies = [\n  \"b\",\n  \"a>1\", # gone\n  'c',\n]\n",
			P "dependencies = [\n  \"b\",\n  'c',\n]\n" },
		{ P "dependencies = [\n  \"b\",\n  \"A\"\n]\n",
			P "dependencies = [\n  \"b\",\n]\n" },
		{ P "dependencies = [\"a\", \"b\"]\n", P "dependencies = [\"b\"]\n" },
		{ P "dependencies = [\"b\", \"a\"]\n", P "dependencies = [\"b\"]\n" },
		{ P "dependencies = [\"a\"]\n", P "dependencies = []\n" },
		{ P "dependencies = [\"a\", 'a;os_name==\"nt\"']\n", P "dependencies = []\n" },
		{ P "dependencies = [\r\n  \"a\",\r\n]\r\n", P "dependencies = [\r\n]\r\n" },
		{ P "dependencies = [\"b\"]\n", P "dependencies = [\"b\"]\n" },
		{ P TOOL, P TOOL },
		{ "", "" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(cut(rows[i][0], "a"), rows[i][1]);
}

static void what_cannot_be_edited_is_refused(void **state)
{
	static const char *const rows[][2] = {
		{ "[project\n", "line 1" },
		{ P "dependencies = [\"b\"\n", "line" },
		{ P "dynamic = [\"dependencies\"]\n", "dynamic" },
		{ "project = { name = 'x', dependencies = [] }\n", "not a plain array" },
		{ P "dependencies = 'b'\n", "not a plain array" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *said = add(rows[i][0], "a");
		assert_non_null(strstr(said, "error: pyproject.toml"));
		assert_non_null(strstr(said, rows[i][1]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_missing_file_or_project_is_made, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_entry_is_one_more_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			an_entry_of_the_package_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_entry_goes_with_its_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_cannot_be_edited_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
