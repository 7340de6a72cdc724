#include "core/packages/packages.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/access/audit_records.h"
#include "core/access/policies.h"
#include "core/packages/packages_internal.h"

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
	for (size_t i = 0; i < PROJECT_FILES; i++)
		buf_done(&c->files[i].changed);
	arena_done(&c->arena);
	free(c);
	core_release(w);
}

/* ---- files of the project are put back ---- */

static void restore_next(struct package_change *c);

static void on_restored(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct package_change *c = ctx;
	if (err)
		log_record(&c->w->core->log, LOG_LEVEL_WARN,
			"a file could not be restored after a failed install", "workspace",
			c->w->model.id, "file", c->files[c->file].path, "error", err->text, NULL);
	c->file++;
	restore_next(c);
}

static void on_restore_begun(void *ctx, struct file_write *write, const struct error *err)
{
	struct package_change *c = ctx;
	const struct project_file *file = &c->files[c->file];
	struct error failure;
	if (!err && files_write(write, file->text.data, file->text.len, &failure)) {
		files_abort_write(write);
		err = &failure;
	}
	if (err)
		on_restored(c, NULL, err);
	else
		files_finish_write(write, on_restored, c);
}

static void restore_next(struct package_change *c)
{
	while (c->file < PROJECT_FILES && !c->files[c->file].is_written)
		c->file++;
	if (c->file == PROJECT_FILES) {
		finish(c);
		return;
	}
	const struct project_file *file = &c->files[c->file];
	struct files_request what = { .verb = FILES_REMOVE, .path = file->path };
	if (file->is_there)
		files_begin_write(&request_system, c->w, file->path, 0, 0, on_restore_begun, c);
	else
		files_do(&request_system, c->w, &what, on_restored, c);
}

/* Ends it with c->err; the project's files are as they were. */
static void undo(struct package_change *c, const struct error *err)
{
	c->has_failed = true;
	c->err = *err;
	c->file = 0;
	restore_next(c);
}

/* ---- the last step: a new environment for the next sandbox, or for this one ---- */

static const char **name_of(const struct package_change *c, struct workspace *model)
{
	return c->manager->slot == 0 ? &model->environment : &model->node_environment;
}

static void set_model(struct core_workspace *w, const struct workspace *from)
{
	struct workspace copy = *from;
	record_copy_texts(&workspace_record, &w->arena, &copy);
	w->model.environment = copy.environment;
	w->model.python = copy.python;
	w->model.requirements = copy.requirements;
	w->model.packages = copy.packages;
	w->model.node_environment = copy.node_environment;
	w->model.node = copy.node;
	memcpy(w->model.unsettled, copy.unsettled, sizeof w->model.unsettled);
}

static void on_copied(void *ctx, const struct error *err)
{
	struct package_change *c = ctx;
	struct core_workspace *w = c->w;
	size_t slot = c->manager->slot;
	if (err) {
		/* The sandbox has the old environment, and the row is to say so. */
		set_model(w, &c->old);
		struct env_pin *unwanted = w->pins[slot];
		w->pins[slot] = c->pin;
		c->pin = unwanted;
		if (!w->model.unsettled[slot].before) {
			environment_unpin(w->core, w->pins_before[slot]);
			w->pins_before[slot] = NULL;
		}
		workspace_save(w, NULL, NULL);
		undo(c, err);
		return;
	}
	/* What commands change from now on stays. */
	w->model.unsettled[slot].forced = text_list_copy(&w->arena, &c->old.unsettled[slot].forced);
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
	if (!*name_of(c, &c->old)) {
		struct error err;
		fail_hint(&err, ERR_CONFLICT, "try again when nothing runs in it",
			"workspace '%s' has no environment of %s yet, and it can't get one while "
			"something runs in it",
			w->model.name, c->manager->kind->row->name);
		on_copied(c, &err);
		return;
	}
	struct live_change change = { .w = w,
		.arena = &c->arena,
		.before = pin_meta(c->pin),
		.after = pin_meta(w->pins[c->manager->slot]),
		.names = w->model.unsettled[c->manager->slot].forced };
	c->manager->apply(&change, on_copied, c);
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

bool packages_is_named(const text_list *names, const char *name)
{
	for (size_t i = 0; name && i < names->count; i++)
		if (!strcmp(names->items[i], name))
			return true;
	return false;
}

void packages_push_unique(struct arena *arena, text_list *list, const char *text)
{
	if (!packages_is_named(list, text))
		vec_push(arena, list, (const char *)arena_text(arena, text));
}

int packages_refuse_removal(
	struct package_change *c, const char *name, const char *hint, struct error *err)
{
	const struct env_meta *meta = pin_meta(c->w->pins[c->manager->slot]);
	if (meta && env_package_version(&meta->packages, name))
		return fail_hint(err, ERR_CONFLICT, "uninstall the packages that need it",
			"package '%s' of workspace '%s' is a dependency of others", name,
			c->w->model.name);
	return fail_hint(err, ERR_NOT_FOUND, hint,
		"package '%s' was not installed by carrel in workspace '%s'", name,
		c->w->model.name);
}

/* What is in `to` and not, or in another version, in `from`. */
static pair_list difference(struct arena *arena, const pair_list *from, const pair_list *to)
{
	pair_list found = { 0 };
	for (size_t i = 0; to && i < to->count; i++) {
		const char *version = env_package_version(from, to->items[i].key);
		if (!version || strcmp(version, to->items[i].value))
			vec_push(arena, &found, to->items[i]);
	}
	return found;
}

/* That of the workspace, which may change or be tidied meanwhile. */
static void copy_model(struct package_change *c, struct workspace *model)
{
	*model = c->w->model;
	record_copy_texts(&workspace_record, &c->arena, model);
}

static void write_row(struct package_change *c)
{
	struct core_workspace *w = c->w;
	/* A snapshot that is being made has the environment and what lies on top of it as they
	 * are: both change when it has ended. */
	c->waits_for_trees = w->is_taken;
	if (w->is_taken)
		return;
	size_t slot = c->manager->slot;
	const struct env_meta *before = pin_meta(w->pins[slot]), *after = pin_meta(c->pin);
	const pair_list *had = before ? &before->packages : NULL;
	copy_model(c, &c->old);
	c->result.environment = arena_text(&c->arena, after->name);
	c->result.installed = difference(&c->arena, had, &after->packages);
	c->result.removed = difference(&c->arena, &after->packages, had);
	c->result.is_persisted = c->files[0].is_written;
	struct snapshot state = { 0 };
	struct workspace next = c->old;
	snapshot_take_state(&state, &c->next);
	state.layers = c->old.layers;
	snapshot_give_state(&c->arena, &state, &next);
	struct workspace_unsettled *unsettled = &next.unsettled[slot];
	if (!unsettled->before)
		unsettled->before = *name_of(c, &c->old);
	unsettled->forced = text_list_copy(&c->arena, &unsettled->forced);
	for (size_t i = 0; i < c->names.count; i++)
		packages_push_unique(&c->arena, &unsettled->forced, c->names.items[i]);
	for (size_t i = 0; i < c->result.installed.count; i++)
		packages_push_unique(
			&c->arena, &unsettled->forced, c->result.installed.items[i].key);
	*name_of(c, &next) = arena_text(&c->arena, after->name);
	set_model(w, &next);
	struct env_pin *old = w->pins[slot];
	w->pins[slot] = c->pin;
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

/* ---- the project's files are written ---- */

static void write_next(struct package_change *c);

static void on_written(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct package_change *c = ctx;
	if (err) {
		undo(c, err);
		return;
	}
	c->files[c->file++].is_written = true;
	fault_point("packages_project");
	write_next(c);
}

static void on_write_begun(void *ctx, struct file_write *write, const struct error *err)
{
	struct package_change *c = ctx;
	const struct buf *text = &c->files[c->file].changed;
	struct error failure;
	if (!err && files_write(write, text->data, text->len, &failure)) {
		files_abort_write(write);
		err = &failure;
	}
	if (err)
		undo(c, err);
	else
		files_finish_write(write, on_written, c);
}

static void write_next(struct package_change *c)
{
	for (; c->file < PROJECT_FILES; c->file++) {
		const struct project_file *file = &c->files[c->file];
		bool is_same = file->is_there && file->changed.len == file->text.len &&
			       !memcmp(file->changed.data, file->text.data, file->text.len);
		if (file->changed.len && !is_same)
			break;
	}
	if (c->file == PROJECT_FILES)
		write_row(c);
	else
		files_begin_write(
			&request_system, c->w, c->files[c->file].path, 0, 0, on_write_begun, c);
}

static void on_built(void *ctx, struct env_pin *pin, const struct error *err)
{
	struct package_change *c = ctx;
	struct error gone;
	c->pin = pin;
	c->build = 0;
	if (!err && (c->w->removal || c->w->is_gone)) {
		fail(&gone, ERR_NOT_FOUND, "workspace '%s' is being removed", c->w->model.name);
		err = &gone;
	}
	if (!err && cancelable_check(&c->cancelable, &gone))
		err = &gone;
	fault_point("packages_built");
	/* With what it depends on. */
	if (!err && policies_check_environment(c->w, pin_meta(pin), &gone))
		err = &gone;
	if (!err && c->manager->complete && c->manager->complete(c, &gone))
		err = &gone;
	c->file = 0;
	if (err)
		undo(c, err);
	else
		write_next(c);
}

/* ---- the project's files are read, and edited, before anything is built ---- */

static void build(struct package_change *c)
{
	struct error err;
	if (cancelable_check(&c->cancelable, &err) ||
		(c->files[0].path && c->manager->edit(c, &err)))
		undo(c, &err);
	else
		environment_build(
			c->w, &c->next, c->manager->slot, c->request_id, &c->build, on_built, c);
}

static void open_next(struct package_change *c);

static void on_opened(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct package_change *c = ctx;
	struct project_file *file = &c->files[c->file];
	struct error failure;
	auto_close int fd = answer ? answer->fd : -1;
	file->is_there = !err;
	if (err && err->code == ERR_NOT_FOUND)
		err = NULL;
	else if (!err && file_read(fd, file->most, &c->arena, &file->text)) {
		fail_errno(&failure, "read '%s'", file->path);
		err = &failure;
	}
	if (err) {
		undo(c, err);
		return;
	}
	c->file++;
	open_next(c);
}

static void open_next(struct package_change *c)
{
	if (c->file == PROJECT_FILES || !c->files[c->file].path) {
		build(c);
		return;
	}
	struct project_file *file = &c->files[c->file];
	struct files_request what = { .verb = FILES_OPEN, .path = file->path };
	file->changed = buf_empty(file->most);
	files_do(&request_system, c->w, &what, on_opened, c);
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
	environments_sort(w);
	copy_model(c, &c->next);
	if (c->manager->make_recipe(c, &err))
		undo(c, &err);
	else
		open_next(c);
}

/* ---- what is asked for ---- */

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct package_change *c = ctx;
	c->has_failed = true;
	c->err = *err;
	c->done(c->ctx, NULL, err);
	for (size_t i = 0; i < PROJECT_FILES; i++)
		buf_done(&c->files[i].changed);
	arena_done(&c->arena);
	core_release(c->w);
	free(c);
}

/* Up to the first file that is written, nothing has changed. */
static void cut(struct cancelable *cancelable)
{
	struct package_change *c = (struct package_change *)cancelable;
	environment_cancel_build(cancelable->core, c->build);
}

#define MANAGER(id, name) [ENV_KIND_##id] = &package_manager_##name,
static const struct package_manager *const managers[ENV_KINDS] = { ENV_KIND_LIST(MANAGER) };

struct cancelable *packages_change(const struct request *request, struct core_workspace *w,
	const struct packages_wanted *wanted, packages_fn *done, void *ctx)
{
	struct package_change *c = xzalloc(sizeof *c), **last = &w->changes;
	struct error err;
	*c = (struct package_change){ .cancelable = { .core = w->core, .cut = cut },
		.w = w,
		.wanted = *wanted,
		.done = done,
		.ctx = ctx };
	arena_init(&c->arena);
	c->manager = managers[wanted->kind - env_kind_rows];
	c->wanted.packages = text_list_copy(&c->arena, &wanted->packages);
	str_copy(c->request_id, sizeof c->request_id, request->id);
	core_hold(w);
	if (access_check(w->core, request,
		    wanted->is_removal ? VERB_WORKSPACE_UNINSTALL : VERB_WORKSPACE_INSTALL, w,
		    &err) ||
		c->manager->read_names(c, &err) ||
		(!wanted->is_removal &&
			policies_judge_packages(request, w, wanted->kind, &c->names, &err))) {
		core_later(w->core, on_refused, c, w, &err);
		return &c->cancelable;
	}
	audit_packages(request, w, wanted);
	while (*last)
		last = &(*last)->later;
	*last = c;
	if (w->changes == c)
		loop_after(w->core->loop, 0, begin, c);
	return &c->cancelable;
}
