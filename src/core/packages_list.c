/* packages_list.c -- the packages of a workspace, as Python finds them in its sandbox. */
#include <stdlib.h>
#include <string.h>
#include "core/packages_internal.h"
#include "format/requirements.h"

struct package_listing {
	struct core_workspace *w; /* held */
	struct arena arena;
	packages_list_fn *done;
	void *ctx;
	struct map requested; /* normalised names */
};

static void finish(
	struct package_listing *p, const struct packages_listed *listed, const struct error *err)
{
	struct core_workspace *w = p->w;
	p->done(p->ctx, listed, err);
	arena_done(&p->arena);
	free(p);
	core_release(w);
}

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

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct package *)a)->name, ((const struct package *)b)->name);
}

static void on_dists(void *ctx, const dist_list *dists, const struct error *err)
{
	struct package_listing *p = ctx;
	const struct env_meta *meta = pin_meta(p->w->pins[0]);
	struct packages_listed listed = { 0 };
	if (err || !meta) {
		finish(p, err ? NULL : &listed, err);
		return;
	}
	find_requested(p, meta);
	for (size_t i = 0; i < dists->count; i++) {
		const struct dist *dist = &dists->items[i];
		bool is_environment = false;
		for (size_t k = 0; k < meta->packages.count; k++)
			is_environment |= !strcmp(meta->packages.items[k].key, dist->name) &&
					  !strcmp(meta->packages.items[k].value, dist->version);
		vec_push(&p->arena, &listed.packages,
			(struct package){ dist->name, dist->version,
				map_get(&p->requested, str_from(dist->name)) != NULL,
				is_environment });
	}
	if (listed.packages.count)
		qsort(listed.packages.items, listed.packages.count, sizeof *listed.packages.items,
			compare);
	finish(p, &listed, NULL);
}

static void on_begin(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct package_listing *p = ctx;
	const struct env_meta *meta = pin_meta(w->pins[0]);
	struct packages_listed none = { 0 };
	if (!err && w->pins[0] && environment_kind(w, 0) != &env_python) {
		finish(p, &none, NULL);
		return;
	}
	if (err || !w->model.environment || !meta) {
		struct error missing;
		if (!err && w->model.environment) {
			fail(&missing, ERR_NOT_FOUND,
				"environment '%s' of workspace '%s' is missing",
				w->model.environment, w->model.name);
			err = &missing;
		}
		finish(p, err ? NULL : &none, err);
		return;
	}
	dists_list(w, meta, &p->arena, on_dists, p);
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
