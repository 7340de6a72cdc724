#include "policy/lint.h"

#include "base/path.h"
#include "policy/internal.h"

const char *policy_lint_name(enum policy_lint kind)
{
	static const char *const names[] = { "too_wide", "duplicate", "shadowed", "never_matches" };
	return names[kind];
}

/* -- too wide -- */

static const struct {
	const char *program, *why;
} runners[] = {
	{ "sh", "runs script files, which aren't judged" },
	{ "bash", "runs script files, which aren't judged" },
	{ "dash", "runs script files, which aren't judged" },
	{ "zsh", "runs scripts that aren't judged" },
	{ "python", "runs any program of Python" },
	{ "python3", "runs any program of Python" },
	{ "node", "runs any program of Node" },
	{ "perl", "runs any program of Perl" },
	{ "ruby", "runs any program of Ruby" },
	{ "php", "runs any program of PHP" },
	{ "sudo", "runs commands as another user" },
	{ "doas", "runs commands as another user" },
	{ "su", "runs commands as another user" },
	{ "ssh", "runs commands on other machines" },
	{ "docker", "controls the containers of the host" },
	{ "podman", "runs containers" },
	{ "npx", "runs packages of the registry" },
	{ "uvx", "runs packages of the index" },
	{ "bunx", "runs packages of the registry" },
	{ "make", "runs the commands of a makefile" },
	{ "vim", "runs commands from within" },
	{ "vi", "runs commands from within" },
	{ "emacs", "runs commands from within" },
	{ "gdb", "runs commands from within" },
};

static const char *wide_command(const struct policy_rule *rule)
{
	if (!rule->words.count && !rule->wildcard)
		return "allows every command";
	if (rule->wildcard)
		return rule->wildcard[0] == '*' ? "allows commands of any name" : NULL;
	for (size_t i = 0;
		rule->is_prefix && rule->words.count == 1 && i < sizeof runners / sizeof *runners;
		i++)
		if (strcmp(path_basename(rule->words.items[0]), runners[i].program) == 0)
			return runners[i].why;
	return NULL;
}

static const char *wide(const struct policy_rule *rule)
{
	if (rule->decision != POLICY_ALLOW)
		return NULL;
	switch (rule->kind) {
	case POLICY_SHELL:
		return wide_command(rule);
	case POLICY_FILE:
		if (strcmp(rule->fixed, "/") == 0 && strstr(rule->glob, "**"))
			return rule->operations & (POLICY_WRITE | POLICY_DELETE)
				       ? "allows changing every file"
				       : "allows reading every file";
		return NULL;
	case POLICY_NETWORK:
	default:
		if (strcmp(rule->host, "*") == 0)
			return "allows every host";
		return rule->host[0] == '*' && !strchr(rule->host + 2, '.')
			       ? "allows all hosts of a top-level domain"
			       : NULL;
	}
}

/* -- rules that cover each other -- */

static bool covers_command(const struct policy_rule *a, const struct policy_rule *b)
{
	if (a->wildcard || b->wildcard)
		return a->wildcard && b->wildcard && strcmp(a->wildcard, b->wildcard) == 0;
	if (!a->words.count)
		return true;
	if (b->words.count < a->words.count || (b->words.count > a->words.count && !a->is_prefix) ||
		(b->is_prefix && !a->is_prefix))
		return false;
	for (size_t i = 0; i < a->words.count; i++)
		if (strcmp(a->words.items[i], b->words.items[i]) != 0)
			return false;
	return true;
}

static bool covers_file(const struct policy_rule *a, const struct policy_rule *b)
{
	size_t len = strlen(a->fixed);
	bool is_whole = strcmp(a->glob, "/**") == 0 || strcmp(a->glob + len, "/**") == 0 ||
			(a->is_with_below && !a->glob[len]);
	if ((a->operations & b->operations) != b->operations)
		return false;
	if (strcmp(a->glob, b->glob) == 0)
		return a->is_with_below || !b->is_with_below;
	return is_whole && path_is_beneath(b->fixed, a->fixed);
}

static bool covers_host(const struct policy_rule *a, const struct policy_rule *b)
{
	size_t len = strlen(a->host), other = strlen(b->host);
	bool is_host = strcmp(a->host, "*") == 0 || strcmp(a->host, b->host) == 0 ||
		       (a->host[0] == '*' && other > len - 1 &&
			       strcmp(b->host + other - (len - 1), a->host + 1) == 0);
	/* An allow rule without a port holds for two of them. */
	return is_host &&
	       (a->port == b->port || (!a->port && a->decision != POLICY_ALLOW) || a->is_any_port ||
		       (!a->port && (b->port == 80 || b->port == 443)));
}

static bool covers(const struct policy_rule *a, const struct policy_rule *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == POLICY_SHELL	? covers_command(a, b)
	       : a->kind == POLICY_FILE ? covers_file(a, b)
					: covers_host(a, b);
}

/* Words that are operators, when they aren't quoted in a script: no simple command has them. */
static bool has_operator(const struct policy_rule *rule)
{
	static const char operators[] = "| || && ; & > >> < 2> 2>&1 |& &>";
	for (size_t i = 0; i < rule->words.count; i++)
		if (words_have(operators, rule->words.items[i]))
			return true;
	return false;
}

/* A stricter rule that covers this one; else an equal rule. */
static const struct policy_rule *find_other(
	const struct policy *policy, size_t at, bool is_stricter)
{
	const struct policy_rule *rule = &policy->rules.items[at];
	for (size_t i = 0; i < policy->rules.count; i++) {
		const struct policy_rule *other = &policy->rules.items[i];
		if (i == at || other->kind != rule->kind ||
			(is_stricter ? other->decision <= rule->decision
				     : other->decision != rule->decision) ||
			!covers(other, rule))
			continue;
		if (i > at && !is_stricter && covers(rule, other))
			continue; /* the same: told at the later one */
		return other;
	}
	return NULL;
}

static void compare(
	const struct policy *policy, size_t at, struct arena *arena, policy_findings *findings)
{
	const struct policy_rule *rule = &policy->rules.items[at];
	struct policy_finding found = { .rule = rule, .other = find_other(policy, at, true) };
	if (found.other) {
		found.kind = POLICY_LINT_NEVER;
		found.text = "a stricter rule matches first";
	} else {
		found.other = find_other(policy, at, false);
		if (!found.other)
			return;
		bool is_same = covers(rule, found.other);
		found.kind = is_same ? POLICY_LINT_DUPLICATE : POLICY_LINT_SHADOWED;
		found.text = is_same ? "the rule is there twice" : "a wider rule says the same";
	}
	vec_push(arena, findings, found);
}

void policy_find_faults(const struct policy *policy, struct arena *arena, policy_findings *findings)
{
	for (size_t i = 0; i < policy->rules.count; i++) {
		const struct policy_rule *rule = &policy->rules.items[i];
		const char *why = wide(rule);
		if (why)
			vec_push(arena, findings,
				(struct policy_finding){
					.kind = POLICY_LINT_WIDE, .rule = rule, .text = why });
		if (rule->kind == POLICY_SHELL && has_operator(rule))
			vec_push(arena, findings,
				(struct policy_finding){ .kind = POLICY_LINT_NEVER,
					.rule = rule,
					.text = "commands are judged one by one: an operator is "
						"never a word of one" });
		compare(policy, i, arena, findings);
	}
}
