/* Claude Code's settings.json: Bash(npm run test:*), Read(~/.zshrc), Edit(src/ **),
 * WebFetch(domain:example.com). */
#include "policy/settings_internal.h"

bool claude_strips(const char *wrapper)
{
	return words_have("timeout time nice nohup stdbuf", wrapper);
}

bool claude_runs_unasked(const struct policy *policy, const shell_words *words, size_t first)
{
	const char *name = words->items[first].literal;
	const char *verb = first + 1 < words->count ? words->items[first + 1].literal : NULL;
	if (policy->otherwise.shell == POLICY_DENY)
		return false;
	return words_have("ls cat echo pwd head tail grep find wc which diff stat du", name) ||
	       (!strcmp(name, "git") && verb &&
		       words_have("status log diff show blame rev-parse", verb)) ||
	       (policy->accepts_edits && words_have("mkdir touch mv cp", name));
}

/* -- rules -- */

static int add_command(
	struct settings *s, struct policy_rule *rule, struct str body, struct error *err)
{
	size_t stars = 0;
	for (size_t i = 0; i < body.len; i++)
		stars += body.data[i] == '*';
	rule->kind = POLICY_SHELL;
	if (!body.len || str_is(body, "*") || str_is(body, ":*")) {
		rule->is_prefix = true;
	} else if (stars == 0 || (stars == 1 && body.len > 2 &&
					 (memcmp(body.data + body.len - 2, ":*", 2) == 0 ||
						 memcmp(body.data + body.len - 2, " *", 2) == 0))) {
		rule->is_prefix = stars == 1;
		body.len -= stars ? 2 : 0;
		if (rule_split(s->policy->arena, body, &rule->words, err) < 0)
			return -1;
		if (!rule->words.count)
			return fail(err, ERR_INVALID, "no command");
	} else {
		rule->wildcard = arena_bytes(s->policy->arena, body.data, body.len);
	}
	return rule_push(s->policy, rule, err);
}

/* Patterns of gitignore: without a slash they match at any depth, and a directory stands for all
 * below it. */
static int add_path(struct settings *s, struct policy_rule *rule, struct str body,
	unsigned operations, struct error *err)
{
	struct arena *arena = s->policy->arena;
	const char *text = arena_bytes(arena, body.data, body.len);
	const char *cwd = settings_cwd(s);
	size_t len = strlen(text);
	rule->kind = POLICY_FILE;
	rule->operations = operations;
	rule->is_with_below = true;
	while (len > 1 && text[len - 1] == '/')
		len--;
	text = arena_bytes(arena, text, len);
	if (!body.len) {
		text = "/**";
	} else if (strncmp(text, "//", 2) == 0) {
		text++;
	} else if (text[0] == '/') {
		text = arena_printf(
			arena, "%s%s", s->places->settings ? s->places->settings : cwd, text);
	} else if (text[0] != '~') {
		bool is_anchored = strncmp(text, "./", 2) == 0;
		text += is_anchored ? 2 : 0;
		is_anchored |= strchr(text, '/') != NULL;
		text = arena_printf(arena, "%s/%s%s", cwd, is_anchored ? "" : "**/", text);
	} else if (text[1] && text[1] != '/') {
		return fail(err, ERR_INVALID, "'%s': the home of another user", text);
	}
	if (settings_expand(s, text, &rule->glob, err) < 0)
		return -1;
	return rule_push(s->policy, rule, err);
}

static int add_host(
	struct settings *s, struct policy_rule *rule, struct str body, struct error *err)
{
	rule->kind = POLICY_NETWORK;
	rule->is_any_port = true;
	if (!body.len) {
		rule->host = "*";
	} else if (!str_starts_with(body, "domain:")) {
		return fail(err, ERR_INVALID, "domain:HOST expected");
	} else if (rule_set_host(s->policy->arena, (struct str){ body.data + 7, body.len - 7 },
			   rule, err) < 0) {
		return -1;
	}
	return rule_push(s->policy, rule, err);
}

static int add_rule(
	struct settings *s, enum policy_decision decision, const char *text, struct error *err)
{
	static const struct {
		const char *tool;
		enum policy_kind kind;
		unsigned operations;
	} tools[] = {
		{ "Bash", POLICY_SHELL, 0 },
		{ "Read", POLICY_FILE, POLICY_READ },
		{ "Grep", POLICY_FILE, POLICY_READ },
		{ "Glob", POLICY_FILE, POLICY_READ },
		{ "LS", POLICY_FILE, POLICY_READ },
		{ "Edit", POLICY_FILE, POLICY_WRITE | POLICY_DELETE },
		{ "Write", POLICY_FILE, POLICY_WRITE | POLICY_DELETE },
		{ "MultiEdit", POLICY_FILE, POLICY_WRITE | POLICY_DELETE },
		{ "NotebookEdit", POLICY_FILE, POLICY_WRITE | POLICY_DELETE },
		{ "WebFetch", POLICY_NETWORK, 0 },
	};
	struct policy_rule rule = { .decision = decision,
		.text = arena_text(s->policy->arena, text) };
	size_t len = strcspn(text, "("), all = strlen(text), i = 0;
	struct str body = { 0 };
	if (rule_check_text(text, err) < 0)
		return -1;
	while (i < sizeof tools / sizeof *tools &&
		!(strlen(tools[i].tool) == len && strncmp(tools[i].tool, text, len) == 0))
		i++;
	if (i == sizeof tools / sizeof *tools)
		return fail(err, ERR_INVALID, "the tool '%.*s' isn't supported here",
			(int)(len < 64 ? len : 64), text);
	if (text[len]) {
		if (text[all - 1] != ')' || all < len + 3)
			return fail(err, ERR_INVALID, "a rule ends with ')' after its pattern");
		body = (struct str){ text + len + 1, all - len - 2 };
	}
	switch (tools[i].kind) {
	case POLICY_SHELL:
		return add_command(s, &rule, body, err);
	case POLICY_NETWORK:
		return add_host(s, &rule, body, err);
	case POLICY_FILE:
	default:
		return add_path(s, &rule, body, tools[i].operations, err);
	}
}

/* -- members -- */

static int read_mode(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct settings *s = ctx;
	struct policy *policy = s->policy;
	if (reader_expect(r, v, JSON_STRING, path) < 0)
		return -1;
	if (str_is(v->string, "default"))
		return 0;
	if (str_is(v->string, "acceptEdits")) {
		policy->accepts_edits = true;
	} else if (str_is(v->string, "dontAsk")) {
		policy->denies_asks = true;
	} else if (str_is(v->string, "bypassPermissions")) {
		policy_set_default(policy, POLICY_ALLOW);
		policy->never_asks = true;
	} else {
		return reader_fail(r, v,
			"%s: default, acceptEdits, dontAsk or bypassPermissions expected", path);
	}
	return 0;
}

static int read_directories(
	struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct settings *s = ctx;
	text_list given = { 0 };
	if (reader_texts(r, v, path, &given) < 0)
		return -1;
	for (size_t i = 0; i < given.count; i++) {
		const char *dir;
		struct error err;
		if (settings_expand(s, given.items[i], &dir, &err) < 0)
			return reader_fail(r, v, "%s[%zu]: %s", path, i, err.text);
		vec_push(s->policy->arena, &s->policy->directories, dir);
	}
	return 0;
}

static int read_disable_bypass(
	struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct settings *s = ctx;
	s->is_bypass_disabled = v->kind == JSON_STRING && str_is(v->string, "disable");
	return s->is_bypass_disabled ? 0 : reader_fail(r, v, "%s: \"disable\" expected", path);
}

int settings_read_claude(struct reader *r, const struct json_value *object, struct settings *s)
{
	static const struct reader_member permissions[] = { { "allow", settings_read_rules },
		{ "deny", settings_read_rules }, { "ask", settings_read_rules },
		{ "defaultMode", read_mode }, { "additionalDirectories", read_directories },
		{ "disableBypassPermissionsMode", read_disable_bypass }, { NULL } };
	/* Those without a function say nothing about what may be done. */
	static const struct reader_member rows[] = { { "permissions", .rows = permissions },
		{ "model" }, { "outputStyle" }, { "statusLine" }, { "includeCoAuthoredBy" },
		{ "cleanupPeriodDays" }, { "theme" }, { "language" }, { "attribution" },
		{ "alwaysThinkingEnabled" }, { "spinnerTipsEnabled" }, { "effortLevel" },
		{ NULL } };
	s->add = add_rule;
	s->policy->is_claude = true;
	vec_push(s->policy->arena, &s->policy->directories,
		arena_text(s->policy->arena, settings_cwd(s)));
	if (!json_member(object, "permissions"))
		return reader_fail(r, object, "no object 'permissions'");
	if (reader_members(r, object, "", rows, s) < 0)
		return -1;
	if (s->is_bypass_disabled && s->policy->never_asks)
		return reader_fail(r, object,
			"permissions.defaultMode: bypassPermissions is "
			"disabled in the same file");
	return 0;
}
