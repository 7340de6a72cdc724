#include "policy/internal.h"

#include "base/buf.h"
#include "base/path.h"
#include "format/http/uri.h"
#include "model/network/network.h"

void policy_init(struct policy *policy, struct arena *arena)
{
	*policy = (struct policy){ .arena = arena };
	policy_set_default(policy, POLICY_ASK);
	map_init(&policy->by_word, arena);
	map_init(&policy->by_dir, arena);
	map_init(&policy->by_host, arena);
}

void policy_set_default(struct policy *policy, enum policy_decision decision)
{
	policy->otherwise =
		(struct policy_defaults){ decision, decision, decision, decision, decision };
}

/* The words of a shell rule: blanks separate them, quotes as in the shell keep them. */
int rule_split(struct arena *arena, struct str body, text_list *words, struct error *err)
{
	char *word = arena_alloc(arena, body.len + 1);
	char quote = '\0';
	bool is_open = false;
	size_t len = 0;
	for (size_t i = 0; i <= body.len; i++) {
		char c = i < body.len ? body.data[i] : ' ';
		if (quote && i < body.len) {
			if (c != quote)
				word[len++] = c;
			else
				quote = '\0';
		} else if (c == '\'' || c == '"') {
			quote = c;
			is_open = true;
		} else if (c != ' ') {
			word[len++] = c;
			is_open = true;
		} else if (is_open) {
			vec_push(arena, words, arena_bytes(arena, word, len));
			is_open = false;
			len = 0;
		}
	}
	return quote ? fail(err, ERR_INVALID, "a quote isn't closed") : 0;
}

static int parse_shell(struct policy *policy, struct str body, struct policy_rule *rule,
	const struct policy_places *places, struct error *err)
{
	if (str_is(body, "*")) {
		rule->is_prefix = true;
		return 0;
	}
	if (body.len > 2 && memcmp(body.data + body.len - 2, ":*", 2) == 0) {
		rule->is_prefix = true;
		body.len -= 2;
	} else if (body.len > 1 && memcmp(body.data + body.len - 2, " *", 2) == 0) {
		return fail(err, ERR_INVALID, "a prefix ends with ':*', not with ' *'");
	}
	if (rule_split(policy->arena, body, &rule->words, err) < 0)
		return -1;
	if (!rule->words.count || !rule->words.items[0][0])
		return fail(err, ERR_INVALID, "no command");
	if (strchr(rule->words.items[0], '*'))
		return fail(err, ERR_INVALID, "a pattern in a command's name");
	return 0;
}

int rule_expand(struct arena *arena, const char *glob, const struct policy_places *places,
	const char **out, struct error *err)
{
	const struct {
		const char *name, *value;
	} variables[] = { { "${WORKSPACE}", places->workspace },
		{ "${CONTEXT_ID}", places->context_id } };
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	if (glob[0] == '~' && (glob[1] == '/' || !glob[1])) {
		if (!places->home)
			return fail(err, ERR_INVALID, "'~' has no meaning here");
		glob = arena_printf(arena, "%s%s", places->home, glob + 1);
	}
	for (const char *at = glob, *next; *at; at = next) {
		size_t i = 0, len;
		next = strstr(at, "${");
		next = next ? next : at + strlen(at);
		buf_append(&text, at, (size_t)(next - at));
		if (!*next)
			break;
		while (i < 2 && strncmp(next, variables[i].name, strlen(variables[i].name)) != 0)
			i++;
		if (i == 2)
			return fail(err, ERR_INVALID, "unknown variable in '%s'", glob);
		if (!variables[i].value)
			return fail(err, ERR_INVALID, "'%s' has no value here", variables[i].name);
		if (strstr(variables[i].value, "${"))
			return fail(err, ERR_INVALID, "the value of '%s' names a variable",
				variables[i].name);
		len = strlen(variables[i].name);
		buf_append(&text, variables[i].value, strlen(variables[i].value));
		next += len;
	}
	*out = arena_bytes(arena, text.data, text.len);
	return text.overflow ? fail(err, ERR_INVALID, "a path that is too long") : 0;
}

int policy_operations_parse(struct str names, unsigned *operations, struct error *err)
{
	static const struct {
		const char *name;
		unsigned operations;
	} known[] = { { "read", POLICY_READ }, { "write", POLICY_WRITE },
		{ "delete", POLICY_DELETE }, { "*", POLICY_READ | POLICY_WRITE | POLICY_DELETE } };
	const size_t count = sizeof known / sizeof *known;
	struct str name;
	*operations = 0;
	while (str_next(&names, '|', &name)) {
		size_t i = 0;
		while (i < count && !str_is(name, known[i].name))
			i++;
		if (i == count)
			return fail(err, ERR_INVALID,
				"unknown operation '%.*s': read, write, delete or *", (int)name.len,
				name.data);
		*operations |= known[i].operations;
	}
	return 0;
}

static int parse_file(struct policy *policy, struct str body, struct policy_rule *rule,
	const struct policy_places *places, struct error *err)
{
	struct str names, glob;
	if (!str_cut(body, ':', &names, &glob))
		return fail(err, ERR_INVALID, "no operation: read, write, delete or *");
	if (glob.len > 2 && memcmp(glob.data + glob.len - 2, ":*", 2) == 0)
		glob.len -= 2;
	if (policy_operations_parse(names, &rule->operations, err) < 0)
		return -1;
	if (!rule->operations || !glob.len)
		return fail(err, ERR_INVALID, "no operation or no path");
	const char *text;
	if (rule_expand(policy->arena, arena_bytes(policy->arena, glob.data, glob.len), places,
		    &text, err) < 0)
		return -1;
	if (strcmp(text, "*") == 0 || strcmp(text, "**") == 0)
		text = "/**";
	if (text[0] != '/')
		return fail(err, ERR_INVALID, "'%s' isn't absolute", text);
	rule->glob = path_normalize(policy->arena, "/", text);
	return 0;
}

int rule_set_host(
	struct arena *arena, struct str pattern, struct policy_rule *rule, struct error *err)
{
	struct str name;
	uint16_t port = 0;
	bool is_domain = pattern.len > 2 && memcmp(pattern.data, "*.", 2) == 0;
	if (str_is(pattern, "*")) {
		rule->host = "*";
		return 0;
	}
	if (is_domain)
		pattern = (struct str){ pattern.data + 2, pattern.len - 2 };
	if (!uri_parse_host(pattern, &name, &port) || !name.len)
		return fail(err, ERR_INVALID, "not a host, '*.host' or '*'");
	if (name.len > 1 && name.data[name.len - 1] == '.')
		name.len--;
	char *host = arena_printf(arena, "%s%.*s", is_domain ? "*." : "", (int)name.len, name.data);
	for (char *c = host; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	/* Connections are bound by it, too: there a host has one spelling. */
	if (network_check_entry(NETWORK_DENY, host, err) < 0)
		return -1;
	rule->host = host;
	rule->port = port;
	return 0;
}

static int parse_network(struct policy *policy, struct str body, struct policy_rule *rule,
	const struct policy_places *places, struct error *err)
{
	struct str direction, pattern;
	if (!str_cut(body, ':', &direction, &pattern) || !str_is(direction, "outbound"))
		return fail(err, ERR_INVALID, "no direction: outbound");
	return rule_set_host(policy->arena, pattern, rule, err);
}

static const struct {
	const char *name;
	enum policy_kind kind;
	int (*parse)(struct policy *policy, struct str body, struct policy_rule *rule,
		const struct policy_places *places, struct error *err);
} kinds[] = {
	{ "shell(", POLICY_SHELL, parse_shell },
	{ "file(", POLICY_FILE, parse_file },
	{ "network(", POLICY_NETWORK, parse_network },
};

static struct policy_bucket *bucket_of(struct map *map, struct arena *arena, struct str key)
{
	struct policy_bucket *bucket = map_get(map, key);
	if (!bucket) {
		bucket = arena_alloc(arena, sizeof *bucket);
		map_set(map, key, bucket);
	}
	return bucket;
}

const char *rule_key(struct arena *arena, const char *first, struct str second, struct str *key)
{
	size_t len = strlen(first);
	char *text = arena_alloc(arena, len + second.len + 2);
	memcpy(text, first, len);
	text[len] = '\n'; /* which no word of a rule has */
	memcpy(text + len + 1, second.data, second.len);
	*key = (struct str){ text, len + 1 + second.len };
	return text;
}

static void index_shell(struct policy *policy, const struct policy_rule *rule, size_t at)
{
	const char *first = rule->words.count ? path_basename(rule->words.items[0]) : "";
	struct policy_bucket *bucket = bucket_of(&policy->by_word, policy->arena, str_from(first));
	struct str key;
	if (rule->words.count < 2) {
		vec_push(policy->arena, &bucket->rules, at);
		return;
	}
	bucket->has_longer = true;
	bucket->has_longer_forbidding |= rule->decision != POLICY_ALLOW;
	rule_key(policy->arena, first, str_from(rule->words.items[1]), &key);
	bucket = bucket_of(&policy->by_word, policy->arena, key);
	vec_push(policy->arena, &bucket->rules, at);
}

/* The directory of a glob's part without wildcards; all of a glob that has none. */
static const char *fixed_part(struct arena *arena, const char *glob)
{
	size_t len = strcspn(glob, "*?");
	while (glob[len] && len > 0 && glob[len - 1] != '/')
		len--;
	while (len > 1 && glob[len - 1] == '/')
		len--;
	return arena_bytes(arena, glob, len);
}

int rule_push(struct policy *policy, const struct policy_rule *given, struct error *err)
{
	size_t at = policy->rules.count;
	struct policy_rule rule = *given;
	struct policy_bucket *bucket;
	if (at == POLICY_RULES_MAX)
		return fail(err, ERR_LIMIT, "a policy has at most %d rules", POLICY_RULES_MAX);
	if (rule.kind == POLICY_FILE)
		rule.fixed = fixed_part(policy->arena, rule.glob);
	vec_push(policy->arena, &policy->rules, rule);
	switch (rule.kind) {
	case POLICY_SHELL:
		index_shell(policy, &rule, at);
		return 0;
	case POLICY_FILE:
		policy->has_file_rules = true;
		bucket = bucket_of(&policy->by_dir, policy->arena, str_from(rule.fixed));
		if (rule.decision != POLICY_ALLOW)
			vec_push(policy->arena, &policy->forbidding, at);
		break;
	case POLICY_NETWORK:
	default:
		bucket = bucket_of(&policy->by_host, policy->arena, str_from(rule.host));
		break;
	}
	vec_push(policy->arena, &bucket->rules, at);
	return 0;
}

int rule_check_text(const char *text, struct error *err)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return fail(err, ERR_INVALID, "a control character");
	return 0;
}

int policy_add_rule(struct policy *policy, enum policy_decision decision, const char *text,
	const struct policy_places *places, struct error *err)
{
	struct policy_rule rule = { .decision = decision, .text = arena_text(policy->arena, text) };
	size_t len = strlen(text), i = 0;
	while (i < 3 && strncmp(text, kinds[i].name, strlen(kinds[i].name)) != 0)
		i++;
	if (i == 3)
		return fail(err, ERR_INVALID, "a rule is shell(…), file(…) or network(…)");
	size_t begin = strlen(kinds[i].name);
	if (len <= begin + 1 || text[len - 1] != ')')
		return fail(err, ERR_INVALID, "a rule ends with ')' after its pattern");
	if (rule_check_text(text, err) < 0)
		return -1;
	policy->workspace = places->workspace;
	rule.kind = kinds[i].kind;
	if (kinds[i].parse(
		    policy, (struct str){ text + begin, len - begin - 1 }, &rule, places, err) < 0)
		return -1;
	return rule_push(policy, &rule, err);
}
