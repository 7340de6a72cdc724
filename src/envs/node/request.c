/* A request for an environment of Node, read and judged. */
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/hash.h"
#include "envs/node/internal.h"
#include "envs/python/inputs.h"
#include "format/text/json_read.h"

#define SPECS_MAX 1000

/* ---- files ---- */

/* A client of the daemon sends both texts in one object, through stdin. */
static int read_sent(const char *path, struct arena *arena, struct str *json, struct str *lock,
	struct error *err)
{
	struct json_value *root;
	struct str text;
	if (inputs_read_file(path, arena, &text, err) < 0 || json_read(text, arena, &root, err) < 0)
		return -1;
	const char *package = json_member_text(root, "package_json");
	const char *locked = json_member_text(root, "lock");
	if (!package && json_member(root, "package_json"))
		return fail(err, ERR_INVALID, "'package_json' is not a text");
	*json = package ? str_from(package) : STR("");
	*lock = locked ? str_from(locked) : STR("");
	return 0;
}

/* The lock of the runtime first: bun reads both. */
static int read_lock_beside(const char *directory, const char *runtime, struct arena *arena,
	struct str *lock, struct error *err)
{
	static const char *const names[] = { "bun.lock", "package-lock.json" };
	bool is_npm = strcmp(runtime, "npm") == 0;
	for (size_t i = is_npm; i < sizeof names / sizeof *names; i++) {
		const char *path = arena_printf(arena, "%s/%s", directory, names[i]);
		if (access(path, F_OK) == 0)
			return inputs_read_file(path, arena, lock, err);
	}
	return 0;
}

int node_request_read(const struct env_request *request, struct arena *arena, struct str *json,
	struct str *lock, struct error *err)
{
	const struct node_request *asked = &request->node;
	const char *runtime = asked->runtime ? asked->runtime : "bun";
	const char *path = asked->package_json;
	struct stat st;
	*json = asked->json_text;
	*lock = asked->lock_text;
	if (path && request->is_self_contained)
		return read_sent(path, arena, json, lock, err);
	if (path && stat(path, &st) < 0)
		return fail_errno(err, "--package-json '%s'", path);
	if (path && S_ISDIR(st.st_mode)) {
		if (!asked->lock && read_lock_beside(path, runtime, arena, lock, err) < 0)
			return -1;
		path = arena_printf(arena, "%s/package.json", path);
	}
	if (path && inputs_read_file(path, arena, json, err) < 0)
		return -1;
	return asked->lock ? inputs_read_file(asked->lock, arena, lock, err) : 0;
}

/* ---- what is asked for ---- */

static int invalid(struct build_problem *problem, const char *package, const struct error *err)
{
	return build_failed(
		problem, err->code == ERR_DENIED ? BUILD_DENIED : BUILD_INVALID, package);
}

static int add_specs(const struct node_request *asked, struct arena *arena, node_specs *specs,
	struct build_problem *problem, struct error *err)
{
	for (size_t i = 0; i < asked->packages.count; i++) {
		struct node_spec spec;
		if (node_spec_parse(asked->packages.items[i], arena, &spec, err) < 0)
			return invalid(problem, asked->packages.items[i], err);
		for (size_t k = 0; k < specs->count; k++)
			if (strcmp(specs->items[k].name, spec.name) == 0 &&
				strcmp(specs->items[k].range, spec.range) != 0) {
				fail_hint(err, ERR_INVALID, "give one range",
					"package '%s' is asked for as %s and as %s", spec.name,
					specs->items[k].range, spec.range);
				return build_failed(problem, BUILD_CONFLICT, spec.name);
			}
		vec_push(arena, specs, spec);
	}
	return 0;
}

/* --npm beside a package.json: as if it had the package in its dependencies. */
static int merge_json(struct str json, const node_specs *more, struct arena *arena,
	struct str *merged, struct error *err)
{
	auto_buf struct buf out = buf_empty(2 * NODE_PACKAGE_JSON_MAX);
	struct json j = json_to(&out, true);
	struct json_value *root;
	if (json_read(json, arena, &root, err) < 0)
		return error_context(err, "package.json");
	const struct json_value *known = json_member(root, "dependencies");
	json_object(&j, NULL);
	json_object(&j, "dependencies");
	for (size_t i = 0; i < more->count; i++)
		json_text(&j, more->items[i].name, more->items[i].range);
	for (const struct json_value *m = known ? known->first : NULL; m; m = m->next) {
		size_t i = 0;
		while (i < more->count && !str_is(m->key, more->items[i].name))
			i++;
		if (i == more->count)
			json_copy(&j, m->key.data, m);
	}
	json_end(&j);
	for (const struct json_value *m = root->first; m; m = m->next)
		if (m != known)
			json_copy(&j, m->key.data, m);
	json_end(&j);
	json_finish(&j);
	*merged = buf_copy(arena, &out);
	return 0;
}

/* The hash that is in the name: of the file's bytes, or of the sorted specs. */
static const char *hash_request(struct str json, struct str lock, const node_specs *specs,
	const struct node_request *asked, struct arena *arena)
{
	text_list words = { 0 };
	struct sha256 hash;
	if (!json.len && !lock.len && !specs->count)
		return ENV_NO_REQUIREMENTS;
	for (size_t i = 0; i < asked->packages.count; i++)
		vec_push(arena, &words, asked->packages.items[i]);
	text_list_sort(&words);
	sha256_init(&hash);
	sha256_add(&hash, json.data ? json.data : "", json.len);
	if (lock.len)
		sha256_add(&hash, lock.data, lock.len);
	for (size_t i = 0; i < words.count; i++) {
		sha256_add(&hash, "\n", i > 0);
		sha256_add(&hash, words.items[i], strlen(words.items[i]));
	}
	return sha256_end_text(&hash, arena);
}

static int read_request(const struct env_store *store, const struct env_request *request,
	struct arena *arena, struct env_wanted *wanted, struct build_problem *problem,
	struct error *err)
{
	const struct node_request *asked = &request->node;
	struct node_wanted *node = wanted->node;
	node_specs specs = { 0 };
	struct str json = STR("");
	const char *package = NULL;
	if (node_request_read(request, arena, &json, &node->lock, err) < 0)
		return build_failed(problem, BUILD_INVALID, NULL);
	if (add_specs(asked, arena, &specs, problem, err) < 0)
		return -1;
	wanted->requirements_sha256 = hash_request(json, node->lock, &specs, asked, arena);
	struct str whole = json;
	if (!json.len)
		package_json_print(&specs, arena, &whole);
	else if (specs.count && merge_json(json, &specs, arena, &whole, err) < 0)
		return build_failed(problem, BUILD_INVALID, NULL);
	if (package_json_read(whole, arena, &node->specs, &node->package_json, &package, err) < 0)
		return invalid(problem, package, err);
	if (node->specs.count > SPECS_MAX) {
		fail(err, ERR_LIMIT, "more than %d direct dependencies", SPECS_MAX);
		return build_failed(problem, BUILD_DENIED, NULL);
	}
	for (size_t i = 0; i < node->specs.count; i++)
		if (policy_judge_name(&store->config, node->specs.items[i].name, "asked for",
			    problem, err) < 0)
			return -1;
	wanted->text = wanted->lines = node->package_json;
	return 0;
}

/* Judged before anything is run, and read again when it is installed. */
static int judge_given_lock(const struct env_store *store, const struct node_wanted *node,
	struct arena *arena, struct build_problem *problem, struct error *err)
{
	const char *package = NULL;
	node_lock packages = { 0 };
	bool is_npm;
	if (!node->lock.len)
		return 0;
	if (node_lock_read(node->lock, arena, &packages, &is_npm, &package, err) < 0 ||
		node_lock_check_addresses(&packages, &package, err) < 0)
		return invalid(problem, package, err);
	if (!is_npm && strcmp(node->runtime, "npm") == 0) {
		fail_hint(err, ERR_INVALID, "--node-runtime bun reads it",
			"npm can't read a bun.lock");
		return build_failed(problem, BUILD_INVALID, NULL);
	}
	return node_judge_lock(store, &packages, problem, err);
}

/* ---- names and keys ---- */

void node_complete_wanted(struct env_wanted *wanted, struct arena *arena)
{
	const struct node_wanted *node = wanted->node;
	const struct env_request *request = wanted->request;
	const char *parts[] = { "carrel-node 1", node->runtime, node_platform(arena),
		node_version_of(node), node->host ? node->host : "", node->registry.url,
		request->node.allow_scripts ? "scripts 2" : "" };
	struct sha256 hash;
	sha256_init(&hash);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		sha256_add_text(&hash, parts[i]);
	for (size_t i = 0; i < node->tool_count; i++)
		sha256_add_text(&hash, node_tool_key(&node->tools[i], arena));
	struct sha256 both = hash;
	wanted->fingerprint = sha256_end_text(&hash, arena);
	sha256_add(&both, node->package_json.data, node->package_json.len + 1);
	if (node->lock.len)
		sha256_add(&both, node->lock.data, node->lock.len);
	wanted->lock_key = sha256_end_text(&both, arena);
}

static int check_choices(const struct node_request *asked, struct error *err)
{
	if (asked->runtime && strcmp(asked->runtime, "bun") != 0 &&
		strcmp(asked->runtime, "npm") != 0)
		return fail_hint(err, ERR_INVALID, "bun or npm", "invalid Node runtime '%s'",
			asked->runtime);
	const char *version = asked->version;
	if (version && (!*version || strlen(version) > 32 || *version == '.' ||
			       strspn(version, "0123456789.") != strlen(version)))
		return fail_hint(err, ERR_INVALID, "a version, such as 22 or 22.11.0",
			"invalid version of Node '%s'", version);
	return 0;
}

int node_prepare(const struct env_store *store, const struct env_request *request,
	struct arena *arena, struct env_wanted *wanted, struct build_problem *problem,
	struct error *err)
{
	const struct node_request *asked = &request->node;
	struct node_wanted *node = arena_alloc(arena, sizeof *node);
	struct error unknown;
	*wanted = (struct env_wanted){ .request = request, .node = node, .needs_lock = true };
	if (check_choices(asked, err) < 0)
		return build_failed(problem, BUILD_INVALID, NULL);
	*node = (struct node_wanted){ .runtime = asked->runtime ? asked->runtime : "bun",
		.version = asked->version };
	if (read_request(store, request, arena, wanted, problem, err) < 0 ||
		judge_given_lock(store, node, arena, problem, err) < 0)
		return -1;
	if (npm_registry_find(asked->registry, arena, &node->registry, &wanted->secrets, err) < 0)
		return build_failed(problem, BUILD_INVALID, NULL);
	node->host = node_find_host(store->home, arena, &node->host_version);
	wanted->name = env_name_make(arena, request->package_id,
		strcmp(wanted->requirements_sha256, ENV_NO_REQUIREMENTS) == 0
			? NULL
			: wanted->requirements_sha256,
		NULL);
	if (node->version) /* its own name, whatever the host has */
		wanted->name = arena_printf(arena, "%s-node%s", wanted->name, node->version);
	/* What isn't known has to be asked, by carrel-build. */
	if ((node->host && !node->host_version) ||
		(!node->registry.url &&
			npm_registry_ask(store->home, NULL, arena, &node->registry, &unknown) < 0))
		return 0;
	if (node_choose_tools(node, arena, err) < 0)
		return build_failed_as(problem, err);
	if (node_recall_tools(store, node, arena))
		node_complete_wanted(wanted, arena);
	return 0;
}
