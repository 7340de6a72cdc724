/* An environment of Node made: resolved, installed from its lock, and published as one layer. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "envs/node/internal.h"
#include "format/text/json_read.h"
#include "format/text/quantity.h"

#define NOTHING_LOCKED "{ \"lockfileVersion\": 1, \"workspaces\": {} }\n"
#define MAKE_TRIES 4
#define WORDS_MAX 12

static bool is_npm(const struct build_run *run)
{
	return strcmp(run->wanted->node->runtime, "npm") == 0;
}

static const char *lock_name(const struct build_run *run)
{
	return is_npm(run) ? "package-lock.json" : "bun.lock";
}

/* ---- what the client is given ---- */

/* bun runs scripts only of packages that the project trusts: those that it names itself. */
static struct str package_json(const struct build_run *run)
{
	const struct node_wanted *node = run->wanted->node;
	struct arena *arena = run->arena;
	struct json_value *root;
	struct error ignored;
	if (is_npm(run) || !run->wanted->request->node.allow_scripts ||
		json_read(node->package_json, arena, &root, &ignored) < 0)
		return node->package_json;
	auto_buf struct buf out = buf_empty(2 * NODE_PACKAGE_JSON_MAX);
	struct json j = json_to(&out, true);
	json_object(&j, NULL);
	for (const struct json_value *m = root->first; m; m = m->next)
		json_copy(&j, m->key.data, m);
	json_array(&j, "trustedDependencies");
	for (size_t i = 0; i < node->specs.count; i++)
		json_text(&j, NULL, node->specs.items[i].name);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
	return buf_copy(arena, &out);
}

static int put_npmrc(struct build_run *run, const char *login, struct error *err)
{
	const char *npmrc = arena_printf(run->arena, "registry=%s\n%saudit=false\nfund=false\n",
		run->wanted->node->registry.url, login);
	return node_put(run, ".npmrc", str_from(npmrc), err);
}

static int put_inputs(struct build_run *run, struct error *err)
{
	if (run->stage.fd < 0 && node_stage(run, err) < 0)
		return -1;
	return node_put(run, "package.json", package_json(run), err) < 0 ||
			       put_npmrc(run, run->wanted->node->registry.npmrc, err) < 0
		       ? -1
		       : 0;
}

/* What runs code of packages has no network. */
enum reach { REACH_REGISTRY, RUN_SCRIPTS };
static int run_client(struct build_run *run, const char *const *bun, const char *const *npm,
	enum reach reach, struct error *err)
{
	const char *const *words = is_npm(run) ? npm : bun;
	const char *argv[WORDS_MAX + 1];
	size_t count = 0;
	argv[count++] = run->wanted->node->runtime;
	for (; *words; words++)
		argv[count++] = *words;
	if (reach == REACH_REGISTRY)
		argv[count++] = "--ignore-scripts";
	argv[count] = NULL;
	return node_run(run, argv, run->wanted->node->runtime, reach == REACH_REGISTRY, err);
}

/* ---- the lock ---- */

static int read_made(struct build_run *run, struct str *text, struct error *err)
{
	auto_leave const struct home *home = home_entered(run->store->home);
	auto_close int dir =
		path_open_nolinks(run->stage.fd, NODE_STAGE_ROOT, O_RDONLY | O_DIRECTORY, 0);
	if (dir >= 0 && file_read_at(dir, lock_name(run), NODE_LOCK_MAX, run->arena, text) == 0)
		return 0;
	if (errno != ENOENT)
		return fail_errno(err, "read '%s' of a build", lock_name(run));
	*text = STR(NOTHING_LOCKED); /* there is nothing to lock */
	return 0;
}

static int resolve(struct build_run *run, struct str *text, struct error *err)
{
	static const char *const bun[] = { "install", "--lockfile-only", "--no-progress", NULL };
	static const char *const npm[] = { "install", "--package-lock-only", "--no-audit",
		"--no-fund", NULL };
	const struct str *given = &run->wanted->node->lock;
	bool is_given_npm = false;
	const char *package;
	node_lock ignored = { 0 };
	if (given->len &&
		node_lock_read(*given, run->arena, &ignored, &is_given_npm, &package, err) < 0)
		return -1;
	/* One of the client's own stays as it is: its install compares it with package.json. */
	if (given->len && is_given_npm == is_npm(run)) {
		*text = *given;
		return 0;
	}
	node_show(run, "resolving");
	if (put_inputs(run, err) < 0 ||
		(given->len && node_put(run, "package-lock.json", *given, err) < 0) ||
		node_reach(run, err) < 0 || run_client(run, bun, npm, REACH_REGISTRY, err) < 0)
		return -1;
	return read_made(run, text, err);
}

/* 0 with *text and *packages. */
static int find_lock(
	struct build_run *run, struct str *text, node_lock *packages, struct error *err)
{
	const struct env_wanted *wanted = run->wanted;
	struct build_problem *problem = run->problem;
	const char *package = NULL;
	bool ignored;
	int found = wanted->request->no_cache ? 0
					      : node_load_lock(run->store, wanted, run->arena, text,
							packages, problem, err);
	if (found != 0)
		return found < 0 ? -1 : 0;
	if (resolve(run, text, err) < 0)
		return -1;
	if (node_lock_read(*text, run->arena, packages, &ignored, &package, err) < 0)
		return build_failed(
			problem, err->code == ERR_DENIED ? BUILD_DENIED : BUILD_INVALID, package);
	return node_judge_lock(run->store, packages, problem, err);
}

/* ---- the layer ---- */

/* The packages are there. Their scripts run in a second sandbox over the same tree: the network is
 * closed, and the login that they were fetched with is gone from it. npm runs the scripts of
 * packages that are installed, bun while it installs: once more, from its cache. */
static int run_scripts(struct build_run *run, struct error *err)
{
	static const char *const bun[] = { "install", "--frozen-lockfile", "--no-progress",
		"--no-summary", "--linker", "hoisted", NULL };
	static const char *const npm[] = { "rebuild", "--no-audit", "--no-fund", NULL };
	node_close(run);
	node_show(run, "running_scripts");
	if (put_npmrc(run, "", err) < 0 ||
		node_drop(run, is_npm(run) ? ".cache" : "node_modules", err) < 0)
		return -1;
	return run_client(run, bun, npm, RUN_SCRIPTS, err);
}

static int install(struct build_run *run, struct str lock, size_t count, struct error *err)
{
	static const char *const bun[] = { "install", "--frozen-lockfile", "--no-progress",
		"--no-summary", "--linker", "hoisted", NULL };
	static const char *const npm[] = { "ci", "--no-audit", "--no-fund", NULL };
	/* A lock without packages: the client compares it with what is asked for. */
	if (count == 0 && run->wanted->node->specs.count == 0)
		return run->stage.fd < 0 ? node_stage(run, err) : 0;
	events_installing(&run->store->events, run->wanted->name, NULL);
	node_show(run, "installing_deps");
	if (put_inputs(run, err) < 0 || node_put(run, lock_name(run), lock, err) < 0 ||
		node_reach(run, err) < 0 || run_client(run, bun, npm, REACH_REGISTRY, err) < 0)
		return -1;
	return run->wanted->request->node.allow_scripts ? run_scripts(run, err) : 0;
}

/* What was installed becomes the draft; nothing else of the stage does. */
static int make_draft(struct build_run *run, struct error *err)
{
	auto_leave const struct home *home = home_entered(run->store->home);
	auto_close int root =
		path_open_nolinks(run->stage.fd, NODE_STAGE_ROOT, O_RDONLY | O_DIRECTORY, 0);
	if (root < 0 || mkdirat(run->stage.fd, "draft", 0755) < 0)
		return fail_errno(err, "make a draft");
	/* Files of the cache are other names of the packages' files. */
	if (path_remove_tree(root, ".cache", err) < 0)
		return error_context(err, "drop the cache of a build");
	if (renameat(root, "node_modules", run->stage.fd, "draft/tree") == 0)
		return 0;
	if (errno != ENOENT || mkdirat(run->stage.fd, "draft/tree", 0755) < 0)
		return fail_errno(err, "move node_modules");
	return 0;
}

static int publish(
	struct build_run *run, const char *key, char id[LAYER_ID_LEN + 1], struct error *err)
{
	struct layer_draft draft = { .path = "draft",
		.kind = "node-modules",
		.name = "node_modules",
		.version = "",
		.key = key,
		.bytes_max = run->store->config.max_install_bytes };
	node_show(run, "building_layers");
	if (make_draft(run, err) < 0)
		return -1;
	fault_point("node.layer");
	if (run->layers < 0 && layer_store_lock(&run->store->layers, false, &run->layers, err) < 0)
		return -1;
	if (layers_publish(&run->store->layers, run->stage.fd, &draft, 1, NULL, NULL, err) < 0) {
		if (err->code == ERR_LIMIT)
			error_hint(err, "a higher max_install_bytes in config.yaml allows it");
		if (err->code == ERR_DENIED || err->code == ERR_LIMIT)
			build_failed(run->problem, BUILD_DENIED, NULL);
		return error_context(err, "the packages of environment '%s'", run->wanted->name);
	}
	memcpy(id, draft.id, LAYER_ID_LEN + 1);
	return 0;
}

/* The lock of the layers is not held while packages are fetched; what is there may be gone then. */
static int make_layer(struct build_run *run, struct str lock, size_t count,
	char id[LAYER_ID_LEN + 1], struct error *err)
{
	const char *key = node_layer_key(run->wanted, lock, run->arena);
	for (int tries = 0; tries < MAKE_TRIES; tries++) {
		if (node_fetch_tools(run, err) < 0)
			return -1;
		if (layer_find(&run->store->layers, key, id, err) == 0)
			return 0;
		if (err->code != ERR_NOT_FOUND && err->code != ERR_CORRUPT)
			return -1;
		fd_close(&run->layers);
		if (install(run, lock, count, err) < 0 || publish(run, key, id, err) < 0)
			return -1;
		node_clean(run);
	}
	return fail(err, ERR_CONFLICT, "layers of environment '%s' are removed while it is built",
		run->wanted->name);
}

static int make(struct build_run *run, struct error *err)
{
	char id[LAYER_ID_LEN + 1];
	node_lock packages = { 0 };
	if (policy_judge_index(run->wanted->request, run->wanted->node->registry.url, run->arena,
		    run->problem, err) < 0 ||
		node_fetch_tools(run, err) < 0)
		return -1;
	fd_close(&run->layers);
	/* The stage of a tool is published, and gone. */
	if (run->stage.fd >= 0 && node_stage(run, err) < 0)
		return -1;
	if (find_lock(run, &run->lock, &packages, err) < 0 ||
		make_layer(run, run->lock, packages.count, id, err) < 0 ||
		lock_keep(run->store, run->wanted->lock_key, run->lock, err) < 0)
		return -1;
	node_compose_meta(run->wanted, &packages, run->arena, &run->meta);
	return node_add_layer(run->store, run->wanted, &run->meta, id, run->arena, err);
}

/* ---- the interface ---- */

static int find_out(struct build_run *run, struct error *err)
{
	struct node_wanted *node = run->wanted->node;
	const struct home *home = run->store->home;
	struct runner runner = run_runner(run);
	if (!node->registry.url &&
		npm_registry_ask(home, &runner, run->arena, &node->registry, err) < 0)
		return -1;
	if (policy_judge_index(
		    run->wanted->request, node->registry.url, run->arena, run->problem, err) < 0)
		return -1;
	if (node->host && !node->host_version &&
		node_ask_host(home, &runner, node->host, run->arena, &node->host_version, err) < 0)
		return -1;
	if (node_choose_tools(node, run->arena, err) < 0)
		return -1;
	/* Which version the registry has is known when it is fetched. */
	return node_fetch_tools(run, err);
}

static int complete(struct build_run *run, struct error *err)
{
	if (run->wanted->lock_key)
		return 0;
	int failed = find_out(run, err);
	fd_close(&run->layers);
	node_clean(run);
	if (!failed)
		node_complete_wanted(run->wanted, run->arena);
	return failed;
}

static int node_make(struct build_run *run, struct error *err)
{
	int failed = make(run, err);
	if (failed)
		fd_close(&run->layers);
	node_clean(run);
	return failed;
}

const struct env_maker env_node_maker = { complete, node_make, node_name_layer, node_verify,
	node_ask_again };
