/* The rows of a template, and what they can't say. */
#include "base/path.h"
#include "base/str.h"
#include "format/packages/pep508.h"
#include "model/nouns/template.h"
#include "model/records/rows.h"

/* ---- single values ---- */

int template_check_name(const char *name, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t len = strlen(name);
	if (len && len <= TEMPLATE_NAME_MAX && strspn(name, allowed) == len && name[0] != '-')
		return 0;
	return fail_hint(err, ERR_INVALID, "1 to 64 of a-z, 0-9 and -, not - first",
		"'%.64s' is not the name of a template", name);
}

static int check_version(const char *text, struct error *err)
{
	return strcmp(text, "1.0") && strcmp(text, "1")
		       ? fail_hint(err, ERR_INVALID, "this carrel reads version \"1.0\"",
				 "unknown version '%.32s' of templates", text)
		       : 0;
}

/* "3", "3.12", "20.11.1". */
static int check_release(const char *text, struct error *err)
{
	size_t digits = 0, dots = 0, len = strlen(text);
	for (size_t i = 0; i < len; i++) {
		digits += text[i] >= '0' && text[i] <= '9';
		dots += text[i] == '.' && i && text[i - 1] != '.' && i + 1 < len;
	}
	return !digits || digits + dots != len || dots > 2
		       ? fail(err, ERR_INVALID, "'%.32s' is not a version, such as 3.12", text)
		       : 0;
}

int template_check_requirement(const char *text, struct error *err)
{
	struct pep508 parsed;
	const char *reason;
	if (pep508_parse(str_from(text), &parsed, &reason))
		return 0;
	return fail(err, ERR_INVALID, "'%.128s' is not a dependency: %s", text, reason);
}

static bool is_package_name(const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._~-";
	size_t len = strlen(text), scope = 0;
	if (text[0] == '@') {
		scope = 1 + strspn(text + 1, allowed);
		if (scope == 1 || text[scope++] != '/')
			return false;
	}
	size_t rest = strspn(text + scope, allowed);
	return rest && scope + rest == len && len <= 214 && text[scope] != '.' &&
	       text[scope] != '_' && text[scope] != '-';
}

static int check_package(const char *key, const char *value, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.^~<>=|*+- ";
	if (!is_package_name(key))
		return fail(err, ERR_INVALID, "'%.128s' is not the name of an npm package", key);
	if (!value[0] || strlen(value) > 128 || strspn(value, allowed) != strlen(value))
		return fail(err, ERR_INVALID,
			"%s: '%.64s' is not a range of versions, such as ^1.6.0", key, value);
	return 0;
}

static int check_plain_path(const char *text, struct error *err)
{
	return path_is_normal(text)
		       ? 0
		       : fail(err, ERR_INVALID, "'%.128s' is not an absolute, normal path", text);
}

static int check_line(const char *text, struct error *err)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return fail(err, ERR_INVALID, "may not hold control characters");
	return 0;
}

/* Names where something is mounted, or that carrel writes itself. */
static bool is_reserved(const char *path)
{
	static const char *const names[] = { ".venv", "node_modules", ".cache", TEMPLATE_MARKER };
	size_t len = strcspn(path, "/");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == len && !memcmp(path, names[i], len))
			return true;
	return false;
}

int template_check_file(const char *key, const char *value, struct error *err)
{
	char absolute[1024];
	if (!str_format(absolute, sizeof absolute, "/%s", key) || !path_is_normal(absolute) ||
		!key[0] || check_line(key, err))
		return fail_hint(err, ERR_INVALID, "such as notes/README.md",
			"'%.128s' is not a relative, normal path", key);
	for (const char *c = key; *c; c += strcspn(c, "/"), c += *c == '/')
		if (strcspn(c, "/") > 255)
			return fail(err, ERR_INVALID, "'%.128s' has a name that is too long", key);
	if (is_reserved(key))
		return fail(err, ERR_INVALID, "'%.128s' is made by carrel itself", key);
	if (strlen(value) > TEMPLATE_FILE_BYTES_MAX)
		return fail(err, ERR_INVALID, "'%.128s' has %zu bytes, %d is the maximum", key,
			strlen(value), TEMPLATE_FILE_BYTES_MAX);
	return 0;
}

/* As sandbox/plan/grants.h reads it. */
static int check_attach(const char *text, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
	char path[1024];
	size_t name = strspn(text, allowed), len = strlen(text);
	bool has_mode =
		len > 3 && (!strcmp(text + len - 3, ":ro") || !strcmp(text + len - 3, ":rw"));
	if (name && name <= 64 && !strchr("._-", text[0]) && text[name] == ':' &&
		str_format(path, sizeof path, "%.*s", (int)(len - name - 1 - (has_mode ? 3 : 0)),
			text + name + 1) &&
		path_is_normal(path) && path[1] && !strchr(path, ':'))
		return 0;
	return fail_hint(err, ERR_INVALID, "such as skills:/workspace/skills:ro",
		"'%.128s' is not NAME:PATH[:ro] with an absolute path inside", text);
}

/* ---- the rows ---- */

#define SHOWN_OPTIONAL (FIELD_IN | FIELD_OUT | FIELD_OPTIONAL)
#define AT_PYTHON(member) offsetof(struct template_python, member)
static const struct field python_rows[] = {
	{ "version", FIELD_TEXT, AT_PYTHON(version), "such as 3.12", SHOWN_OPTIONAL, .least = 1,
		.most = 32, .check = check_release },
	{ "dependencies", FIELD_TEXTS, AT_PYTHON(dependencies), "such as pandas>=2.1.0",
		SHOWN_OPTIONAL, .most = TEMPLATE_DEPENDENCIES_MAX,
		.check = template_check_requirement },
};
static const struct record python_record = { "TemplatePython", NULL, RECORD_ROWS(python_rows),
	.wanted = "TemplatePythonWanted" };

#define AT_NODE(member) offsetof(struct template_node, member)
static const struct field_choice runtimes[] = { { "bun", 1 }, { "npm", 2 }, { 0 } };
static const struct field node_rows[] = {
	{ "version", FIELD_TEXT, AT_NODE(version), "such as 20", SHOWN_OPTIONAL, .least = 1,
		.most = 32, .check = check_release },
	{ "runtime", FIELD_CHOICE, AT_NODE(runtime), "what installs the packages", SHOWN_OPTIONAL,
		.choices = runtimes },
	{ "dependencies", FIELD_PAIRS, AT_NODE(dependencies), "such as axios: ^1.6.0",
		SHOWN_OPTIONAL, .most = TEMPLATE_DEPENDENCIES_MAX, .check_pair = check_package },
};
static const struct record node_record = { "TemplateNode", NULL, RECORD_ROWS(node_rows),
	.wanted = "TemplateNodeWanted" };

#define AT_SYSTEM(member) offsetof(struct template_system, member)
static const struct field system_rows[] = {
	{ "shell", FIELD_TEXT, AT_SYSTEM(shell), "the variable SHELL, and what carrel shell starts",
		SHOWN_OPTIONAL, .least = 1, .most = 1024, .check = check_plain_path },
	{ "editor", FIELD_TEXT, AT_SYSTEM(editor), "the variable EDITOR", SHOWN_OPTIONAL,
		.least = 1, .most = 1024, .check = check_line },
};
static const struct record system_record = { "TemplateSystem", NULL, RECORD_ROWS(system_rows),
	.wanted = "TemplateSystemWanted" };

#define AT_SECURITY(member) offsetof(struct template_security, member)
static const struct field security_rows[] = {
	{ "network_enabled", FIELD_BOOLEAN, AT_SECURITY(network_enabled),
		"true: as network.mode open, unless that is given; false: as none", SHOWN_OPTIONAL,
		.has = FIELD_HAS(struct template_security, has_network_enabled) },
	{ "filesystem_readonly", FIELD_TEXTS, AT_SECURITY(readonly),
		"paths that must be read-only inside: an error where they are not", SHOWN_OPTIONAL,
		.most = 64, .check = check_plain_path },
	{ "filesystem_writable", FIELD_TEXTS, AT_SECURITY(writable),
		"paths that must be writable inside: an error where they are not", SHOWN_OPTIONAL,
		.most = 64, .check = check_plain_path },
};
static const struct record security_record = { "TemplateSecurity", NULL, RECORD_ROWS(security_rows),
	.wanted = "TemplateSecurityWanted" };

#define AT_NETWORK(member) offsetof(struct workspace_network, member)
static const struct field network_rows[] = {
	{ "mode", FIELD_TEXT, AT_NETWORK(mode), "none, list or open", SHOWN_OPTIONAL,
		.pattern = "^(none|list|open)$", .check = workspace_check_mode },
	{ "allow", FIELD_TEXTS, AT_NETWORK(allow), "hosts that may be reached", SHOWN_OPTIONAL,
		.most = WORKSPACE_HOSTS_MAX, .check = workspace_check_allow },
	{ "deny", FIELD_TEXTS, AT_NETWORK(deny), "hosts that may not, though they are allowed",
		SHOWN_OPTIONAL, .most = WORKSPACE_HOSTS_MAX, .check = workspace_check_deny },
};
static const struct record network_record = { "TemplateNetwork", NULL, RECORD_ROWS(network_rows),
	.wanted = "TemplateNetworkWanted" };

static const struct field_choice views[] = { { "workspace", 1 + VIEW_WORKSPACE },
	{ "root", 1 + VIEW_ROOT }, { 0 } };

#define AT(member) offsetof(struct template, member)
#define SHOWN(member) offsetof(struct template_shown, member)
static const struct field rows[] = {
	ROW(TEXT, version, "of the format: 1.0", SHOWN_OPTIONAL, .least = 1, .most = 32,
		.check = check_version),
	ROW(TEXT, name, NULL, FIELD_IN | FIELD_OUT | FIELD_REQUIRED, .least = 1,
		.most = TEMPLATE_NAME_MAX, .pattern = "^[a-z0-9][a-z0-9-]{0,63}$",
		.check = template_check_name, .head = "NAME", .column = 1),
	{ "origin", FIELD_TEXT, SHOWN(origin), "shipped, or user", FIELD_OUT, .head = "ORIGIN",
		.column = 2 },
	ROW(TEXT, description, NULL, SHOWN_OPTIONAL, .most = 1000, .check = check_line,
		.head = "DESCRIPTION", .column = 3),
	ROW(TEXT, extends, "a template whose values hold where this has none", SHOWN_OPTIONAL,
		.check = template_check_name),
	ROW(OBJECT, python, NULL, FIELD_IN | FIELD_OUT, .object = &python_record),
	ROW(OBJECT, nodejs, NULL, FIELD_IN | FIELD_OUT, .object = &node_record),
	{ "system", FIELD_OBJECT, AT(programs), NULL, FIELD_IN | FIELD_OUT,
		.object = &system_record },
	ROW(OBJECT, security, NULL, FIELD_IN | FIELD_OUT, .object = &security_record),
	ROW(OBJECT, limits, NULL, FIELD_IN | FIELD_OUT, .object = &limits_record),
	ROW(OBJECT, network, NULL, FIELD_IN | FIELD_OUT, .object = &network_record),
	ROW(PAIRS, env, "variables of every exec", SHOWN_OPTIONAL, .most = WORKSPACE_ENV_MAX,
		.pattern = WORKSPACE_VARIABLE_PATTERN, .check_pair = workspace_check_variable),
	ROW(PAIRS, labels, NULL, SHOWN_OPTIONAL, .most = WORKSPACE_LABELS_MAX,
		.pattern = WORKSPACE_LABEL_PATTERN, .check_pair = workspace_check_template_label),
	ROW(PAIRS, files, "path below the workspace: text", SHOWN_OPTIONAL,
		.most = TEMPLATE_FILES_MAX, .check_pair = template_check_file),
	ROW(CHOICE, view, "where its files are seen: at /workspace, or at / (root)", SHOWN_OPTIONAL,
		.choices = views),
	ROW(TEXTS, attach, "NAME:PATH[:ro]: shared trees", SHOWN_OPTIONAL,
		.most = WORKSPACE_MOUNTS_MAX, .check = check_attach),
	{ "ttl", FIELD_DURATION, AT(ttl_ms), "workspaces are removed after this time",
		SHOWN_OPTIONAL, .least = 1, .most = WORKSPACE_TIME_MOST },
	{ "idle_timeout", FIELD_DURATION, AT(idle_timeout_ms),
		"workspaces are suspended after this time without activity", SHOWN_OPTIONAL,
		.least = 1, .most = WORKSPACE_TIME_MOST },
	ROW(JSON, settings,
		"the rules of a settings.json; `carrel template add` also takes the name of a file",
		SHOWN_OPTIONAL, .most = WORKSPACE_POLICY_BYTES_MAX,
		.check = workspace_check_settings),
	ROW(JSON, sources, "a sources.json; `carrel template add` also takes the name of a file",
		SHOWN_OPTIONAL, .most = WORKSPACE_POLICY_BYTES_MAX,
		.check = workspace_check_sources),
	{ "sha256", FIELD_TEXT, SHOWN(sha256), "of all that a workspace is made of", FIELD_OUT },
	{ "warnings", FIELD_TEXTS, SHOWN(warnings), "keys that have no effect in this version",
		FIELD_OUT },
	{ "yaml", FIELD_TEXT, SHOWN(yaml), "as it was added; values above are resolved",
		FIELD_OUT | FIELD_OPTIONAL },
};
const struct record template_record = { "Template",
	"What it extends is resolved: the values are those that a workspace gets.",
	RECORD_ROWS(rows), .wanted = "TemplateWanted" };

const char *template_runtime(const struct template *t)
{
	for (const struct field_choice *c = runtimes; c->name; c++)
		if (c->value == t->nodejs.runtime)
			return c->name;
	return NULL;
}

void template_print(struct json *j, const char *key, const struct template_shown *shown)
{
	record_print(j, key, &template_record, shown);
}

int template_read(const struct json_value *value, struct arena *arena, struct template *out,
	struct error *err)
{
	struct template t = { 0 };
	size_t bytes = 0;
	if (value->kind == JSON_NULL)
		return fail(err, ERR_INVALID, "the template is empty");
	if (record_read(&template_record, value, arena, &t, err))
		return -1;
	for (size_t i = 0; i < t.files.count; i++)
		bytes += strlen(t.files.items[i].value);
	if (bytes > TEMPLATE_FILES_BYTES_MAX)
		return fail(err, ERR_INVALID, "files: %zu bytes, %d is the maximum", bytes,
			TEMPLATE_FILES_BYTES_MAX);
	if (t.extends && !strcmp(t.extends, t.name))
		return fail(err, ERR_INVALID, "extends: template '%s' extends itself", t.name);
	*out = t;
	return 0;
}

/* ---- against what a sandbox is ---- */

static bool is_beneath_one(const char *path, const char *const *list)
{
	for (; *list; list++)
		if (path_is_beneath(path, *list))
			return true;
	return false;
}

/* In view root everything that the sandbox doesn't have of its own. */
static bool is_writable(const char *path, bool is_root, const char *const *writable)
{
	static const char *const own[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
		"/libx32", "/etc", "/proc", "/sys", "/dev", "/run", "/var", NULL };
	return is_beneath_one(path, writable) || (is_root && !is_beneath_one(path, own));
}

static int check_security(
	const struct template *t, struct arena *arena, text_list *warnings, struct error *err)
{
	const struct template_security *s = &t->security;
	bool is_root = t->view == 1 + VIEW_ROOT;
	static const char *const readonly[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
		"/libx32", "/etc", NULL };
	static const char *const writable[] = { "/workspace", "/tmp", "/.cache", "/env", "/dev/shm",
		"/var/tmp", NULL };
	for (size_t i = 0; i < s->readonly.count; i++)
		if (!is_beneath_one(s->readonly.items[i], readonly))
			return fail_hint(err, ERR_INVALID,
				"/usr, /bin, /sbin, /lib* and /etc are read-only",
				"security.filesystem_readonly: '%s' can't be made read-only",
				s->readonly.items[i]);
	for (size_t i = 0; i < s->writable.count; i++) {
		bool is_top = !strcmp(s->writable.items[i], "/");
		if (is_top && !is_root)
			vec_push(arena, warnings,
				"security.filesystem_writable: '/' is the workspace, which is "
				"seen at /workspace without `view: root`");
		else if (!is_top && !is_writable(s->writable.items[i], is_root, writable))
			return fail_hint(err, ERR_INVALID,
				"/workspace, /tmp, /.cache and /env are writable",
				"security.filesystem_writable: '%s' can't be made writable",
				s->writable.items[i]);
	}
	return 0;
}

int template_check(
	const struct template *t, struct arena *arena, text_list *warnings, struct error *err)
{
	text_list found = { 0 };
	struct limits limits = t->limits.limits;
	if (check_security(t, arena, &found, err))
		return -1;
	if (limits_fill(&limits, err))
		return error_context(err, "limits");
	struct workspace_network network = { 0 };
	template_network(t, arena, &network);
	if (workspace_network_settle(&network, err))
		return error_context(err, "network");
	vec_push(arena, &found, NULL);
	found.count--;
	*warnings = found;
	return 0;
}

void template_hash(const struct template *t, char out[2 * SHA256_LEN + 1])
{
	struct template_shown shown = { .model = *t };
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	shown.model.description = shown.model.version = shown.model.extends = NULL;
	template_print(&j, NULL, &shown);
	json_finish(&j);
	sha256_of(text.data, text.len, out);
}
