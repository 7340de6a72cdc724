#include "policy/install_internal.h"

#include "base/buf.h"
#include "base/path.h"
#include "model/network/network.h"
#include "policy/sources.h"

/* Whether PATH would find the program at `name` under its base name. */
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

struct found { /* of one command */
	/* The first rule of each decision that matches, and the first that may match. */
	const struct policy_rule *rules[POLICY_DENY + 1];
	const struct policy_rule *maybe;
	const char *joined; /* once a wildcard asked for it */
	size_t joined_len;
	bool is_cut;	 /* `joined` */
	struct map seen; /* buckets of two words */
};

/* A command as one text for the wildcards of Claude Code: words after quote removal with a blank
 * between. Words that are expanded are cut off. */
static void join(struct judge *j, const shell_words *words, size_t first, struct found *found)
{
	auto_buf struct buf text = buf_empty(SHELL_SCRIPT_MAX);
	bool is_cut = false;
	for (size_t i = first; i < words->count && !is_cut; i++) {
		is_cut = !words->items[i].literal;
		buf_append(&text, " ", i > first);
		if (!is_cut)
			buf_append(&text, words->items[i].literal, strlen(words->items[i].literal));
	}
	found->is_cut = is_cut || text.overflow;
	found->joined = arena_bytes(j->arena, text.data, text.len);
	found->joined_len = text.len;
}

/* Linear in the text: each piece of the pattern is looked for once, behind the one before it. */
bool match_star(const char *pattern, const char *text, bool is_cut, bool *is_open)
{
	size_t len = strlen(text), piece = strcspn(pattern, "*");
	*is_open = false;
	if (strncmp(pattern, text, piece) != 0)
		return is_cut && len < piece && memcmp(pattern, text, len) == 0;
	text += piece;
	len -= piece;
	if (!pattern[piece])
		return !len;
	for (pattern += piece; *pattern; pattern += piece) {
		pattern += strspn(pattern, "*");
		piece = strcspn(pattern, "*");
		if (!piece) {
			*is_open = true;
			return true;
		}
		if (!pattern[piece])
			return is_cut ||
			       (len >= piece && memcmp(text + len - piece, pattern, piece) == 0);
		const char *at = memmem(text, len, pattern, piece);
		if (!at)
			return is_cut;
		len -= (size_t)(at - text) + piece;
		text = at + piece;
	}
	return false;
}

/* Whether a star stands for a part of a program's path that leads out of what is before it. */
static bool star_leaves(const char *pattern, const char *name)
{
	size_t fixed = strcspn(pattern, "*"), len = strlen(name);
	return len > fixed &&
	       (strstr(name, "/../") || (len > 2 && strcmp(name + len - 3, "/..") == 0));
}

static enum match match_wildcard(struct judge *j, const struct policy_rule *rule,
	const shell_words *words, size_t first, struct found *found)
{
	bool is_open;
	const char *name = words->items[first].literal;
	judge_spend(j, 1 + strlen(name) / 8);
	if (rule->decision == POLICY_ALLOW && star_leaves(rule->wildcard, name))
		return MATCH_NO;
	if (!found->joined)
		join(j, words, first, found);
	judge_spend(j, (found->joined_len + strlen(rule->wildcard)) / 8);
	if (!match_star(rule->wildcard, found->joined, found->is_cut, &is_open))
		return MATCH_NO;
	if (found->is_cut && !is_open)
		return rule->decision == POLICY_ALLOW ? MATCH_NO : MATCH_MAYBE;
	return MATCH_YES;
}

static enum match match_rule(struct judge *j, const struct policy_rule *rule,
	const shell_words *words, size_t first, struct found *found)
{
	const char *name = words->items[first].literal;
	const char *wanted = rule->words.count ? rule->words.items[0] : NULL;
	enum match result;
	if (rule->wildcard)
		return match_wildcard(j, rule, words, first, found);
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
	if (result != MATCH_NO || rule->words.count < 2 || !judge_spend(j, words->count - first))
		return result;
	return is_scattered(rule, words, at) ? MATCH_MAYBE : MATCH_NO;
}

/* Whether the bucket was judged for this command: what it says doesn't depend on where in the
 * command its second word was found. */
static bool was_seen(struct judge *j, struct found *found, const struct policy_bucket *bucket)
{
	const struct str key = { (const char *)&bucket, sizeof bucket };
	if (!found->seen.arena)
		map_init(&found->seen, j->arena);
	return map_set(&found->seen, key, found) != NULL;
}

static const struct policy_bucket *match_bucket(struct judge *j, struct str key,
	const shell_words *words, size_t first, struct found *found)
{
	const struct policy_bucket *bucket = map_get(&j->policy->by_word, key);
	if (!judge_spend(j, 4 + key.len / 8))
		return bucket;
	for (size_t i = 0; bucket && i < bucket->rules.count; i++) {
		const struct policy_rule *rule = &j->policy->rules.items[bucket->rules.items[i]];
		if (!judge_spend(j, 1 + rule->words.count))
			break;
		if (found->rules[rule->decision])
			continue;
		enum match match = match_rule(j, rule, words, first, found);
		if (match == MATCH_MAYBE && !found->maybe)
			found->maybe = rule;
		if (match == MATCH_YES)
			found->rules[rule->decision] = rule;
	}
	return bucket;
}

/* Rules of two words and more lie under the first two. The second one may stand anywhere in the
 * command, as a rule that forbids `git push` is meant for `git -c x push` too. */
static void match_longer(struct judge *j, const char *name, const shell_words *words, size_t first,
	const struct policy_bucket *bucket, struct found *found)
{
	bool is_git = strcmp(name, "git") == 0;
	size_t second = first + 1 + (is_git ? global_options(words, first + 1) : 0);
	char near[256];
	size_t len = strlen(name);
	if (!bucket || !bucket->has_longer)
		return;
	for (size_t i = first + 1; i < words->count && judge_spend(j, 4); i++) {
		const struct shell_word *word = &words->items[i];
		struct str text = word->literal ? str_from(word->literal) : word->source, key;
		/* Rules that allow have their second word right after the name. */
		if (i > second && !bucket->has_longer_forbidding)
			break;
		if (len + text.len + 1 <= sizeof near) {
			memcpy(near, name, len);
			near[len] = '\n';
			memcpy(near + len + 1, text.data, text.len);
			key = (struct str){ near, len + 1 + text.len };
		} else {
			rule_key(j->arena, name, text, &key);
		}
		const struct policy_bucket *longer = map_get(&j->policy->by_word, key);
		if (longer && !was_seen(j, found, longer))
			match_bucket(j, key, words, first, found);
		if (i == second && !word->literal && bucket->has_longer_forbidding && !found->maybe)
			found->maybe = &j->policy->rules.items[0];
	}
}

const struct policy_rule *match_denied(struct judge *j, const shell_words *words, size_t first)
{
	struct found found = { 0 };
	const char *base = path_basename(words->items[first].literal);
	const struct policy_bucket *bucket = match_bucket(j, str_from(base), words, first, &found);
	match_longer(j, base, words, first, bucket, &found);
	return found.rules[POLICY_DENY];
}

void match_harmless(struct judge *j, const char *subject, const shell_words *words, size_t first,
	const char *reason)
{
	struct found found = { 0 };
	const char *base = path_basename(words->items[first].literal);
	const struct policy_bucket *bucket = match_bucket(j, str_from(base), words, first, &found);
	match_longer(j, base, words, first, bucket, &found);
	match_bucket(j, STR(""), words, first, &found);
	const struct policy_rule *by =
		found.rules[POLICY_DENY] ? found.rules[POLICY_DENY] : found.rules[POLICY_ASK];
	if (by)
		judge_step(j, subject, by->decision, by, NULL);
	else
		judge_step(j, subject, POLICY_ALLOW, NULL, reason);
}

void match_command(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	const char *name = words->items[first].literal;
	struct found found = { 0 };
	if (!name) {
		if (j->policy->never_asks)
			judge_step(j, subject, POLICY_ALLOW, NULL, "any command may run");
		else
			judge_ask(j, subject, "the name of the command is expanded");
		return;
	}
	const char *base = path_basename(name);
	const struct policy_bucket *bucket = match_bucket(j, str_from(base), words, first, &found);
	match_longer(j, base, words, first, bucket, &found);
	if (base[0])
		match_bucket(j, STR(""), words, first, &found);
	if (found.rules[POLICY_DENY])
		judge_step(j, subject, POLICY_DENY, found.rules[POLICY_DENY], NULL);
	else if (found.maybe)
		judge_ask(j, subject, "it may be what a rule forbids");
	else if (found.rules[POLICY_ASK])
		judge_step(j, subject, POLICY_ASK, found.rules[POLICY_ASK], NULL);
	else if (found.rules[POLICY_ALLOW])
		judge_step(j, subject, POLICY_ALLOW, found.rules[POLICY_ALLOW], NULL);
	else if (j->policy->is_claude && claude_runs_unasked(j->policy, words, first))
		judge_step(j, subject, POLICY_ALLOW, NULL, "Claude Code runs it without asking");
	else
		judge_open_step(j, subject, j->policy->otherwise.shell, "no rule matches",
			j->policy->otherwise.shell == POLICY_ALLOW
				? NULL
				: suggest_command(j->arena, words, first));
}

/* `*` and `?` stop at '/', `**` doesn't, and "**" + "/" is any number of directories, also none.
 * The last star of either kind is tried at each byte of the path, so the work is bounded by
 * *steps. */
static bool match_glob(const char *glob, const char *path, bool is_pattern, size_t *steps)
{
	const char *star = NULL, *star_path = NULL, *deep = NULL, *deep_path = NULL;
	const char *begin = glob;
	bool is_directories = false;
	while (*steps > 0) {
		--*steps;
		if (glob[0] == '*' && glob[1] == '*') {
			bool is_first = glob == begin || glob[-1] == '/';
			while (*glob == '*')
				glob++;
			is_directories = is_first && *glob == '/';
			glob += is_directories;
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
		bool is_many = is_pattern && *path > '\1' && *path < ' ';
		if (*path && (*glob == *path || (*glob == '?' && *path != '/' && !is_many))) {
			glob++;
			path++;
			continue;
		}
		if (star && *star_path && *star_path != '/') {
			path = ++star_path;
			glob = star;
		} else if (deep && *deep_path) {
			deep_path += is_directories ? strcspn(deep_path, "/") : 0;
			if (!*deep_path)
				return false;
			path = ++deep_path;
			glob = deep;
			star = NULL;
		} else {
			return false;
		}
	}
	return false;
}

static bool spend_glob(struct judge *j, const char *glob, const char *path, bool is_pattern)
{
	const size_t each = 4; /* bytes that are compared in a step of the judge's */
	const size_t before = j->work->left * each;
	size_t left = before;
	bool is_match = match_glob(glob, path, is_pattern, &left);
	judge_spend(j, 1 + (before - left) / each);
	return is_match;
}

bool glob_matches(const char *glob, const char *path, size_t *steps)
{
	return match_glob(glob, path, false, steps);
}

bool glob_covers(struct judge *j, const char *glob, const char *pattern)
{
	return spend_glob(j, glob, pattern, true);
}

static bool rule_globs(struct judge *j, const struct policy_rule *rule, const char *path)
{
	return spend_glob(j, rule->glob, path, false);
}

/* A rule for everything below a directory holds for the directory too. */
static bool file_matches(struct judge *j, const struct policy_rule *rule, const char *path)
{
	size_t len = strlen(rule->glob), path_len = strlen(path);
	char above[4096];
	if (rule_globs(j, rule, path))
		return true;
	if (len > 3 && strcmp(rule->glob + len - 3, "/**") == 0 && path_len == len - 3 &&
		strncmp(rule->glob, path, path_len) == 0)
		return true;
	if (!rule->is_with_below || !str_copy(above, sizeof above, path))
		return false;
	for (char *slash = strrchr(above, '/'); slash && slash > above;
		slash = strrchr(above, '/')) {
		*slash = '\0';
		if (rule_globs(j, rule, above))
			return true;
	}
	return false;
}

static enum policy_decision decide(const struct policy_rule *const found[POLICY_DENY + 1],
	enum policy_decision otherwise, const struct policy_rule **by)
{
	*by = found[POLICY_DENY]  ? found[POLICY_DENY]
	      : found[POLICY_ASK] ? found[POLICY_ASK]
				  : found[POLICY_ALLOW];
	return *by ? (*by)->decision : otherwise;
}

enum policy_decision match_default(
	const struct policy *policy, enum policy_operation operation, const char *path)
{
	for (size_t i = 0; i < policy->directories.count; i++)
		if ((operation == POLICY_READ || policy->accepts_edits) &&
			path_is_beneath(path, policy->directories.items[i]))
			return POLICY_ALLOW;
	switch (operation) {
	case POLICY_READ:
		return policy->otherwise.read;
	case POLICY_WRITE:
		return policy->otherwise.write;
	case POLICY_DELETE:
	default:
		return policy->otherwise.remove;
	}
}

static void match_file_bucket(struct judge *j, struct str dir, enum policy_operation operation,
	const char *path, const struct policy_rule *found[POLICY_DENY + 1])
{
	const struct policy *policy = j->policy;
	if (!judge_spend(j, 4 + dir.len / 8))
		return;
	const struct policy_bucket *bucket = map_get(&policy->by_dir, dir);
	for (size_t i = 0; bucket && i < bucket->rules.count && judge_spend(j, 1); i++) {
		const struct policy_rule *r = &policy->rules.items[bucket->rules.items[i]];
		if ((r->operations & operation) && !found[r->decision] && file_matches(j, r, path))
			found[r->decision] = r;
	}
}

enum policy_decision match_file(struct judge *j, enum policy_operation operation, const char *path,
	const struct policy_rule **by)
{
	const struct policy_rule *found[POLICY_DENY + 1] = { 0 };
	/* The fixed part of a rule that matches is the path, or a directory above it. */
	match_file_bucket(j, STR("/"), operation, path, found);
	for (size_t len = 1; path[1]; len++) {
		len += strcspn(path + len, "/");
		match_file_bucket(j, (struct str){ path, len }, operation, path, found);
		if (!path[len])
			break;
	}
	return decide(found, match_default(j->policy, operation, path), by);
}

bool match_is_forbidden_below(struct judge *j, enum policy_operation operation, const char *dir)
{
	const struct policy *policy = j->policy;
	for (size_t i = 0; i < policy->rules.count && judge_spend(j, 4); i++) {
		const struct policy_rule *r = &policy->rules.items[i];
		if (r->kind == POLICY_FILE && r->decision != POLICY_ALLOW &&
			(r->operations & operation) &&
			(path_is_beneath(r->fixed, dir) || path_is_beneath(dir, r->fixed)))
			return true;
	}
	return false;
}

enum policy_decision match_files_below(struct judge *j, enum policy_operation operation,
	const char *dir, const struct policy_rule **by)
{
	const struct policy *policy = j->policy;
	*by = NULL;
	if (match_is_forbidden_below(j, operation, dir))
		return POLICY_ASK; /* it may name a file there */
	for (size_t i = 0; i < policy->rules.count && judge_spend(j, 4); i++) {
		const struct policy_rule *r = &policy->rules.items[i];
		if (r->kind != POLICY_FILE || !(r->operations & operation))
			continue;
		size_t len = strlen(r->fixed), all = strlen(r->glob);
		bool is_whole = r->is_with_below ? len == all
						 : strcmp(r->glob + len, "/**") == 0 ||
							   strcmp(r->glob, "/**") == 0;
		if (is_whole && path_is_beneath(dir, r->fixed)) {
			*by = r;
			return POLICY_ALLOW;
		}
	}
	return match_default(policy, operation, dir);
}

static void match_host(struct judge *j, const char *key, unsigned port,
	const struct policy_rule *found[POLICY_DENY + 1])
{
	const struct policy *policy = j->policy;
	const struct policy_bucket *bucket = map_get(&policy->by_host, str_from(key));
	for (size_t i = 0; bucket && i < bucket->rules.count && judge_spend(j, 1); i++) {
		const struct policy_rule *r = &policy->rules.items[bucket->rules.items[i]];
		/* A deny rule without a port holds for all; an allow rule for the usual two. */
		bool is_port = r->port ? r->port == port
				       : r->is_any_port || r->decision != POLICY_ALLOW ||
						 port == 80 || port == 443;
		if (is_port && !found[r->decision])
			found[r->decision] = r;
	}
}

enum policy_decision match_network(
	struct judge *j, const char *host, unsigned port, const struct policy_rule **by)
{
	const struct policy_rule *found[POLICY_DENY + 1] = { 0 };
	bool is_address = network_host_is_address(host);
	match_host(j, host, port, found);
	match_host(j, "*", port, found);
	/* An address is allowed only by the rule that names it. */
	if (is_address && found[POLICY_ALLOW] && found[POLICY_ALLOW]->host[0] == '*')
		found[POLICY_ALLOW] = NULL;
	for (const char *dot = strchr(host, '.'); dot && !is_address; dot = strchr(dot + 1, '.'))
		match_host(j, arena_printf(j->arena, "*%s", dot), port, found);
	return decide(found, j->policy->otherwise.network, by);
}

void policy_judge_network(const struct policy *policy, const struct policy_request *request,
	const char *host, unsigned port, struct policy_verdict *verdict)
{
	const struct policy_rule *by;
	struct judge j = judge_begin(policy, request, verdict);
	const char *subject = arena_printf(j.arena, "network(outbound:%s:%u)", host, port);
	struct error err;
	enum policy_decision decision = match_network(&j, host, port, &by);
	if (decision == POLICY_ALLOW && network_host_is_closed(host, request->opened))
		judge_step(&j, subject, POLICY_DENY, NULL,
			"its address isn't public, and egress.allow_ranges doesn't open it");
	else if (by || decision == POLICY_ALLOW)
		judge_step(&j, subject, decision, by, by ? NULL : "no rule matches");
	else
		judge_open_step(&j, subject, decision, "no rule matches",
			arena_printf(j.arena,
				port == 443 || port == 80 ? "network(outbound:%s)"
							  : "network(outbound:%s:%u)",
				host, port));
	if (request->sources && judge_check_domain(&j, host, &err) < 0)
		judge_step(&j, subject, POLICY_DENY, NULL,
			arena_printf(j.arena, "sources: %s", err.text));
}
