/* Words with wildcards: which files the shell may make of them, against the globs of rules. */
#include "policy/internal.h"

#include "base/path.h"

/* Bytes of a pattern that stand for wildcards of the shell. At the beginning of a name they are no
 * dot, so that "*" is neither ".env" nor "..". */
#define ANY '\1'  /* one byte but '/' */
#define STAR '\2' /* any bytes but '/' */
#define DEEP '\3' /* any bytes */

/* Longer texts count as a match: bounded time. */
#define WORK_MAX 8192
#define GLOB_MAX 512

/* ---- patterns ---- */

static bool is_wild(char c)
{
	return c >= ANY && c <= DEEP;
}

/* Appends the word with its wildcards. A bracket is taken for any text up to the name's end. false:
 * it isn't known which files that names. */
static bool add_parts(const struct shell_word *word, char *out)
{
	bool is_bracket = false, is_closed = true;
	size_t len = 0;
	for (size_t i = 0; i < word->parts.count; i++) {
		const struct shell_part *part = &word->parts.items[i];
		if (part->kind != SHELL_TEXT && part->kind != SHELL_PATTERN)
			return false;
		for (const char *c = part->text; *c; c++) {
			bool is_text = part->kind == SHELL_TEXT;
			if (is_wild(*c) || (*c == '/' && !is_closed))
				return false;
			if (*c == '/')
				is_bracket = false;
			is_closed |= *c == ']';
			if (!is_bracket)
				out[len++] = is_text ? *c : *c == '?' ? ANY : STAR;
			if (!is_text && *c == '[') {
				is_closed &= is_bracket;
				is_bracket = true;
			}
		}
	}
	while (len > 1 && out[len - 1] == '/') /* a directory of that name */
		len--;
	out[len] = '\0';
	return true;
}

/* Whether a name, up to the next '/', may be "." or "..", or is empty. */
static bool may_leave(const char *name)
{
	size_t len = strcspn(name, "/");
	if (len == 0)
		return true;
	if (name[0] != '.')
		return false;
	for (size_t i = 1; i < len; i++)
		if (name[i] != '.' && !is_wild(name[i]))
			return false;
	return true;
}

const char *pattern_of(struct judge *j, const char *dir, const struct shell_word *word)
{
	char *text = arena_alloc(j->arena, word->source.len + 1), *rest = text;
	size_t fixed = 0;
	if (!add_parts(word, text))
		return NULL;
	while (text[fixed] && !is_wild(text[fixed]))
		fixed++;
	while (fixed > 0 && text[fixed - 1] != '/')
		fixed--;
	rest = text + fixed;
	for (const char *name = rest; name; name = strchr(name, '/') ? strchr(name, '/') + 1 : NULL)
		if (may_leave(name))
			return NULL;
	dir = path_normalize(j->arena, dir, fixed ? arena_bytes(j->arena, text, fixed) : ".");
	return arena_printf(j->arena, "%s/%s", dir[1] ? dir : "", rest);
}

const char *pattern_below(struct arena *arena, const char *pattern)
{
	return arena_printf(arena, "%s/%c", pattern[1] ? pattern : "", DEEP);
}

/* ---- against globs ---- */

struct symbol {
	char c;		 /* a byte, or ANY, STAR, DEEP */
	bool is_at_name; /* a byte that begins a name */
};

/* "**" + "/" is read as any bytes, which is more. */
static size_t read_glob(const char *glob, struct symbol out[GLOB_MAX])
{
	size_t count = 0;
	bool is_at_name = false;
	while (*glob && count < GLOB_MAX) {
		bool is_deep = glob[0] == '*' && glob[1] == '*';
		struct symbol symbol = { *glob, is_at_name };
		is_at_name = *glob == '/';
		if (is_deep || *glob == '*' || *glob == '?')
			symbol.c = is_deep ? DEEP : *glob == '*' ? STAR : ANY;
		glob += is_deep ? strspn(glob, "*") : 1;
		if (is_deep && *glob == '/' && count && out[count - 1].c == '/') {
			glob++;
			is_at_name = true;
		}
		out[count++] = symbol;
	}
	return *glob ? SIZE_MAX : count;
}

static bool is_endless(char c)
{
	return c == STAR || c == DEEP;
}

/* Whether a byte exists that both may be. */
static bool may_be_same(const struct symbol *a, char b)
{
	if (!is_wild(a->c) && !is_wild(b))
		return a->c == b;
	if (!is_wild(a->c) && a->c == '.' && a->is_at_name && b != DEEP)
		return false;
	if (!is_wild(a->c))
		return a->c != '/' || b == DEEP;
	return is_wild(b) || b != '/' || a->c == DEEP;
}

/* Whether a path exists that both match: each pair of places that a path can lead to, in order. */
static bool may_meet(struct judge *j, const char *glob, const char *pattern)
{
	struct symbol symbols[GLOB_MAX];
	size_t count = read_glob(glob, symbols), len = strlen(pattern);
	bool rows[2][WORK_MAX + 1];
	if (count == SIZE_MAX || (count + 1) * (len + 1) > WORK_MAX ||
		!judge_spend(j, 1 + count * len / 8))
		return true;
	memset(rows[0], 0, len + 1);
	rows[0][0] = true;
	for (size_t i = 0; i <= count; i++) {
		bool *here = rows[i % 2], *next = rows[(i + 1) % 2];
		memset(next, 0, len + 1);
		for (size_t k = 0; k <= len; k++) {
			bool is_endless_here = i < count && is_endless(symbols[i].c);
			if (!here[k])
				continue;
			if (i == count && k == len)
				return true;
			if (is_endless_here)
				next[k] = true;
			if (k < len && is_endless(pattern[k]))
				here[k + 1] = true;
			if (i == count || k == len || !may_be_same(&symbols[i], pattern[k]))
				continue;
			if (is_endless_here)
				here[k + 1] = true;
			if (is_endless(pattern[k]))
				next[k] = true;
			next[k + 1] = true;
		}
	}
	return false;
}

static bool may_match(struct judge *j, const struct policy_rule *rule, const char *pattern)
{
	size_t len = strlen(rule->glob);
	if (may_meet(j, rule->glob, pattern))
		return true;
	if (len > 3 && strcmp(rule->glob + len - 3, "/**") == 0)
		return may_meet(j, arena_bytes(j->arena, rule->glob, len - 3), pattern);
	return rule->is_with_below &&
	       may_meet(j, arena_printf(j->arena, "%s/**", rule->glob), pattern);
}

/* Whether the texts before the first wildcard of both agree as far as both go. */
static bool is_near(const struct policy_rule *rule, const char *pattern)
{
	const char *fixed = rule->fixed;
	while (*fixed && *fixed == *pattern) {
		fixed++;
		pattern++;
	}
	return !*fixed || !*pattern || is_wild(*pattern);
}

bool pattern_is_forbidden(struct judge *j, enum policy_operation operation, const char *pattern)
{
	const struct policy *policy = j->policy;
	for (size_t i = 0; i < policy->forbidding.count && judge_spend(j, 4); i++) {
		const struct policy_rule *rule = &policy->rules.items[policy->forbidding.items[i]];
		if ((rule->operations & operation) && is_near(rule, pattern) &&
			may_match(j, rule, pattern))
			return true;
	}
	return false;
}

/* Whether the rule matches all that the pattern may become: its own wildcards alone take those of
 * the pattern. */
static bool is_covered(struct judge *j, const struct policy_rule *rule, const char *pattern)
{
	size_t len = strlen(rule->glob);
	if (glob_covers(j, rule->glob, pattern))
		return true;
	return rule->is_with_below && strcspn(rule->glob, "*?") == len &&
	       strncmp(rule->glob, pattern, len) == 0 && (pattern[len] == '/' || len == 1);
}

enum policy_decision match_pattern(struct judge *j, enum policy_operation operation,
	const char *pattern, const struct policy_rule **by)
{
	size_t fixed = strcspn(pattern, "\1\2\3");
	*by = NULL;
	if (pattern_is_forbidden(j, operation, pattern))
		return POLICY_ASK;
	for (size_t i = 0; i < j->policy->rules.count && judge_spend(j, 4); i++) {
		const struct policy_rule *rule = &j->policy->rules.items[i];
		if (rule->kind == POLICY_FILE && (rule->operations & operation) &&
			is_near(rule, pattern) && is_covered(j, rule, pattern)) {
			*by = rule;
			return POLICY_ALLOW;
		}
	}
	while (fixed > 1 && pattern[fixed] != '/')
		fixed--;
	return match_default(j->policy, operation, arena_bytes(j->arena, pattern, fixed));
}
