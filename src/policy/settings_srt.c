/* The settings of sandbox-runtime (srt): reading is allowed but for denyRead, writing is denied but
 * for allowWrite, the network is denied but for allowedDomains. Nothing is asked for. */
#include "policy/settings_internal.h"

static int add_path(struct settings *s, enum policy_decision decision, unsigned operations,
	const char *text, struct error *err)
{
	struct policy_rule rule = { .kind = POLICY_FILE,
		.decision = decision,
		.operations = operations,
		.is_with_below = true,
		.text = arena_text(s->policy->arena, text) };
	const char *path = text;
	size_t len = strlen(text);
	while (len > 1 && text[len - 1] == '/')
		path = arena_bytes(s->policy->arena, text, --len);
	if (rule_check_text(text, err) < 0 || settings_expand(s, path, &rule.glob, err) < 0)
		return -1;
	return rule_push(s->policy, &rule, err);
}

static int add_deny_read(
	struct settings *s, enum policy_decision decision, const char *text, struct error *err)
{
	return add_path(s, decision, POLICY_READ, text, err);
}

static int add_write(
	struct settings *s, enum policy_decision decision, const char *text, struct error *err)
{
	return add_path(s, decision, POLICY_WRITE | POLICY_DELETE, text, err);
}

static int add_domain(
	struct settings *s, enum policy_decision decision, const char *text, struct error *err)
{
	struct policy_rule rule = { .kind = POLICY_NETWORK,
		.decision = decision,
		.is_any_port = true,
		.text = arena_text(s->policy->arena, text) };
	const char *dot = strchr(text, '.');
	if (rule_check_text(text, err) < 0 ||
		rule_set_host(s->policy->arena, str_from(text), &rule, err) < 0)
		return -1;
	/* As srt has it: "*" and "*.com" are too wide to be allowed. */
	if (decision == POLICY_ALLOW && rule.host[0] == '*' && (!dot || !strchr(dot + 1, '.')))
		return fail(err, ERR_INVALID, "too wide: srt refuses it");
	return rule_push(s->policy, &rule, err);
}

static const struct {
	const char *key;
	enum policy_decision decision;
	int (*add)(struct settings *s, enum policy_decision decision, const char *text,
		struct error *err);
} lists[] = {
	{ "denyRead", POLICY_DENY, add_deny_read },
	{ "allowWrite", POLICY_ALLOW, add_write },
	{ "denyWrite", POLICY_DENY, add_write },
	{ "allowedDomains", POLICY_ALLOW, add_domain },
	{ "deniedDomains", POLICY_DENY, add_domain },
};

static int read_list(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	struct settings *s = ctx;
	size_t i = 0;
	while (!str_is(v->key, lists[i].key))
		i++;
	s->add = lists[i].add;
	return settings_read_list(r, v, path, lists[i].decision, s);
}

/* What can't be kept here may only have the value that asks for nothing. */
static int read_nothing(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	if (v->kind == JSON_NULL || (v->kind == JSON_BOOL && !v->boolean) ||
		((v->kind == JSON_ARRAY || v->kind == JSON_OBJECT) && !v->count))
		return 0;
	return reader_fail(r, v, "%s isn't supported here", path);
}

static int read_flag(struct reader *r, const struct json_value *v, const char *path, void *ctx)
{
	return reader_expect(r, v, JSON_BOOL, path);
}

static const struct reader_member network_rows[] = { { "allowedDomains", read_list },
	{ "deniedDomains", read_list }, { "allowLocalBinding", read_flag },
	{ "allowUnixSockets", read_nothing }, { "allowAllUnixSockets", read_nothing }, { NULL } };
static const struct reader_member file_rows[] = { { "denyRead", read_list },
	{ "allowWrite", read_list }, { "denyWrite", read_list }, { "allowRead", read_nothing },
	{ "allowGitConfig", read_flag }, { NULL } };

/* Files that srt protects always, since they run programs later. */
static int add_protected(struct settings *s, bool allows_git_config, struct error *err)
{
	static const char *const names[] = { ".bashrc", ".bash_profile", ".zshrc", ".zprofile",
		".profile", ".gitconfig", ".gitmodules", ".ripgreprc", ".mcp.json", ".vscode",
		".idea", ".claude/commands", ".claude/agents", ".git/hooks" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (add_write(s, POLICY_DENY,
			    arena_printf(s->policy->arena, "%s/**/%s", settings_cwd(s), names[i]),
			    err) < 0)
			return -1;
	return allows_git_config ? 0
				 : add_write(s, POLICY_DENY,
					   arena_printf(s->policy->arena, "%s/**/.git/config",
						   settings_cwd(s)),
					   err);
}

int settings_read_srt(struct reader *r, const struct json_value *object, struct settings *s)
{
	static const struct reader_member rows[] = { { "network", .rows = network_rows },
		{ "filesystem", .rows = file_rows }, { "ignoreViolations", read_nothing },
		{ "enableWeakerNestedSandbox", read_nothing }, { NULL } };
	const struct json_value *flag =
		json_member(json_member(object, "filesystem"), "allowGitConfig");
	struct policy *policy = s->policy;
	policy->never_asks = policy->has_file_rules = true;
	policy->otherwise = (struct policy_defaults){ .shell = POLICY_ALLOW,
		.read = POLICY_ALLOW,
		.write = POLICY_DENY,
		.remove = POLICY_DENY,
		.network = POLICY_DENY };
	return reader_members(r, object, "", rows, s) < 0
		       ? -1
		       : add_protected(s, flag && flag->boolean, r->err);
}
