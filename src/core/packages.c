#include "core/packages.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/packages_internal.h"
#include "format/pyproject_edit.h"
#include "format/requirements.h"
#include "format/toml_lite.h"

#define PROJECT "pyproject.toml"
#define PACKAGES_MAX 500

struct package_change {
	struct core_workspace *w; /* held */
	struct arena arena;
	struct packages_wanted wanted;
	text_list names; /* normalised, of wanted.packages */
	packages_fn *done;
	void *ctx;
	char request_id[ID_LEN + 1];
	/* pyproject.toml */
	bool had_project;
	struct str project;	/* as it was, */
	struct buf new_project; /* and is to be */
	bool is_project_written;
	struct workspace next; /* its recipe */
	struct workspace old;  /* what is put back after an error */
	struct env_pin *pin;   /* of the new environment, until it is the workspace's */
	struct packages_result result;
	bool waits_for_trees; /* of the workspace, which an operation has taken */
	bool has_failed;
	struct error err;
	struct package_change *later; /* that waits for this one */
};

static void begin(struct loop *loop, void *ctx);

static void finish(struct package_change *c)
{
	struct core_workspace *w = c->w;
	struct core *core = w->core;
	if (!c->has_failed)
		journal_emit(&core->journal,
			c->wanted.is_removal ? "workspace.uninstalled" : "workspace.installed",
			w->model.id, w->model.name, "environment", w->model.environment, NULL);
	fault_point("packages_answer");
	c->done(c->ctx, c->has_failed ? NULL : &c->result, c->has_failed ? &c->err : NULL);
	w->changes = c->later;
	if (w->changes)
		loop_after(core->loop, 0, begin, w->changes);
	environment_unpin(core, c->pin);
	buf_done(&c->new_project);
	arena_done(&c->arena);
	free(c);
	core_release(w);
}

/* ---- pyproject.toml ---- */

static void on_project_restored(
	void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct package_change *c = ctx;
	if (err)
		log_record(&c->w->core->log, LOG_LEVEL_WARN,
			"'" PROJECT "' could not be restored after a failed install", "workspace",
			c->w->model.id, "error", err->text, NULL);
	finish(c);
}

static void on_restore_begun(void *ctx, struct file_write *write, const struct error *err)
{
	struct package_change *c = ctx;
	struct error failure;
	if (!err && files_write(write, c->project.data, c->project.len, &failure)) {
		files_abort_write(write);
		err = &failure;
	}
	if (err)
		on_project_restored(c, NULL, err);
	else
		files_finish_write(write, on_project_restored, c);
}

/* Ends it with c->err; the project's file is as it was. */
static void undo(struct package_change *c, const struct error *err)
{
	c->has_failed = true;
	c->err = *err;
	if (!c->is_project_written)
		finish(c);
	else if (c->had_project)
		files_begin_write(&request_system, c->w, PROJECT, 0, 0, on_restore_begun, c);
	else {
		struct files_request what = { .verb = FILES_REMOVE, .path = PROJECT };
		files_do(&request_system, c->w, &what, on_project_restored, c);
	}
}

/* ---- the last step: a new environment for the next sandbox, or for this one ---- */

static void set_model(struct core_workspace *w, const struct workspace *from)
{
	w->model.environment = from->environment;
	w->model.python = from->python;
	w->model.requirements = from->requirements;
	w->model.packages = from->packages;
	w->model.unsettled[0] = from->unsettled[0];
}

static void on_copied(void *ctx, const struct error *err)
{
	struct package_change *c = ctx;
	struct core_workspace *w = c->w;
	if (err) {
		/* The sandbox has the old environment, and the row is to say so. */
		set_model(w, &c->old);
		struct env_pin *unwanted = w->pins[0];
		w->pins[0] = c->pin;
		c->pin = unwanted;
		if (!w->model.unsettled[0].before) {
			environment_unpin(w->core, w->pins_before[0]);
			w->pins_before[0] = NULL;
		}
		workspace_save(w, NULL, NULL);
		undo(c, err);
		return;
	}
	/* What commands change from now on stays. */
	w->model.unsettled[0].forced = c->old.unsettled[0].forced;
	w->is_dirty = true;
	c->result.is_live = true;
	workspace_save(w, NULL, NULL);
	finish(c);
}

static unsigned count_changes(const struct core_workspace *w)
{
	unsigned count = 0;
	for (const struct package_change *at = w->changes; at; at = at->later)
		count++;
	return count;
}

static bool is_busy(const struct core_workspace *w)
{
	return w->sandbox.exec_count || w->users > count_changes(w) || sandbox_has_processes(w);
}

static void apply(struct loop *loop, void *ctx);

static void on_up(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct package_change *c = ctx;
	if (!err)
		core_release(w);
	/* A sandbox that can't be started has no files to be changed. */
	if (err)
		finish(c);
	else
		loop_after(w->core->loop, 0, apply, c);
}

/* The row says that the workspace has the new environment. */
static void apply(struct loop *loop, void *ctx)
{
	struct package_change *c = ctx;
	struct core_workspace *w = c->w;
	fault_point("packages_row");
	if (w->sandbox.state == SANDBOX_NONE || w->removal) {
		finish(c);
		return;
	}
	if (w->sandbox.state == SANDBOX_ENDING) {
		finish(c); /* the next one has it */
		return;
	}
	if (w->sandbox.state == SANDBOX_STARTING) {
		core_wake(w, c->request_id, on_up, c);
		return;
	}
	if (!is_busy(w)) {
		core_end_sandbox(w, REASON_CANCELED);
		finish(c);
		return;
	}
	if (!c->old.environment) {
		struct error err;
		fail_hint(&err, ERR_CONFLICT, "try again when nothing runs in it",
			"workspace '%s' has no environment yet, and it can't get one while "
			"something runs in it",
			w->model.name);
		on_copied(c, &err);
		return;
	}
	struct live_change change = { .w = w,
		.arena = &c->arena,
		.before = pin_meta(c->pin),
		.after = pin_meta(w->pins[0]),
		.names = w->model.unsettled[0].forced };
	live_apply(&change, on_copied, c);
}

static void on_row(void *ctx, const struct error *err)
{
	struct package_change *c = ctx;
	struct core_workspace *w = c->w;
	if (!err) {
		/* At the next turn: what still holds the workspace for a file lets go of it. */
		loop_after(w->core->loop, 0, apply, c);
		return;
	}
	on_copied(c, err);
}

static void push_unique(struct arena *arena, text_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], text))
			return;
	vec_push(arena, list, (const char *)arena_text(arena, text));
}

static const char *version_in(const pair_list *packages, const char *name)
{
	for (size_t i = 0; packages && i < packages->count; i++)
		if (!strcmp(packages->items[i].key, name))
			return packages->items[i].value;
	return NULL;
}

/* What is in `to` and not, or in another version, in `from`. */
static pair_list difference(struct arena *arena, const pair_list *from, const pair_list *to)
{
	pair_list found = { 0 };
	for (size_t i = 0; to && i < to->count; i++) {
		const char *version = version_in(from, to->items[i].key);
		if (!version || strcmp(version, to->items[i].value))
			vec_push(arena, &found, to->items[i]);
	}
	return found;
}

static void write_row(struct package_change *c)
{
	struct core_workspace *w = c->w;
	/* A snapshot that is being made has the environment and what lies on top of it as they
	 * are: both change when it has ended. */
	c->waits_for_trees = w->is_taken;
	if (w->is_taken)
		return;
	const struct env_meta *before = pin_meta(w->pins[0]), *after = pin_meta(c->pin);
	const pair_list *had = before ? &before->packages : NULL;
	c->old = w->model;
	c->result.environment = arena_text(&c->arena, after->name);
	c->result.installed = difference(&c->arena, had, &after->packages);
	c->result.removed = difference(&c->arena, &after->packages, had);
	c->result.is_persisted = c->is_project_written;
	struct workspace next = c->next;
	next.environment = arena_text(&w->arena, after->name);
	next.python = next.python ? arena_text(&w->arena, next.python) : NULL;
	next.requirements = next.requirements ? arena_text(&w->arena, next.requirements) : NULL;
	next.packages = workspace_copy_texts(&w->arena, &next.packages);
	next.unsettled[0].before =
		c->old.unsettled[0].before ? c->old.unsettled[0].before : c->old.environment;
	next.unsettled[0].forced = workspace_copy_texts(&w->arena, &c->old.unsettled[0].forced);
	for (size_t i = 0; i < c->names.count; i++)
		push_unique(&w->arena, &next.unsettled[0].forced, c->names.items[i]);
	for (size_t i = 0; i < c->result.installed.count; i++)
		push_unique(&w->arena, &next.unsettled[0].forced, c->result.installed.items[i].key);
	set_model(w, &next);
	struct env_pin *old = w->pins[0];
	w->pins[0] = c->pin;
	c->pin = old;
	environments_keep(w);
	fault_point("packages_write_row");
	workspace_save(w, on_row, c);
}

void packages_go_on(struct core_workspace *w)
{
	struct package_change *c = w->changes;
	if (!c || !c->waits_for_trees)
		return;
	write_row(c);
}

/* ---- the project's file is written ---- */

static void on_project_written(
	void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct package_change *c = ctx;
	if (err) {
		undo(c, err);
		return;
	}
	c->is_project_written = true;
	fault_point("packages_project");
	write_row(c);
}

static void on_project_begun(void *ctx, struct file_write *write, const struct error *err)
{
	struct package_change *c = ctx;
	struct error failure;
	if (!err && files_write(write, c->new_project.data, c->new_project.len, &failure)) {
		files_abort_write(write);
		err = &failure;
	}
	if (err)
		undo(c, err);
	else
		files_finish_write(write, on_project_written, c);
}

static void on_built(void *ctx, struct env_pin *pin, const struct error *err)
{
	struct package_change *c = ctx;
	struct error gone;
	c->pin = pin;
	if (!err && (c->w->removal || c->w->is_gone)) {
		fail(&gone, ERR_NOT_FOUND, "workspace '%s' is being removed", c->w->model.name);
		err = &gone;
	}
	fault_point("packages_built");
	if (err)
		undo(c, err);
	else if (c->new_project.len)
		files_begin_write(&request_system, c->w, PROJECT, 0, 0, on_project_begun, c);
	else
		write_row(c);
}

/* ---- what the workspace is to be made of ---- */

static bool is_named(const struct package_change *c, const char *name)
{
	for (size_t i = 0; name && i < c->names.count; i++)
		if (!strcmp(c->names.items[i], name))
			return true;
	return false;
}

static const char *minor_of(struct arena *arena, const char *version)
{
	const char *dot = strchr(version, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;
	return end ? arena_bytes(arena, version, (size_t)(end - version)) : version;
}

/* One that was given by name alone has its recipe in the store. */
static int read_recipe(struct package_change *c, struct error *err)
{
	struct core_workspace *w = c->w;
	const struct env_meta *meta = pin_meta(w->pins[0]);
	auto_buf struct buf text = buf_empty(REQUIREMENTS_MAX);
	if (!w->model.environment || w->model.python || w->model.requirements ||
		w->model.packages.count || w->model.build_options.count)
		return 0;
	if (!meta)
		return fail(err, ERR_NOT_FOUND, "environment '%s' of workspace '%s' is missing",
			w->model.environment, w->model.name);
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
		if (is_named(c, list.items[i].name))
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
			      list.count == 1 && is_named(c, list.items[0].name);
		*found += is_cut;
		if (!is_cut)
			vec_push(&c->arena, &left, c->next.packages.items[i]);
	}
	c->next.packages = left;
}

static int refuse_removal(struct package_change *c, const char *name, struct error *err)
{
	const struct env_meta *meta = pin_meta(c->w->pins[0]);
	if (meta && version_in(&meta->packages, name))
		return fail_hint(err, ERR_CONFLICT, "uninstall the packages that need it",
			"package '%s' of workspace '%s' is a dependency of others", name,
			c->w->model.name);
	return fail_hint(err, ERR_NOT_FOUND,
		"a package that a command installed is removed by `uv pip uninstall` or `pip "
		"uninstall` in the workspace",
		"package '%s' was not installed by carrel in workspace '%s'", name,
		c->w->model.name);
}

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
			return failed ? -1 : refuse_removal(c, all.items[i], err);
	}
	return 0;
}

static int make_recipe(struct package_change *c, struct error *err)
{
	size_t found = 0;
	if (c->w->pins[0] && environment_kind(c->w, 0) != &env_python)
		return fail(err, ERR_CONFLICT,
			"the environment '%s' of workspace '%s' is not of Python",
			c->w->model.environment, c->w->model.name);
	c->next = c->w->model;
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
	const struct env_meta *meta = pin_meta(c->w->pins[0]);
	if (!c->next.packages.count && !c->next.requirements && !c->next.python && meta)
		c->next.python = minor_of(&c->arena, meta->python_version);
	return 0;
}

static void build(struct package_change *c)
{
	environment_build(c->w, &c->next, c->request_id, on_built, c);
}

/* ---- the project's file is read and edited, before anything is built ---- */

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
	if (c->had_project)
		return c->wanted.packages;
	if (c->next.requirements)
		declare(c, c->next.requirements, &declared);
	for (size_t i = 0; i < c->next.packages.count; i++)
		declare(c, c->next.packages.items[i], &declared);
	return declared;
}

static int edit_project(struct package_change *c, struct error *err)
{
	text_list declared = list_declared(c);
	const struct env_meta *meta = pin_meta(c->w->pins[0]);
	const char *python = meta		  ? minor_of(&c->arena, meta->python_version)
			     : c->w->model.python ? c->w->model.python
						  : NULL;
	int failed = c->wanted.is_removal ? pyproject_remove(c->project, &c->names, &c->arena,
						    &c->new_project, err)
					  : pyproject_add(c->project, &declared, python, &c->arena,
						    &c->new_project, err);
	if (failed)
		return -1;
	/* Nothing is written that says the same. */
	if (c->new_project.len == c->project.len &&
		!memcmp(c->new_project.data, c->project.data, c->project.len))
		buf_clear(&c->new_project);
	return 0;
}

static void on_project_opened(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct package_change *c = ctx;
	struct error failure;
	auto_close int fd = answer ? answer->fd : -1;
	int failed = 0;
	c->had_project = !err;
	if (err && err->code != ERR_NOT_FOUND) {
		undo(c, err);
		return;
	}
	if (!err && file_read(fd, TOML_MAX, &c->arena, &c->project))
		failed = fail_errno(&failure, "read '" PROJECT "'");
	if (!failed && (c->had_project || !c->wanted.is_removal))
		failed = edit_project(c, &failure);
	if (failed) {
		undo(c, &failure);
		return;
	}
	build(c);
}

static void begin(struct loop *loop, void *ctx)
{
	struct package_change *c = ctx;
	struct core_workspace *w = c->w;
	struct error err;
	if (w->removal || w->core->is_stopping || w->model.state == WORKSPACE_FAILED) {
		if (w->core->is_stopping)
			fail(&err, ERR_UNAVAILABLE, "the daemon is stopping");
		else if (w->removal)
			fail(&err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
		else
			fail(&err, ERR_CONFLICT, "workspace '%s' has failed", w->model.name);
		undo(c, &err);
		return;
	}
	core_touch(w);
	if (make_recipe(c, &err)) {
		undo(c, &err);
		return;
	}
	if (c->wanted.persists) {
		struct files_request what = { .verb = FILES_OPEN, .path = PROJECT };
		files_do(&request_system, w, &what, on_project_opened, c);
	} else
		build(c);
}

/* ---- what is asked for ---- */

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
		push_unique(&c->arena, &c->names, list.items[0].name);
	}
	if (!c->names.count)
		return fail(err, ERR_INVALID, "no packages were named");
	return 0;
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct package_change *c = ctx;
	c->has_failed = true;
	c->err = *err;
	c->done(c->ctx, NULL, err);
	buf_done(&c->new_project);
	arena_done(&c->arena);
	core_release(c->w);
	free(c);
}

void packages_change(const struct request *request, struct core_workspace *w,
	const struct packages_wanted *wanted, packages_fn *done, void *ctx)
{
	struct package_change *c = xzalloc(sizeof *c), **last = &w->changes;
	struct error err;
	*c = (struct package_change){ .w = w, .wanted = *wanted, .done = done, .ctx = ctx };
	arena_init(&c->arena);
	c->new_project = buf_empty(TOML_MAX);
	c->wanted.packages = workspace_copy_texts(&c->arena, &wanted->packages);
	str_copy(c->request_id, sizeof c->request_id, request->id);
	core_hold(w);
	if (access_check(w->core, request,
		    wanted->is_removal ? VERB_WORKSPACE_UNINSTALL : VERB_WORKSPACE_INSTALL, w,
		    &err) ||
		read_names(c, &err)) {
		core_later(w->core, on_refused, c, w, &err);
		return;
	}
	while (*last)
		last = &(*last)->later;
	*last = c;
	if (w->changes == c)
		loop_after(w->core->loop, 0, begin, c);
}
