/* File rules, against commands, redirections and words that name files. */
/* security: policy */
#include "policy/policy.h"
#include "arena_fixture.h"

static const struct policy_places places = { "/workspace", "ctx1", "/workspace" };

struct row {
	const char *command, *decision;
};

static const char *judged(const char *permissions, const char *command)
{
	struct policy_request request = { SHELL_BASH, "/workspace", "/workspace", &arena };
	struct policy_verdict verdict;
	struct policy policy;
	struct error err;
	const char *settings = arena_printf(&arena, "{\"permissions\": {%s}}", permissions);

	policy_init(&policy, &arena);
	if (policy_add_settings(&policy, str_from(settings), &places, &err) < 0)
		fail_msg("%s", err.text);
	if (strncmp(command, "file(", 5) != 0)
		policy_judge_script(&policy, &request, str_from(command), &verdict);
	else if (policy_judge_subject(&policy, &request, command, &verdict, &err) < 0)
		fail_msg("%s", err.text);
	return policy_decision_name(verdict.decision);
}

static void assert_rows(const char *permissions, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *decision = judged(permissions, rows[i].command);

		if (strcmp(decision, rows[i].decision) != 0)
			fail_msg("'%s': %s, not %s", rows[i].command, decision, rows[i].decision);
	}
}
#define check_rows(permissions, ...)                                                               \
	do {                                                                                       \
		static const struct row rows[] = { __VA_ARGS__ };                                  \
		assert_rows(permissions, rows, sizeof rows / sizeof *rows);                        \
	} while (0)

static void a_star_stands_for_every_operation(void **state)
{
	check_rows("\"allow\": [\"file(*:/workspace/**)\"], \"deny\": "
		   "[\"file(*:/workspace/keys/**:*)\"]",
		{ "file(read:/workspace/a)", "allow" }, { "file(write:/workspace/a)", "allow" },
		{ "file(delete:/workspace/a)", "allow" }, { "file(*:/workspace/a)", "allow" },
		{ "file(read|delete:/workspace/a)", "allow" }, { "file(*:/etc/a)", "ask" },
		{ "file(read:/workspace/keys/a)", "deny" },
		{ "file(write:/workspace/keys/a)", "deny" },
		{ "file(delete:/workspace/keys/a)", "deny" },
		{ "file(*:/workspace/keys)", "deny" });
	check_rows("\"allow\": [\"file(*:*)\"], \"deny\": [\"file(write:/workspace/a)\"]",
		{ "file(read:/workspace/a)", "allow" }, { "file(*:/workspace/a)", "deny" },
		{ "file(*:/etc/passwd)", "allow" });
}

static void what_all_operations_ask_for_is_suggested_as_one_rule(void **state)
{
	struct policy_request request = { SHELL_SH, "/workspace", "/workspace", &arena };
	struct policy_verdict verdict;
	struct policy policy;
	text_list rules = { 0 };

	policy_init(&policy, &arena);
	policy_judge_subject(&policy, &request, "file(*:/srv/a)", &verdict, NULL);
	policy_suggest(&verdict, &arena, &rules);
	assert_int_equal(rules.count, 1);
	assert_string_equal(rules.items[0], "file(*:/srv/a)");
	policy_add_rule(&policy, POLICY_ALLOW, rules.items[0], &places, NULL);
	policy_judge_subject(&policy, &request, "file(*:/srv/a)", &verdict, NULL);
	assert_int_equal(verdict.decision, POLICY_ALLOW);
}

static void without_file_rules_redirections_stay_in_the_workspace_and_tmp(void **state)
{
	static const char shell[] = "\"allow\": [\"shell(ls:*)\"]";

	check_rows(shell, { "ls >a", "allow" }, { "ls >/workspace/a/b", "allow" },
		{ "ls >>/tmp/a", "allow" }, { "ls <a", "allow" }, { "ls >/dev/null 2>&1", "allow" },
		{ "ls &>a", "allow" }, { "ls >/etc/a", "ask" }, { "ls </etc/passwd", "ask" },
		{ "ls >../a", "ask" }, { "ls >/tmp/../a", "ask" }, { "ls >/tmpfile", "ask" },
		{ "ls <>/srv/a", "ask" }, { ">/etc/a", "ask" }, { "{ ls; } >/etc/a", "ask" },
		{ "ls >~/a", "ask" }, { "cd sub && ls >a", "allow" }, { "cd /etc && ls >a", "ask" },
		{ "cd sub && ls >../a", "ask" }, { "cd /tmp; ls >/tmp/a", "allow" },
		{ "cd a; ls >x; cd /etc; ls >x", "ask" }, { "ls /etc", "allow" });
	check_rows("\"allow\": [\"shell(ls:*)\"], \"default\": \"deny\"", { "ls >/etc/a", "deny" },
		{ "ls >a", "allow" });
	check_rows(
		"\"allow\": [\"shell(ls:*)\"], \"default\": \"allow\"", { "ls >/etc/a", "allow" });
	/* A rule for files makes all of them need one. */
	check_rows("\"allow\": [\"shell(echo:*)\", \"file(write:/srv/**)\"]",
		{ "echo >/srv/a", "allow" }, { "echo >a", "ask" });
}

/* A wildcard is no dot at the beginning of a name, and no '/'. */
static void a_word_with_wildcards_is_each_file_that_it_may_become(void **state)
{
	static const char rules[] =
		"\"allow\": [\"shell(ls:*)\", \"shell(cat:*)\", \"shell(grep:*)\", "
		"\"shell(tar:*)\","
		"\"file(*:/workspace/**)\"],"
		"\"deny\": [\"file(read:/workspace/**/*.pem)\", \"file(read:/workspace/.env)\","
		"\"file(read:/workspace/keys/**)\", \"file(read:/workspace/?.bin)\"]";

	check_rows(rules, { "ls *.py", "allow" }, { "cat *.py", "allow" },
		{ "cat ./*.py", "allow" }, { "cat src/*.py", "allow" }, { "cat */a.txt", "ask" },
		{ "cat s*/a.txt", "allow" }, { "cat /workspace/src/*.c", "allow" },
		{ "cat a*/b?.c", "allow" }, { "ls s*/", "ask" }, { "ls s*.d/", "allow" },
		{ "cat s*/../a", "ask" }, { "cat s*/.*/a", "ask" }, { "cat .*", "ask" },
		{ "cat .e*", "ask" }, { "cat .gi*.txt", "allow" }, { "cat *", "ask" },
		{ "cat *.pe?", "ask" }, { "cat a[b].txt", "ask" }, { "cat src/a.[ch]", "ask" },
		{ "cat ?.bin", "ask" }, { "cat ??.bin", "allow" }, { "cat k*/a", "ask" },
		{ "cat ../*", "ask" }, { "cat /etc/*.conf", "ask" },
		{ "cd src && cat *.py", "allow" }, { "cd /etc && cat *.py", "ask" },
		{ "cd a; cd b; cat *.py", "ask" }, { "cat *.p\"y\"", "allow" },
		{ "cat \"*\".pem", "deny" }, { "cat *$x", "ask" }, { "cat {a,b}.py", "ask" },
		/* It may be an option: a file "-re.py". */
		{ "grep x *.py", "ask" }, { "grep x ./*.py", "allow" }, { "grep x s*.py", "allow" },
		{ "tar cf a.tar *.py", "ask" });
	check_rows("\"allow\": [\"shell(cat:*)\", \"file(read:/workspace/*.py)\","
		   "\"file(read:/workspace/a?b)\"]",
		{ "cat *.py", "allow" }, { "cat a*.py", "allow" }, { "cat *", "ask" },
		{ "cat s/*.py", "ask" }, { "cat a?b", "allow" }, { "cat a*b", "ask" });
}

static void a_file_that_an_option_names_is_judged_however_it_is_spelled(void **state)
{
	static const char rules[] = "\"allow\": [\"shell(*)\", \"file(*:/workspace/**)\"]";

	check_rows(rules, { "grep -f /etc/x a", "ask" }, { "grep -nf /etc/x a", "ask" },
		{ "grep -nf/etc/x a", "ask" }, { "grep --file=/etc/x a", "ask" },
		{ "grep --file /etc/x a", "ask" }, { "egrep -if /etc/x a", "ask" },
		{ "fgrep -vf /etc/x a", "ask" }, { "grep -nf l a", "allow" },
		{ "grep -ef a", "allow" }, { "touch -cr /etc/x a", "ask" },
		{ "touch -cr b a", "allow" });
}

static void what_reads_a_directory_in_which_a_file_is_denied_is_asked_for(void **state)
{
	static const char rules[] = "\"allow\": [\"shell(*)\", \"file(*:/workspace/**)\"],"
				    "\"deny\": [\"file(read:/workspace/src/**/*.pem)\", "
				    "\"file(write:/workspace/lib/*.so)\"]";

	check_rows(rules, { "grep -r x .", "ask" }, { "grep -d recurse x .", "ask" },
		{ "grep -drecurse x src", "ask" }, { "grep --directories=recurse x src", "ask" },
		{ "grep -r x docs", "allow" }, { "grep x src/a", "allow" }, { "rgrep x", "ask" },
		{ "diff . x", "ask" }, { "diff x src/", "ask" }, { "diff -r src x", "ask" },
		{ "diff a b", "allow" }, { "cp -a src x", "ask" }, { "cp -a docs x", "allow" },
		{ "rsync -a src x", "ask" }, { "rsync -a --files-from=l docs x", "ask" },
		{ "cpio -o", "ask" }, { "cpio -p /tmp/x", "ask" }, { "cpio --create", "ask" },
		{ "cpio --pass-thr x", "ask" }, { "cpio -t", "allow" },
		{ "zip -r x.zip src", "ask" }, { "zip x.zip -@", "ask" },
		{ "python3 x.py src/", "ask" }, { "python3 x.py .", "ask" },
		{ "python3 x.py ..", "ask" }, { "python3 x.py docs/", "allow" },
		{ "python3 src/x.py", "allow" }, { "chmod -R 600 .", "ask" },
		{ "chmod -R 600 docs", "allow" }, { "ls src/", "allow" }, { "ls -la .", "allow" },
		{ "mkdir -p src/", "allow" }, { "echo .", "allow" });
	check_rows(rules, { "tar cf x.tar .", "ask" }, { "tar cf x.tar src", "ask" },
		{ "tar -cf x.tar docs", "allow" }, { "tar xf x.tar", "ask" },
		{ "tar tf x.tar", "allow" }, { "tar cf x.tar -T list", "ask" },
		{ "tar cTf list x.tar", "ask" }, { "tar -rf x.tar -C src .", "ask" });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_star_stands_for_every_operation),
		cmocka_unit_test(what_all_operations_ask_for_is_suggested_as_one_rule),
		cmocka_unit_test(a_word_with_wildcards_is_each_file_that_it_may_become),
		cmocka_unit_test(a_file_that_an_option_names_is_judged_however_it_is_spelled),
		cmocka_unit_test(what_reads_a_directory_in_which_a_file_is_denied_is_asked_for),
		cmocka_unit_test(without_file_rules_redirections_stay_in_the_workspace_and_tmp),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
