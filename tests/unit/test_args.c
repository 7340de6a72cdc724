#include "cli/args.h"
#include <string.h>
#include "unit.h"

struct options {
	bool flag, other;
	const char *text, *choice;
	text_list list;
	uint64_t size, duration, count, cpus;
};
static const struct arg_option table[] = {
	{ 'f', "flag", ARG_FLAG, offsetof(struct options, flag), NULL, "", NULL, 0, 0 },
	{ 'g', "other", ARG_FLAG, offsetof(struct options, other), NULL, "", NULL, 0, 0 },
	{ 't', "text", ARG_TEXT, offsetof(struct options, text), "TEXT", "", NULL, 0, 0 },
	{ 'l', "list", ARG_LIST, offsetof(struct options, list), "ITEM", "", NULL, 0, 0 },
	{ 'c', "choice", ARG_CHOICE, offsetof(struct options, choice), "WHICH", "", "one|two", 0,
		0 },
	{ 0, "size", ARG_SIZE, offsetof(struct options, size), "SIZE", "", NULL, 4096, 0 },
	{ 0, "duration", ARG_DURATION, offsetof(struct options, duration), "TIME", "", NULL, 1, 0 },
	{ 0, "count", ARG_COUNT, offsetof(struct options, count), "N", "", NULL, 1, 10 },
	{ 0, "cpus", ARG_CPUS, offsetof(struct options, cpus), "N", "", NULL, 10, 0 },
};
static const struct arg_spec spec = { "test", "carrel test", "", table,
	sizeof table / sizeof *table, NULL };

struct parsed {
	struct arena arena;
	struct options options;
	int operands, result;
	bool help;
	struct error err;
};

static void parse(struct parsed *p, int argc, const char **argv)
{
	*p = (struct parsed){ 0 };
	arena_init(&p->arena);
	p->result = args_parse(&spec, argc, (char **)argv, &p->options, &p->arena, &p->operands,
		&p->help, &p->err);
}
#define PARSE(p, ...)                                                                              \
	const char *argv_[] = { "test", __VA_ARGS__, NULL };                                       \
	parse(p, sizeof argv_ / sizeof *argv_ - 1, argv_)

static void every_form_of_an_option_is_understood(void **state)
{
	struct parsed p;
	PARSE(&p, "-fg", "-tabc", "-l", "1", "--list=2", "--list", "3", "--size=1M", "--duration",
		"2s", "--cpus", "1.5", "-c", "two", "--", "-x");
	assert_int_equal(p.result, 0);
	assert_true(p.options.flag && p.options.other);
	assert_string_equal(p.options.text, "abc");
	assert_int_equal(p.options.list.count, 3);
	assert_string_equal(p.options.list.items[2], "3");
	assert_int_equal(p.options.size, 1 << 20);
	assert_int_equal(p.options.duration, 2000);
	assert_int_equal(p.options.cpus, 1500);
	assert_string_equal(p.options.choice, "two");
	assert_int_equal(p.operands, 16);
	arena_done(&p.arena);
}

static void options_end_at_the_first_operand(void **state)
{
	struct parsed p;
	PARSE(&p, "-f", "ls", "-g");
	assert_int_equal(p.result, 0);
	assert_int_equal(p.operands, 2);
	assert_false(p.options.other);
	arena_done(&p.arena);
}

static void the_last_one_counts(void **state)
{
	struct parsed p;
	PARSE(&p, "-t", "a", "--text", "b");
	assert_string_equal(p.options.text, "b");
	arena_done(&p.arena);
}

static void help_stops_everything(void **state)
{
	struct parsed p;
	PARSE(&p, "--help", "--nonsense");
	assert_int_equal(p.result, 0);
	assert_true(p.help);
	arena_done(&p.arena);
}

static void a_wrong_line_is_refused_and_names_what_was_typed(void **state)
{
	static struct {
		const char *words[3];
		const char *named;
	} wrong[] = {
		{ { "--nonsense" }, "'--nonsense'" },
		{ { "-x" }, "'-x'" },
		{ { "--nonsense=3" }, "'--nonsense'" },
		{ { "--flag=yes" }, "'--flag'" },
		{ { "--text" }, "'--text'" },
		{ { "-t" }, "'-t'" },
		{ { "--choice", "three" }, "'three'" },
		{ { "--size", "12X" }, "--size" },
		{ { "--size", "4095" }, "'4095'" },
		{ { "--size", "0" }, "'0'" },
		{ { "--size", "99999999999T" }, "--size" },
		{ { "--size=" }, "--size" },
		{ { "--duration", "0" }, "'0'" },
		{ { "--count", "11" }, "--count" },
		{ { "--count", "0" }, "'0'" },
		{ { "--count", "-1" }, "--count" },
		{ { "--cpus", "0" }, "--cpus" },
		{ { "-fx" }, "'-x'" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const char *argv[] = { "test", wrong[i].words[0], wrong[i].words[1], NULL };
		struct parsed p;
		parse(&p, wrong[i].words[1] ? 3 : 2, argv);
		assert_int_equal(p.result, -1);
		assert_int_equal(p.err.code, ERR_INVALID);
		if (!strstr(p.err.text, wrong[i].named))
			fail_msg("'%s' doesn't name %s", p.err.text, wrong[i].named);
		arena_done(&p.arena);
	}
}

static void an_empty_line_has_no_operand(void **state)
{
	struct parsed p;
	const char *argv[] = { "test", NULL };
	parse(&p, 1, argv);
	assert_int_equal(p.result, 0);
	assert_int_equal(p.operands, 1);
	arena_done(&p.arena);
}

static void a_lone_dash_is_an_operand(void **state)
{
	struct parsed p;
	PARSE(&p, "-");
	assert_int_equal(p.result, 0);
	assert_int_equal(p.operands, 1);
	arena_done(&p.arena);
}

static void operands_may_stand_between_options(void **state)
{
	const char *argv[] = { "test", "a", "-f", "-t", "--", "b", "--", "-g", "c", NULL };
	auto_arena struct arena arena;
	struct options options = { 0 };
	text_list operands = { 0 };
	struct error err;
	bool help;
	arena_init(&arena);
	assert_int_equal(
		args_parse_mixed(&spec, 9, (char **)argv, &options, &arena, &operands, &help, &err),
		0);
	assert_true(options.flag && !options.other && !help);
	assert_string_equal(options.text, "--");
	assert_int_equal(operands.count, 4);
	assert_string_equal(operands.items[0], "a");
	assert_string_equal(operands.items[1], "b");
	assert_string_equal(operands.items[2], "-g");
	assert_string_equal(operands.items[3], "c");
}

static void help_is_found_behind_operands(void **state)
{
	const char *argv[] = { "test", "a", "-f", "--help", "--nonsense", NULL };
	auto_arena struct arena arena;
	struct options options = { 0 };
	text_list operands = { 0 };
	struct error err;
	bool help;
	arena_init(&arena);
	assert_int_equal(
		args_parse_mixed(&spec, 5, (char **)argv, &options, &arena, &operands, &help, &err),
		0);
	assert_true(help && options.flag);
}

static void an_option_of_a_later_version_is_refused_as_such(void **state)
{
	static const struct arg_spec later = { .command = "test",
		.usage = "[ITEM...]",
		.options = table,
		.option_count = 2,
		.later = "template|v" };
	static const char *const lines[] = { "--template", "--template=x", "-v", "-fv" };
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct parsed p = { 0 };
		char *argv[] = { (char[]){ "test" }, (char *)(uintptr_t)lines[i], NULL };
		arena_init(&p.arena);
		assert_int_equal(args_parse(&later, 2, argv, &p.options, &p.arena, &p.operands,
					 &p.help, &p.err),
			-1);
		assert_int_equal(p.err.code, ERR_UNAVAILABLE);
		assert_non_null(strstr(p.err.text, "not available in this version"));
		arena_done(&p.arena);
	}
	struct parsed p;
	PARSE(&p, "--template");
	assert_int_equal(p.err.code, ERR_INVALID);
	arena_done(&p.arena);
}

static void operands_that_are_missing_or_too_many_are_named(void **state)
{
	static const struct arg_spec two = { .command = "cp", .usage = "SOURCE TARGET [options]" };
	const char *items[] = { "a", "b", "c" };
	text_list operands = { items, 0, 0 };
	struct error err;
	assert_int_equal(args_check_operands(&two, &operands, &err), -1);
	assert_string_equal(err.text, "cp needs a SOURCE");
	operands.count = 1;
	assert_int_equal(args_check_operands(&two, &operands, &err), -1);
	assert_string_equal(err.text, "cp needs a TARGET");
	operands.count = 2;
	assert_int_equal(args_check_operands(&two, &operands, &err), 0);
	operands.count = 3;
	assert_int_equal(args_check_operands(&two, &operands, &err), -1);
	assert_string_equal(err.text, "unexpected argument 'c'");

	static const struct arg_spec lines = {
		.command = "deploy",
		.usage = "FILE [options]\n       carrel deploy NAME --url URL",
	};
	assert_int_equal(args_least(&lines), 1);
	assert_int_equal(args_check_operands(&lines, &operands, &err), -1);
	assert_string_equal(err.text, "unexpected argument 'b'");
}

static void operands_are_counted_by_the_usage_line(void **state)
{
	static const struct {
		const char *usage;
		size_t least, most;
	} cases[] = { { NULL, 0, 0 }, { "", 0, 0 }, { "NAME [options]", 1, 1 },
		{ "NAME [NEW] [options]", 1, 2 }, { "NAME FILE... [options]", 2, 9 },
		{ "[NAME...] [-o json]", 0, 9 }, { "NAME -f FILE [options]", 1, 1 },
		{ "[options] [--] CMD", 0, 0 }, { "FILE [options]\n       carrel x A B", 1, 1 } };
	const char *items[10] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" };
	struct error err;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct arg_spec one = { .command = "x", .usage = cases[i].usage };
		for (size_t count = 0; count < 10; count++) {
			const text_list operands = { items, count, 0 };
			bool fits = count >= cases[i].least && count <= cases[i].most;
			assert_int_equal(args_check_operands(&one, &operands, &err), fits ? 0 : -1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_an_option_is_understood),
		cmocka_unit_test(options_end_at_the_first_operand),
		cmocka_unit_test(the_last_one_counts),
		cmocka_unit_test(help_stops_everything),
		cmocka_unit_test(a_wrong_line_is_refused_and_names_what_was_typed),
		cmocka_unit_test(an_empty_line_has_no_operand),
		cmocka_unit_test(a_lone_dash_is_an_operand),
		cmocka_unit_test(operands_may_stand_between_options),
		cmocka_unit_test(help_is_found_behind_operands),
		cmocka_unit_test(an_option_of_a_later_version_is_refused_as_such),
		cmocka_unit_test(operands_that_are_missing_or_too_many_are_named),
		cmocka_unit_test(operands_are_counted_by_the_usage_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
