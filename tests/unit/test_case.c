/* Eval cases: YAML to a case, what graders run, copies. */
/* security: services */
#include <string.h>
#include "format/text/yaml_json.h"
#include "model/agents/case.h"
#include "unit.h"

static int read_text(const char *text, const char *harness, struct arena *arena,
	struct case_spec *spec, struct error *err)
{
	struct json_value *value;
	return yaml_json_read(str_from(text), arena, &value, err) ||
			       case_read(value, harness, arena, spec, err)
		       ? -1
		       : 0;
}

static struct case_spec read_good(const char *text, const char *harness, struct arena *arena)
{
	struct case_spec spec;
	struct error err;
	if (read_text(text, harness, arena, &spec, &err))
		fail_msg("%s", err.text);
	return spec;
}

static void assert_error(const char *text, const char *expected, const char *hint)
{
	auto_arena struct arena arena = { 0 };
	struct case_spec spec;
	struct error err = { 0 };
	if (!read_text(text, NULL, &arena, &spec, &err))
		fail_msg("'%s' was read", text);
	assert_string_equal(err.text, expected);
	if (hint && !strstr(err.hint, hint))
		fail_msg("'%s' is not in '%s'", hint, err.hint);
}

#define HARNESS "id: a\nharness: x\n"
#define GRADERS "graders: [{type: pytest}]\n"

static void a_whole_case(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct case_spec spec = read_good(
		"id: Fix.it_1\ndescription: mends a slug\nsource: ../site\n"
		"environment:\n  requirements: [pytest, 'werkzeug>=3']\n  install: editable\n"
		"  system_site_packages: true\n"
		"setup: {run: [make, make data], timeout: 90s}\n"
		"harness: {command: python3 agent.py, timeout: 1h}\n"
		"graders:\n"
		"- {type: command, name: style, run: make lint}\n"
		"- {type: tests, files: {tests/a.py: text}, timeout: 2m}\n"
		"- {type: pytest, args: [-q, -k, it's], paths: [tests]}\n"
		"env: {COLOUR: blue}\nlimits: {memory: 256M}\nnetwork: {mode: none}\n",
		NULL, &arena);
	assert_string_equal(spec.id, "Fix.it_1");
	assert_string_equal(spec.description, "mends a slug");
	assert_string_equal(spec.source, "../site");
	assert_int_equal(spec.environment.requirements.count, 2);
	assert_string_equal(spec.environment.requirements.items[1], "werkzeug>=3");
	assert_true(spec.environment.install);
	assert_true(spec.environment.system_site_packages);
	assert_int_equal(spec.setup.run.count, 2);
	assert_int_equal(spec.setup.timeout_ms, 90000);
	assert_string_equal(spec.harness.command, "python3 agent.py");
	assert_int_equal(spec.harness.timeout_ms, 3600000);
	assert_int_equal(spec.graders.count, 3);
	assert_string_equal(spec.graders.items[0].name, "style");
	assert_int_equal(spec.graders.items[0].timeout_ms, CASE_GRADER_TIMEOUT_MS);
	assert_string_equal(spec.graders.items[1].name, "tests");
	assert_int_equal(spec.graders.items[1].timeout_ms, 120000);
	assert_string_equal(spec.graders.items[1].files.items[0].key, "tests/a.py");
	assert_string_equal(spec.env.items[0].value, "blue");
	assert_string_equal(grader_command(&spec.graders.items[0], &arena), "make lint");
	assert_string_equal(
		grader_command(&spec.graders.items[1], &arena), "python3 -m unittest discover -v");
	assert_string_equal(grader_command(&spec.graders.items[2], &arena),
		"python3 -m pytest '-q' '-k' 'it'\\''s' 'tests'");
}

static void what_is_left_out_has_its_default(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct case_spec spec = read_good(HARNESS GRADERS, NULL, &arena);
	assert_null(spec.source);
	assert_false(spec.environment.install);
	assert_int_equal(spec.environment.requirements.count, 0);
	assert_int_equal(spec.setup.timeout_ms, CASE_SETUP_TIMEOUT_MS);
	assert_string_equal(spec.harness.command, "x");
	assert_int_equal(spec.harness.timeout_ms, CASE_HARNESS_TIMEOUT_MS);
	assert_string_equal(grader_command(&spec.graders.items[0], &arena), "python3 -m pytest");
}

static void a_harness_can_be_given_from_outside(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct case_spec spec = read_good(HARNESS GRADERS, "other", &arena);
	struct error err;
	assert_string_equal(spec.harness.command, "other");
	spec = read_good("id: a\n" GRADERS, "only", &arena);
	assert_string_equal(spec.harness.command, "only");
	assert_int_equal(read_text("id: a\n" GRADERS, " \t", &arena, &spec, &err), -1);
	assert_string_equal(err.text, "harness: the command is empty");
}

static void errors_name_line_and_key(void **state)
{
	assert_error("[]", "a case is a map of keys, with at least an id", NULL);
	assert_error(HARNESS "colour: red\n" GRADERS, "line 3: unknown key 'colour'", "graders");
	assert_error(HARNESS "environment:\n  instal: editable\n" GRADERS,
		"line 4: environment: unknown key 'instal'", "did you mean 'install'?");
	assert_error(HARNESS "graders:\n- {type: pytest}\n- {type: pytest, colour: red}\n",
		"line 5: unknown key 'colour'", "files");
	assert_error(HARNESS, "graders: missing; a case needs at least one", NULL);
	assert_error(HARNESS "graders: []\n", "line 3: graders: must be a list of 1 to 16", NULL);
	assert_error(HARNESS "graders: [pytest]\n",
		"line 3: graders: an item is {type: command | tests | pytest, …}", NULL);
	assert_error("id: a\n" GRADERS, "harness: missing", "--harness");
	assert_error("id: .a\nharness: x\n" GRADERS, "line 1: id: '.a' is not the id of a case",
		"the first a letter or digit");
	assert_error(
		"id: a/b\nharness: x\n" GRADERS, "line 1: id: 'a/b' is not the id of a case", NULL);
}

static void a_grader_has_only_what_its_type_knows(void **state)
{
	static const struct {
		const char *grader, *error;
	} wrong[] = {
		{ "{type: command}", "run: missing; a grader of type command needs one" },
		{ "{type: command, run: x, files: {a: b}}",
			"files: not of a grader of type command" },
		{ "{type: command, run: x, args: [b]}", "args: not of a grader of type command" },
		{ "{type: tests}", "files: missing; a grader of type tests needs them" },
		{ "{type: tests, files: {a: b}, paths: [c]}",
			"paths: not of a grader of type tests" },
		{ "{type: pytest, run: x}", "run: not of a grader of type pytest; see args" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		auto_arena struct arena arena = { 0 };
		const char *text =
			arena_printf(&arena, HARNESS "graders:\n- %s\n", wrong[i].grader);
		assert_error(text, arena_printf(&arena, "line 4: %s", wrong[i].error), NULL);
	}
}

static void archives_are_known_by_their_names(void **state)
{
	static const char *const archives[] = { "a.tar", "b/a.tar.gz", "a.tgz", "a.tar.zst",
		"a.zip" };
	static const char *const others[] = { "site", "a.gz", ".zip", "a.zip/", "zip" };
	struct case_spec spec = { 0 };
	assert_false(case_source_is_archive(&spec));
	for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
		spec.source = archives[i];
		assert_true(case_source_is_archive(&spec));
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		spec.source = others[i];
		assert_false(case_source_is_archive(&spec));
	}
}

static void copies_are_deep(void **state)
{
	auto_arena struct arena arena = { 0 };
	char name[] = "name", diff[] = "diff", key[] = "KEY";
	struct text_pair pair = { key, "value" };
	struct cell cell = { .case_name = name, .diff = diff, .variables = { &pair, 1, 1 } }, copy;
	struct eval_case model = { .name = name, .steps = "[]" }, kept;
	copy = cell;
	record_copy_texts(&cell_record, &arena, &copy);
	kept = model;
	record_copy_texts(&case_record, &arena, &kept);
	name[0] = diff[0] = key[0] = '?';
	assert_string_equal(copy.case_name, "name");
	assert_string_equal(copy.diff, "diff");
	assert_string_equal(copy.variables.items[0].key, "KEY");
	assert_null(copy.error);
	assert_string_equal(kept.name, "name");
	assert_null(kept.source);
}

static void which_states_are_ends(void **state)
{
	for (int i = 0; i < CELL_STATE_COUNT; i++)
		assert_int_equal(cell_has_ended(i), i >= CELL_PASSED);
	assert_null(cell_state_names[CELL_STATE_COUNT]);
	assert_null(case_state_names[CASE_STATE_COUNT]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_case),
		cmocka_unit_test(what_is_left_out_has_its_default),
		cmocka_unit_test(a_harness_can_be_given_from_outside),
		cmocka_unit_test(errors_name_line_and_key),
		cmocka_unit_test(a_grader_has_only_what_its_type_knows),
		cmocka_unit_test(archives_are_known_by_their_names),
		cmocka_unit_test(copies_are_deep),
		cmocka_unit_test(which_states_are_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
