/* Rules of settings.json: what is allowed, denied and asked about, command by command. */
/* security: policy */
#include "policy/policy.h"
#include "arena_fixture.h"

static const struct policy_places places = { "/workspace", "ctx1", "/home/agent" };
static struct policy policy;

/* The settings of an agent that works on files and may not reach the network. */
static const char settings[] =
	"{\"permissions\": {\"allow\": [\"shell(grep:*)\", \"shell(sed:*)\", \"shell(awk:*)\","
	"\"shell(find:*)\", \"shell(cat:*)\", \"shell(head:*)\", \"shell(sort:*)\", "
	"\"shell(echo:*)\","
	"\"shell(printf:*)\", \"shell(ls:*)\", \"shell(mkdir:*)\", \"shell(cp:*)\", "
	"\"shell(mv:*)\","
	"\"shell(python3:*)\", \"shell(pip install:*)\", \"shell(sh:*)\", \"shell(bash:*)\","
	"\"shell(git status:*)\", \"shell(git log:*)\", \"shell(pwd)\", \"shell(xargs:*)\","
	"\"shell(timeout:*)\", \"shell(env:*)\", \"shell(tee:*)\", \"shell(rm:*)\","
	"\"file(read:${WORKSPACE}/**)\", \"file(write:${WORKSPACE}/**)\", "
	"\"file(delete:${WORKSPACE}/tmp/**)\"],"
	"\"deny\": [\"shell(rm -rf /:*)\", \"shell(rm -rf /*:*)\", \"shell(sudo:*)\", "
	"\"shell(curl:*)\","
	"\"shell(wget:*)\", \"shell(git push:*)\", \"shell(chmod 777:*)\", \"network(outbound:*)\","
	"\"file(read:/etc/shadow:*)\", \"file(write:/etc/**:*)\", \"file(read:/proc/**)\","
	"\"file(write:${WORKSPACE}/.git/**)\"]}}";

static int make_policy(void **state)
{
	struct error err;

	set_up(state);
	policy_init(&policy, &arena);
	if (policy_add_settings(&policy, str_from(settings), &places, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static const char *judged(const char *command, enum shell_dialect dialect)
{
	struct policy_request request = { dialect, "/workspace", "/home/agent", &arena };
	struct policy_verdict verdict;

	policy_judge_script(&policy, &request, str_from(command), &verdict);
	assert_true(verdict.trail.count > 0);
	return policy_decision_name(verdict.decision);
}

static void assert_all(const char *decision, const char *const *commands, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(judged(commands[i], SHELL_BASH), decision) != 0)
			fail_msg("'%s': %s, not %s", commands[i], judged(commands[i], SHELL_BASH),
				decision);
}
#define check_all(decision, ...)                                                                   \
	do {                                                                                       \
		static const char *const commands[] = { __VA_ARGS__ };                             \
		assert_all(decision, commands, sizeof commands / sizeof *commands);                \
	} while (0)

static void commands_of_the_list_are_allowed(void **state)
{
	check_all("allow", "grep -rn foo .", "cat a.py | head -n 5", "echo hi >out.txt", "ls",
		"ls -la src", "if [ -f a ]; then cat a; fi", "for i in 1 2; do echo $i; done",
		"x=1; echo \"$x\"", "/usr/bin/grep x a", "'grep' x a", "g\"re\"p x a", "git status",
		"git -C sub log --oneline", "python3 -c 'print(1)'", "pip install requests", "pwd",
		"cat <<E\n$HOME\nE\n", "sed -n 1,5p a", "sed 's/a/b/g' a", "awk '{print $1}' a",
		"find . -name '*.py'", "find . -exec echo {} \\;", "xargs", "sh -c 'ls; cat a'",
		"bash -c \"grep x a\"", "timeout 5 ls", "env A=1 ls", "cat *.py", "echo $(cat a)",
		"set -euo pipefail; ls", "echo a 2>/dev/null", "cp a b", "rm tmp/a",
		"cat ./sub/../a", "ls >&2", "export FOO=1; echo $FOO",
		"while read -r l; do echo \"$l\"; done <a", "f() { ls; }", "printf '%s' a | tee b",
		"cat a | xargs echo", "sort a", "! grep x a && echo no");
}

static void what_a_rule_denies_is_denied_in_any_spelling(void **state)
{
	check_all("deny", "curl https://a.example", "/usr/bin/curl x", "'curl' x", "c\\url x",
		"\"cu\"rl x", "./curl x", "ls; curl x", "ls && curl x", "ls | curl x",
		"echo $(curl x)", "echo `curl x`", "echo \"a $(curl x)\"",
		"cat <<E\n$(curl x)\nE\n", "echo ${x:-$(curl y)}", "x=$(curl y)", "f() { curl x; }",
		"(curl x)", "{ curl x; }", "if curl x; then ls; fi", "env curl x", "env A=1 curl x",
		"timeout 5 curl x", "nohup curl x", "nice -n 5 curl x", "command curl x",
		"exec curl x", "xargs curl", "echo a | xargs -n 1 curl", "find . -exec curl {} \\;",
		"sh -c 'curl x'", "bash -c \"sh -c 'curl x'\"", "sudo ls", "time curl x",
		"setsid curl x", "eval 'curl x'", "eval curl x", "trap 'curl x' EXIT", "rm -rf /",
		"rm -rf / --no-preserve-root", "rm -rf /*", "git push", "git push origin main",
		"git -C x push", "git --no-pager push", "chmod 777 a", "cat /etc/shadow",
		"cat ../etc/shadow", "grep x /etc/shadow", "echo x >/etc/passwd", "cp a /etc/x",
		"tee /etc/x", "cat </etc/shadow", "cat /proc/1/environ", "echo x >.git/config",
		"head --lines=1 /proc/self/maps", "! curl x", "ls & curl x",
		"case $(curl x) in a) ls;; esac", "[[ -f $(curl x) ]]", "cat <(curl x)",
		"busybox wget x", "A=1 curl x", "2>/dev/null curl x", "stdbuf -o0 curl x",
		"echo a >$(curl x)", "cat </dev/tcp/a/1", "a[$(curl x)]=1",
		"echo $(( $(curl x) + 1 ))");
}

static void what_isnt_certain_is_asked_for(void **state)
{
	check_all("ask", "docker build .", "make", "$x", "\"$cmd\" a", "c$y x", "./script.sh",
		"/tmp/grep x", "~/bin/grep x", "eval $x", "eval \"$x\"", "sh", "curl_x",
		"echo a | sh", "bash -s", "sh -c \"$x\"", "source a", ". a", "PATH=/tmp ls",
		"LD_PRELOAD=x ls", "export PATH=/tmp", "declare -x LD_PRELOAD=x", "read PATH",
		"GIT_SSH_COMMAND=x git status", "env PATH=. ls", "env -S 'ls a'",
		"BASH_ENV=x sh -c ls", "IFS=x; ls", "alias ls=x", "shopt -s expand_aliases",
		"git -c core.pager=x log", "git log --output=x", "git $x", "git \"$x\" status",
		"find . -delete", "find . $x", "find . -fprint x", "sed -n 1e a", "sed 's/a/b/e' a",
		"sed 's/a/b/w x' a", "sed -f x a", "awk 'BEGIN{system(\"x\")}'",
		"awk '{print > \"x\"}' a", "awk -f x", "awk \"$p\" a", "sort -o /usr/x a",
		"sort --compress-program=x a", "cat $x", "cat \"$x\"", "echo x >$y",
		"cat /etc/passwd", "cd /etc; cat passwd", "rm a", "pwd -P", "git pull",
		"pip download x", "echo $((x))", "((i++))", "echo ${a[x]}", "[[ $x -eq 1 ]]",
		"test -v x", "'unclosed", "if", "ls \xff", "command", "find . -exec grep x {} \\;",
		"timeout --foregr 5 ls", "zsh -c ls", "let x=1", "printf -v x a", "set -k",
		"chmod -R 777 a", "rm -rf $x", "cat /etc/sh*", "cat /*/shadow", "ls /etc",
		"${x:=y}", ": ${PATH:=x}", "for PATH in a; do ls; done", "coproc ls", "nice ls",
		"cp a ../b", "xargs rm -rf");
}

static void sh_is_judged_as_any_shell_reads_it(void **state)
{
	assert_string_equal(judged("[[ a ]] && ls", SHELL_SH), "ask");
	assert_string_equal(judged("ls &>a", SHELL_SH), "ask");
	assert_string_equal(judged("ls >a 2>&1", SHELL_SH), "allow");
}

static void a_command_without_a_shell_is_judged_by_its_words(void **state)
{
	struct policy_request request = { SHELL_SH, "/workspace", "/home/agent", &arena };
	static const struct {
		const char *words[4];
		enum policy_decision decision;
	} cases[] = {
		{ { "grep", "$(curl x)", "a" }, POLICY_ALLOW },
		{ { "curl", "x" }, POLICY_DENY },
		{ { "sh", "-c", "curl x" }, POLICY_DENY },
		{ { "docker", "build", "." }, POLICY_ASK },
		{ { "cat", "/etc/shadow" }, POLICY_DENY },
		{ { "PATH=/tmp", "ls" }, POLICY_ASK },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct policy_verdict verdict;
		text_list argv = { 0 };

		for (size_t k = 0; k < 4 && cases[i].words[k]; k++)
			vec_push(&arena, &argv, cases[i].words[k]);
		policy_judge_argv(&policy, &request, &argv, &verdict);
		assert_int_equal(verdict.decision, cases[i].decision);
	}
}

static void files_and_hosts_are_judged_by_their_rules(void **state)
{
	struct policy_request request = { SHELL_SH, "/workspace", "/home/agent", &arena };
	static const struct {
		enum policy_operation operation;
		const char *path;
		enum policy_decision decision;
	} files[] = {
		{ POLICY_READ, "/workspace/a/b", POLICY_ALLOW },
		{ POLICY_READ, "/workspace", POLICY_ALLOW },
		{ POLICY_READ, "/workspace/../etc/shadow", POLICY_DENY },
		{ POLICY_READ, "/etc/passwd", POLICY_ASK },
		{ POLICY_WRITE, "/etc/a/b", POLICY_DENY },
		{ POLICY_WRITE, "/etc", POLICY_DENY },
		{ POLICY_WRITE, "/etcetera", POLICY_ASK },
		{ POLICY_DELETE, "/workspace/tmp/x", POLICY_ALLOW },
		{ POLICY_DELETE, "/workspace/x", POLICY_ASK },
		{ POLICY_WRITE, "/workspace/.git/config", POLICY_DENY },
	};
	struct policy_verdict verdict;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		policy_judge_file(&policy, &request, files[i].operation, files[i].path, &verdict);
		if (verdict.decision != files[i].decision)
			fail_msg("%s: %s", files[i].path, policy_decision_name(verdict.decision));
	}
	policy_judge_network(&policy, &request, "a.example", 443, &verdict);
	assert_int_equal(verdict.decision, POLICY_DENY);
	assert_string_equal(verdict.trail.items[0].rule, "network(outbound:*)");
}

static void hosts_match_by_name_domain_and_port(void **state)
{
	struct policy_request request = { SHELL_SH, "/", NULL, &arena };
	struct policy_verdict verdict;
	struct policy hosts;
	static const struct {
		const char *host;
		unsigned port;
		enum policy_decision decision;
	} cases[] = { { "a.example", 443, POLICY_ALLOW }, { "a.example", 22, POLICY_ASK },
		{ "b.example", 443, POLICY_ASK }, { "x.b.example", 80, POLICY_ALLOW },
		{ "xb.example", 80, POLICY_ASK }, { "evil.b.example", 80, POLICY_DENY },
		{ "evil.b.example", 22, POLICY_DENY }, { "c.example", 8080, POLICY_ALLOW },
		{ "c.example", 443, POLICY_ASK } };

	policy_init(&hosts, &arena);
	policy_add_rule(&hosts, POLICY_ALLOW, "network(outbound:A.example)", &places, NULL);
	policy_add_rule(&hosts, POLICY_ALLOW, "network(outbound:*.b.example)", &places, NULL);
	policy_add_rule(&hosts, POLICY_ALLOW, "network(outbound:c.example:8080)", &places, NULL);
	policy_add_rule(&hosts, POLICY_DENY, "network(outbound:evil.b.example)", &places, NULL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		policy_judge_network(&hosts, &request, cases[i].host, cases[i].port, &verdict);
		if (verdict.decision != cases[i].decision)
			fail_msg("%s:%u", cases[i].host, cases[i].port);
	}
}

static void commands_of_the_shell_can_be_denied(void **state)
{
	struct policy_request request = { SHELL_SH, "/", NULL, &arena, NULL };
	struct policy_verdict verdict;
	struct policy shell;

	policy_init(&shell, &arena);
	policy_add_rule(&shell, POLICY_DENY, "shell(cd /srv:*)", &places, NULL);
	policy_add_rule(&shell, POLICY_DENY, "shell(export:*)", &places, NULL);
	policy_add_rule(&shell, POLICY_ASK, "shell(eval:*)", &places, NULL);
	policy_judge_script(&shell, &request, STR("cd /srv"), &verdict);
	assert_int_equal(verdict.decision, POLICY_DENY);
	policy_judge_script(&shell, &request, STR("cd /tmp"), &verdict);
	assert_int_equal(verdict.decision, POLICY_ALLOW);
	policy_judge_script(&shell, &request, STR("export A=1"), &verdict);
	assert_int_equal(verdict.decision, POLICY_DENY);
	policy_judge_script(&shell, &request, STR("eval true"), &verdict);
	assert_int_equal(verdict.decision, POLICY_ASK);
}

static void a_malformed_rule_is_an_error(void **state)
{
	static const char *const rules[] = { "", "ls", "shell", "shell()", "shell(ls", "Shell(ls)",
		"shell(:*)", "shell( )", "shell(ls *)", "shell('ls)", "shell(l*s:*)", "file(read)",
		"file(open:/a)", "file(:/a)", "file(read:)", "file(read:a)", "file(read:${HOME}/a)",
		"network(*)", "network(inbound:a)", "network(outbound:)",
		"network(outbound:https://a)", "network(outbound:a*b)", "network(outbound:*.)",
		"network(outbound:a:99999)", "shell(ls\n)", "files(read:/a)" };
	struct policy p;
	struct error err;

	policy_init(&p, &arena);
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (policy_add_rule(&p, POLICY_ALLOW, rules[i], &places, &err) == 0)
			fail_msg("'%s' is taken", rules[i]);
	assert_int_equal(p.rules.count, 0);
	assert_int_equal(policy_add_settings(&p,
				 STR("{\"permissions\": {\"deny\": [\"shell(ls)\", \"x\"]}}"),
				 &places, &err),
		-1);
	assert_string_equal(err.text,
		"line 1: permissions.deny[1]: 'x': a rule is shell(…), file(…) or network(…)");
	assert_int_equal(policy_add_settings(&p, STR("[]"), &places, &err), -1);
	assert_int_equal(
		policy_add_settings(&p, STR("{\"permissions\": {\"allow\": {}}}"), &places, &err),
		-1);
}

static void a_policy_has_a_number_of_rules_at_most(void **state)
{
	static const char *const texts[] = { "shell(a)", "file(read:/a)", "network(outbound:a.b)" };
	struct policy many;
	struct error err;

	policy_init(&many, &arena);
	for (size_t i = 0; i < POLICY_RULES_MAX; i++)
		assert_int_equal(
			policy_add_rule(&many, POLICY_DENY, texts[i % 3], &places, &err), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(policy_add_rule(&many, POLICY_DENY, texts[i], &places, &err), -1);
		assert_int_equal(err.code, ERR_LIMIT);
		assert_non_null(strstr(err.text, "at most 32768 rules"));
	}
	assert_int_equal(policy_add_settings(&many,
				 STR("{\"filesystem\": {\"denyRead\": [\"a\"], \"allowWrite\": [], "
				     "\"denyWrite\": []}, \"network\": {\"allowedDomains\": [], "
				     "\"deniedDomains\": []}}"),
				 &places, &err),
		-1);
	assert_non_null(strstr(err.text, "at most 32768 rules"));
	assert_int_equal(many.rules.count, POLICY_RULES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_has_a_number_of_rules_at_most),
		cmocka_unit_test(commands_of_the_list_are_allowed),
		cmocka_unit_test(what_a_rule_denies_is_denied_in_any_spelling),
		cmocka_unit_test(what_isnt_certain_is_asked_for),
		cmocka_unit_test(sh_is_judged_as_any_shell_reads_it),
		cmocka_unit_test(a_command_without_a_shell_is_judged_by_its_words),
		cmocka_unit_test(files_and_hosts_are_judged_by_their_rules),
		cmocka_unit_test(hosts_match_by_name_domain_and_port),
		cmocka_unit_test(commands_of_the_shell_can_be_denied),
		cmocka_unit_test(a_malformed_rule_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_policy, tear_down);
}
