/* packages_python.c -- packages of Python: the recipe of an environment, and pyproject.toml. */
#include "core/packages/packages_internal.h"
#include "format/packages/pyproject_edit.h"
#include "format/packages/requirements.h"
#include "format/text/toml_lite.h"

static const char *minor_of(struct arena *arena, const char *version)
{
	const char *dot = strchr(version, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;
	return end ? arena_bytes(arena, version, (size_t)(end - version)) : version;
}

/* One that was given by name alone has its recipe in the store. */
static int read_recipe(struct package_change *c, struct error *err)
{
	struct core_workspace *w = c->w;
	const struct env_meta *meta = pin_meta(w->packages->pins[ENV_KIND_PYTHON]);
	auto_buf struct buf text = buf_empty(REQUIREMENTS_MAX);
	if (!w->model.environments.of[ENV_KIND_PYTHON] || w->model.python ||
		w->model.requirements || w->model.packages.count || w->model.build_options.count)
		return 0;
	if (!meta)
		return fail(err, ERR_NOT_FOUND, "environment '%s' of workspace '%s' is missing",
			w->model.environments.of[ENV_KIND_PYTHON], w->model.name);
	if (meta->has_notes || meta->editables.count || meta->system_site_packages)
		return fail_hint(err, ERR_CONFLICT,
			"build an environment with the packages: carrel env build",
			"environment '%s' was built with options that an install can't repeat",
			meta->name);
	c->next.python = minor_of(&c->arena, meta->python_version);
	if (!strcmp(meta->requirements_sha256, ENV_NO_REQUIREMENTS))
		return 0;
	if (env_read_file(&w->core->envs, meta->name, "requirements.txt", &text, err))
		return -1;
	c->next.requirements = arena_bytes(&c->arena, text.data ? text.data : "", text.len);
	return 0;
}

/* Without the packages that are named; *found: how many were. The text stays as it is, byte for
 * byte, when there are none: its hash is in the environment's name. */
static int cut_requirements(struct package_change *c, size_t *found, struct error *err)
{
	requirement_list list = { 0 };
	auto_buf struct buf text = buf_empty(REQUIREMENTS_MAX);
	if (!c->next.requirements)
		return 0;
	if (requirements_parse(str_from(c->next.requirements), &c->arena, &list, err))
		return error_context(err, "the requirements of workspace '%s'", c->w->model.name);
	size_t before = *found;
	for (size_t i = 0; i < list.count; i++) {
		if (packages_is_named(&c->names, list.items[i].name))
			++*found;
		else
			buf_printf(&text, "%s\n", list.items[i].text);
	}
	if (*found != before)
		c->next.requirements =
			text.len ? arena_bytes(&c->arena, text.data, text.len) : NULL;
	return 0;
}

static void cut_packages(struct package_change *c, size_t *found)
{
	text_list left = { 0 };
	for (size_t i = 0; i < c->next.packages.count; i++) {
		requirement_list list = { 0 };
		struct error ignored;
		bool is_cut = !requirements_parse(str_from(c->next.packages.items[i]), &c->arena,
				      &list, &ignored) &&
			      list.count == 1 && packages_is_named(&c->names, list.items[0].name);
		*found += is_cut;
		if (!is_cut)
			vec_push(&c->arena, &left, c->next.packages.items[i]);
	}
	c->next.packages = left;
}

#define COMMANDS_HINT                                                                              \
	"a package that a command installed is removed by `uv pip uninstall` or `pip uninstall` "  \
	"in the workspace"

/* A removal names what is there. */
static int check_removal(struct package_change *c, struct error *err)
{
	text_list all = c->names;
	for (size_t i = 0; i < all.count; i++) {
		struct workspace kept = c->next;
		size_t found = 0;
		c->names = (text_list){ &all.items[i], 1, 1 };
		int failed = cut_requirements(c, &found, err);
		cut_packages(c, &found);
		c->next = kept;
		c->names = all;
		if (failed || !found)
			return failed ? -1
				      : packages_refuse_removal(
						c, all.items[i], COMMANDS_HINT, err);
	}
	return 0;
}

static int make_recipe(struct package_change *c, struct error *err)
{
	size_t found = 0;
	if (c->wanted.persists)
		c->files[0] = (struct project_file){ .path = "pyproject.toml", .most = TOML_MAX };
	if (read_recipe(c, err) || (c->wanted.is_removal && check_removal(c, err)) ||
		cut_requirements(c, &found, err))
		return -1;
	cut_packages(c, &found);
	if (!c->wanted.is_removal)
		for (size_t i = 0; i < c->wanted.packages.count; i++)
			vec_push(&c->arena, &c->next.packages, c->wanted.packages.items[i]);
	if (c->next.packages.count > PACKAGES_MAX)
		return fail(err, ERR_LIMIT, "a workspace has at most %d packages of its own",
			PACKAGES_MAX);
	/* What has no packages left is still an environment, of this Python. */
	const struct env_meta *meta = pin_meta(c->w->packages->pins[ENV_KIND_PYTHON]);
	if (!c->next.packages.count && !c->next.requirements && !c->next.python && meta)
		c->next.python = minor_of(&c->arena, meta->python_version);
	return 0;
}

static void declare(struct package_change *c, const char *text, text_list *declared)
{
	requirement_list list = { 0 };
	struct error ignored; /* it was parsed before */
	if (requirements_parse(str_from(text), &c->arena, &list, &ignored))
		return;
	for (size_t i = 0; i < list.count; i++) {
		const char *line = list.items[i].text, *hashes = strstr(line, " --hash");
		if (list.items[i].kind == REQUIREMENT_PACKAGE)
			vec_push(&c->arena, declared,
				hashes ? (const char *)arena_bytes(
						 &c->arena, line, (size_t)(hashes - line))
				       : line);
	}
}

/* What goes into pyproject.toml: a new one lists all that the workspace has been asked for. */
static text_list list_declared(struct package_change *c)
{
	text_list declared = { 0 };
	if (c->files[0].is_there)
		return c->wanted.packages;
	if (c->next.requirements)
		declare(c, c->next.requirements, &declared);
	for (size_t i = 0; i < c->next.packages.count; i++)
		declare(c, c->next.packages.items[i], &declared);
	return declared;
}

static int edit(struct package_change *c, struct error *err)
{
	struct project_file *file = &c->files[0];
	text_list declared = list_declared(c);
	const struct env_meta *meta = pin_meta(c->w->packages->pins[ENV_KIND_PYTHON]);
	const char *python =
		meta ? minor_of(&c->arena, meta->python_version) : c->w->model.python; /* or NULL */
	if (!file->is_there && c->wanted.is_removal)
		return 0;
	return c->wanted.is_removal
		       ? pyproject_remove(file->text, &c->names, &c->arena, &file->changed, err)
		       : pyproject_add(
				 file->text, &declared, python, &c->arena, &file->changed, err);
}

static int read_names(struct package_change *c, struct error *err)
{
	for (size_t i = 0; i < c->wanted.packages.count; i++) {
		requirement_list list = { 0 };
		const char *text = c->wanted.packages.items[i];
		if (requirements_parse(str_from(text), &c->arena, &list, err))
			return error_context(err, "'%s'", text);
		if (list.count != 1 || list.items[0].kind != REQUIREMENT_PACKAGE ||
			list.items[0].hashes.count)
			return fail_hint(err, ERR_INVALID,
				"a name with a version, such as 'requests>=2.31'",
				"'%s' is not a package of an index", text);
		if (c->wanted.is_removal && (list.items[0].specifier[0] || list.items[0].marker))
			return fail_hint(err, ERR_INVALID, list.items[0].name,
				"'%s': only the name of a package can be uninstalled", text);
		c->wanted.packages.items[i] = list.items[0].text;
		packages_push_unique(&c->arena, &c->names, list.items[0].name);
	}
	if (!c->names.count)
		return fail(err, ERR_INVALID, "no packages were named");
	return 0;
}

const struct package_manager package_manager_python = { &env_python, ENV_KIND_PYTHON, read_names,
	make_recipe, edit, NULL, live_apply };
