#include "base/clock.h"
#include "base/str.h"
#include "model/nouns/template.h"
#include "model/nouns/workspace.h"
#include "model/records/rows.h"

#define DAY_MS 86400000u
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

const char *const workspace_state_names[WORKSPACE_STATE_COUNT + 1] = {
	[WORKSPACE_CREATING] = "creating",
	[WORKSPACE_READY] = "ready",
	[WORKSPACE_RUNNING] = "running",
	[WORKSPACE_SUSPENDED] = "suspended",
	[WORKSPACE_FAILED] = "failed",
	[WORKSPACE_DELETING] = "deleting",
};

const char *const workspace_view_names[VIEW_COUNT + 1] = {
	[VIEW_WORKSPACE] = "workspace",
	[VIEW_ROOT] = "root",
};

enum workspace_view workspace_view_find(const char *name)
{
	for (int i = 0; name && i < VIEW_COUNT; i++)
		if (!strcmp(workspace_view_names[i], name))
			return (enum workspace_view)i;
	return VIEW_WORKSPACE;
}

/* -- names -- */

int workspace_check_name(const char *name, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	static const char hint[] = "1 to 64 of a-z, 0-9 and -, not - first; ids with other "
				   "characters go in the label " WORKSPACE_CONTEXT_LABEL;
	size_t len = strlen(name);
	if (len == 0)
		return fail_hint(err, ERR_INVALID, hint, "a name may not be empty");
	if (len > WORKSPACE_NAME_MAX)
		return fail_hint(err, ERR_INVALID, hint, "the name '%.64s...' is too long", name);
	if (strspn(name, allowed) != len)
		return fail_hint(err, ERR_INVALID, hint, "invalid name '%s'", name);
	if (name[0] == '-')
		return fail_hint(err, ERR_INVALID, hint,
			"invalid name '%s': it begins with '-', as options do", name);
	if (id_is_valid(name))
		return fail(err, ERR_INVALID, "invalid name '%s': it has the form of an id", name);
	return 0;
}

void workspace_make_name(char out[WORKSPACE_NAME_MAX + 1])
{
	/* 32 each: one character of an id picks a word. */
	static const char first[32][8] = { "amber", "bold", "brave", "bright", "brisk", "calm",
		"clear", "clever", "cosy", "deft", "eager", "fair", "fond", "gentle", "glad",
		"golden", "hardy", "keen", "kind", "lively", "lucid", "mellow", "merry", "noble",
		"quick", "quiet", "ready", "spry", "sunny", "tidy", "vivid", "warm" };
	static const char second[32][8] = { "alcove", "atlas", "bench", "book", "candle", "chair",
		"codex", "desk", "drawer", "easel", "essay", "folio", "globe", "index", "ink",
		"ladder", "lamp", "ledger", "letter", "map", "margin", "note", "page", "paper",
		"pencil", "quill", "reader", "ribbon", "scroll", "shelf", "stool", "volume" };
	char random[ID_LEN + 1];
	unsigned digits = 0, bits[5];
	id_make(random);
	for (size_t i = 0; i < COUNT(bits); i++)
		bits[i] = random[i] <= '9' ? (unsigned)(random[i] - '0')
					   : (unsigned)(random[i] - 'a') + 10;
	for (size_t i = 2; i < COUNT(bits); i++)
		digits = digits << 5 | bits[i];
	str_format(out, WORKSPACE_NAME_MAX + 1, "%s-%s-%04u", first[bits[0]], second[bits[1]],
		digits % 10000);
}

struct workspace_policy workspace_copy_policy(
	struct arena *arena, const struct workspace_policy *from)
{
	return (struct workspace_policy){ .settings = arena_text(arena, from->settings),
		.sources = arena_text(arena, from->sources),
		.template_settings = arena_text(arena, from->template_settings),
		.template_sources = arena_text(arena, from->template_sources),
		.rules = text_list_copy(arena, &from->rules) };
}

/* -- shown -- */

/* The rows of what is shown are about this one; all others about its first member. */
struct workspace_shown {
	struct workspace model;
	enum workspace_state state;
	struct limits_shown limits;
	const char *isolation;
	text_list layers, uses;
	bool is_warm;
	pair_list labels, env;
};

int workspace_check_variable(const char *key, const char *value, struct error *err)
{
	return !key[0] || strchr(key, '=')
		       ? fail(err, ERR_INVALID, "'%s' is not the name of a variable", key)
		       : 0;
}

#define AT(member) offsetof(struct workspace, member)
#define SHOWN(member) offsetof(struct workspace_shown, member)

static const struct field python_rows[] = {
	{ "version", FIELD_TEXT, AT(python), "such as 3.12", .least = 1, .most = 4096 },
	ROW(TEXT, requirements, "the text of a requirements file", .most = 1 << 20),
	ROW(TEXTS, packages, "such as requests==2.32.3", .most = 500),
	{ "constraints", FIELD_TEXTS, AT(build_options),
		"lines of a constraints file, such as urllib3<2", .most = 500,
		.word = "--constraint-line=" },
	{ "torch_backend", FIELD_TEXT, AT(build_options),
		"PyTorch for cpu, cu126, ... or auto, as uv names them", .least = 1, .most = 32,
		.word = "--torch-backend=" },
	{ "pre", FIELD_BOOLEAN, AT(build_options), "allow pre-releases", .word = "--pre" },
	{ "allow_build", FIELD_BOOLEAN, AT(build_options),
		"build packages that have no wheel, in a sandbox without network",
		.word = "--allow-build" },
};
static const struct record python_record = { "Python",
	"The packages of a Python environment, which is built if it doesn't exist.",
	RECORD_ROWS(python_rows), FIELD_IN };

#define NODE(member) AT(node.member)
static const struct field node_rows[] = {
	{ "version", FIELD_TEXT, NODE(version), "such as 22", .least = 1, .most = 32 },
	{ "packages", FIELD_TEXTS, NODE(packages), "such as axios or typescript@5", .most = 500 },
	{ "package_json", FIELD_TEXT, NODE(package_json), "the text of a package.json",
		.most = 1 << 20 },
	{ "lock", FIELD_TEXT, NODE(lock), "the text of its bun.lock or package-lock.json",
		.most = 4 << 20 },
	{ "runtime", FIELD_TEXT, NODE(options), "what installs the packages: bun or npm",
		.least = 1, .most = 8, .word = "--node-runtime=" },
	{ "allow_scripts", FIELD_BOOLEAN, NODE(options),
		"run install scripts of packages, in a sandbox without a network; "
		"environments.allow_scripts of config.yaml must allow it",
		.word = WORKSPACE_ALLOW_SCRIPTS },
};
static const struct record node_record = { "Node",
	"The packages of a Node environment, which is built if it doesn't exist.",
	RECORD_ROWS(node_rows), FIELD_IN };

#define OWNER(member)                                                                              \
	{                                                                                          \
		"owner_" #member, FIELD_TEXT, AT(owner.member), NULL, FIELD_KEPT | FIELD_LATER     \
	}
#define SETTINGS_HELP                                                                              \
	"what commands and files may be used: a settings.json, whose rules hold besides those of " \
	"the operator and the template"
static const struct field workspace_rows[] = {
	{ "ttl", FIELD_DURATION, AT(ttl_ms),
		"the workspace is removed after this time, a context of an agent when it was not "
		"used for so long",
		FIELD_IN | FIELD_KEPT, .least = 1, .most = WORKSPACE_TIME_MOST },
	ROW(ID, id, NULL, FIELD_OUT | FIELD_COLUMN),
	ROW(TEXT, name, "generated when not given", FIELD_IN | FIELD_OUT | FIELD_COLUMN,
		.pattern = "^[a-z0-9][a-z0-9-]{0,63}$", .check = workspace_check_name,
		.head = "NAME", .column = 1),
	{ "state", FIELD_CHOICE, SHOWN(state),
		"ready: usable, and nothing runs; running: an exec runs, also in the background, "
		"or a process that an earlier exec left behind",
		FIELD_OUT, .names = workspace_state_names, .head = "STATE", .column = 2 },
	ROW(CHOICE, state, NULL, FIELD_COLUMN, .names = workspace_state_names),
	ROW(TEXT, template, "its values hold where none are given",
		FIELD_USES | FIELD_NULLABLE | FIELD_LATER, .pattern = "^[a-z0-9][a-z0-9-]{0,63}$",
		.check = template_check_name),
	ROW(TEXTS, warnings,
		"keys of its template that have no effect in this version, or what of an archive "
		"was not restored",
		FIELD_OUT | FIELD_KEPT | FIELD_LATER | FIELD_OPTIONAL),
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "created_ms", .head = "AGE", .column = 4 },
	{ "last_used_at", FIELD_TIME, AT(last_used_ms), NULL,
		FIELD_OUT | FIELD_NULLABLE | FIELD_COLUMN, .kept = "last_used_ms", .head = "USED",
		.column = 5 },
	{ "expires_at", FIELD_TIME, AT(expires_ms), NULL, FIELD_OUT | FIELD_NULLABLE | FIELD_COLUMN,
		.kept = "expires_ms" },
	{ "idle_timeout", FIELD_DURATION, AT(idle_timeout_ms),
		"the workspace is suspended after this time without activity",
		FIELD_USES | FIELD_NULLABLE, .least = 1, .most = WORKSPACE_TIME_MOST },
	ROW(PAIRS, labels,
		"context_id also names the workspace, and, as agent and namespace, stays as it is; "
		"those that begin with carrel. are of services",
		FIELD_IN | FIELD_KEPT, .most = WORKSPACE_LABELS_MAX,
		.pattern = WORKSPACE_LABEL_PATTERN, .check_pair = workspace_check_label),
	{ "labels", FIELD_PAIRS, SHOWN(labels),
		"also what services and core say of it: carrel.service, context_id, agent, ...",
		FIELD_OUT, .head = "LABELS", .column = 8 },
	OWNER(service),
	OWNER(agent),
	OWNER(namespace),
	OWNER(context_id),
	OWNER(package_id),
	OWNER(task),
	OWNER(deployment),
	OWNER(role),
	OWNER(case_id),
	OWNER(tool),
	OWNER(tool_version),
	{ "environment", FIELD_TEXT, AT(environments.of[ENV_KIND_PYTHON]),
		"the name of an existing environment", FIELD_USES | FIELD_NULLABLE, .least = 1,
		.most = 160, .head = "ENVIRONMENT", .column = 7 },
	{ "python", FIELD_SHORT, 0, "a version, or the packages of the environment", FIELD_IN,
		.object = &python_record },
	ROW(TEXT, python, NULL, FIELD_KEPT),
	ROW(TEXT, requirements, NULL, FIELD_KEPT),
	ROW(TEXTS, packages, NULL, FIELD_KEPT),
	ROW(TEXTS, build_options, NULL, FIELD_KEPT | FIELD_LATER),
	{ "node_environment", FIELD_TEXT, AT(environments.of[ENV_KIND_NODE]), "that of Node",
		FIELD_OUT | FIELD_KEPT | FIELD_LATER | FIELD_OPTIONAL },
	{ "node", FIELD_SHORT, 0, "a version, or the packages of an environment of Node", FIELD_IN,
		.object = &node_record },
	{ "node_version", FIELD_TEXT, NODE(version), NULL, FIELD_KEPT | FIELD_LATER },
	{ "node_package_json", FIELD_TEXT, NODE(package_json), NULL, FIELD_KEPT | FIELD_LATER },
	{ "node_lock", FIELD_TEXT, NODE(lock), NULL, FIELD_KEPT | FIELD_LATER },
	{ "node_packages", FIELD_TEXTS, NODE(packages), NULL, FIELD_KEPT | FIELD_LATER },
	{ "node_options", FIELD_TEXTS, NODE(options), NULL, FIELD_KEPT | FIELD_LATER },
	ROW(TEXTS, layers, NULL, FIELD_KEPT | FIELD_LATER),
	ROW(TEXT, base, NULL, FIELD_KEPT | FIELD_LATER),
	{ "environment_before", FIELD_TEXT, AT(unsettled[ENV_KIND_PYTHON].before), NULL,
		FIELD_KEPT | FIELD_LATER },
	{ "environment_forced", FIELD_TEXTS, AT(unsettled[ENV_KIND_PYTHON].forced), NULL,
		FIELD_KEPT | FIELD_LATER },
	{ "node_before", FIELD_TEXT, AT(unsettled[ENV_KIND_NODE].before), NULL,
		FIELD_KEPT | FIELD_LATER },
	{ "node_forced", FIELD_TEXTS, AT(unsettled[ENV_KIND_NODE].forced), NULL,
		FIELD_KEPT | FIELD_LATER },
	ROW(PAIRS, env, "variables of every exec", FIELD_IN | FIELD_KEPT, .most = WORKSPACE_ENV_MAX,
		.pattern = WORKSPACE_VARIABLE_PATTERN, .check_pair = workspace_check_variable),
	{ "env", FIELD_PAIRS, SHOWN(env),
		"variables of every exec; null: set, but hidden, since its name or value looks "
		"like "
		"a secret",
		FIELD_OUT | FIELD_NULLABLE },
	ROW(OBJECT, limits, NULL, FIELD_IN | FIELD_KEPT, .object = &limits_record),
	{ "limits", FIELD_OBJECT, SHOWN(limits), NULL, FIELD_OUT, .object = &limits_record },
	ROW(OBJECT, network, NULL, FIELD_IN | FIELD_OUT, .object = &workspace_network_record),
	{ "network_mode", FIELD_TEXT, AT(network.mode), NULL, FIELD_KEPT | FIELD_LATER },
	{ "network_allow", FIELD_TEXTS, AT(network.allow), NULL, FIELD_KEPT | FIELD_LATER },
	{ "network_deny", FIELD_TEXTS, AT(network.deny), NULL, FIELD_KEPT | FIELD_LATER },
	{ "context", FIELD_BOOLEAN, AT(is_context),
		"with scripts/ data/ repos/ output/, .venv and .context.json",
		FIELD_IN | FIELD_KEPT, .kept = "is_context" },
	{ "disk_usage", FIELD_SIZE, AT(disk_usage_bytes), NULL, FIELD_OUT | FIELD_KEPT,
		.head = "DISK", .column = 6 },
	{ "disk_limit_mechanism", FIELD_TEXT, AT(disk_mechanism), NULL,
		FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE, .kept = "disk_mechanism" },
	{ "isolation", FIELD_TEXT, SHOWN(isolation), NULL, FIELD_OUT },
	{ "layers_active", FIELD_TEXTS, SHOWN(layers), NULL, FIELD_OUT },
	{ "warm", FIELD_BOOLEAN, SHOWN(is_warm), "a sandbox is ready: the next exec starts at once",
		FIELD_OUT, .head = "WARM", .column = 3 },
	{ "in_use", FIELD_TEXTS, SHOWN(uses),
		"what is under way with it, besides execs: a snapshot of it is being made, ...",
		FIELD_OUT | FIELD_OPTIONAL },
	ROW(BOOLEAN, ptrace, "its processes may trace each other: gdb, strace, LeakSanitizer",
		FIELD_USES | FIELD_LATER),
	ROW(CHOICE, view, "where its files are seen inside: at /workspace, or at / (root)",
		FIELD_USES | FIELD_LATER, .names = workspace_view_names,
		.has = FIELD_HAS(struct workspace, has_view)),
	ROW(TEXT, dir,
		"directory of the host that is /workspace; needs a descriptor, which `carrel "
		"create --dir` passes",
		FIELD_USES | FIELD_LATER | FIELD_OPTIONAL, .least = 1, .most = 4095),
	ROW(TEXTS, mounts,
		"SOURCE:TARGET[:ro] of the host; needs descriptors, which `carrel create -v` "
		"passes",
		FIELD_USES | FIELD_LATER | FIELD_OPTIONAL, .most = WORKSPACE_MOUNTS_MAX),
	ROW(TEXTS, attach, "NAME:PATH[:ro]: shared trees",
		FIELD_USES | FIELD_LATER | FIELD_OPTIONAL, .most = WORKSPACE_MOUNTS_MAX),
	ROW(TEXT, snapshot, "the snapshot that its state is based on",
		FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE | FIELD_LATER),
	ROW(INTEGER, snapshot_version, NULL, FIELD_KEPT | FIELD_LATER),
	ROW(TEXT, error, NULL, FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE),
	ROW(TEXT, from,
		"a snapshot (its id) or a workspace: the new one begins with its files, "
		"environment, limits, labels and variables",
		FIELD_IN, .least = 1, .most = WORKSPACE_LABEL_VALUE_MAX),
	{ "settings", FIELD_JSON, AT(policy.settings), SETTINGS_HELP,
		FIELD_USES | FIELD_LATER | FIELD_OPTIONAL, .most = WORKSPACE_POLICY_BYTES_MAX,
		.check = workspace_check_settings },
	{ "template_settings", FIELD_JSON, AT(policy.template_settings),
		"the settings of its template, which hold as well",
		FIELD_OUT | FIELD_KEPT | FIELD_LATER | FIELD_OPTIONAL },
	{ "rules", FIELD_TEXTS, AT(policy.rules),
		"rules that reviewers have added by allowing something from then on",
		FIELD_OUT | FIELD_KEPT | FIELD_LATER | FIELD_OPTIONAL },
	{ "sources", FIELD_JSON, AT(policy.sources),
		"what may be installed, reached and run: a sources.json, which holds besides those "
		"of the operator and the template",
		FIELD_USES | FIELD_LATER | FIELD_OPTIONAL, .most = WORKSPACE_POLICY_BYTES_MAX,
		.check = workspace_check_sources },
	{ "template_sources", FIELD_JSON, AT(policy.template_sources),
		"the sources of its template, which hold as well",
		FIELD_OUT | FIELD_KEPT | FIELD_LATER | FIELD_OPTIONAL },
};
const struct record workspace_record = { "Workspace", NULL, RECORD_ROWS(workspace_rows),
	.wanted = "WorkspaceWanted" };

#define NETWORK(member) offsetof(struct workspace_network_change, member)
#define NETWORK_HAS(member) FIELD_HAS(struct workspace_network_change, member)
static const struct field network_change_rows[] = {
	{ "mode", FIELD_TEXT, NETWORK(mode), "none, list or open", FIELD_STRICT,
		.pattern = "^(none|list|open)$", .check = workspace_check_mode,
		.has = NETWORK_HAS(has_mode) },
	{ "allow", FIELD_TEXTS, NETWORK(allow), "in place of what is allowed now", FIELD_STRICT,
		.most = WORKSPACE_HOSTS_MAX, .check = workspace_check_allow,
		.has = NETWORK_HAS(has_allow) },
	{ "deny", FIELD_TEXTS, NETWORK(deny), "in place of what is denied now", FIELD_STRICT,
		.most = WORKSPACE_HOSTS_MAX, .check = workspace_check_deny,
		.has = NETWORK_HAS(has_deny) },
};
static const struct record network_change_record = { "NetworkChange",
	"What its sandboxes may reach. Fields that are not given stay unchanged.",
	RECORD_ROWS(network_change_rows), FIELD_IN };

#define CHANGE(member) offsetof(struct workspace_change, member)
#define HAS(member) FIELD_HAS(struct workspace_change, member)
static const struct field change_rows[] = {
	{ "labels", FIELD_PAIRS, CHANGE(labels),
		"labels to set; null removes a label; context_id, agent and namespace stay",
		FIELD_NULLABLE, .most = 2 * WORKSPACE_LABELS_MAX, .has = HAS(has_labels),
		.pattern = WORKSPACE_LABEL_PATTERN, .check_pair = workspace_check_label },
	{ "env", FIELD_PAIRS, CHANGE(env),
		"variables to set for new execs; null removes a variable", FIELD_NULLABLE,
		.most = 2 * WORKSPACE_ENV_MAX, .has = HAS(has_env),
		.pattern = WORKSPACE_VARIABLE_PATTERN, .check_pair = workspace_check_variable },
	{ "limits", FIELD_OBJECT, CHANGE(limits), "only while no exec runs; null: unchanged",
		.object = &limits_record, .has = HAS(has_limits) },
	{ "network", FIELD_OBJECT, CHANGE(network),
		"holds for new connections; from none only while no exec runs",
		.object = &network_change_record, .has = HAS(has_network) },
	{ "ttl", FIELD_DURATION, CHANGE(ttl_ms), "from now; null: none", .least = 1,
		.most = WORKSPACE_TIME_MOST, .has = HAS(has_ttl) },
	{ "idle_timeout", FIELD_DURATION, CHANGE(idle_timeout_ms), "null: none", .least = 1,
		.most = WORKSPACE_TIME_MOST, .has = HAS(has_idle_timeout) },
	{ "settings", FIELD_JSON, CHANGE(settings),
		"a settings.json in place of the one it has; null: none; only while no exec runs",
		.most = WORKSPACE_POLICY_BYTES_MAX, .has = HAS(has_settings),
		.check = workspace_check_settings },
	{ "sources", FIELD_JSON, CHANGE(sources),
		"a sources.json in place of the one it has; null: none; only while no exec runs",
		.most = WORKSPACE_POLICY_BYTES_MAX, .has = HAS(has_sources),
		.check = workspace_check_sources },
};
const struct record workspace_change_record = { "WorkspaceChange",
	"Fields that are not given stay unchanged.", RECORD_ROWS(change_rows), FIELD_IN };

bool workspace_variable_is_secret(const char *key, const char *value)
{
	static const char *const words[] = { "TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH",
		"COOKIE", "PRIVATE" };
	const char *authority = strstr(value, "://"),
		   *at = authority ? strchr(authority + 3, '@') : NULL;
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcasestr(key, words[i]))
			return true;
	/* A URL with a login. */
	return at && (size_t)(at - authority - 3) < strcspn(authority + 3, "/?# ");
}

pair_list workspace_shown_env(struct arena *arena, const pair_list *env)
{
	pair_list shown = { 0 };
	for (size_t i = 0; i < env->count; i++) {
		struct text_pair pair = env->items[i];
		bool is_last = true;
		for (size_t k = i + 1; k < env->count; k++)
			is_last &= strcmp(env->items[k].key, pair.key) != 0;
		if (workspace_variable_is_secret(pair.key, pair.value))
			pair.value = NULL;
		if (is_last)
			vec_push(arena, &shown, pair);
	}
	return shown;
}

void workspace_list_active(const struct workspace_now *now, struct arena *arena, text_list *layers)
{
	/* Every sandbox has all of them, or isn't started. */
	const char *const names[] = { "namespaces", "own_root", "capabilities", "no_new_privs",
		now->landlock_writes ? "landlock_writes" : "landlock", "seccomp", "limits" };
	for (size_t i = 0; i < COUNT(names); i++)
		vec_push(arena, layers, names[i]);
}

void workspace_print(
	struct json *j, const char *key, const struct workspace *w, const struct workspace_now *now)
{
	auto_arena struct arena arena = { 0 };
	struct workspace_shown shown = {
		.model = *w,
		.state = now->state,
		.limits = { w->limits, now->limiter },
		.isolation = "native",
		.is_warm = now->is_warm,
		.labels = workspace_labels(w, &arena),
		.env = workspace_shown_env(&arena, &w->env),
	};
	if (now->expires_ms)
		shown.model.expires_ms = now->expires_ms;
	if (now->is_brief)
		shown.model.policy = (struct workspace_policy){ 0 };
	if (now->network)
		shown.model.network = *now->network;
	shown.model.network.traffic = now->traffic;
	shown.model.network.mode = network_mode_name(workspace_network_mode(&shown.model.network));
	workspace_list_active(now, &arena, &shown.layers);
	for (size_t i = 0; i < WORKSPACE_USES_MAX && now->uses[i]; i++)
		vec_push(&arena, &shown.uses, now->uses[i]);
	record_print(j, key, &workspace_record, &shown);
}

static void print_seconds(struct json *j, const char *key, int64_t unix_ms)
{
	char text[32];
	clock_format(text, unix_ms);
	char *fraction = strchr(text, '.');
	if (fraction)
		str_copy(fraction, 2, "Z");
	json_text(j, key, text);
}

void workspace_print_context(const struct workspace *w, struct buf *out)
{
	const struct workspace_owner *owner = &w->owner;
	struct json j = json_to(out, true);
	json_object(&j, NULL);
	json_text(&j, "context_id", owner->context_id ? owner->context_id : w->name);
	json_text(&j, "agent", owner->agent);
	json_text(&j, "namespace", owner->namespace);
	print_seconds(&j, "created_at", w->created_ms);
	print_seconds(&j, "last_accessed_at", w->last_used_ms);
	if (!w->ttl_ms)
		json_null(&j, "ttl_days");
	else if (w->ttl_ms % DAY_MS)
		json_real(&j, "ttl_days", (double)w->ttl_ms / DAY_MS);
	else
		json_u64(&j, "ttl_days", w->ttl_ms / DAY_MS);
	json_u64(&j, "disk_usage_bytes", w->disk_usage_bytes);
	json_end(&j);
	json_finish(&j);
	buf_char(out, '\n');
}

/* -- builds -- */

bool workspace_build_option_is_valid(const char *word)
{
	/* With '=': any value may follow; the build judges it. */
	static const char *const words[] = { "--pip=", "--constraint-line=", "--torch-backend=",
		"--allow-index=", "--allow-build", "--pre", "--rebuild", "--no-cache",
		"--npm=", "--node=", "--node-runtime=", WORKSPACE_ALLOW_SCRIPTS,
		WORKSPACE_NODE_INPUT };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t len = strlen(words[i]);
		if (words[i][len - 1] == '=' ? strncmp(word, words[i], len) == 0
					     : strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}
