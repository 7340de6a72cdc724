/* node_project.c -- package.json and the lock that a workspace with an environment of Node has:
 * clients remove what no package.json names, and need a lock to work without a network. */
#include "core/packages/packages_internal.h"
#include "format/packages/package_edit.h"

#define PROJECT_MAX ((size_t)32 << 20)

static struct str copy(struct arena *arena, const struct buf *text)
{
	return (struct str){ arena_bytes(arena, text->data ? text->data : "", text->len),
		text->len };
}

/* As npm writes it: what was asked for as "latest" gets the range of the version that it is. With
 * "latest" a client asks the registry whenever it installs anything. */
static void pin_latest(const struct env_meta *meta, struct arena *arena, node_specs *specs)
{
	for (size_t i = 0; i < specs->count; i++) {
		struct node_spec *spec = &specs->items[i];
		const char *version = env_package_version(&meta->packages, spec->name);
		if (version && !strcmp(spec->range, "latest"))
			spec->range = arena_printf(arena, "^%s", version);
	}
}

/* `text` with these packages; as it is, where it can't be edited. */
static struct str add(struct str text, const node_specs *specs, struct arena *arena)
{
	auto_buf struct buf out = buf_empty(PROJECT_MAX);
	struct error ignored;
	return package_json_add(text, specs, arena, &out, &ignored) ? text : copy(arena, &out);
}

int node_recipe_read(const struct env_store *store, const struct env_meta *meta,
	struct arena *arena, struct str *text, struct error *err)
{
	auto_buf struct buf found = buf_empty(PROJECT_MAX);
	node_specs specs = { 0 };
	struct str kept;
	const char *package;
	struct error ignored;
	if (env_read_file(store, meta->name, "requirements.txt", &found, err))
		return -1;
	*text = copy(arena, &found);
	if (package_json_read(*text, arena, &specs, &kept, &package, &ignored))
		return 0;
	pin_latest(meta, arena, &specs);
	*text = add(*text, &specs, arena);
	return 0;
}

/* A package.json that was given stays as it is, but for the packages that were named beside it. */
static int read_project(const struct core_workspace *w, const struct env_meta *meta,
	struct arena *arena, struct str *text, struct error *err)
{
	const struct workspace_node *node = &w->model.node;
	node_specs specs = { 0 };
	if (!node->package_json)
		return node_recipe_read(&w->core->envs, meta, arena, text, err);
	*text = str_from(node->package_json);
	for (size_t i = 0; i < node->packages.count; i++) {
		struct node_spec spec;
		if (node_spec_parse(node->packages.items[i], arena, &spec, err))
			return -1;
		vec_push(arena, &specs, spec);
	}
	pin_latest(meta, arena, &specs);
	if (specs.count)
		*text = add(*text, &specs, arena);
	return 0;
}

/* The lock repeats the ranges of package.json. */
static int read_lock(const struct core_workspace *w, const struct env_meta *meta,
	struct str project, struct arena *arena, struct str *text, struct error *err)
{
	auto_buf struct buf found = buf_empty(PROJECT_MAX), out = buf_empty(PROJECT_MAX);
	node_specs specs = { 0 };
	struct str kept;
	const char *package;
	struct error ignored;
	if (env_read_file(&w->core->envs, meta->name, "lock.txt", &found, err))
		return -1;
	*text = copy(arena, &found);
	if (!package_json_read(project, arena, &specs, &kept, &package, &ignored) &&
		!node_lock_set_ranges(*text, &specs, arena, &out, &ignored))
		*text = copy(arena, &out);
	return 0;
}

int tree_write_project(const struct core_workspace *w, int upper, bool is_synced, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const struct env_meta *meta = environment_pinned(w, ENV_KIND_NODE);
	struct str project, lock;
	pair_list files = { 0 };
	if (!meta || env_kind_of(meta) != &env_node || !meta->packages.count)
		return 0;
	if (read_project(w, meta, &arena, &project, err) ||
		read_lock(w, meta, project, &arena, &lock, err))
		return -1;
	const char *name = strcmp(meta->runtime, "npm") ? "bun.lock" : "package-lock.json";
	vec_push(&arena, &files, (struct text_pair){ "package.json", project.data });
	vec_push(&arena, &files, (struct text_pair){ name, lock.data });
	return tree_write_files(upper, &files, is_synced, err);
}
