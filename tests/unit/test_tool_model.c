/* Tools and code as data: names, what is asked for, skeletons, settings, commands, verdicts. */
#include <string.h>
#include "model/agents/code.h"
#include "model/settings/config.h"
#include "model/agents/tool.h"
#include "model/agents/tool_spec.h"
#include "arena_fixture.h"

static struct error err;

static int read_json(const struct record *record, const char *text, void *out)
{
	struct json_value *value;
	assert_int_equal(json_read(str_from(text), &arena, &value, &err), 0);
	return record_read(record, value, &arena, out, &err);
}

static void names_are_short_and_plain(void **state)
{
	const char *const good[] = { "a", "slug", "a-b_c9",
		"a123456789012345678901234567890123456789012345678901234567890123" };
	const char *const bad[] = { "", "A", "9a", "-a", "_a", "a/b", "a.b", "a b", "\xc3\xbc",
		"a1234567890123456789012345678901234567890123456789012345678901234" };
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(tool_check_name(good[i], &err), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(tool_check_name(bad[i], &err), -1);
}

static void a_package_has_one_name_however_it_is_written(void **state)
{
	const char *const same[] = { "Python.Slugify>=2", "python_slugify", "PYTHON--slugify[x]",
		"python-slugify @ https://a.example/x.whl" };
	const char *const bad[] = { "", "-x", ">=2", "a-", "._", "a- >= 2" };
	char name[TOOL_NAME_MAX + 1];
	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		assert_true(tool_package_name(same[i], name));
		assert_string_equal(name, "pypi_python-slugify");
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(tool_package_name(bad[i], name));
}

static void what_is_wanted_is_a_package_or_a_module_with_tests(void **state)
{
	const char *const bad[] = { "{}", "{\"name\":\"a\",\"code\":\"1\"}",
		"{\"name\":\"a\",\"tests\":\"1\"}",
		"{\"name\":\"pypi_a\",\"code\":\"1\",\"tests\":\"1\"}",
		"{\"name\":\"a\",\"code\":\"\",\"tests\":\"1\"}",
		"{\"package\":\"a\",\"code\":\"1\"}", "{\"package\":\">=1\"}" };
	struct tool_wanted wanted = { 0 };
	assert_int_equal(
		read_json(&tool_wanted_record,
			"{\"name\":\"a\",\"code\":\"1\",\"tests\":\"2\",\"ttl\":\"7d\"}", &wanted),
		0);
	assert_int_equal(wanted.ttl_ms, 7ull * 24 * 3600 * 1000);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		wanted = (struct tool_wanted){ 0 };
		assert_int_equal(read_json(&tool_wanted_record, bad[i], &wanted), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void a_version_is_kept_and_read_as_it_was(void **state)
{
	struct tool tool = { .name = "slug",
		.version = 3,
		.state = TOOL_ACTIVE,
		.code = "def run():\n    return 1\n",
		.tests = "x",
		.workspace = "w",
		.has_passed = true,
		.error = NULL,
		.sha256 = "00",
		.ttl_ms = TOOL_TTL_DEFAULT_MS };
	struct tool copy, again = { 0 };
	auto_buf struct buf text;
	buf_init(&text, BUF_MAX_DEFAULT);
	vec_push(&arena, &tool.requires, "idna");
	copy = tool;
	record_copy_texts(&tool_record, &arena, &copy);
	assert_ptr_not_equal(copy.code, tool.code);
	record_print_kept(&tool_record, &copy, &text);
	assert_int_equal(record_read_kept(&tool_record, (struct str){ text.data, text.len }, &arena,
				 &again, &err),
		0);
	assert_string_equal(again.code, tool.code);
	assert_int_equal(again.version, 3);
	assert_string_equal(again.requires.items[0], "idna");
	assert_null(again.error);
	assert_null(tool_brief(&tool).code);
	for (enum tool_state i = 0; i < TOOL_STATE_COUNT; i++) {
		tool.state = i;
		assert_int_equal(tool_is_forging(&tool), i != TOOL_ACTIVE && i != TOOL_DORMANT);
	}
}

static void skeletons_are_python_whatever_the_texts_hold(void **state)
{
	struct tool_spec spec = { 0 };
	struct tool_source source;
	assert_int_equal(read_json(&tool_spec_record,
				 "{\"name\":\"slug\",\"description\":\"a \\\"b\\\"\\nc\","
				 "\"arguments\":{\"text\":\"\\\\\",\"n\":1}}",
				 &spec),
		0);
	tool_spec_skeleton(&spec, &arena, &source);
	assert_string_equal(source.code, "\"a \\\"b\\\"\\nc\"\n\n\ndef run(text, n):\n"
					 "    raise NotImplementedError(\"slug\")\n");
	assert_non_null(strstr(
		source.tests, "json.loads(\"{\\\"text\\\":\\\"\\\\\\\\\\\",\\\"n\\\":1}\")"));
	assert_false(source.is_generated);
	const char *const bad[] = { "{}", "{\"name\":\"A\"}",
		"{\"name\":\"a\",\"arguments\":{\"a b\":1}}",
		"{\"name\":\"a\",\"arguments\":{\"1a\":1}}",
		"{\"name\":\"a\",\"arguments\":{\"\":1}}", "{\"name\":\"a\",\"arguments\":[]}",
		"{\"name\":\"a\",\"more\":1}" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		spec = (struct tool_spec){ 0 };
		assert_int_equal(read_json(&tool_spec_record, bad[i], &spec), -1);
	}
}

static void a_generator_gets_every_member(void **state)
{
	struct tool_spec spec = { .name = "a" };
	auto_buf struct buf text;
	buf_init(&text, BUF_MAX_DEFAULT);
	tool_spec_print(&spec, &text);
	assert_string_equal(text.data,
		"{\"name\":\"a\",\"description\":null,\"arguments\":{},\"requires\":[]}");
}

static void requirements_are_read_line_by_line(void **state)
{
	text_list list = { 0 };
	assert_int_equal(
		tool_read_requires(STR("# a\n\n idna>=3 # b\r\nmarkupsafe"), &arena, &list, &err),
		0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.items[0], "idna>=3");
	assert_string_equal(list.items[1], "markupsafe");
	assert_int_equal(tool_read_requires(STR("a\n-r x\n"), &arena, &list, &err), -1);
	assert_non_null(strstr(err.text, "line 2"));
	assert_int_equal(list.count, 2);
	auto_buf struct buf many = buf_empty(BUF_MAX_DEFAULT);
	for (int i = 0; i <= TOOL_REQUIRES_MAX; i++)
		buf_printf(&many, "a%d\n", i);
	assert_int_equal(
		tool_read_requires((struct str){ many.data, many.len }, &arena, &list, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
}

static void settings_are_read(void **state)
{
	static const char text[] = "tools:\n  generator: [python3, -c, \"a\\nb\", \"\"]\n"
				   "  generator_domains: [\"*.example.org:8443\"]\n"
				   "  generator_timeout: 10s\n";
	static const char *const bad[] = { "tools:\n  generator: [\"\"]\n",
		"tools:\n  generator: python3\n", "tools:\n  generator_domains: [\"a/b\"]\n",
		"tools:\n  generator_timeout: 1ms\n", "tools:\n  generators: []\n" };
	struct config config;
	assert_int_equal(config_parse(str_from(text), &arena, &config, &err), 0);
	const struct tool_settings *tools = &config.tools;
	assert_int_equal(tools->generator.count, 4);
	assert_string_equal(tools->generator.items[2], "a\nb");
	assert_string_equal(tools->generator.items[3], "");
	assert_string_equal(tools->domains.items[0], "*.example.org:8443");
	assert_int_equal(tools->timeout_ms, 10000);
	config_defaults(&config);
	assert_int_equal(config.tools.generator.count, 0);
	assert_int_equal(config.tools.timeout_ms, TOOL_GENERATOR_TIMEOUT_MS);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(config_parse(str_from(bad[i]), &arena, &config, &err), -1);
}

static void a_file_of_code_is_run_by_its_name(void **state)
{
	const char *const bad[] = { "", ".py", "a", "a.rb", "../a.py", "a b.py", "-a.py", ".a.py" };
	text_list argv = code_command(&arena, "a.py", "");
	assert_int_equal(argv.count, 2);
	assert_string_equal(argv.items[0], "python3");
	assert_null(argv.items[2]);
	assert_string_equal(code_command(&arena, "a.sh", "echo").items[0], "sh");
	assert_string_equal(code_command(&arena, "a.sh", "#!/bin/bash\n").items[0], "bash");
	assert_string_equal(code_command(&arena, "a.sh", "#!/bin/sh\n# bash").items[0], "sh");
	assert_int_equal(code_check_file("a-b.c_1.py", &err), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(code_check_file(bad[i], &err), -1);
}

static void names_that_are_not_given_follow_from_the_file(void **state)
{
	struct code_wanted wanted = { .code = "1", .tests = "2" }, copy;
	code_copy(&arena, &wanted, &copy);
	assert_string_equal(copy.file, "main.py");
	assert_string_equal(copy.tests_file, "test_main.py");
	wanted.file = "x.sh";
	code_copy(&arena, &wanted, &copy);
	assert_string_equal(copy.tests_file, "test_x.sh");
}

static void only_an_end_with_0_is_a_pass(void **state)
{
	struct result result = { .reason = REASON_EXITED };
	assert_int_equal(code_judge("t.py", &result), CODE_PASSED);
	result.exit_status = 5;
	assert_int_equal(code_judge("t.py", &result), CODE_NONE);
	assert_int_equal(code_judge("t.sh", &result), CODE_FAILED);
	result.exit_status = 7;
	assert_int_equal(code_judge("t.py", &result), CODE_FAILED);
	result = (struct result){ .reason = REASON_TIMEOUT };
	assert_int_equal(code_judge("t.py", &result), CODE_FAILED);
	result = (struct result){ .reason = REASON_SIGNALED, .signal = 9 };
	assert_int_equal(code_judge("t.py", &result), CODE_FAILED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(names_are_short_and_plain),
		CASE(a_package_has_one_name_however_it_is_written),
		CASE(what_is_wanted_is_a_package_or_a_module_with_tests),
		CASE(a_version_is_kept_and_read_as_it_was),
		CASE(skeletons_are_python_whatever_the_texts_hold),
		CASE(a_generator_gets_every_member),
		CASE(requirements_are_read_line_by_line),
		CASE(settings_are_read),
		CASE(a_file_of_code_is_run_by_its_name),
		CASE(names_that_are_not_given_follow_from_the_file),
		CASE(only_an_end_with_0_is_a_pass),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
