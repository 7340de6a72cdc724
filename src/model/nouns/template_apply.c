/* Templates put together, and put into a workspace. */
#include "base/str.h"
#include "format/packages/pep508.h"
#include "format/packages/requirements.h"
#include "format/text/json.h"
#include "model/nouns/template.h"

/* ---- extends ---- */

static const char *package_of(struct arena *arena, const char *requirement)
{
	struct pep508 parsed;
	const char *reason;
	return pep508_parse(str_from(requirement), &parsed, &reason)
		       ? requirement_normalize_name(arena, parsed.name)
		       : requirement;
}

typedef bool same_fn(const char *a, const char *b, struct arena *arena);

static bool is_same_package(const char *a, const char *b, struct arena *arena)
{
	return !strcmp(package_of(arena, a), package_of(arena, b));
}

/* Of "NAME:PATH[:ro]". */
static bool is_same_path(const char *a, const char *b, struct arena *arena)
{
	const char *path = strchr(a, '/'), *other = strchr(b, '/');
	return path && other && strcspn(path, ":") == strcspn(other, ":") &&
	       !strncmp(path, other, strcspn(path, ":"));
}

static bool is_same_text(const char *a, const char *b, struct arena *arena)
{
	return !strcmp(a, b);
}

/* Those of `base` that aren't about the same thing as one of `more`, then those of `more`. */
static text_list merge_texts(
	const text_list *base, const text_list *more, same_fn *is_same, struct arena *arena)
{
	text_list merged = { 0 };
	for (size_t i = 0; i < base->count; i++) {
		bool is_replaced = false;
		for (size_t k = 0; k < more->count && !is_replaced; k++)
			is_replaced = is_same(base->items[i], more->items[k], arena);
		if (!is_replaced)
			vec_push(arena, &merged, base->items[i]);
	}
	for (size_t i = 0; i < more->count; i++)
		vec_push(arena, &merged, more->items[i]);
	vec_push(arena, &merged, NULL);
	merged.count--;
	return merged;
}

static pair_list merge_pairs(const pair_list *base, const pair_list *more, struct arena *arena)
{
	pair_list merged = { 0 };
	for (size_t i = 0; i < base->count; i++) {
		bool is_replaced = false;
		for (size_t k = 0; k < more->count && !is_replaced; k++)
			is_replaced = !strcmp(base->items[i].key, more->items[k].key);
		if (!is_replaced)
			vec_push(arena, &merged, base->items[i]);
	}
	for (size_t i = 0; i < more->count; i++)
		vec_push(arena, &merged, more->items[i]);
	return merged;
}

static void inherit_limits(struct limits *limits, const struct limits *base)
{
	for (size_t i = 0; i < limit_count; i++)
		if (!limit_get(limits, &limit_rows[i]))
			*limit_at(limits, &limit_rows[i]) = limit_get(base, &limit_rows[i]);
}

void template_extend(struct template *child, const struct template *base, struct arena *arena)
{
#define INHERIT(member)                                                                            \
	do {                                                                                       \
		if (!child->member)                                                                \
			child->member = base->member;                                              \
	} while (0)
	INHERIT(python.version);
	INHERIT(nodejs.version);
	INHERIT(nodejs.runtime);
	INHERIT(programs.shell);
	INHERIT(programs.editor);
	INHERIT(network.mode);
	INHERIT(view);
	INHERIT(ttl_ms);
	INHERIT(idle_timeout_ms);
	INHERIT(settings);
	INHERIT(sources);
#undef INHERIT
	struct template_security *security = &child->security;
	if (!security->has_network_enabled) {
		security->has_network_enabled = base->security.has_network_enabled;
		security->network_enabled = base->security.network_enabled;
	}
	if (!security->readonly.count)
		security->readonly = base->security.readonly;
	if (!security->writable.count)
		security->writable = base->security.writable;
	inherit_limits(&child->limits.limits, &base->limits.limits);
	if (!child->network.mode || strcmp(child->network.mode, "none") != 0) {
		child->network.allow = merge_texts(
			&base->network.allow, &child->network.allow, is_same_text, arena);
		child->network.deny =
			merge_texts(&base->network.deny, &child->network.deny, is_same_text, arena);
	}
	child->python.dependencies = merge_texts(
		&base->python.dependencies, &child->python.dependencies, is_same_package, arena);
	child->nodejs.dependencies =
		merge_pairs(&base->nodejs.dependencies, &child->nodejs.dependencies, arena);
	child->env = merge_pairs(&base->env, &child->env, arena);
	child->labels = merge_pairs(&base->labels, &child->labels, arena);
	child->files = merge_pairs(&base->files, &child->files, arena);
	child->attach = merge_texts(&base->attach, &child->attach, is_same_path, arena);
}

/* ---- a workspace ---- */

/* "axios" of "axios@^1.6.0", "@types/node" of "@types/node@20". */
static bool is_of_package(const char *spec, const char *name)
{
	size_t len = strlen(name);
	return !strncmp(spec, name, len) && (!spec[len] || spec[len] == '@');
}

static void apply_node(const struct template *t, struct arena *arena, struct workspace_node *wanted)
{
	const struct template_node *node = &t->nodejs;
	text_list packages = { 0 };
	if (!wanted->version)
		wanted->version = node->version;
	if (wanted->package_json) /* says all that is wanted */
		return;
	for (size_t i = 0; i < node->dependencies.count; i++) {
		const struct text_pair *pair = &node->dependencies.items[i];
		bool is_replaced = false;
		for (size_t k = 0; k < wanted->packages.count; k++)
			is_replaced |= is_of_package(wanted->packages.items[k], pair->key);
		if (!is_replaced)
			vec_push(arena, &packages,
				arena_printf(arena, "%s@%s", pair->key, pair->value));
	}
	for (size_t i = 0; i < wanted->packages.count; i++)
		vec_push(arena, &packages, wanted->packages.items[i]);
	vec_push(arena, &packages, NULL);
	packages.count--;
	wanted->packages = packages;
	if (packages.count && node->runtime && !wanted->options.count)
		vec_push(arena, &wanted->options,
			arena_printf(arena, "--node-runtime=%s", template_runtime(t)));
}

void template_network(
	const struct template *t, struct arena *arena, struct workspace_network *network)
{
	const struct template_security *security = &t->security;
	const char *mode = t->network.mode;
	if (!mode && security->has_network_enabled)
		mode = network_mode_name(security->network_enabled ? NETWORK_OPEN : NETWORK_NONE);
	/* Who allows a host wants a network. */
	bool is_none = mode && strcmp(mode, network_mode_name(NETWORK_NONE)) == 0;
	if (!network->mode && !(is_none && network->allow.count))
		network->mode = mode;
	if (network->mode && workspace_network_mode(network) == NETWORK_NONE)
		return;
	network->allow = merge_texts(&t->network.allow, &network->allow, is_same_text, arena);
	network->deny = merge_texts(&t->network.deny, &network->deny, is_same_text, arena);
}

void template_apply(const struct template *t, struct arena *arena, struct workspace *wanted)
{
	pair_list env = { 0 };
	if (t->programs.shell)
		vec_push(arena, &env, (struct text_pair){ "SHELL", t->programs.shell });
	if (t->programs.editor)
		vec_push(arena, &env, (struct text_pair){ "EDITOR", t->programs.editor });
	env = merge_pairs(&env, &t->env, arena);
	wanted->env = merge_pairs(&env, &wanted->env, arena);
	wanted->labels = merge_pairs(&t->labels, &wanted->labels, arena);
	inherit_limits(&wanted->limits, &t->limits.limits);
	template_network(t, arena, &wanted->network);
	wanted->attach = merge_texts(&t->attach, &wanted->attach, is_same_path, arena);
	if (!wanted->has_view && t->view)
		wanted->view = (enum workspace_view)(t->view - 1);
	/* Beside its own: both hold. */
	wanted->policy.template_settings = t->settings;
	wanted->policy.template_sources = t->sources;
	if (!wanted->ttl_ms)
		wanted->ttl_ms = t->ttl_ms;
	if (!wanted->idle_timeout_ms)
		wanted->idle_timeout_ms = t->idle_timeout_ms;
	if (!wanted->environments.of[ENV_KIND_NODE])
		apply_node(t, arena, &wanted->node);
	if (wanted->environments.of[ENV_KIND_PYTHON])
		return;
	if (!wanted->python)
		wanted->python = t->python.version;
	/* A file of requirements says all that is wanted; packages are wanted besides. */
	if (!wanted->requirements)
		wanted->packages = merge_texts(
			&t->python.dependencies, &wanted->packages, is_same_package, arena);
}

/* ---- its files ---- */

static bool has_file(const pair_list *files, const char *path)
{
	for (size_t i = 0; i < files->count; i++)
		if (!strcmp(files->items[i].key, path))
			return true;
	return false;
}

/* JSON's escapes are those of TOML's basic strings. */
static const char *print_pyproject(const struct template *t, struct arena *arena)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	buf_text(&out, "[project]\nname = \"workspace\"\nversion = \"0.1.0\"\n");
	if (t->python.version)
		buf_printf(&out, "requires-python = \">=%s\"\n", t->python.version);
	buf_text(&out, "dependencies = [");
	for (size_t i = 0; i < t->python.dependencies.count; i++) {
		buf_text(&out, "\n    ");
		buf_quoted(&out, str_from(t->python.dependencies.items[i]));
		buf_char(&out, ',');
	}
	buf_text(&out, t->python.dependencies.count ? "\n]\n" : "]\n");
	return arena_bytes(arena, out.data, out.len);
}

static const char *print_package_json(const struct template *t, struct arena *arena)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&out, true);
	json_object(&j, NULL);
	json_text(&j, "name", "workspace");
	json_text(&j, "type", "module");
	json_object(&j, "dependencies");
	for (size_t i = 0; i < t->nodejs.dependencies.count; i++)
		json_text(&j, t->nodejs.dependencies.items[i].key,
			t->nodejs.dependencies.items[i].value);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
	buf_char(&out, '\n');
	return arena_bytes(arena, out.data, out.len);
}

static const char *print_marker(const struct template *t, struct arena *arena)
{
	char hash[2 * SHA256_LEN + 1];
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&out, false);
	template_hash(t, hash);
	json_object(&j, NULL);
	json_text(&j, "template", t->name);
	json_text(&j, "sha256", hash);
	json_end(&j);
	json_finish(&j);
	buf_char(&out, '\n');
	return arena_bytes(arena, out.data, out.len);
}

static void add_file(pair_list *files, struct arena *arena, const char *path, const char *text)
{
	if (!has_file(files, path))
		vec_push(arena, files, (struct text_pair){ path, text });
}

void template_files(const struct template *t, struct arena *arena, pair_list *files)
{
	pair_list list = { 0 };
	for (size_t i = 0; i < t->files.count; i++)
		vec_push(arena, &list, t->files.items[i]);
	if (t->python.version || t->python.dependencies.count)
		add_file(&list, arena, "pyproject.toml", print_pyproject(t, arena));
	if (t->nodejs.version || t->nodejs.runtime || t->nodejs.dependencies.count)
		add_file(&list, arena, "package.json", print_package_json(t, arena));
	add_file(&list, arena, ".gitignore",
		".venv/\nnode_modules/\n.cache/\n__pycache__/\n*.pyc\n" TEMPLATE_MARKER "\n");
	add_file(&list, arena, TEMPLATE_MARKER, print_marker(t, arena));
	*files = list;
}
