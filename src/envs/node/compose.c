/* An environment of Node from layers that are there. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "envs/node/internal.h"

/* ---- locks ---- */

int node_judge_lock(const struct env_store *store, const node_lock *packages,
	struct build_problem *problem, struct error *err)
{
	for (size_t i = 0; i < packages->count; i++)
		if (policy_judge_name(&store->config, packages->items[i].name, "a dependency",
			    problem, err) < 0)
			return -1;
	return 0;
}

int node_load_lock(const struct env_store *store, const struct env_wanted *wanted,
	struct arena *arena, struct str *text, node_lock *packages, struct build_problem *problem,
	struct error *err)
{
	const char *package;
	struct error ignored;
	bool is_npm;
	int found = lock_read(store, wanted->lock_key, arena, text, err);
	if (found <= 0)
		return found;
	/* One that can't be read is made again. */
	if (node_lock_read(*text, arena, packages, &is_npm, &package, &ignored) < 0)
		return 0;
	return node_judge_lock(store, packages, problem, err) < 0 ? -1 : 1;
}

/* ---- layers ---- */

const char *node_layer_key(const struct env_wanted *wanted, struct str lock, struct arena *arena)
{
	const struct node_wanted *node = wanted->node;
	const struct node_tool *client = node_tool_named(node, node->runtime);
	char hex[2 * SHA256_LEN + 1];
	struct sha256 hash;
	sha256_init(&hash);
	sha256_add(&hash, lock.data ? lock.data : "", lock.len);
	sha256_add(&hash, "", 1);
	sha256_add(&hash, node->package_json.data, node->package_json.len);
	sha256_end_hex(&hash, hex);
	return arena_printf(arena, "node-modules 1 %s %s %s %s node%llu%s", hex, node->runtime,
		client ? client->version : "host", node_platform(arena),
		(unsigned long long)node_major(node_version_of(node)),
		wanted->request->node.allow_scripts ? " scripts 2" : "");
}

/* The bytes of a layer are kept beside the lock: its manifest has a line for each file. */
static bool recall_size(
	const struct env_store *store, const char *path, struct arena *arena, uint64_t *bytes)
{
	auto_leave const struct home *home = home_entered(store->home);
	struct str text;
	return file_read_at(home->dir, path, 64, arena, &text) == 0 &&
	       str_to_u64(str_trim(text), bytes);
}

int node_add_layer(const struct env_store *store, const struct env_wanted *wanted,
	struct env_meta *meta, const char *id, struct arena *arena, struct error *err)
{
	const char *name = arena_printf(arena, "%s-%.16s", wanted->lock_key, id);
	struct error ignored; /* what isn't kept is measured again */
	if (!recall_size(store, arena_printf(arena, "locks/%s", name), arena, &meta->size_bytes)) {
		meta->size_bytes = 0;
		if (layer_add_bytes(store, id, &meta->size_bytes, err) < 0)
			return -1;
		lock_keep(store, name,
			str_from(arena_printf(
				arena, "%llu\n", (unsigned long long)meta->size_bytes)),
			&ignored);
	}
	vec_push(arena, &meta->layers, arena_text(arena, id));
	return 0;
}

void node_compose_meta(const struct env_wanted *wanted, const node_lock *packages,
	struct arena *arena, struct env_meta *meta)
{
	const struct node_wanted *node = wanted->node;
	char now[32];
	clock_format_now(now);
	*meta = (struct env_meta){ .name = wanted->name,
		.package_id = wanted->request->package_id,
		.requirements_sha256 = wanted->requirements_sha256,
		.created_at = arena_text(arena, now),
		.last_used_at = arena_text(arena, now),
		.use_count = 1,
		.kind = "node",
		.node_version = node_version_of(node),
		.node = node->host,
		.runtime = node->runtime,
		.allow_scripts = wanted->request->node.allow_scripts,
		.fingerprint = wanted->fingerprint };
	/* Of several versions of a package the last one is named: meta.json has each name once. */
	for (size_t i = 0; i < packages->count; i++) {
		bool is_last = i + 1 == packages->count ||
			       strcmp(packages->items[i].name, packages->items[i + 1].name) != 0;
		if (is_last)
			vec_push(arena, &meta->packages,
				(struct text_pair){
					packages->items[i].name, packages->items[i].version });
	}
	for (size_t i = 0; i < node->tool_count; i++)
		vec_push(arena, &meta->tools,
			(struct text_pair){ node->tools[i].name, node->tools[i].id });
	vec_push(arena, &meta->indexes, node->registry.url);
}

static int compose(const struct env_store *store, const struct env_wanted *wanted,
	struct arena *arena, struct env_meta *meta, struct str *lock, struct build_problem *problem,
	struct error *err)
{
	struct node_wanted *node = wanted->node;
	char id[LAYER_ID_LEN + 1];
	node_lock packages = { 0 };
	int found = node_load_lock(store, wanted, arena, lock, &packages, problem, err);
	if (found <= 0)
		return found;
	/* Now that the layers' lock is held. */
	if (!node_recall_tools(store, node, arena))
		return 0;
	if (layer_find(&store->layers, node_layer_key(wanted, *lock, arena), id, err) < 0)
		return err->code == ERR_NOT_FOUND || err->code == ERR_CORRUPT ? 0 : -1;
	node_compose_meta(wanted, &packages, arena, meta);
	if (node_add_layer(store, wanted, meta, id, arena, err) < 0)
		return err->code == ERR_CORRUPT ? 0 : -1;
	return 1;
}

/* -- the kind -- */

static bool is_asked(const struct env_request *request)
{
	const struct node_request *node = &request->node;
	return node->packages.count || node->package_json || node->json_text.data || node->lock ||
	       node->version || node->runtime || node->registry || node->allow_scripts;
}

static void narrow(struct env_request *request)
{
	*request = (struct env_request){ .node = request->node,
		.rebuild = request->rebuild,
		.no_cache = request->no_cache,
		.is_self_contained = request->is_self_contained };
}

/* Its runtime may come from an index, too. */
const struct env_reader env_node_reader = { is_asked, is_asked, narrow, node_prepare, compose };
