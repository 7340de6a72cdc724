/* packages_node.c -- packages of Node: the package.json of an environment, and that of the project.
 */
#include "core/packages/packages_internal.h"
#include "format/packages/package_edit.h"
#include "format/text/json_read.h"

#define RUNTIME_WORD "--node-runtime="
#define LOCK_MOST ((size_t)4 << 20) /* a longer one is left as it is */

static int read_names(struct package_change *c, struct error *err)
{
	for (size_t i = 0; i < c->wanted.packages.count; i++) {
		const char *text = c->wanted.packages.items[i];
		struct node_spec spec;
		if (node_spec_parse(text, &c->arena, &spec, err))
			return -1;
		bool has_range = strcmp(text, spec.name) != 0;
		if (c->wanted.is_removal && has_range)
			return fail_hint(err, ERR_INVALID, spec.name,
				"'%s': only the name of a package can be uninstalled", text);
		if (!has_range)
			spec.range = NULL;
		if (packages_is_named(&c->names, spec.name))
			return fail(err, ERR_INVALID, "package '%s' is named twice", spec.name);
		packages_push_unique(&c->arena, &c->names, spec.name);
		vec_push(&c->arena, &c->specs, spec);
	}
	if (!c->names.count)
		return fail(err, ERR_INVALID, "no packages were named");
	return 0;
}

static bool is_npm(const struct package_change *c)
{
	for (size_t i = 0; i < c->next.node.options.count; i++)
		if (!strcmp(c->next.node.options.items[i], RUNTIME_WORD "npm"))
			return true;
	return false;
}

/* One that was given by name alone has its recipe in the store. */
static void recall_options(struct package_change *c, const struct env_meta *meta)
{
	struct workspace_node *node = &c->next.node;
	if (!meta->node && meta->node_version)
		node->version = arena_text(&c->arena, meta->node_version);
	if (meta->runtime && !strcmp(meta->runtime, "npm"))
		vec_push(&c->arena, &node->options, (const char *)RUNTIME_WORD "npm");
	if (meta->allow_scripts)
		vec_push(&c->arena, &node->options, (const char *)WORKSPACE_ALLOW_SCRIPTS);
}

/* The package.json that the present environment was made of; "": there is none. */
static int read_recipe(struct package_change *c, struct str *text, struct error *err)
{
	struct core_workspace *w = c->w;
	const struct workspace_node *node = &w->model.node;
	const struct env_meta *meta = pin_meta(w->packages->pins[ENV_KIND_NODE]);
	*text = STR("");
	if (node->package_json && !node->packages.count) {
		*text = str_from(node->package_json);
		return 0;
	}
	if (!w->model.environments.of[ENV_KIND_NODE])
		return 0;
	if (!meta)
		return fail(err, ERR_NOT_FOUND, "environment '%s' of workspace '%s' is missing",
			w->model.environments.of[ENV_KIND_NODE], w->model.name);
	if (!node->version && !node->package_json && !node->packages.count && !node->options.count)
		recall_options(c, meta);
	return node_recipe_read(&w->core->envs, meta, &c->arena, text, err);
}

static int check_removal(struct package_change *c, struct str text, struct error *err)
{
	static const char hint[] = "a package that a command installed is removed by `npm "
				   "uninstall` or `bun remove` in the workspace";
	node_specs specs = { 0 };
	struct str kept;
	const char *package;
	if (text.len && package_json_read(text, &c->arena, &specs, &kept, &package, err))
		return -1;
	for (size_t i = 0; i < c->names.count; i++) {
		size_t k = 0;
		while (k < specs.count && strcmp(specs.items[k].name, c->names.items[i]) != 0)
			k++;
		if (k == specs.count)
			return packages_refuse_removal(c, c->names.items[i], hint, err);
	}
	return 0;
}

static int change(struct package_change *c, struct str text, struct buf *out, struct error *err)
{
	return c->wanted.is_removal ? package_json_remove(text, &c->names, &c->arena, out, err)
				    : package_json_add(text, &c->specs, &c->arena, out, err);
}

static int make_recipe(struct package_change *c, struct error *err)
{
	auto_buf struct buf out = buf_empty(NODE_PACKAGE_JSON_MAX);
	struct str text;
	c->next.node.options = text_list_copy(&c->arena, &c->next.node.options);
	if (read_recipe(c, &text, err) || (c->wanted.is_removal && check_removal(c, text, err)) ||
		change(c, text, &out, err))
		return -1;
	c->next.node.package_json = arena_bytes(&c->arena, out.data, out.len);
	c->next.node.packages = (text_list){ 0 };
	c->next.node.lock = NULL; /* of other packages */
	if (!c->wanted.persists)
		return 0;
	c->files[0] = (struct project_file){ .path = "package.json", .most = PACKAGE_EDIT_MAX };
	c->files[1] = (struct project_file){ .path = is_npm(c) ? "package-lock.json" : "bun.lock",
		.most = LOCK_MOST };
	return 0;
}

/* A new file lists all that the workspace has been asked for. */
static struct str project_of(const struct package_change *c)
{
	return c->files[0].is_there ? c->files[0].text : str_from(c->next.node.package_json);
}

static int edit(struct package_change *c, struct error *err)
{
	auto_buf struct buf tried = buf_empty(PACKAGE_EDIT_MAX);
	return change(c, project_of(c), &tried, err);
}

/* ---- when the versions are known ---- */

static int compare_specs(const void *a, const void *b)
{
	return strcmp(((const struct node_spec *)a)->name, ((const struct node_spec *)b)->name);
}

static int read_specs(struct package_change *c, struct str text, node_specs *specs)
{
	struct str kept;
	const char *package;
	struct error ignored;
	if (package_json_read(text, &c->arena, specs, &kept, &package, &ignored))
		return -1;
	if (specs->count > 1)
		qsort(specs->items, specs->count, sizeof *specs->items, compare_specs);
	return 0;
}

/* Whether both name the same packages in the same ranges. */
static bool are_same(struct package_change *c, struct str a, struct str b, node_specs *specs)
{
	node_specs other = { 0 };
	if (read_specs(c, a, specs) || read_specs(c, b, &other) || specs->count != other.count)
		return false;
	for (size_t i = 0; i < other.count; i++)
		if (strcmp(specs->items[i].name, other.items[i].name) != 0 ||
			strcmp(specs->items[i].range, other.items[i].range) != 0)
			return false;
	return true;
}

/* The lock of the environment is that of the project, when both are of the same packages: clients
 * need it to work without a network. */
static int write_lock(struct package_change *c, struct error *err)
{
	const struct env_meta *meta = pin_meta(c->pin);
	struct project_file *file = &c->files[1];
	auto_buf struct buf lock = buf_empty(LOCK_MOST);
	struct str project = { c->files[0].changed.data, c->files[0].changed.len };
	struct error ignored;
	node_specs specs = { 0 };
	if (!are_same(c, project, str_from(c->next.node.package_json), &specs) ||
		env_read_file(&c->w->core->envs, meta->name, "lock.txt", &lock, &ignored) ||
		!lock.len)
		return 0;
	return node_lock_set_ranges(
		(struct str){ lock.data, lock.len }, &specs, &c->arena, &file->changed, err);
}

/* As npm does: a package that was named without a range gets that of its version. */
static int complete(struct package_change *c, struct error *err)
{
	const struct env_meta *meta = pin_meta(c->pin);
	auto_buf struct buf recipe = buf_empty(NODE_PACKAGE_JSON_MAX);
	node_specs listed = { 0 }, specs = { 0 };
	if (read_specs(c, str_from(c->next.node.package_json), &listed))
		return fail(err, ERR_INVALID, "package.json can't be read");
	for (size_t i = 0; i < c->specs.count; i++) {
		struct node_spec spec = c->specs.items[i];
		const char *version = env_package_version(&meta->packages, spec.name);
		for (size_t k = 0; k < listed.count; k++)
			if (!spec.range && version && !strcmp(listed.items[k].name, spec.name) &&
				!strcmp(listed.items[k].range, "latest"))
				spec.range = arena_printf(&c->arena, "^%s", version);
		vec_push(&c->arena, &specs, spec);
	}
	if (!c->wanted.is_removal) {
		c->specs = specs;
		if (package_json_add(
			    str_from(c->next.node.package_json), &specs, &c->arena, &recipe, err))
			return -1;
		c->next.node.package_json = arena_bytes(&c->arena, recipe.data, recipe.len);
	}
	if (!c->files[0].path || (c->wanted.is_removal && !c->files[0].is_there))
		return 0;
	return change(c, project_of(c), &c->files[0].changed, err) || write_lock(c, err) ? -1 : 0;
}

const struct package_manager package_manager_node = { &env_node, ENV_KIND_NODE, read_names,
	make_recipe, edit, complete, live_apply_node };
