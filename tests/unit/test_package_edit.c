/* Dependencies of a package.json changed as text. */
#include "format/packages/package_edit.h"
#include <string.h>
#include "arena_fixture.h"

static const char *finish(int failed, const struct buf *out, const struct error *err)
{
	if (failed)
		return arena_printf(&arena, "error: %s", err->text);
	return arena_bytes(&arena, out->data ? out->data : "", out->len);
}

static const char *add_all(const char *text, const struct node_spec *specs, size_t count)
{
	node_specs list = { 0 };
	struct error err;
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	for (size_t i = 0; i < count; i++)
		vec_push(&arena, &list, specs[i]);
	int failed = package_json_add(str_from(text), &list, &arena, &out, &err);
	return finish(failed, &out, &err);
}

static const char *add(const char *text, const char *name, const char *range)
{
	return add_all(text, &(struct node_spec){ name, range }, 1);
}

static const char *cut(const char *text, const char *first, const char *second)
{
	text_list list = { 0 };
	struct error err;
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	vec_push(&arena, &list, first);
	if (second)
		vec_push(&arena, &list, second);
	int failed = package_json_remove(str_from(text), &list, &arena, &out, &err);
	return finish(failed, &out, &err);
}

static void a_missing_file_or_section_is_made(void **state)
{
	const char *made = "{\n  \"dependencies\": {\n    \"a\": \"^1\"\n  }\n}\n";
	assert_string_equal(add("", "a", "^1"), made);
	assert_string_equal(add("{}\n", "a", "^1"), made);
	assert_string_equal(add("{\n\t\"name\": \"x\"\n}", "a", NULL),
		"{\n\t\"name\": \"x\",\n\t\"dependencies\": {\n\t\t\"a\": \"latest\"\n\t}\n}");
	assert_string_equal(add("{\"name\": \"x\"}", "a", "1"),
		"{\"name\": \"x\", \"dependencies\": {\"a\": \"1\"}}");
	assert_string_equal(add("{\r\n  \"dependencies\": {}\r\n}\r\n", "a", "1"),
		"{\r\n  \"dependencies\": {\r\n    \"a\": \"1\"\r\n  }\r\n}\r\n");
}

static void a_line_is_added_in_its_place(void **state)
{
	const char *text =
		"{\n    \"dependencies\": {\n        \"b\": \"1\",\n        \"d\": \"1\"\n"
		"    },\n    \"x\": [1, {}]\n}\n";
	assert_string_equal(add(text, "c", "2"),
		"{\n    \"dependencies\": {\n        \"b\": \"1\",\n        \"c\": \"2\",\n"
		"        \"d\": \"1\"\n    },\n    \"x\": [1, {}]\n}\n");
	assert_string_equal(add("{\"dependencies\": {\"b\": \"1\"}}", "c", "2"),
		"{\"dependencies\": {\"b\": \"1\", \"c\": \"2\"}}");
	assert_string_equal(add("{\"dependencies\": {\"z\": \"1\", \"b\": \"1\"}}", "c", "2"),
		"{\"dependencies\": {\"z\": \"1\", \"b\": \"1\", \"c\": \"2\"}}");
	const struct node_spec three[] = { { "e", "5" }, { "a", NULL }, { "@s/x", "1" } };
	assert_string_equal(add_all("{\"dependencies\": {\"b\": \"1\"}}", three, 3),
		"{\"dependencies\": {\"@s/x\": \"1\", \"a\": \"latest\", \"b\": \"1\", "
		"\"e\": \"5\"}}");
}

static void a_listed_package_gets_the_range(void **state)
{
	const char *text = "{\"name\": \"\\\"b\\\": {\", \"devDependencies\": {\"b\" : \"1\"}}";
	assert_string_equal(add(text, "b", "^2"),
		"{\"name\": \"\\\"b\\\": {\", \"devDependencies\": {\"b\" : \"^2\"}}");
	assert_string_equal(add(text, "b", NULL), text);
}

static void packages_are_removed(void **state)
{
	const char *text = "{\n  \"dependencies\": {\n    \"a\": \"1\",\n    \"b\": \"1\",\n"
			   "    \"c\": \"1\"\n  }\n}\n";
	assert_string_equal(cut(text, "a", NULL),
		"{\n  \"dependencies\": {\n    \"b\": \"1\",\n    \"c\": \"1\"\n  }\n}\n");
	assert_string_equal(
		cut(text, "c", "b"), "{\n  \"dependencies\": {\n    \"a\": \"1\"\n  }\n}\n");
	assert_string_equal(
		cut(text, "a", "c"), "{\n  \"dependencies\": {\n    \"b\": \"1\"\n  }\n}\n");
	assert_string_equal(cut(text, "x", NULL), text);
	assert_string_equal(
		cut("{\"dependencies\": { \"a\": \"1\" }}", "a", NULL), "{\"dependencies\": {}}");
}

static void what_is_no_package_json_is_refused(void **state)
{
	assert_non_null(strstr(add("[]", "a", "1"), "error: package.json is not an object"));
	assert_non_null(strstr(add("{", "a", "1"), "error: package.json"));
	assert_non_null(strstr(add("{\"dependencies\": 3}", "a", "1"), "is not an object"));
}

static void a_lock_has_the_ranges_of_its_project(void **state)
{
	struct error err;
	node_specs specs = { 0 };
	auto_buf struct buf bun = buf_empty(BUF_MAX_DEFAULT);
	auto_buf struct buf npm = buf_empty(BUF_MAX_DEFAULT);
	vec_push(&arena, &specs, (struct node_spec){ "a", "^1.2" });
	vec_push(&arena, &specs, (struct node_spec){ "absent", "1" });
	int failed = node_lock_set_ranges(
		STR("{\"workspaces\": {\"\": {\"dependencies\": {\"a\": \"latest\",},},},}"),
		&specs, &arena, &bun, &err);
	assert_string_equal(finish(failed, &bun, &err),
		"{\"workspaces\": {\"\": {\"dependencies\": {\"a\": \"^1.2\",},},},}");
	failed = node_lock_set_ranges(
		STR("{\"packages\": {\"\": {\"dependencies\": {\"a\": \"latest\"}}}}"), &specs,
		&arena, &npm, &err);
	assert_string_equal(finish(failed, &npm, &err),
		"{\"packages\": {\"\": {\"dependencies\": {\"a\": \"^1.2\"}}}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_missing_file_or_section_is_made, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_line_is_added_in_its_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_listed_package_gets_the_range, set_up, tear_down),
		cmocka_unit_test_setup_teardown(packages_are_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_is_no_package_json_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_lock_has_the_ranges_of_its_project, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
