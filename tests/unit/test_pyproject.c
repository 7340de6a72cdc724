/* pyproject.toml and pylock.toml as lines of a requirements file. */
#include <string.h>
#include "base/buf.h"
#include "format/packages/pylock.h"
#include "format/packages/pyproject.h"
#include "arena_fixture.h"

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const char *join(const requirement_lines *lines)
{
	auto_buf struct buf out;

	buf_init(&out, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < lines->count; i++)
		buf_printf(&out, "%s%s", i ? "|" : "", lines->items[i].text);
	return arena_bytes(&arena, out.data, out.len);
}

/* extra and group may be NULL. */
static int read_project(const char *text, const char *extra, const char *group,
	struct pyproject *found, struct error *err)
{
	text_list extras = { 0 }, groups = { 0 };

	if (extra)
		vec_push(&arena, &extras, extra);
	if (group)
		vec_push(&arena, &groups, group);
	return pyproject_read(str_from(text), &extras, &groups, &arena, found, err);
}

static void assert_read(
	const char *text, const char *extra, const char *group, const char *expected)
{
	struct pyproject found = { 0 };
	struct error err;

	if (read_project(text, extra, group, &found, &err) < 0)
		fail_msg("'%s': %s", text, err.text);
	assert_string_equal(join(&found.dependencies), expected);
}

static void assert_refused(const char *text, const char *extra, const char *group, const char *says)
{
	struct pyproject found = { 0 };
	struct error err;

	assert_int_equal(read_project(text, extra, group, &found, &err), -1);
	if (!strstr(err.text, says))
		fail_msg("'%s' doesn't say '%s'", err.text, says);
}

#define PROJECT "[project]\nname = 'My.App'\ndependencies = ['a>1']\n"

static void extras_and_groups_are_added(void **state)
{
	assert_read(PROJECT, NULL, NULL, "a>1");
	assert_read(PROJECT "optional-dependencies.Web = ['b']\n", "web", NULL, "a>1|b");
	assert_read(PROJECT "optional-dependencies = { x = ['my_app[y, z]'], y = ['c'], z = [] }\n",
		"x", NULL, "a>1|c");
	assert_read(PROJECT "[dependency-groups]\nt = ['b', {include-group = 'U'}]\nu = ['c']\n",
		NULL, "t", "a>1|b|c");
	assert_read("[dependency-groups]\nt = ['b']\n", NULL, "t", "b");
}

static void constraints_of_uv_are_kept(void **state)
{
	struct pyproject found = { 0 };
	struct error err;

	assert_int_equal(read_project(PROJECT "[tool.uv]\nconstraint-dependencies = ['b<2']\n",
				 NULL, NULL, &found, &err),
		0);
	assert_string_equal(join(&found.constraints), "b<2");
}

static void what_would_be_ignored_is_refused(void **state)
{
	assert_refused(PROJECT, "x", NULL, "unknown extra 'x'");
	assert_refused(PROJECT, NULL, "x", "unknown dependency group 'x'");
	assert_refused(PROJECT
		"[project.optional-dependencies]\nx = ['my-app[y]']\ny = ['my-app[x]']\n",
		"x", NULL, "'x' includes itself");
	assert_refused(PROJECT "[dependency-groups]\nx = [{include-group = 'x'}]\n", NULL, "x",
		"'x' includes itself");
	assert_refused(PROJECT "[tool.uv.sources]\na = { path = '/x' }\n", NULL, NULL, "'a'");
	assert_refused(
		PROJECT "[tool.uv]\noverride-dependencies = ['b<2']\n", NULL, NULL, "override");
	assert_refused("[project]\ndynamic = ['dependencies']\n", NULL, NULL, "dynamic");
	assert_refused("[project]\ndependencies = ['a --hash=sha256:x']\n", NULL, NULL, "line 2");
	assert_refused("[project]\ndependencies = [\"a\\nb\"]\n", NULL, NULL, "line 2");
	assert_refused("", NULL, NULL, "no [project]");
}

static void a_lock_is_versions_and_hashes(void **state)
{
	requirement_lines lines = { 0 };
	struct error err;

	assert_int_equal(
		pylock_requirements(STR("[[packages]]\nname = 'A.b'\nversion = '1.0'\n"
					"marker = \"os_name == 'posix'\"\n"
					"wheels = [{ url = 'https://x.example/a', hashes = "
					"{ sha256 = '" A64 "' } }]\n"),
			&arena, &lines, &err),
		0);
	assert_string_equal(join(&lines), "a-b==1.0 ; os_name == 'posix' --hash=sha256:" A64);
	assert_int_equal(pylock_requirements(STR("[[packages]]\nname = 'a'\nversion = '1'\n"),
				 &arena, &lines, &err),
		-1);
	assert_non_null(strstr(err.text, "no sha256"));
	assert_int_equal(pylock_requirements(STR("[[packages]]\nname = 'a'\nversion = '1'\n"
						 "directory = { path = '/etc' }\n"),
				 &arena, &lines, &err),
		-1);
	assert_non_null(strstr(err.text, "not from an index"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(extras_and_groups_are_added, set_up, tear_down),
		cmocka_unit_test_setup_teardown(constraints_of_uv_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_would_be_ignored_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_lock_is_versions_and_hashes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
