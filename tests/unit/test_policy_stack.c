/* Several policies at once, and what their file rules become. */
/* security: policy */
#include <string.h>
#include "policy/stack.h"
#include "sandbox/plan/denials.h"
#include "unit.h"

static struct arena arena;
static const text_list no_rules;
static const struct policy_places places = { "/workspace", "context", "/workspace" };

static int reset(void **state)
{
	arena_done(&arena);
	arena_init(&arena);
	return 0;
}

static struct policy_stack build_sources(const char *first, const char *second)
{
	static const text_list none;
	static const struct policy_places at = { "/workspace", "c", "/workspace" };
	const struct policy_layer layers[] = { { "first", NULL, first, false, "the operator" },
		{ "second", NULL, second, false, "the workspace" } };
	struct policy_stack stack;
	struct error err;

	if (policy_stack_build(&stack, layers, 2, &none, POLICY_ASK, &at, &arena, &err) < 0)
		fail_msg("%s", err.text);
	return stack;
}

static struct policy_stack build(const char *operator, const char * template, const char *own)
{
	const struct policy_layer layers[] = { { "operator", operator, NULL, false },
		{ "template", template, NULL, false }, { "own", own, NULL, false } };
	struct policy_stack stack;
	struct error err;
	assert_int_equal(
		policy_stack_build(&stack, layers, 3, &no_rules, POLICY_ASK, &places, &arena, &err),
		0);
	return stack;
}

static enum policy_decision judge(const struct policy_stack *stack, const char *script)
{
	const char *words[] = { "/bin/sh", "-c", script };
	const text_list argv = { words, 3, 3 };
	const struct policy_question question = {
		.argv = &argv, .script = script, .cwd = "/workspace", .home = "/workspace"
	};
	struct policy_verdict verdict;
	policy_stack_judge(stack, &question, &arena, &verdict);
	return verdict.decision;
}

#define ANY "{\"permissions\":{\"allow\":[\"shell(*)\"]}}"
#define LS "{\"permissions\":{\"allow\":[\"shell(ls:*)\"]}}"
#define NO_CURL "{\"permissions\":{\"allow\":[\"shell(*)\"],\"deny\":[\"shell(curl:*)\"]}}"

static void test_an_empty_stack_allows_everything(void **state)
{
	const struct policy_stack stack = build(NULL, NULL, NULL);
	assert_int_equal(stack.count, 0);
	assert_int_equal(judge(&stack, "curl x"), POLICY_ALLOW);
}

static void test_the_strictest_of_the_stack_holds(void **state)
{
	struct policy_stack orders[3];
	orders[0] = build(NO_CURL, ANY, LS);
	orders[1] = build(LS, NO_CURL, ANY);
	orders[2] = build(ANY, LS, NO_CURL);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(judge(&orders[i], "ls -l"), POLICY_ALLOW);
		assert_int_equal(judge(&orders[i], "uname"), POLICY_ASK);
		assert_int_equal(judge(&orders[i], "curl x"), POLICY_DENY);
	}
}

static void test_a_rule_of_a_reviewer_is_every_policys(void **state)
{
	const char *words[] = { "shell(uname:*)", "shell(curl:*)" };
	const text_list rules = { words, 2, 2 };
	const struct policy_layer layers[] = { { "a", LS, NULL, false },
		{ "b", NO_CURL, NULL, false } };
	struct policy_stack stack;
	struct error err;
	assert_int_equal(
		policy_stack_build(&stack, layers, 2, &rules, POLICY_ASK, &places, &arena, &err),
		0);
	assert_int_equal(judge(&stack, "uname -a"), POLICY_ALLOW);
	assert_int_equal(judge(&stack, "curl x"), POLICY_DENY); /* deny still wins */
}

static void test_a_stack_that_can_not_be_built_denies(void **state)
{
	const struct policy_layer layer = { "the file", "{\"permissions\":{\"allow\":[\"x\"]}}",
		NULL, false };
	struct policy_stack stack;
	struct error err;
	assert_int_equal(policy_stack_build(
				 &stack, &layer, 1, &no_rules, POLICY_ALLOW, &places, &arena, &err),
		-1);
	assert_non_null(strstr(err.text, "the file"));
	assert_int_equal(judge(&stack, "ls"), POLICY_DENY);
}

static void test_a_default_holds_without_rules(void **state)
{
	const struct policy_layer layer = { "operator", NULL, NULL, true };
	struct policy_stack stack;
	struct error err;
	for (int i = POLICY_ALLOW; i <= POLICY_DENY; i++) {
		assert_int_equal(policy_stack_build(&stack, &layer, 1, &no_rules,
					 (enum policy_decision)i, &places, &arena, &err),
			0);
		assert_int_equal(judge(&stack, "ls"), i);
	}
}

static void test_what_is_too_long_is_denied(void **state)
{
	const struct policy_stack stack = build(ANY, NULL, NULL);
	char *script = arena_alloc(&arena, POLICY_ARGV_BYTES_MAX + 1);
	memset(script, 'x', POLICY_ARGV_BYTES_MAX);
	assert_int_equal(judge(&stack, script), POLICY_DENY);
	script[1000] = '\0';
	assert_int_equal(judge(&stack, script), POLICY_ALLOW);
}

static void test_variables_are_judged(void **state)
{
	const struct policy_stack stack = build(ANY, NULL, NULL);
	struct text_pair pairs[] = { { "A", "1" }, { "LD_PRELOAD", "x" } };
	const pair_list env = { pairs, 2, 2 };
	const struct policy_question question = { .env = &env, .cwd = "/", .home = "/" };
	struct policy_verdict verdict;
	policy_stack_judge(&stack, &question, &arena, &verdict);
	assert_int_equal(verdict.decision, POLICY_ASK);
	assert_non_null(strstr(policy_explain(&verdict, &arena), "LD_PRELOAD"));
}

static void test_file_rules_become_denials(void **state)
{
	const struct policy_stack stack =
		build("{\"permissions\":{\"allow\":[\"file(read:/workspace/**)\"],\"deny\":["
		      "\"file(read:/workspace/.env)\",\"file(write|delete:/workspace/conf/**)\","
		      "\"file(delete:/workspace/kept)\",\"file(delete:/workspace/all/**)\","
		      "\"file(read:/workspace/*.pem)\",\"file(read:/proc/**)\",\"file(read:/**)\","
		      "\"shell(rm:*)\"]}}",
			NULL, "{\"permissions\":{\"deny\":[\"file(write:/workspace/.env)\"]}}");
	plan_denials denials = { 0 };
	text_list judged = { 0 };
	denials_of(&stack, &arena, &denials, &judged);
	assert_int_equal(denials.count, 4);
	assert_string_equal(denial_print(&denials.items[3], &arena), "read:/workspace/*.pem");
	assert_string_equal(denial_print(&denials.items[0], &arena), "read:/workspace/.env");
	assert_string_equal(denial_print(&denials.items[1], &arena), "write:/workspace/conf");
	assert_string_equal(denial_print(&denials.items[2], &arena), "delete:/workspace/kept");
	assert_int_equal(judged.count, 3);
	assert_string_equal(judged.items[0], "file(delete:/workspace/all/**)");
}

static void test_a_denial_as_text(void **state)
{
	static const char *const wrong[] = { "", "read", "read:", "read:x", "read:/", "read:/proc",
		"read:/dev/null", "read:/sys/x", "read:/a/../b", "read:/a/", "execute:/a", "rea:/a",
		"read/a", "write:/a//b" };
	struct plan_denial denial;
	struct error err;
	assert_int_equal(denial_parse("write:/a/b", &denial, &err), 0);
	assert_string_equal(denial.path, "/a/b");
	assert_int_equal(denial.what, DENIED_WRITE);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (denial_parse(wrong[i], &denial, &err) != -1)
			fail_msg("'%s' was taken", wrong[i]);
}

static network_bounds bounds_of(const char *settings, const char *sources)
{
	const struct policy_layer layer = { "own", settings, sources, false, "the workspace" };
	struct policy_stack stack;
	network_bounds bounds;
	policy_stack_build(&stack, &layer, 1, &no_rules, POLICY_ASK, &places, &arena, NULL);
	policy_stack_bounds(&stack, &arena, &bounds);
	return bounds;
}

static void test_policies_bound_connections(void **state)
{
	network_bounds bounds = bounds_of(ANY, NULL);
	assert_int_equal(bounds.count, 0);
	bounds = bounds_of(NULL, "{\"web_access\":{\"enabled\":false}}");
	assert_int_equal(bounds.count, 1);
	assert_true(network_bounds_close(&bounds));
	assert_string_equal(bounds.items[0].by, "sources of the workspace: web_access");
	bounds = bounds_of(NULL, "{\"web_access\":{\"allowed_domains\":[\"a.example\"],"
				 "\"blocked_domains\":[\"b.example\"]}}");
	assert_true(bounds.items[0].has_allow && !network_bounds_close(&bounds));
	assert_string_equal(bounds.items[0].allow.items[0], "a.example");
	assert_string_equal(bounds.items[0].deny.items[0], "b.example");
	bounds = bounds_of(NULL, "{\"web_access\":{\"allowed_domains\":[\"*\"]}}");
	assert_false(bounds.items[0].has_allow);
	bounds = bounds_of("{\"permissions\":{\"allow\":[\"network(outbound:a.example)\"],"
			   "\"deny\":[\"network(outbound:*)\"]}}",
		NULL);
	assert_true(!bounds.items[0].has_allow && network_bounds_close(&bounds));
	/* srt denies what isn't listed. */
	bounds = bounds_of("{\"network\":{\"allowedDomains\":[\"a.example\"],"
			   "\"deniedDomains\":[]},\"filesystem\":{\"denyRead\":[],"
			   "\"allowWrite\":[],\"denyWrite\":[]}}",
		NULL);
	assert_int_equal(bounds.count, 1);
	assert_true(bounds.items[0].has_allow && bounds.items[0].allow.count);
	bounds = bounds_of("{", NULL); /* can't be built */
	assert_true(network_bounds_close(&bounds));
}

static void indexes_are_those_that_every_policy_lists(void **state)
{
	static const char wide[] = "{\"package_managers\": {\"pip\": {\"registries\": "
				   "[\"https://a.example/\", \"https://b.example/simple\"]}}}";
	static const char narrow[] = "{\"package_managers\": {\"pip\": {\"registries\": "
				     "[\"https://a.example/team/\", \"https://c.example/\"]}}}";
	static const char other[] = "{\"package_managers\": {\"pip\": {\"registries\": "
				    "[\"https://c.example/\"]}, \"npm\": {\"enabled\": false}}}";
	struct policy_stack stack = build_sources(wide, narrow);
	text_list urls;
	bool is_bound;
	struct error err;

	assert_int_equal(policy_stack_indexes(&stack, "pip", &arena, &urls, &is_bound, &err), 0);
	assert_true(is_bound);
	assert_int_equal(urls.count, 1);
	assert_string_equal(urls.items[0], "https://a.example/team/");
	assert_int_equal(policy_stack_indexes(&stack, "npm", &arena, &urls, &is_bound, &err), -1);
	stack = build_sources(wide, other);
	assert_int_equal(policy_stack_indexes(&stack, "pip", &arena, &urls, &is_bound, &err), -1);
	assert_int_equal(err.code, ERR_POLICY);
	stack = build_sources(NULL, NULL);
	assert_int_equal(policy_stack_indexes(&stack, "pip", &arena, &urls, &is_bound, &err), 0);
	assert_false(is_bound);
}

static void registries_of_refused_managers_are_left_out(void **state)
{
	const char *variables[] = { "PIP_INDEX_URL=https://a.example/simple",
		"PIP_EXTRA_INDEX_URL=https://b.example/x https://a.example/more",
		"UV_DEFAULT_INDEX=https://a.example/simple",
		"npm_config_registry=https://npm.example:8443/", "SSL_CERT_FILE=/etc/ssl/x" };
	const char *indexes[] = { "a.example:443", "b.example:443", "npm.example:8443" };
	const char *hosts[] = { "files.example:443" };
	const struct policy_registries found = { { variables, 5, 5 }, { indexes, 3, 3 },
		{ hosts, 1, 1 } };
	struct policy_stack stack =
		build_sources("{\"package_managers\": {\"pip\": {\"registries\": "
			      "[\"https://a.example/\"]}}}",
			NULL);
	struct policy_registries left = policy_stack_registries(&stack, &found, &arena);

	assert_int_equal(left.variables.count, 4);
	assert_string_equal(left.variables.items[1], "PIP_EXTRA_INDEX_URL=https://a.example/more");
	assert_int_equal(left.indexes.count, 1);
	assert_string_equal(left.indexes.items[0], "a.example:443");
	assert_int_equal(left.hosts.count, 1);
	stack = build_sources("{\"package_managers\": {\"npm\": {}}}", NULL);
	left = policy_stack_registries(&stack, &found, &arena);
	assert_int_equal(left.variables.count, 2);
	assert_int_equal(left.indexes.count, 1);
	assert_string_equal(left.indexes.items[0], "npm.example:8443");
	assert_int_equal(left.hosts.count, 0);
	stack = build_sources(NULL, NULL);
	left = policy_stack_registries(&stack, &found, &arena);
	assert_int_equal(left.indexes.count, 3);
}

static void clones_are_metered_by_the_least(void **state)
{
	struct policy_registries none = { 0 };
	struct network_meter meter;
	struct policy_stack stack =
		build_sources("{\"git\": {\"allowed_remotes\": [\"https://a.example/x/*\"], "
			      "\"max_clone_size_mb\": 10}}",
			"{\"git\": {\"max_clone_size_mb\": 2}}");

	policy_stack_meter(&stack, &none, &arena, &meter);
	assert_int_equal(meter.bytes, 2 << 20);
	assert_int_equal(meter.of.count, 2);
	assert_string_equal(meter.of.items[0], "a.example");
	assert_string_equal(meter.of.items[1], "*");
	stack = build_sources("{\"git\": {}}", NULL);
	policy_stack_meter(&stack, &none, &arena, &meter);
	assert_int_equal(meter.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_an_empty_stack_allows_everything, reset),
		cmocka_unit_test_setup(test_the_strictest_of_the_stack_holds, reset),
		cmocka_unit_test_setup(test_a_rule_of_a_reviewer_is_every_policys, reset),
		cmocka_unit_test_setup(test_a_stack_that_can_not_be_built_denies, reset),
		cmocka_unit_test_setup(test_a_default_holds_without_rules, reset),
		cmocka_unit_test_setup(test_what_is_too_long_is_denied, reset),
		cmocka_unit_test_setup(test_variables_are_judged, reset),
		cmocka_unit_test_setup(test_file_rules_become_denials, reset),
		cmocka_unit_test_setup(test_a_denial_as_text, reset),
		cmocka_unit_test_setup(test_policies_bound_connections, reset),
		cmocka_unit_test_setup(indexes_are_those_that_every_policy_lists, reset),
		cmocka_unit_test_setup(registries_of_refused_managers_are_left_out, reset),
		cmocka_unit_test_setup(clones_are_metered_by_the_least, reset),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_done(&arena);
	return failed;
}
