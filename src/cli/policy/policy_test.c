/* carrel policy test: a file of rules with requests that they have to allow, ask for or deny. */
#include "base/path.h"
#include "cli/policy/policy.h"
#include "format/text/yaml.h"

#define TEST_FILE_MAX ((size_t)1 << 20)

/* The parts of YAML that JSON has, as the values that json_read makes. */
static struct json_value *from_yaml(struct arena *arena, const struct yaml_value *yaml)
{
	struct json_value *value = arena_alloc(arena, sizeof *value), **link = &value->first;
	value->line = yaml->line;
	value->key = yaml->key ? str_from(yaml->key) : (struct str){ 0 };
	if (yaml->kind == YAML_SCALAR) {
		value->kind = JSON_STRING;
		value->string = str_from(yaml->text);
	} else if (yaml->kind != YAML_NULL)
		value->kind = yaml->kind == YAML_LIST ? JSON_ARRAY : JSON_OBJECT;
	for (const struct yaml_value *one = yaml->first; one; one = one->next) {
		*link = from_yaml(arena, one);
		link = &(*link)->next;
		value->count++;
	}
	return value;
}

struct test {
	struct command *command;
	const char *path; /* of the file */
	struct policy_rules rules;
	struct policy_places places;
	size_t passed, failed;
};

static int read_file(struct test *t, struct json_value **root, struct error *err)
{
	struct arena *arena = &t->command->arena;
	struct yaml_value *yaml;
	struct str text, trimmed;
	if (policy_read_file(t->path, TEST_FILE_MAX, arena, &text, err))
		return -1;
	trimmed = str_trim(text);
	if (trimmed.len && trimmed.data[0] == '{') {
		if (json_read(text, arena, root, err))
			return error_context(err, "%s", t->path);
	} else {
		if (yaml_read(text, arena, &yaml, err))
			return error_context(err, "%s", t->path);
		*root = from_yaml(arena, yaml);
	}
	if ((*root)->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "%s: a map expected", t->path);
	return 0;
}

/* A file that is named relative to the test file. */
static const char *beside(struct test *t, const char *name)
{
	const char *base = path_basename(t->path);
	if (name[0] == '/' || base == t->path)
		return name;
	return arena_printf(&t->command->arena, "%.*s%s", (int)(base - t->path), t->path, name);
}

static int read_settings(struct test *t, const struct json_value *root, struct error *err)
{
	struct arena *arena = &t->command->arena;
	const char *settings = json_member_text(root, "settings");
	const char *sources = json_member_text(root, "sources");
	const char *otherwise = json_member_text(root, "default");
	enum policy_decision decision;
	struct str text;
	if (settings) {
		struct policy_file file = { .name = beside(t, settings) };
		if (policy_read_file(file.name, POLICY_SETTINGS_MAX, arena, &file.text, err) ||
			policy_add_file(&t->rules.policy, &file, &t->places, err))
			return -1;
	}
	if (sources) {
		const char *name = beside(t, sources);
		if (policy_read_file(name, SOURCES_MAX, arena, &text, err) ||
			sources_parse(name, text, arena, &t->rules.sources, err))
			return -1;
		t->rules.request.sources = &t->rules.sources;
	}
	if (otherwise) {
		if (!policy_decision_from_name(otherwise, &decision))
			return fail(err, ERR_INVALID, "%s: default: allow, ask or deny expected",
				t->path);
		policy_set_default(&t->rules.policy, decision);
	}
	for (int i = POLICY_ALLOW; i <= POLICY_DENY; i++) {
		decision = (enum policy_decision)i;
		const struct json_value *list = json_member(root, policy_decision_name(decision));
		if (list && list->kind != JSON_ARRAY)
			return fail(err, ERR_INVALID, "%s: %s: a list of rules expected", t->path,
				policy_decision_name(decision));
		for (const struct json_value *one = list ? list->first : NULL; one;
			one = one->next) {
			if (one->kind != JSON_STRING || policy_add_rule(&t->rules.policy, decision,
								one->string.data, &t->places, err))
				return error_context(err, "%s: %s: '%s'", t->path,
					policy_decision_name(decision),
					one->kind == JSON_STRING ? one->string.data : "");
		}
	}
	return 0;
}

static int judge(struct test *t, const struct policy *policy, struct str request,
	struct policy_verdict *verdict, struct error *err)
{
	if (str_starts_with(request, "file(") || str_starts_with(request, "network("))
		return policy_judge_subject(policy, &t->rules.request, request.data, verdict, err);
	policy_judge_script(policy, &t->rules.request, request, verdict);
	return 0;
}

static void report(struct test *t, bool is_ok, const char *expected, struct str request,
	const struct policy_verdict *verdict, const char *rule)
{
	struct command *command = t->command;
	struct json *j = &command->value;
	const struct policy_step *by = NULL;
	char shown[300];
	for (size_t i = 0; i < verdict->trail.count && !by; i++)
		if (verdict->trail.items[i].decision == verdict->decision)
			by = &verdict->trail.items[i];
	const char *why = !by ? NULL : by->rule ? by->rule : by->reason;
	t->passed += is_ok;
	t->failed += !is_ok;
	if (command->json) {
		json_object(j, NULL);
		json_bool(j, "ok", is_ok);
		json_str(j, "request", request);
		json_text(j, "expected", expected);
		json_text(j, "decision", policy_decision_name(verdict->decision));
		json_text(j, "rule", rule ? rule : by ? by->rule : NULL);
		json_text(j, "reason", by ? by->reason : NULL);
		json_end(j);
		return;
	}
	str_printable(shown, sizeof shown, request);
	buf_printf(&command->out, "%s  %-6s  %s", is_ok ? "ok  " : "FAIL", expected, shown);
	if (rule)
		buf_printf(&command->out, "  (%s)", rule);
	else if (!is_ok)
		buf_printf(&command->out, ": %s%s%s%s", policy_decision_name(verdict->decision),
			why ? " (" : "", why ? why : "", why ? ")" : "");
	buf_char(&command->out, '\n');
}

/* expect: {allow: [request…], ask: […], deny: […]} */
static int run_expected(struct test *t, const struct json_value *expect, struct error *err)
{
	for (const struct json_value *list = expect->first; list; list = list->next) {
		enum policy_decision decision;
		if (!policy_decision_from_name(list->key.data, &decision) ||
			list->kind != JSON_ARRAY)
			return fail(err, ERR_INVALID,
				"%s: expect.%s: allow, ask or deny with a list expected", t->path,
				list->key.data);
		for (const struct json_value *one = list->first; one; one = one->next) {
			struct policy_verdict verdict;
			if (one->kind != JSON_STRING)
				return fail(err, ERR_INVALID, "%s: expect.%s: a text expected",
					t->path, list->key.data);
			if (judge(t, &t->rules.policy, one->string, &verdict, err))
				return error_context(err, "%s", t->path);
			report(t, verdict.decision == decision, list->key.data, one->string,
				&verdict, NULL);
		}
	}
	return 0;
}

/* rules: {RULE: {match: [request…], not: [request…]}}, each rule alone. */
static int run_rules(struct test *t, const struct json_value *rules, struct error *err)
{
	for (const struct json_value *rule = rules->first; rule; rule = rule->next) {
		struct policy alone;
		policy_init(&alone, &t->command->arena);
		policy_set_default(&alone, POLICY_ALLOW);
		alone.never_asks = true;
		if (policy_add_rule(&alone, POLICY_DENY, rule->key.data, &t->places, err))
			return error_context(err, "%s: rules: '%s'", t->path, rule->key.data);
		for (const struct json_value *list = rule->first; list; list = list->next) {
			bool is_match = str_is(list->key, "match");
			if ((!is_match && !str_is(list->key, "not")) || list->kind != JSON_ARRAY)
				return fail(err, ERR_INVALID,
					"%s: rules: '%s': match or not with a list expected",
					t->path, rule->key.data);
			for (const struct json_value *one = list->first; one; one = one->next) {
				struct policy_verdict verdict;
				if (one->kind != JSON_STRING)
					return fail(err, ERR_INVALID, "%s: rules: a text expected",
						t->path);
				if (judge(t, &alone, one->string, &verdict, err))
					return error_context(err, "%s", t->path);
				report(t, (verdict.decision == POLICY_DENY) == is_match,
					is_match ? "match" : "not", one->string, &verdict,
					rule->key.data);
			}
		}
	}
	return 0;
}

static int check_members(const struct test *t, const struct json_value *root, struct error *err)
{
	static const char *const known[] = { "settings", "sources", "default", "allow", "ask",
		"deny", "cwd", "home", "shell", "expect", "rules", NULL };
	for (const struct json_value *m = root->first; m; m = m->next) {
		const char *const *key = known;
		char shown[64];
		while (*key && !str_is(m->key, *key))
			key++;
		str_printable(shown, sizeof shown, m->key);
		if (!*key)
			return fail(err, ERR_INVALID, "%s: unknown key '%s'", t->path, shown);
	}
	return 0;
}

static int run_test(struct command *command, struct error *err)
{
	struct test t = { .command = command, .path = command->operands.items[0] };
	struct json_value *root;
	if (read_file(&t, &root, err) || check_members(&t, root, err))
		return -1;
	const char *cwd = json_member_text(root, "cwd"), *home = json_member_text(root, "home");
	const char *shell = json_member_text(root, "shell");
	if ((cwd && cwd[0] != '/') || (home && home[0] != '/'))
		return fail(err, ERR_INVALID, "%s: cwd, home: an absolute path expected", t.path);
	t.rules.request =
		(struct policy_request){ .dialect = shell && !strcmp(shell, "bash") ? SHELL_BASH
										    : SHELL_SH,
			.cwd = path_normalize(&command->arena, "/", cwd ? cwd : "/workspace"),
			.home = home ? home : "/workspace",
			.arena = &command->arena };
	t.places = (struct policy_places){
		.workspace = "/workspace", .home = t.rules.request.home, .cwd = t.rules.request.cwd
	};
	policy_init(&t.rules.policy, &command->arena);
	if (read_settings(&t, root, err))
		return -1;
	const struct json_value *expect = json_member(root, "expect"),
				*rules = json_member(root, "rules");
	if (!expect && !rules)
		return fail(err, ERR_INVALID, "%s: neither 'expect' nor 'rules'", t.path);
	if (command->json)
		json_array(&command->value, NULL);
	if ((expect && run_expected(&t, expect, err)) || (rules && run_rules(&t, rules, err)))
		return -1;
	if (command->json)
		json_end(&command->value);
	else
		buf_printf(&command->out, "%zu passed, %zu failed\n", t.passed, t.failed);
	return t.failed ? 1 : 0;
}

static const struct arg_option table[] = { { ARG_FROM(format_rows) } };
const struct arg_spec policy_test_spec = {
	.command = "policy test",
	.summary = "check that rules decide examples as expected",
	.usage = "FILE [-o json]",
	.about = "Judges the examples of a YAML or JSON file by its rules, and prints a line for "
		 "each. Exits 1 if a decision isn't the expected one.",
	ARG_TABLE(table),
	.examples = "  carrel policy test policy-tests.yaml\n",
	.run = run_test,
};
