/* Settings files: which format they have, and Carrel's own. */
#include "base/path.h"
#include "policy/settings_internal.h"

static const struct {
	const char *name;
	enum policy_format format;
} formats[] = { { "carrel", POLICY_FORMAT_CARREL }, { "claude", POLICY_FORMAT_CLAUDE },
	{ "srt", POLICY_FORMAT_SRT } };

bool policy_format_from_name(const char *name, enum policy_format *format)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (strcmp(name, formats[i].name) == 0) {
			*format = formats[i].format;
			return true;
		}
	return false;
}

const char *settings_cwd(const struct settings *s)
{
	if (s->places->cwd)
		return s->places->cwd;
	return s->places->workspace ? s->places->workspace : "/";
}

int settings_expand(struct settings *s, const char *pattern, const char **glob, struct error *err)
{
	const char *text;
	if (rule_expand(s->policy->arena, pattern, s->places, &text, err) < 0)
		return -1;
	if (strpbrk(text, "[]!\\"))
		return fail(
			err, ERR_INVALID, "'%s': '[', ']', '!' and '\\' aren't supported", text);
	*glob = path_normalize(s->policy->arena, settings_cwd(s), text);
	return 0;
}

int settings_read_list(struct reader *r, const struct json_value *list, const char *path,
	enum policy_decision decision, struct settings *s)
{
	size_t i = 0;
	if (reader_expect(r, list, JSON_ARRAY, path) < 0)
		return -1;
	for (const struct json_value *item = list->first; item; item = item->next, i++) {
		size_t first = s->policy->rules.count;
		struct error err;
		char shown[128];
		if (item->kind != JSON_STRING || memchr(item->string.data, '\0', item->string.len))
			return reader_fail(r, item, "%s[%zu]: a text expected", path, i);
		if (s->add(s, decision, item->string.data, &err) < 0) {
			str_printable(shown, sizeof shown, item->string);
			if (!s->problems)
				return reader_fail(
					r, item, "%s[%zu]: '%s': %s", path, i, shown, err.text);
			vec_push(s->policy->arena, s->problems,
				(struct policy_problem){ reader_line(r, item),
					arena_printf(s->policy->arena, "%s[%zu]: '%s': %s", path, i,
						shown, err.text) });
		}
		for (; first < s->policy->rules.count; first++) {
			s->policy->rules.items[first].file = r->name;
			s->policy->rules.items[first].line = reader_line(r, item);
		}
	}
	return 0;
}

int settings_read_rules(
	struct reader *r, const struct json_value *list, const char *path, void *ctx)
{
	enum policy_decision decision;
	policy_decision_from_name(list->key.data, &decision);
	return settings_read_list(r, list, path, decision, ctx);
}

/* -- Carrel's own -- */

static int add_rule(
	struct settings *s, enum policy_decision decision, const char *text, struct error *err)
{
	return policy_add_rule(s->policy, decision, text, s->places, err);
}

static int read_default(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct settings *s = ctx;
	enum policy_decision decision;
	if (reader_expect(r, v, JSON_STRING, path) < 0)
		return -1;
	if (!policy_decision_from_name(v->string.data, &decision))
		return reader_fail(r, v, "%s: allow, ask or deny expected", path);
	policy_set_default(s->policy, decision);
	return 0;
}

/* Where the workspace of a context lies outside; inside it is where the sandbox mounts it. */
static int read_workspace(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	if (reader_expect(r, v, JSON_STRING, path) < 0)
		return -1;
	if (v->string.data[0] != '/')
		return reader_fail(r, v, "%s: an absolute path expected", path);
	return 0;
}

static int read_carrel(struct reader *r, const struct json_value *object, struct settings *s)
{
	static const struct reader_member permissions[] = { { "allow", settings_read_rules },
		{ "deny", settings_read_rules }, { "ask", settings_read_rules },
		{ "default", read_default }, { "defaultMode", read_default }, { NULL } };
	static const struct reader_member rows[] = { { "permissions", .rows = permissions },
		{ "context_workspace", read_workspace }, { "default", read_default }, { NULL } };
	s->add = add_rule;
	if (!json_member(object, "permissions"))
		return reader_fail(r, object, "no object 'permissions'");
	return reader_members(r, object, "", rows, s);
}

/* A rule of Claude Code begins with the name of a tool: Bash, or mcp__server. */
static bool has_tools(const struct json_value *permissions)
{
	static const char *const lists[] = { "allow", "ask", "deny" };
	for (size_t i = 0; i < 3; i++) {
		const struct json_value *list = json_member(permissions, lists[i]);
		for (const struct json_value *rule = list ? list->first : NULL; rule;
			rule = rule->next)
			if (rule->kind == JSON_STRING &&
				((rule->string.data[0] >= 'A' && rule->string.data[0] <= 'Z') ||
					str_starts_with(rule->string, "mcp__")))
				return true;
	}
	return false;
}

static enum policy_format format_of(const struct json_value *object)
{
	static const char modes[] = "default acceptEdits plan dontAsk bypassPermissions auto";
	const struct json_value *permissions = json_member(object, "permissions");
	const char *mode = json_member_text(permissions, "defaultMode");
	if (!permissions && (json_member(object, "filesystem") || json_member(object, "network")))
		return POLICY_FORMAT_SRT;
	if (words_have(modes, mode) || json_member(permissions, "additionalDirectories") ||
		has_tools(permissions))
		return POLICY_FORMAT_CLAUDE;
	return POLICY_FORMAT_CARREL;
}

int policy_add_file(struct policy *policy, const struct policy_file *file,
	const struct policy_places *places, struct error *err)
{
	struct reader r = {
		.name = file->name, .text = file->text, .arena = policy->arena, .err = err
	};
	struct settings s = { .policy = policy, .places = places, .problems = file->problems };
	struct json_value *object;
	if (reader_open(&r, POLICY_SETTINGS_MAX, &object) < 0)
		return -1;
	policy->workspace = places->workspace;
	switch (file->format == POLICY_FORMAT_ANY ? format_of(object) : file->format) {
	case POLICY_FORMAT_CLAUDE:
		return settings_read_claude(&r, object, &s);
	case POLICY_FORMAT_SRT:
		return settings_read_srt(&r, object, &s);
	case POLICY_FORMAT_ANY:
	case POLICY_FORMAT_CARREL:
	default:
		return read_carrel(&r, object, &s);
	}
}

int policy_add_settings(struct policy *policy, struct str json, const struct policy_places *places,
	struct error *err)
{
	return policy_add_file(policy, &(struct policy_file){ .text = json }, places, err);
}
