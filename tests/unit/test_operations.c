/* Rows of operations and commands of carrel name each other. */
#include <string.h>
#include "cli/plain.h"
#include "model/operations/operation.h"
#include "unit.h"

static bool is_command(const char *name)
{
	const struct arg_spec *spec = &cli_all;
	struct str rest = str_from(name), word;
	while (spec && str_next(&rest, ' ', &word)) {
		char text[32];
		str_format(text, sizeof text, "%.*s", (int)word.len, word.data);
		spec = cli_find(spec, text);
	}
	return spec && spec->run;
}

static void commands_of_rows_exist(void **state)
{
	for (const struct operation_table *const *table = operation_tables; *table; table++)
		for (const struct operation *row = (*table)->rows; row->method; row++)
			if (row->command && !is_command(row->command))
				fail_msg("there is no 'carrel %s'", row->command);
}

static bool has_row(const struct record *record, struct str name)
{
	for (size_t i = 0; record && i < record->count; i++)
		if (str_is(name, record->rows[i].name))
			return true;
	return false;
}

/* What operands stand for are members of the body, or a parameter. */
static void check_operands(const struct arg_spec *spec, const struct operation *operation)
{
	struct str rest = str_from(spec->sends ? spec->sends : ""), name;
	while (str_next(&rest, ' ', &name))
		if (!has_row(operation->takes, name) && !has_row(operation->query, name))
			fail_msg("carrel %s sends '%.*s'", spec->command, (int)name.len, name.data);
}

/* One that has none would end carrel when it looks its operation up. */
static void check_plain(const struct arg_spec *group)
{
	for (const struct arg_spec *const *one = group->commands; *one; one++) {
		const struct arg_spec *spec = *one;
		bool is_plain = spec->run == plain_run || spec->run == plain_list ||
				spec->run == plain_remove || spec->sends || spec->prints;
		const struct operation *operation = spec->asks
							    ? operation_find(spec->asks)
							    : operation_of_command(spec->command);
		if (spec->commands)
			check_plain(spec);
		else if ((is_plain || spec->asks) && !operation)
			fail_msg("carrel %s asks for no operation", spec->command);
		else if (operation)
			check_operands(spec, operation);
	}
}

static void commands_that_only_ask_have_a_row(void **state)
{
	check_plain(&cli_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_of_rows_exist),
		cmocka_unit_test(commands_that_only_ask_have_a_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
