#include "model/agents/code.h"

#include "base/str.h"
#include "model/records/rows.h"

#define PACKAGES_MAX 256
#define PYTEST_NONE 5 /* its exit code when it has found no test */
#define TIME_MOST (100ull * 365 * 24 * 3600 * 1000)

const char *const code_verdict_names[CODE_VERDICT_COUNT + 1] = { "passed", "failed", "none",
	"not_run", NULL };

bool code_is_shell(const char *file)
{
	size_t len = strlen(file);
	return len > 3 && !strcmp(file + len - 3, ".sh");
}

int code_check_file(const char *name, struct error *err)
{
	size_t len = strlen(name), stem = len > 3 ? len - 3 : 0;
	bool has_end = stem && (code_is_shell(name) || !strcmp(name + stem, ".py"));
	for (size_t i = 0; has_end && i < stem; i++) {
		char c = name[i];
		bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c >= '0' && c <= '9') || c == '_';
		has_end = is_word || (i && (c == '.' || c == '-'));
	}
	return has_end && stem <= 64 ? 0
				     : fail(err, ERR_INVALID,
					       "a file name is 1 to 64 letters, digits and _.-, "
					       "then .py or .sh");
}

static int check_wanted(const void *value, struct error *err)
{
	const struct code_wanted *wanted = value;
	if (wanted->tests_file && !wanted->tests)
		return fail(err, ERR_INVALID, "'tests_file' is given without 'tests'");
	if (wanted->tests_file && wanted->file && !strcmp(wanted->file, wanted->tests_file))
		return fail(err, ERR_INVALID, "'file' and 'tests_file' are the same name");
	return 0;
}

#define AT(member) offsetof(struct code_wanted, member)
static const struct field wanted_rows[] = {
	ROW(TEXT, file, "the name of the file, which ends in .py or .sh; main.py when not given",
		.pattern = CODE_FILE_PATTERN, .check = code_check_file),
	ROW(TEXT, code, "what the file holds", FIELD_REQUIRED, .least = 1, .most = CODE_BYTES_MAX),
	ROW(TEXT, tests_file,
		"the name of the tests' file: .py for pytest, .sh for a shell; test_ and the name "
		"of the file when not given",
		.pattern = CODE_FILE_PATTERN, .check = code_check_file),
	ROW(TEXT, tests, "what the tests' file holds", .least = 1, .most = CODE_BYTES_MAX),
	ROW(TEXTS, packages, "requirements of Python packages", .most = PACKAGES_MAX),
	ROW(TEXT, python, "a version of Python", .least = 1, .most = 4095),
	{ "stdin", FIELD_BYTES, AT(stdin_text), "the whole input: text, or {\"base64\": …}" },
	ROW(PAIRS, env, "variables", .most = WORKSPACE_ENV_MAX,
		.pattern = WORKSPACE_VARIABLE_PATTERN, .check_pair = workspace_check_variable),
	ROW(OBJECT, limits, .object = &limits_record),
	ROW(OBJECT, network, .object = &workspace_network_record),
	{ "timeout", FIELD_DURATION, AT(timeout_ms),
		"wall time of the file, and of its tests; 300 s when not given", .least = 1,
		.most = TIME_MOST },
};
#undef AT
const struct record code_wanted_record = { "CodeWanted", NULL, RECORD_ROWS(wanted_rows), FIELD_IN,
	.check = check_wanted };

static const struct field tests_rows[] = {
	{ "verdict", FIELD_CHOICE, 0,
		"none: the file has no test; not_run: the code itself has failed",
		.names = code_verdict_names },
	{ "result", FIELD_OBJECT, 0, "how the tests ended; null: they weren't run", FIELD_NULLABLE,
		.object = &result_record },
};
static const struct record tests_schema = { "CodeTests", NULL, RECORD_ROWS(tests_rows), FIELD_OUT };
static const struct field result_rows[] = {
	{ "tests", FIELD_OBJECT, 0, "null: there are none", FIELD_NULLABLE,
		.object = &tests_schema },
};
const struct record code_result_schema = { "CodeResult", NULL, RECORD_ROWS(result_rows), FIELD_OUT,
	.base = &result_record };

void code_copy(struct arena *arena, const struct code_wanted *from, struct code_wanted *to)
{
	*to = *from;
	to->file = arena_text(arena, from->file ? from->file : "main.py");
	to->code = arena_text(arena, from->code);
	to->tests = arena_text(arena, from->tests);
	to->tests_file = from->tests_file ? arena_text(arena, from->tests_file)
					  : arena_printf(arena, "test_%s", to->file);
	to->packages = text_list_copy(arena, &from->packages);
	to->python = arena_text(arena, from->python);
	if (from->stdin_text.data)
		to->stdin_text.data =
			arena_bytes(arena, from->stdin_text.data, from->stdin_text.len);
	to->env = pair_list_copy(arena, &from->env);
	workspace_copy_network(arena, &from->network, &to->network);
}

/* The shell of its first line, as far as it is bash: the file itself isn't executable. */
static const char *shell_of(const char *text)
{
	struct str line = { text, strcspn(text, "\n") };
	return str_starts_with(line, "#!") && memmem(line.data, line.len, "bash", 4) ? "bash"
										     : "sh";
}

text_list code_command(struct arena *arena, const char *file, const char *text)
{
	text_list argv = { 0 };
	vec_push(arena, &argv, code_is_shell(file) ? shell_of(text) : "python3");
	vec_push(arena, &argv, file);
	vec_push(arena, &argv, NULL);
	argv.count--;
	return argv;
}

enum code_verdict code_judge(const char *file, const struct result *result)
{
	if (result->reason != REASON_EXITED || result->signal)
		return CODE_FAILED;
	if (!result->exit_status)
		return CODE_PASSED;
	return !code_is_shell(file) && result->exit_status == PYTEST_NONE ? CODE_NONE : CODE_FAILED;
}
