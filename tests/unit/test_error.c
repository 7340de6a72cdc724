/* Errors: one line, safe to show, and the reason survives. */
#include <errno.h>
#include <string.h>
#include "base/error.h"
#include "base/str.h"
#include "unit.h"

static void fail_sets_code_and_text_and_returns_minus_one(void **state)
{
	struct error err = { .hint = "old", .sys_errno = 5 };

	assert_int_equal(fail(&err, ERR_LIMIT, "%d is over %s", 7, "six"), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(err.sys_errno, 0);
	assert_string_equal(err.text, "7 is over six");
	assert_string_equal(err.hint, "");
}

static void every_function_accepts_no_error(void **state)
{
	assert_int_equal(fail(NULL, ERR_FAILED, "x"), -1);
	assert_int_equal(fail_hint(NULL, ERR_FAILED, "h", "x"), -1);
	assert_int_equal(fail_errno(NULL, "x"), -1);
	assert_int_equal(fail_errno_code(NULL, ERR_FAILED, "x"), -1);
	assert_int_equal(error_context(NULL, "x"), -1);
	assert_int_equal(error_hint(NULL, "x"), -1);
}

static void fail_errno_appends_the_reason_and_derives_the_code(void **state)
{
	struct error err;

	errno = ENOENT;
	assert_int_equal(fail_errno(&err, "open '%s'", "a"), -1);
	assert_string_equal(err.text, "open 'a': No such file or directory");
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(err.sys_errno, ENOENT);
	errno = ENOENT;
	fail_errno_code(&err, ERR_COMMAND_NOT_FOUND, "run '%s'", "a");
	assert_int_equal(err.code, ERR_COMMAND_NOT_FOUND);
	assert_int_equal(err.sys_errno, ENOENT);
	errno = 4095;
	fail_errno(&err, "odd");
	assert_string_equal(err.text, "odd: errno 4095");
}

static void control_bytes_in_names_are_shown_not_sent(void **state)
{
	struct error err;

	fail(&err, ERR_INVALID, "'%s' is bad", "a\nb\033[2J\x7f\xff\xc2\x9b");
	assert_string_equal(err.text, "'a\\x0ab\\x1b[2J\\x7f\\xff\\xc2\\x9b' is bad");
	fail_hint(&err, ERR_INVALID, "line\nline", "x");
	assert_string_equal(err.hint, "line\\x0aline");
	error_hint(&err, "%s", "a\rb");
	assert_string_equal(err.hint, "a\\x0db");
	error_context(&err, "%s", "c\td");
	assert_string_equal(err.text, "c\\x09d: x");
}

static void a_long_name_does_not_push_out_the_reason(void **state)
{
	struct error err;
	char name[4096];

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	errno = EACCES;
	fail_errno(&err, "open '%s'", name);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	assert_non_null(strstr(err.text, "nnn...: Permission denied"));
	error_context(&err, "start the sandbox of %s", "x");
	assert_int_equal(strncmp(err.text, "start the sandbox of x: ...nnn", 30), 0);
	assert_non_null(strstr(err.text, "n...: Permission denied"));
	assert_true(strlen(err.text) < sizeof err.text);
	/* A context that is too long itself loses its end. */
	error_context(&err, "%s", name);
	assert_non_null(strstr(err.text, "nnn...: ..."));
	assert_non_null(strstr(err.text, ": Permission denied"));
}

static void a_cut_falls_between_characters(void **state)
{
	struct error err;
	char name[2000];

	for (size_t pad = 0; pad < 4; pad++) {
		size_t len = 0;

		while (len < pad)
			name[len++] = 'a';
		for (; len + 4 < sizeof name; len += 3)
			memcpy(name + len, "\xe2\x82\xac", 3);
		name[len] = '\0';
		fail(&err, ERR_INVALID, "%s", name);
		assert_int_equal(str_utf8_prefix(err.text, strlen(err.text)), strlen(err.text));
		assert_null(strchr(err.text, '\\'));
		error_context(&err, "context of %zu", pad);
		assert_int_equal(str_utf8_prefix(err.text, strlen(err.text)), strlen(err.text));
	}
}

static void an_error_may_be_made_from_its_own_text(void **state)
{
	struct error err;

	fail_hint(&err, ERR_INVALID, "try this", "inner");
	fail_hint(&err, ERR_FAILED, err.hint, "outer (%s)", err.text);
	assert_string_equal(err.text, "outer (inner)");
	assert_string_equal(err.hint, "try this");
	error_context(&err, "again %s", err.text);
	assert_string_equal(err.text, "again outer (inner): outer (inner)");
}

static void every_code_has_a_name_of_its_own_and_an_exit_code(void **state)
{
	for (int a = 0; a < ERR_CODE_COUNT; a++) {
		int exit_code = error_exit_code((enum error_code)a);

		assert_non_null(error_code_name((enum error_code)a));
		for (int b = 0; b < a; b++)
			if (a != ERR_POLICY || b != ERR_DENIED) /* both are `denied` */
				assert_string_not_equal(error_code_name((enum error_code)a),
					error_code_name((enum error_code)b));
		assert_in_range(exit_code, 125, a == ERR_CANCELED ? 130 : 127);
	}
	assert_int_equal(error_exit_code(ERR_COMMAND_NOT_FOUND), 127);
	assert_int_equal(error_exit_code(ERR_NOT_EXECUTABLE), 126);
	assert_int_equal(error_exit_code(ERR_DENIED), 125);
	assert_int_equal(error_exit_code(ERR_POLICY), 126);
	assert_int_equal(error_code_from_name("denied", ERR_NONE), ERR_DENIED);
	assert_int_equal(error_exit_code(ERR_CANCELED), 130);
	assert_string_equal(error_code_name((enum error_code)99), "failed");
}

static void errno_values_map_to_the_codes_a_caller_acts_on(void **state)
{
	assert_int_equal(error_code_from_errno(0), ERR_NONE);
	assert_int_equal(error_code_from_errno(EEXIST), ERR_CONFLICT);
	assert_int_equal(error_code_from_errno(EBUSY), ERR_CONFLICT);
	assert_int_equal(error_code_from_errno(EPERM), ERR_DENIED);
	assert_int_equal(error_code_from_errno(ENOSPC), ERR_DISK_FULL);
	assert_int_equal(error_code_from_errno(EDQUOT), ERR_DISK_FULL);
	assert_int_equal(error_code_from_errno(E2BIG), ERR_LIMIT);
	assert_int_equal(error_code_from_errno(ENOSYS), ERR_UNAVAILABLE);
	assert_int_equal(error_code_from_errno(ENOTDIR), ERR_INVALID);
	assert_int_equal(error_code_from_errno(EIO), ERR_FAILED);
}

static void one_from_another_process_is_made_whole(void **state)
{
	struct error err = { .code = (enum error_code)99, .sys_errno = ENOSPC };

	memset(err.text, '\n', sizeof err.text);
	memset(err.hint, 'h', sizeof err.hint);
	assert_int_equal(error_adopt(&err), -1);
	assert_int_equal(err.code, ERR_FAILED);
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_true(strnlen(err.text, sizeof err.text) < sizeof err.text);
	assert_null(strchr(err.text, '\n'));
	assert_true(strnlen(err.hint, sizeof err.hint) < sizeof err.hint);
	fail_hint(&err, ERR_CONFLICT, "do this", "it is there");
	struct error same = err;
	error_adopt(&same);
	assert_int_equal(same.code, ERR_CONFLICT);
	assert_string_equal(same.text, err.text);
	assert_string_equal(same.hint, err.hint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fail_sets_code_and_text_and_returns_minus_one),
		cmocka_unit_test(every_function_accepts_no_error),
		cmocka_unit_test(fail_errno_appends_the_reason_and_derives_the_code),
		cmocka_unit_test(control_bytes_in_names_are_shown_not_sent),
		cmocka_unit_test(a_long_name_does_not_push_out_the_reason),
		cmocka_unit_test(a_cut_falls_between_characters),
		cmocka_unit_test(an_error_may_be_made_from_its_own_text),
		cmocka_unit_test(one_from_another_process_is_made_whole),
		cmocka_unit_test(every_code_has_a_name_of_its_own_and_an_exit_code),
		cmocka_unit_test(errno_values_map_to_the_codes_a_caller_acts_on),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
