/* packages_list.c -- the packages of a workspace, as Python and Node find them in its sandbox. */
#include "core/packages/packages_internal.h"
#include "core/waits.h"
#include "format/packages/requirements.h"

struct package_listing {
	struct core_workspace *w; /* held */
	struct arena arena;
	packages_list_fn *done;
	void *ctx;
	struct map requested; /* normalised names */
	struct packages_listed listed;
	struct error err;
};

static int compare(const void *a, const void *b)
{
	const struct package *one = a, *other = b;
	int order = strcmp(one->name, other->name);
	return order ? order : (int)(one->kind - other->kind);
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
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (environment_kind(w, i) == kind)
			return pin_meta(w->packages->pins[i]);
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

/* ---- both ---- */

static int check_pins(struct core_workspace *w, struct error *err)
{
	const char *const *names = w->model.environments.of;
	environments_keep(w);
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (names[i] && !w->packages->pins[i])
			return fail(err, ERR_NOT_FOUND,
				"environment '%s' of workspace '%s' is missing", names[i],
				w->model.name);
	return 0;
}

/* An environment may be another one, or gone, after the wait. */
static int list_all(struct fiber *fiber, struct package_listing *p, struct error *err)
{
	struct core_workspace *w = p->w;
	dist_list dists = { 0 }, modules = { 0 };
	const struct env_meta *meta;
	if (check_pins(w, err))
		return -1;
	if ((meta = meta_of(w, &env_python))) {
		if (dists_list(fiber, w, meta, &p->arena, &dists, err))
			return -1;
		if ((meta = meta_of(w, &env_python))) {
			find_requested(p, meta);
			add_all(p, &dists, meta);
		}
	}
	if (!meta_of(w, &env_node))
		return 0;
	if (modules_list(fiber, w, &p->arena, &modules, err))
		return -1;
	if ((meta = meta_of(w, &env_node))) {
		find_specs(p, meta);
		add_all(p, &modules, meta);
	}
	return 0;
}

static void list_job(struct fiber *fiber, void *ctx)
{
	struct package_listing *p = ctx;
	struct core_workspace *w = p->w;
	wait_turn(fiber, w->core);
	if (!p->err.code)
		list_all(fiber, p, &p->err);
	if (p->listed.packages.count)
		qsort(p->listed.packages.items, p->listed.packages.count,
			sizeof *p->listed.packages.items, compare);
	p->done(p->ctx, p->err.code ? NULL : &p->listed, p->err.code ? &p->err : NULL);
	arena_done(&p->arena);
	free(p);
	core_release(w);
}

void packages_list(
	const struct request *request, struct core_workspace *w, packages_list_fn *done, void *ctx)
{
	struct package_listing *p = xzalloc(sizeof *p);
	*p = (struct package_listing){ .w = w, .done = done, .ctx = ctx };
	arena_init(&p->arena);
	core_hold(w);
	access_check(w->core, request, VERB_WORKSPACE_PACKAGES, w, &p->err);
	fiber_start(list_job, p);
}
