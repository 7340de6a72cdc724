#include "model/policy/internal.h"

#include "base/path.h"

/* Whether the program at `name` is one that PATH would find under its plain name. */
static bool is_system_path(const char *name)
{
	static const char *const dirs[] = { "/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/",
		"/usr/sbin/" };

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		if (strncmp(name, dirs[i], strlen(dirs[i])) == 0)
			return !strchr(name + strlen(dirs[i]), '/');
	return false;
}

static bool word_is(const struct shell_word *word, const char *text)
{
	return word->literal ? strcmp(word->literal, text) == 0 : str_is(word->source, text);
}

/* Options before the subcommand of git that don't change what it does. */
static size_t global_options(const shell_words *words, size_t at)
{
	static const char *const with_value[] = { "-C", "--git-dir", "--work-tree", "--namespace" };
	static const char *const plain[] = { "--no-pager", "-P", "--bare", "--literal-pathspecs",
		"--no-optional-locks", "--no-replace-objects",
		"--git-dir=", "--work-tree=", "--namespace=" };
	size_t begin = at;

	for (bool is_found = true; is_found && at < words->count;) {
		const char *text = words->items[at].literal;

		is_found = false;
		for (size_t i = 0; text && i < sizeof with_value / sizeof *with_value; i++)
			if (strcmp(text, with_value[i]) == 0 && at + 1 < words->count) {
				at += 2;
				is_found = true;
				break;
			}
		for (size_t i = 0; text && !is_found && i < sizeof plain / sizeof *plain; i++)
			if (plain[i][strlen(plain[i]) - 1] == '='
					? strncmp(text, plain[i], strlen(plain[i])) == 0
					: strcmp(text, plain[i]) == 0) {
				at++;
				is_found = true;
			}
	}
	return at - begin;
}

/* The rule's words after the first, against the command's from `at` on. */
static enum match match_rest(const struct policy_rule *rule, const shell_words *words, size_t at)
{
	for (size_t i = 1; i < rule->words.count; i++, at++) {
		if (at >= words->count)
			return MATCH_NO;
		if (word_is(&words->items[at], rule->words.items[i]))
			continue;
		return words->items[at].literal ? MATCH_NO : MATCH_MAYBE;
	}
	if (rule->is_prefix || at == words->count)
		return MATCH_YES;
	for (; at < words->count; at++) /* words that may expand to nothing */
		if (words->items[at].literal)
			return MATCH_NO;
	return MATCH_MAYBE;
}

/* Whether the rule's words follow the name in order, with others between: options, mostly. */
static bool is_scattered(const struct policy_rule *rule, const shell_words *words, size_t at)
{
	size_t i = 1;

	for (; at < words->count && i < rule->words.count; at++)
		i += word_is(&words->items[at], rule->words.items[i]);
	return rule->words.count > 1 && i == rule->words.count;
}

static enum match match_rule(const struct policy_rule *rule, const shell_words *words, size_t first)
{
	const char *name = words->items[first].literal;
	const char *wanted = rule->words.count ? rule->words.items[0] : NULL;
	enum match result;

	if (!wanted)
		return MATCH_YES;
	if (rule->decision == POLICY_ALLOW) {
		bool is_same = strcmp(name, wanted) == 0 ||
			       (is_system_path(name) && strcmp(path_basename(name), wanted) == 0);
		if (!is_same)
			return MATCH_NO;
	} else if (strcmp(path_basename(name), path_basename(wanted)) != 0) {
		return MATCH_NO;
	}
	size_t at = first + 1;
	if (rule->words.count > 1 && strcmp(path_basename(name), "git") == 0)
		at += global_options(words, at);
	result = match_rest(rule, words, at);
	if (rule->decision == POLICY_ALLOW)
		return result == MATCH_YES ? MATCH_YES : MATCH_NO;
	return result == MATCH_NO && is_scattered(rule, words, at) ? MATCH_MAYBE : result;
}

struct found { /* the first rule of each decision that matches, and whether one may */
	const struct policy_rule *rules[POLICY_DENY + 1];
	bool is_maybe;
};

static void match_bucket(const struct policy *policy, const char *key, const shell_words *words,
	size_t first, struct found *found)
{
	const struct policy_bucket *bucket = map_get(&policy->by_word, str_from(key));

	for (size_t i = 0; bucket && i < bucket->rules.count; i++) {
		const struct policy_rule *rule = &policy->rules.items[bucket->rules.items[i]];
		enum match match = match_rule(rule, words, first);

		found->is_maybe |= match == MATCH_MAYBE;
		if (match == MATCH_YES && !found->rules[rule->decision])
			found->rules[rule->decision] = rule;
	}
}

void match_command(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	const char *name = words->items[first].literal;
	struct found found = { 0 };

	if (!name) {
		judge_step(j, subject, POLICY_ASK, NULL, "the name of the command is expanded");
		return;
	}
	match_bucket(j->policy, path_basename(name), words, first, &found);
	if (path_basename(name)[0])
		match_bucket(j->policy, "", words, first, &found);
	if (found.rules[POLICY_DENY])
		judge_step(j, subject, POLICY_DENY, found.rules[POLICY_DENY]->text, NULL);
	else if (found.is_maybe)
		judge_step(j, subject, POLICY_ASK, NULL, "it may be what a rule forbids");
	else if (found.rules[POLICY_ASK])
		judge_step(j, subject, POLICY_ASK, found.rules[POLICY_ASK]->text, NULL);
	else if (found.rules[POLICY_ALLOW])
		judge_step(j, subject, POLICY_ALLOW, found.rules[POLICY_ALLOW]->text, NULL);
	else
		judge_step(j, subject, j->policy->otherwise, NULL, "no rule matches");
}

/* `*` and `?` stop at '/', `**` doesn't. Linear in the path for each star by remembering the last.
 */
bool glob_matches(const char *glob, const char *path)
{
	const char *star = NULL, *star_path = NULL, *deep = NULL, *deep_path = NULL;

	for (;;) {
		if (glob[0] == '*' && glob[1] == '*') {
			while (*glob == '*')
				glob++;
			deep = glob;
			deep_path = path;
			star = NULL;
			continue;
		}
		if (*glob == '*') {
			star = ++glob;
			star_path = path;
			continue;
		}
		if (!*path && !*glob)
			return true;
		if (*path && (*glob == *path || (*glob == '?' && *path != '/'))) {
			glob++;
			path++;
			continue;
		}
		if (star && *star_path && *star_path != '/') {
			path = ++star_path;
			glob = star;
		} else if (deep && *deep_path) {
			path = ++deep_path;
			glob = deep;
			star = NULL;
		} else {
			return false;
		}
	}
}

/* A rule for everything below a directory holds for the directory too. */
static bool file_matches(const struct policy_rule *rule, const char *path)
{
	size_t len = strlen(rule->glob), path_len = strlen(path);

	if (glob_matches(rule->glob, path))
		return true;
	return len > 3 && strcmp(rule->glob + len - 3, "/**") == 0 && path_len == len - 3 &&
	       strncmp(rule->glob, path, path_len) == 0;
}

static enum policy_decision decide(const struct policy *policy,
	const struct policy_rule *const found[POLICY_DENY + 1], const char **rule)
{
	*rule = NULL;
	for (int i = POLICY_DENY; i >= POLICY_ALLOW; i--)
		if (found[i]) {
			*rule = found[i]->text;
			return (enum policy_decision)i;
		}
	return policy->otherwise;
}

enum policy_decision match_file(const struct policy *policy, enum policy_operation operation,
	const char *path, const char **rule)
{
	const struct policy_rule *found[POLICY_DENY + 1] = { 0 };

	for (size_t i = 0; i < policy->rules.count; i++) {
		const struct policy_rule *r = &policy->rules.items[i];

		if (r->kind == POLICY_FILE && (r->operations & operation) && !found[r->decision] &&
			file_matches(r, path))
			found[r->decision] = r;
	}
	return decide(policy, found, rule);
}

/* The directory of a glob's part without wildcards. */
static size_t fixed_len(const char *glob)
{
	size_t len = strcspn(glob, "*?");

	while (glob[len] && len > 0 && glob[len - 1] != '/')
		len--;
	while (len > 1 && glob[len - 1] == '/')
		len--;
	return len;
}

enum policy_decision match_files_below(const struct policy *policy, enum policy_operation operation,
	const char *dir, const char **rule)
{
	bool is_allowed = false;

	*rule = NULL;
	for (size_t i = 0; i < policy->rules.count; i++) {
		const struct policy_rule *r = &policy->rules.items[i];
		char fixed[4096];

		if (r->kind != POLICY_FILE || !(r->operations & operation))
			continue;
		size_t len = fixed_len(r->glob);
		if (!str_format(fixed, sizeof fixed, "%.*s", (int)len, r->glob))
			return POLICY_ASK;
		/* The rule covers all that is below: two stars follow the fixed part. */
		bool is_all = strcmp(r->glob + len - (len == 1), "/**") == 0;
		if (r->decision != POLICY_ALLOW) {
			if (path_is_beneath(fixed, dir) || path_is_beneath(dir, fixed))
				return POLICY_ASK; /* it may name a file there */
		} else if (is_all && path_is_beneath(dir, fixed)) {
			is_allowed = true;
			*rule = r->text;
		}
	}
	return is_allowed ? POLICY_ALLOW : policy->otherwise;
}

void policy_judge_network(const struct policy *policy, const struct policy_request *request,
	const char *host, unsigned port, struct policy_verdict *verdict)
{
	const struct policy_rule *found[POLICY_DENY + 1] = { 0 };
	struct judge j = {
		.policy = policy, .request = request, .verdict = verdict, .arena = request->arena
	};
	const char *text;
	size_t len = strlen(host);

	*verdict = (struct policy_verdict){ .decision = POLICY_ALLOW };
	for (size_t i = 0; i < policy->rules.count; i++) {
		const struct policy_rule *r = &policy->rules.items[i];
		if (r->kind != POLICY_NETWORK || found[r->decision])
			continue;
		bool is_any = strcmp(r->host, "*") == 0, is_domain = !is_any && r->host[0] == '*';
		size_t suffix = strlen(r->host) - (is_domain ? 1 : 0);
		bool is_host = is_any || (is_domain ? len > suffix && strcmp(host + len - suffix,
									      r->host + 1) == 0
						    : strcmp(host, r->host) == 0);
		/* A deny rule without a port holds for all; an allow rule for the usual two. */
		bool is_port = r->port ? r->port == port
				       : r->decision != POLICY_ALLOW || port == 80 || port == 443;
		if (is_host && is_port)
			found[r->decision] = r;
	}
	enum policy_decision decision = decide(policy, found, &text);
	judge_step(&j, arena_printf(j.arena, "network(outbound:%s:%u)", host, port), decision, text,
		text ? NULL : "no rule matches");
}
