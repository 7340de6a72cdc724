#include "model/policy/internal.h"

#include "base/path.h"
#include "format/json_read.h"
#include "format/uri.h"

void policy_init(struct policy *policy, struct arena *arena)
{
	*policy = (struct policy){ .otherwise = POLICY_ASK, .arena = arena };
	map_init(&policy->by_word, arena);
}

const char *policy_decision_name(enum policy_decision decision)
{
	static const char *const names[] = { "allow", "ask", "deny" };

	return names[decision];
}

/* The words of a shell rule: blanks separate them, quotes as in the shell keep them. */
static int split_words(struct arena *arena, struct str body, text_list *words, struct error *err)
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
	if (split_words(policy->arena, body, &rule->words, err) < 0)
		return -1;
	if (!rule->words.count || !rule->words.items[0][0])
		return fail(err, ERR_INVALID, "no command");
	if (strchr(rule->words.items[0], '*'))
		return fail(err, ERR_INVALID, "a pattern in a command's name");
	return 0;
}

static int expand_glob(struct policy *policy, struct str text, const struct policy_places *places,
	const char **out, struct error *err)
{
	const struct {
		const char *name, *value;
	} variables[] = { { "${WORKSPACE}", places->workspace },
		{ "${CONTEXT_ID}", places->context_id } };
	const char *glob = arena_bytes(policy->arena, text.data, text.len);
	const char *at;

	if (glob[0] == '~' && (glob[1] == '/' || !glob[1])) {
		if (!places->home)
			return fail(err, ERR_INVALID, "'~' has no meaning here");
		glob = arena_printf(policy->arena, "%s%s", places->home, glob + 1);
	}
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		while ((at = strstr(glob, variables[i].name))) {
			if (!variables[i].value)
				return fail(err, ERR_INVALID, "'%s' has no value here",
					variables[i].name);
			if (strstr(variables[i].value, "${"))
				return fail(err, ERR_INVALID, "the value of '%s' names a variable",
					variables[i].name);
			glob = arena_printf(policy->arena, "%.*s%s%s", (int)(at - glob), glob,
				variables[i].value, at + strlen(variables[i].name));
		}
	if (strstr(glob, "${"))
		return fail(err, ERR_INVALID, "unknown variable in '%s'", glob);
	if (strcmp(glob, "*") == 0 || strcmp(glob, "**") == 0)
		glob = "/**";
	if (glob[0] != '/')
		return fail(err, ERR_INVALID, "'%s' isn't absolute", glob);
	*out = path_normalize(policy->arena, "/", glob);
	return 0;
}

static int parse_file(struct policy *policy, struct str body, struct policy_rule *rule,
	const struct policy_places *places, struct error *err)
{
	static const struct {
		const char *name;
		unsigned operation;
	} operations[] = { { "read", POLICY_READ }, { "write", POLICY_WRITE },
		{ "delete", POLICY_DELETE } };
	struct str names, glob, name;

	if (!str_cut(body, ':', &names, &glob))
		return fail(err, ERR_INVALID, "no operation: read, write or delete");
	if (glob.len > 2 && memcmp(glob.data + glob.len - 2, ":*", 2) == 0)
		glob.len -= 2;
	while (str_next(&names, '|', &name)) {
		size_t i = 0;

		while (i < 3 && !str_is(name, operations[i].name))
			i++;
		if (i == 3)
			return fail(err, ERR_INVALID, "unknown operation '%.*s'", (int)name.len,
				name.data);
		rule->operations |= operations[i].operation;
	}
	if (!rule->operations || !glob.len)
		return fail(err, ERR_INVALID, "no operation or no path");
	policy->has_file_rules = true;
	return expand_glob(policy, glob, places, &rule->glob, err);
}

static int parse_network(struct policy *policy, struct str body, struct policy_rule *rule,
	const struct policy_places *places, struct error *err)
{
	struct str direction, pattern, name;
	uint16_t port = 0;

	if (!str_cut(body, ':', &direction, &pattern) || !str_is(direction, "outbound"))
		return fail(err, ERR_INVALID, "no direction: outbound");
	bool is_domain = pattern.len > 2 && memcmp(pattern.data, "*.", 2) == 0;
	if (str_is(pattern, "*")) {
		rule->host = "*";
		return 0;
	}
	if (is_domain)
		pattern = (struct str){ pattern.data + 2, pattern.len - 2 };
	if (!uri_parse_host(pattern, &name, &port) || !name.len)
		return fail(err, ERR_INVALID, "not a host, '*.host' or '*'");
	char *host = arena_printf(
		policy->arena, "%s%.*s", is_domain ? "*." : "", (int)name.len, name.data);
	for (char *c = host; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	rule->host = host;
	rule->port = port;
	return 0;
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

static void index_rule(struct policy *policy, const struct policy_rule *rule)
{
	struct str key = str_from(rule->words.count ? path_basename(rule->words.items[0]) : "");
	struct policy_bucket *bucket = map_get(&policy->by_word, key);

	if (!bucket) {
		bucket = arena_alloc(policy->arena, sizeof *bucket);
		map_set(&policy->by_word, key, bucket);
	}
	vec_push(policy->arena, &bucket->rules, policy->rules.count - 1);
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
	for (size_t k = 0; k < len; k++)
		if ((unsigned char)text[k] < ' ' || text[k] == 0x7f)
			return fail(err, ERR_INVALID, "a control character");
	rule.kind = kinds[i].kind;
	if (kinds[i].parse(
		    policy, (struct str){ text + begin, len - begin - 1 }, &rule, places, err) < 0)
		return -1;
	vec_push(policy->arena, &policy->rules, rule);
	if (rule.kind == POLICY_SHELL)
		index_rule(policy, &policy->rules.items[policy->rules.count - 1]);
	return 0;
}

static int add_list(struct policy *policy, enum policy_decision decision,
	const struct json_value *permissions, const struct policy_places *places, struct error *err)
{
	const char *name = policy_decision_name(decision);
	const struct json_value *list = json_member(permissions, name);
	size_t i = 0;

	if (!list)
		return 0;
	if (list->kind != JSON_ARRAY)
		return fail(err, ERR_INVALID, "permissions.%s: not a list", name);
	for (const struct json_value *rule = list->first; rule; rule = rule->next, i++) {
		if (rule->kind != JSON_STRING || memchr(rule->string.data, '\0', rule->string.len))
			return fail(err, ERR_INVALID, "permissions.%s[%zu]: not a text", name, i);
		if (policy_add_rule(policy, decision, rule->string.data, places, err) < 0)
			return error_context(
				err, "permissions.%s[%zu]: '%s'", name, i, rule->string.data);
	}
	return 0;
}

int policy_add_settings(struct policy *policy, struct str json, const struct policy_places *places,
	struct error *err)
{
	const struct json_value *permissions;
	struct json_value *settings;

	if (json_read(json, policy->arena, &settings, err) < 0)
		return -1;
	if (settings->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "settings aren't an object");
	permissions = json_member(settings, "permissions");
	if (!permissions || permissions->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "settings have no object 'permissions'");
	for (int decision = POLICY_ALLOW; decision <= POLICY_DENY; decision++)
		if (add_list(policy, (enum policy_decision)decision, permissions, places, err) < 0)
			return -1;
	return 0;
}
