/* The grammar of shells: commands, words and redirections as the judge sees them, and what it
 * does not take. */
/* security: policy */
#include "policy/shell/shell.h"
#include "base/buf.h"
#include "arena_fixture.h"

static void show_word(struct buf *out, const struct shell_word *word)
{
	buf_text(out, word->literal ? word->literal : "?");
}

/* "[a b]" for a simple command; assignments as "x=1", redirections as "<kind:target". */
static int show(void *ctx, const struct shell_command *command)
{
	static const char *const names[] = { "", "group", "subshell", "if", "while", "until", "for",
		"select", "case", "function", "condition", "for((", "((" };
	struct buf *out = ctx;
	const char *gap = "";

	buf_printf(out, "%s%s[", out->len ? " " : "", names[command->kind]);
	for (size_t i = 0; i < command->assignments.count; i++, gap = " ") {
		buf_printf(out, "%s%s=", gap, command->assignments.items[i].name);
		if (!command->assignments.items[i].is_array)
			show_word(out, &command->assignments.items[i].value);
	}
	for (size_t i = 0; i < command->words.count; i++, gap = " ") {
		buf_text(out, gap);
		show_word(out, &command->words.items[i]);
	}
	for (size_t i = 0; i < command->redirects.count; i++, gap = " ") {
		buf_printf(out, "%s<%d:", gap, (int)command->redirects.items[i].kind);
		show_word(out, &command->redirects.items[i].target);
	}
	buf_char(out, ']');
	return 0;
}

static const char *parsed(const char *script, enum shell_dialect dialect)
{
	auto_buf struct buf out = buf_empty(SHELL_SCRIPT_MAX * 4);
	const struct shell_list *list;
	struct error err;

	if (shell_parse(str_from(script), dialect, &arena, &list, &err) < 0)
		return err.code == ERR_INVALID ? "unknown" : "limit";
	shell_visit(list, show, &out);
	return arena_text(&arena, out.data);
}

struct example {
	const char *script, *expected;
};

static void assert_parsed(const struct example *examples, size_t count, enum shell_dialect dialect)
{
	for (size_t i = 0; i < count; i++) {
		const char *actual = parsed(examples[i].script, dialect);

		if (strcmp(actual, examples[i].expected) != 0)
			fail_msg("'%s': %s, not %s", examples[i].script, actual,
				examples[i].expected);
	}
}
#define check_all(dialect, ...)                                                                    \
	do {                                                                                       \
		static const struct example examples[] = { __VA_ARGS__ };                          \
		assert_parsed(examples, sizeof examples / sizeof *examples, dialect);              \
	} while (0)

static void words_lose_their_quotes(void **state)
{
	check_all(SHELL_SH, { "ls -l 'a b' \"c d\" \\e f\\\ng", "[ls -l a b c d e fg]" },
		{ "l\"\"s 'it'\\''s' \"\\$x \\a\"", "[ls it's $x \\a]" },
		{ "echo $ a$ '' \"\"", "[echo $ a$  ]" },
		{ "find . -exec rm {} \\;", "[find . -exec rm {} ;]" },
		{ "[ -f a#b ] # c", "[[ -f a#b ]]" }, { "", "" }, { " \n# only\n", "" });
}

static void a_word_that_is_expanded_has_no_literal(void **state)
{
	check_all(SHELL_SH,
		{ "$x \"$x\" ${x} *.c a? [ab] ~ ~/x a=~ {a,b} {", "[? ? ? ? ? ? ? ? ? ? ?]" },
		{ "echo a~ '*' \"~\" \\{a,b\\} x}", "[echo a~ * ~ {a,b} x}]" });
}

static void commands_of_substitutions_are_visited(void **state)
{
	check_all(SHELL_SH, { "echo $(id -u) `ls \\`pwd\\``", "[echo ? ?] [id -u] [ls ?] [pwd]" },
		{ "echo \"a $(b \"c\") ${d:-$(e)}\"", "[echo ?] [b c] [e]" },
		{ "x=$(a) y=${z:=`b`} >$(c) d", "[x=? y=? d <1:?] [a] [b] [c]" },
		{ "echo $(( $(a) + 1 ))", "[echo ?] [a]" },
		{ "for i in $(a); do b; done", "for[i ?] [a] [b]" },
		{ "case $(a) in $(b)) c;; esac", "case[? ?] [a] [b] [c]" },
		{ "echo $(case x in y) z;; esac)", "[echo ?] case[x y] [z]" });
}

static void here_documents_are_words(void **state)
{
	check_all(SHELL_SH, { "cat <<E\na $(b) \\$c\nE\nd", "[cat <9:?] [b] [d]" },
		{ "cat <<'E'\na $(b)\nE\n", "[cat <9:a $(b)\n]" },
		{ "cat <<-E <<F\n\ta\n\tE\nb\nF\n", "[cat <9:a\n <9:b\n]" },
		{ "echo $(cat <<E\nx\nE\n)", "[echo ?] [cat <9:x\n]" }, { "cat <<E\na", "unknown" },
		{ "cat <<E", "unknown" }, { "cat <<E\na\\\nE\nE\n", "unknown" },
		{ "cat <<E 'a\nb'\nE\n", "unknown" }, { "cat <<$x\na\n$x\n", "unknown" },
		{ "cat <<E $(a\nb)\nE\n", "unknown" }, { "echo $(cat <<E)\nE\n", "unknown" });
}

static void compound_commands_hold_their_parts(void **state)
{
	check_all(SHELL_SH,
		{ "if a; then b; elif c; then d; else e; fi >f", "if[<1:f] [a] [b] [c] [d] [e]" },
		{ "while a; do b; done; until c; do d; done", "while[] [a] [b] until[] [c] [d]" },
		{ "(a; b) | { c & }", "subshell[] [a] [b] group[] [c]" },
		{ "f() { rm x; }; f", "function[f] group[] [rm x] [f]" },
		{ "! a && b || c", "[a] [b] [c]" }, { "for i do a; done", "for[i] [a]" },
		{ "time a | b", "[time a] [b]" }, { "time -p -- a=b c", "[a=b time -p -- c]" },
		{ "case a in b|c) ;; (d) e ;; esac", "case[a b c d] [e]" });
}

/* Constructs that bash and dash read differently are understood only for bash. */
static void what_only_bash_knows_is_unknown_to_sh(void **state)
{
	static const struct example bash[] = { { "[[ a && b ]]", "condition[a b]" },
		{ "[[ -f $x || ! ( a < b ) ]]", "condition[-f ? a b]" }, { "a &>b", "[a <7:b]" },
		{ "a >&b", "[a <7:b]" }, { "a <<<b", "[a <10:b]" }, { "a <(b)", "[a ?] [b]" },
		{ "a=(b $(c))", "[a=] [c]" }, { "a+=b", "[a=b]" }, { "a[$(b)]=c", "[a=c] [b]" },
		{ "((a++))", "(([?]" }, { "function f { a; }", "function[f] group[] [a]" },
		{ "select a in b; do c; done", "select[a b] [c]" }, { "echo ${a[1]}", "[echo ?]" },
		{ "echo ${a//b/$(c)}", "[echo ?] [c]" },
		{ "case a in b) c;;& esac", "case[a b] [c]" },
		{ "for ((;;)); do a; done", "for(([?] [a]" },
		{ "f() [[ a ]]", "function[f] condition[a]" },
		{ "a |& b |& { c; }", "[a] [b] group[] [c]" }, { "a |&\n\nb", "[a] [b]" },
		{ "a |\\\n& b >c", "[a] [b <1:c]" } };

	assert_parsed(bash, sizeof bash / sizeof *bash, SHELL_BASH);
	for (size_t i = 0; i < sizeof bash / sizeof *bash; i++)
		assert_string_equal(parsed(bash[i].script, SHELL_SH), "unknown");
}

static void what_shells_dispute_is_unknown(void **state)
{
	static const char *const scripts[] = { "'a", "\"a", "`a", "$(a", "${a", "a |", "a &&",
		"; a", "a ;; b", "if a; fi", "if a; then; fi", "{ a", "{ }", "( )", "a )", "done",
		"for a b; do c; done", "echo $'a'", "echo $\"a\"", "echo $[1]", "echo ${!a}",
		"echo ${ a; }", "echo ${a@P}", "coproc a", "a |& & b", "a |&& b", "{fd}>a",
		"a 2>&$b", "echo !(a)", "echo @(a|b)", "ls a\rb", "a\\", "echo \"${a:-'b'}\"",
		"echo ${a:-<(b)}", "a<(b)", "$((a) )", "! ! a", "time if a; then b; fi", "time | a",
		"a \xc2\xa0 b", "a \xe2\x80\xa8 b", "\xff", ">3<a", "a=(b) c",
		"echo \"`a \\\"b\\\"`\"", "f() a", "a b() { c; }", "alias-x() { a; }",
		"echo $(a)) b", "[[ a", "[[ a = ]]", "[[ a =~ (b|c) ]]", "a[1[]=b", "a[b[1]]=c",
		"echo ${a[b[1]]}", "time a[1]=b c" };

	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
		if (strcmp(parsed(scripts[i], SHELL_BASH), "unknown") != 0 ||
			strcmp(parsed(scripts[i], SHELL_SH), "unknown") != 0)
			fail_msg("'%s' is understood: %s", scripts[i],
				parsed(scripts[i], SHELL_BASH));
	assert_int_equal(shell_parse((struct str){ "a\0b", 3 }, SHELL_SH, &arena, NULL, NULL), -1);
}

static int find_arithmetic(void *ctx, const struct shell_command *command)
{
	for (size_t i = 0; i < command->words.count; i++)
		for (size_t j = 0; j < command->words.items[i].parts.count; j++)
			*(bool *)ctx |= command->words.items[i].parts.items[j].is_evaluated;
	return 0;
}

/* bash runs the commands in an index that the value of a variable names. */
static void arithmetic_on_names_is_marked(void **state)
{
	static const struct {
		const char *script;
		bool is_evaluated;
	} cases[] = { { "echo $((1 + 2))", false }, { "echo $((a + 2))", true },
		{ "echo $(($a))", true }, { "echo ${a[b]}", true }, { "echo ${a:b}", true },
		{ "echo ${a[@]}", false }, { "echo ${a:-b}", false } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct shell_list *list;
		bool is_found = false;

		assert_int_equal(
			shell_parse(str_from(cases[i].script), SHELL_BASH, &arena, &list, NULL), 0);
		shell_visit(list, find_arithmetic, &is_found);
		assert_int_equal(is_found, cases[i].is_evaluated);
	}
}

static void depth_and_length_are_limited(void **state)
{
	char *deep = arena_alloc(&arena, 40001), *many = arena_alloc(&arena, SHELL_SCRIPT_MAX + 2);

	memset(deep, '(', 20000);
	assert_string_equal(parsed(deep, SHELL_SH), "unknown"); /* "((" */
	for (size_t i = 0; i < 20000; i += 2)
		memcpy(deep + i, "( ", 2);
	assert_string_equal(parsed(deep, SHELL_SH), "limit");
	for (size_t i = 0; i < 20000; i += 2)
		memcpy(deep + i, "$(", 2);
	assert_string_equal(parsed(deep, SHELL_SH), "limit");
	memset(many, 'a', SHELL_SCRIPT_MAX);
	assert_int_equal(strlen(parsed(many, SHELL_SH)), SHELL_SCRIPT_MAX + 2);
	memset(many, 'a', SHELL_SCRIPT_MAX + 1);
	assert_string_equal(parsed(many, SHELL_SH), "limit");
}

static void the_tree_of_a_script_is_limited(void **state)
{
	static const char *const pieces[] = { "a\n", "*?", "$a", "`a`", "a=b ", "<a ", "'a'b" };
	char *many = arena_alloc(&arena, SHELL_SCRIPT_MAX + 1);

	for (size_t i = 0; i < 16384; i += 2)
		memcpy(many + i, "a\n", 2);
	assert_int_equal(strncmp(parsed(many, SHELL_SH), "[a] [a]", 7), 0);
	for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
		size_t len = strlen(pieces[k]), before;

		for (size_t i = 0; i + len <= SHELL_SCRIPT_MAX; i += len)
			memcpy(many + i, pieces[k], len);
		before = arena.size;
		assert_string_equal(parsed(many, SHELL_SH), "limit");
		/* A vector that grows may double once more. */
		assert_true(arena.size - before < 3 * SHELL_TREE_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_lose_their_quotes),
		cmocka_unit_test(a_word_that_is_expanded_has_no_literal),
		cmocka_unit_test(commands_of_substitutions_are_visited),
		cmocka_unit_test(here_documents_are_words),
		cmocka_unit_test(compound_commands_hold_their_parts),
		cmocka_unit_test(what_only_bash_knows_is_unknown_to_sh),
		cmocka_unit_test(what_shells_dispute_is_unknown),
		cmocka_unit_test(arithmetic_on_names_is_marked),
		cmocka_unit_test(depth_and_length_are_limited),
		cmocka_unit_test(the_tree_of_a_script_is_limited),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
