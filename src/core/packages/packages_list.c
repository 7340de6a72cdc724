/* packages_list.c -- the packages of a workspace, as Python and Node find them in its sandbox. */
#include <stdlib.h>
#include <string.h>
#include "core/packages/packages_internal.h"
#include "format/packages/requirements.h"

struct package_listing {
	struct core_workspace *w; /* held */
	struct arena arena;
	packages_list_fn *done;
	void *ctx;
	struct map requested; /* normalised names */
	struct packages_listed listed;
};

static int compare(const void *a, const void *b)
{
	const struct package *one = a, *other = b;
	int order = strcmp(one->name, other->name);
	return order ? order : (int)(one->kind - other->kind);
}

static void finish(struct package_listing *p, const struct error *err)
{
	struct core_workspace *w = p->w;
	if (!err && p->listed.packages.count)
		qsort(p->listed.packages.items, p->listed.packages.count,
			sizeof *p->listed.packages.items, compare);
	p->done(p->ctx, err ? NULL : &p->listed, err);
	arena_done(&p->arena);
	free(p);
	core_release(w);
}

/* What is visible, compared with what the environment has. */
static void add_all(struct package_listing *p, const dist_list *dists, const struct env_meta *meta)
{
	for (size_t i = 0; i < dists->count; i++) {
		const struct dist *dist = &dists->items[i];
		const char *version = env_package_version(&meta->packages, dist->name);
		vec_push(&p->arena, &p->listed.packages,
			(struct package){ dist->name, dist->version,
				map_get(&p->requested, str_from(dist->name)) != NULL,
				version && !strcmp(version, dist->version),
				env_kind_row_of(meta) });
	}
}

/* ---- Node ---- */

static const struct env_meta *meta_of(const struct core_workspace *w, const struct env_kind *kind)
{
	for (size_t i = 0; i < WORKSPACE_ENVIRONMENTS; i++)
		if (environment_kind(w, i) == kind)
			return pin_meta(w->pins[i]);
	return NULL;
}

static void find_specs(struct package_listing *p, const struct env_meta *meta)
{
	auto_buf struct buf text = buf_empty(NODE_PACKAGE_JSON_MAX);
	struct error ignored;
	node_specs specs = { 0 };
	struct str kept;
	const char *package;
	map_init(&p->requested, &p->arena);
	if (env_read_file(&p->w->core->envs, meta->name, "requirements.txt", &text, &ignored) ||
		package_json_read((struct str){ text.data, text.len }, &p->arena, &specs, &kept,
			&package, &ignored))
		return;
	for (size_t i = 0; i < specs.count; i++)
		map_set(&p->requested, str_from(specs.items[i].name), p);
}

static void on_modules(void *ctx, const dist_list *modules, const struct error *err)
{
	struct package_listing *p = ctx;
	const struct env_meta *meta = meta_of(p->w, &env_node);
	if (!err && meta) {
		find_specs(p, meta);
		add_all(p, modules, meta);
	}
	finish(p, err);
}

static void list_node(struct package_listing *p)
{
	if (meta_of(p->w, &env_node))
		modules_list(p->w, &p->arena, on_modules, p);
	else
		finish(p, NULL);
}

/* ---- Python ---- */

static void add_requested(struct package_listing *p, const char *text)
{
	requirement_list list = { 0 };
	struct error ignored;
	if (requirements_parse(str_from(text), &p->arena, &list, &ignored))
		return;
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].name)
			map_set(&p->requested, str_from(list.items[i].name), p);
}

static void find_requested(struct package_listing *p, const struct env_meta *meta)
{
	const struct workspace *model = &p->w->model;
	auto_buf struct buf text = buf_empty(REQUIREMENTS_MAX);
	struct error ignored;
	map_init(&p->requested, &p->arena);
	if (model->requirements)
		add_requested(p, model->requirements);
	for (size_t i = 0; i < model->packages.count; i++)
		add_requested(p, model->packages.items[i]);
	if (!p->requested.count &&
		!env_read_file(
			&p->w->core->envs, meta->name, "requirements.txt", &text, &ignored) &&
		text.len)
		add_requested(p, text.data);
}

static void on_dists(void *ctx, const dist_list *dists, const struct error *err)
{
	struct package_listing *p = ctx;
	const struct env_meta *meta = meta_of(p->w, &env_python);
	if (err) {
		finish(p, err);
		return;
	}
	if (meta) {
		find_requested(p, meta);
		add_all(p, dists, meta);
	}
	list_node(p);
}

static void on_begin(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct package_listing *p = ctx;
	struct error missing;
	const char *names[] = { w->model.environment, w->model.node_environment };
	environments_keep(w);
	for (size_t i = 0; !err && i < WORKSPACE_ENVIRONMENTS; i++)
		if (names[i] && !w->pins[i]) {
			fail(&missing, ERR_NOT_FOUND,
				"environment '%s' of workspace '%s' is missing", names[i],
				w->model.name);
			err = &missing;
		}
	const struct env_meta *meta = err ? NULL : meta_of(w, &env_python);
	if (err)
		finish(p, err);
	else if (meta)
		dists_list(w, meta, &p->arena, on_dists, p);
	else
		list_node(p);
}

void packages_list(
	const struct request *request, struct core_workspace *w, packages_list_fn *done, void *ctx)
{
	struct package_listing *p = xzalloc(sizeof *p);
	struct error err;
	*p = (struct package_listing){ .w = w, .done = done, .ctx = ctx };
	arena_init(&p->arena);
	core_hold(w);
	bool is_refused = access_check(w->core, request, VERB_WORKSPACE_PACKAGES, w, &err);
	core_later(w->core, on_begin, p, w, is_refused ? &err : NULL);
}
