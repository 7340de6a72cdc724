/* What a judgement takes: counted, not timed. */
/* security: policy */
#include <string.h>
#include "base/buf.h"
#include "policy/stack.h"
#include "arena_fixture.h"

static const struct policy_places places = { "/workspace", "c", "/workspace" };

/* {"permissions": {"allow": [allow], LIST: [rule 0, rule 1 …]}} */
static const char *settings_of(const char *list, const char *rule, size_t count)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);

	buf_printf(&text,
		"{\"permissions\": {\"allow\": [\"%s\"], \"defaultMode\": \"bypassPermissions\","
		"\"%s\": [",
		strncmp(rule, "Bash", 4) == 0 ? "Bash" : "Read", list);
	for (size_t i = 0; i < count; i++) {
		buf_printf(&text, "%s\"", i ? ", " : "");
		for (const char *at = rule; *at; at++)
			if (*at == '#')
				buf_printf(&text, "%zu", i);
			else
				buf_append(&text, at, 1);
		buf_append(&text, "\"", 1);
	}
	buf_printf(&text, "]}}");
	return arena_bytes(&arena, text.data, text.len);
}

static struct policy policy_of(const char *settings)
{
	struct policy policy;
	struct error err;

	policy_init(&policy, &arena);
	if (policy_add_settings(&policy, str_from(settings), &places, &err) < 0)
		fail_msg("%s", err.text);
	return policy;
}

static char *repeated(const char *head, const char *piece, size_t len, const char *tail)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);

	buf_append(&text, head, strlen(head));
	while (text.len < len)
		buf_append(&text, piece, strlen(piece));
	buf_append(&text, tail, strlen(tail));
	return arena_bytes(&arena, text.data, text.len);
}

/* The steps that it took. */
static size_t judge(const struct policy *policy, const char *script, struct policy_verdict *verdict)
{
	struct policy_work work = { POLICY_WORK_MAX };
	const struct policy_request request = { .dialect = SHELL_SH,
		.cwd = "/workspace",
		.home = "/workspace",
		.arena = &arena,
		.work = &work };

	policy_judge_script(policy, &request, str_from(script), verdict);
	return POLICY_WORK_MAX - work.left;
}

static bool is_spent(const struct policy_verdict *verdict)
{
	for (size_t i = 0; i < verdict->trail.count; i++)
		if (verdict->trail.items[i].reason &&
			strstr(verdict->trail.items[i].reason, "too much work"))
			return true;
	return false;
}

static void usual_commands_take_little(void **state)
{
	static const char *const scripts[] = { "ls -la", "git push origin main",
		"for i in a b c; do python3 -m pytest -x tests/$i && echo done >>log; done",
		"cat a.py | grep -v x | sort -u | head -n 5; git commit -am 'x y z'" };
	struct policy policies[] = { policy_of(
					     settings_of("deny", "Bash(git push origin#:*)", 1000)),
		policy_of(settings_of("deny", "Bash(x# * y *)", 1000)),
		policy_of(settings_of("deny", "Read(//workspace/**/*.x#)", 1000)) };
	struct policy_verdict verdict;

	for (size_t k = 0; k < sizeof policies / sizeof *policies; k++)
		for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
			size_t steps = judge(&policies[k], scripts[i], &verdict);

			assert_false(is_spent(&verdict));
			assert_true(steps < POLICY_WORK_MAX / 4);
		}
}

static void a_bucket_of_rules_is_judged_once(void **state)
{
	struct policy policy = policy_of(settings_of("deny", "Bash(git push origin#:*)", 1000));
	struct policy_verdict verdict;
	size_t one = judge(&policy, repeated("git", " push", 4096, ""), &verdict);

	assert_false(is_spent(&verdict));
	assert_int_equal(verdict.decision, POLICY_ALLOW);
	size_t two = judge(&policy, repeated("git", " push", 8192, ""), &verdict);
	assert_false(is_spent(&verdict));
	assert_true(two < 3 * one); /* not with the square of the words */
}

static void words_are_joined_once(void **state)
{
	struct policy policy = policy_of(settings_of("deny", "Bash(*a#b*c#d*)", 1000));
	struct policy_verdict verdict;
	char *script = repeated("echo", " word", 8192, "");
	size_t before = arena.size;

	judge(&policy, script, &verdict);
	assert_false(is_spent(&verdict));
	assert_true(arena.size - before < ((size_t)2 << 20));
}

/* Settings and commands that multiply. Whatever is left is asked for, also where a policy never
 * asks, and what was found denied stays so. */
static void what_takes_too_much_is_asked_for(void **state)
{
	static const struct {
		const char *list, *rule;
		size_t count;
		const char *head, *piece;
		size_t len;
	} cases[] = {
		{ "deny", "Bash(git push x#:*)", 5000, "git", " push", 16000 },
		{ "deny", "Bash(*a#*b*)", 5000, "echo", " word", 100000 },
		{ "deny", "Read(//workspace/**/*a*a*a*a*#)", 3000, "cat ", "a", 4000 },
		{ "deny", "Read(//workspace/**a**a**a**a?#)", 500, "cat ", "a/", 4000 },
		{ "deny", "Read(//workspace/**/x#)", 5000, "cat", " a/b/c", 20000 },
		{ "ask", "Read(//workspace/**/x#)", 5000, "rm -r", " a b*", 16000 },
		{ "deny", "Bash(x#)", 10, "eval ls", "; eval ls", 120000 },
		{ "deny", "Bash(x#)", 10, "ls", ";a", 120000 },
		{ "deny", "Bash(x#)", 10, "ls", " $a*", 120000 },
		{ "deny", "Bash(x#)", 10, "ls", " ${a:=b}", 120000 },
		{ "deny", "Bash(x#)", 10, "ls", "; env -z a b c d", 120000 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct policy policy =
			policy_of(settings_of(cases[i].list, cases[i].rule, cases[i].count));
		char *script = repeated(cases[i].head, cases[i].piece, cases[i].len, "");
		size_t before = arena.size;
		struct policy_verdict verdict;

		judge(&policy, script, &verdict);
		if (verdict.decision != POLICY_ASK || verdict.trail.count > POLICY_TRAIL_MAX)
			fail_msg("case %zu: %s, %zu steps of the trail", i,
				policy_decision_name(verdict.decision), verdict.trail.count);
		/* One tree of a script more than the judgement may have. */
		if (arena.size - before > 2 * POLICY_MEMORY_MAX)
			fail_msg("case %zu: %zu bytes", i, arena.size - before);
	}
}

static void a_denial_that_was_found_stays(void **state)
{
	struct policy policy = policy_of(settings_of("deny", "Bash(git push x#:*)", 5000));
	struct policy_verdict verdict;

	judge(&policy, repeated("git push x7; git", " push", 16000, ""), &verdict);
	assert_true(is_spent(&verdict));
	assert_int_equal(verdict.decision, POLICY_DENY);
}

static void the_same_question_takes_the_same(void **state)
{
	const char *settings = settings_of("deny", "Bash(*a#*b*)", 700);
	char *script = repeated("echo", " word", 5000, "; git push");
	struct policy one = policy_of(settings), two = policy_of(settings);
	struct policy_verdict verdict;

	assert_int_equal(judge(&one, script, &verdict), judge(&two, script, &verdict));
}

static void the_memory_of_a_judgement_goes_with_it(void **state)
{
	const char *settings = settings_of("deny", "Bash(*a#*b*)", 1000);
	const struct policy_layer layers[] = { { "one", settings, NULL, false, "one" },
		{ "two", settings, NULL, false, "two" },
		{ "three", settings, NULL, false, "three" } };
	char *script = repeated("echo", " word", 100000, "");
	const char *words[] = { "/bin/sh", "-c", script };
	const text_list argv = { words, 3, 3 }, none = { 0 };
	const struct policy_question question = {
		.argv = &argv, .script = script, .cwd = "/workspace", .home = "/workspace"
	};
	struct policy_stack stack;
	struct policy_verdict verdict;
	auto_arena struct arena kept = { 0 };

	assert_int_equal(
		policy_stack_build(&stack, layers, 3, &none, POLICY_ASK, &places, &arena, NULL), 0);
	policy_stack_judge(&stack, &question, &kept, &verdict);
	assert_int_equal(verdict.decision, POLICY_ASK);
	/* The command itself is in the trail, by its beginning. */
	assert_true(kept.size < 65536);
}

static void rules_are_read_in_linear_memory(void **state)
{
	const char *rule = repeated("file(read:", "/${WORKSPACE}", 100000, ")");
	struct policy policy;
	size_t before;

	policy_init(&policy, &arena);
	before = arena.size;
	assert_int_equal(policy_add_rule(&policy, POLICY_DENY, rule, &places, NULL), 0);
	assert_true(arena.size - before < 16 * strlen(rule));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(usual_commands_take_little, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_bucket_of_rules_is_judged_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(words_are_joined_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_takes_too_much_is_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_denial_that_was_found_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_same_question_takes_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_memory_of_a_judgement_goes_with_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rules_are_read_in_linear_memory, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
