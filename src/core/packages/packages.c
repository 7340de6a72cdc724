#include "core/packages/packages.h"

#include <fcntl.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/access/audit_records.h"
#include "core/access/policies.h"
#include "core/packages/packages_internal.h"
#include "core/waits.h"

/* ---- files of the project ---- */

static void on_write_begun(void *ctx, struct file_write *write, const struct error *err)
{
	struct package_change *c = ctx;
	c->write = write;
	fiber_continue(c->fiber, err);
}

static void on_written(void *ctx, const struct files_answer *answer, const struct error *err)
{
	fiber_continue(ctx, err);
}

static int write_file(
	struct package_change *c, const char *path, struct str text, struct error *err)
{
	files_begin_write(&request_system, c->w, path, 0, 0, on_write_begun, c);
	if (fiber_wait(c->fiber, err))
		return -1;
	if (files_write(c->write, text.data, text.len, err)) {
		files_abort_write(c->write);
		return -1;
	}
	files_finish_write(c->write, on_written, c->fiber);
	return fiber_wait(c->fiber, err);
}

static int read_files(struct package_change *c, struct error *err)
{
	for (size_t i = 0; i < PROJECT_FILES && c->files[i].path; i++) {
		struct project_file *file = &c->files[i];
		file->changed = buf_empty(file->most);
		auto_close int fd = -1;
		file->is_there = !files_open(c->fiber, c->w, file->path, &fd, err);
		if (!file->is_there && err->code != ERR_NOT_FOUND)
			return -1;
		if (file->is_there && file_read(fd, file->most, &c->arena, &file->text))
			return fail_errno(err, "read '%s'", file->path);
	}
	return 0;
}

static int write_files(struct package_change *c, struct error *err)
{
	for (size_t i = 0; i < PROJECT_FILES; i++) {
		struct project_file *file = &c->files[i];
		const struct str text = { file->changed.data, file->changed.len };
		if (!text.len || (file->is_there && str_equal(text, file->text)))
			continue;
		if (write_file(c, file->path, text, err))
			return -1;
		file->is_written = true;
		fault_point("packages_project");
	}
	return 0;
}

static int restore_file(
	struct package_change *c, const struct project_file *file, struct error *err)
{
	const struct files_request what = { .verb = FILES_REMOVE, .path = file->path };
	const struct files_answer *answer;
	return file->is_there ? write_file(c, file->path, file->text, err)
			      : files_wait(c->fiber, c->w, &what, &answer, err);
}

/* They are as they were. */
static void restore_files(struct package_change *c)
{
	struct error err;
	for (size_t i = 0; i < PROJECT_FILES; i++)
		if (c->files[i].is_written && restore_file(c, &c->files[i], &err))
			log_record(&c->w->core->log, LOG_LEVEL_WARN,
				"a file could not be restored after a failed install", "workspace",
				c->w->model.id, "file", c->files[i].path, "error", err.text, NULL);
}

/* ---- a new environment for the next sandbox, or for this one ---- */

static void set_model(struct core_workspace *w, const struct workspace *from)
{
	struct workspace copy = *from;
	record_copy_texts(&workspace_record, &w->arena, &copy);
	w->model.environments = copy.environments;
	w->model.python = copy.python;
	w->model.requirements = copy.requirements;
	w->model.packages = copy.packages;
	w->model.node = copy.node;
	memcpy(w->model.unsettled, copy.unsettled, sizeof w->model.unsettled);
}

/* Whether it still has the new environment: one that was suspended may have been rolled back. */
static bool has_new(const struct package_change *c)
{
	const char *name = c->w->model.environments.of[c->manager->slot];
	return name && c->result.environment && !strcmp(name, c->result.environment);
}

/* The sandbox has the old environment, and the row is to say so. */
static void put_back(struct package_change *c)
{
	struct core_workspace *w = c->w;
	size_t slot = c->manager->slot;
	if (!has_new(c))
		return;
	set_model(w, &c->old);
	struct env_pin *unwanted = w->packages->pins[slot];
	w->packages->pins[slot] = c->pin;
	c->pin = unwanted;
	if (!w->model.unsettled[slot].before) {
		environment_unpin(w->core, w->packages->before[slot]);
		w->packages->before[slot] = NULL;
	}
	workspace_save(w, NULL, NULL);
}

bool packages_are_changing(const struct core_workspace *w)
{
	return w->packages->changes;
}

static unsigned count_changes(const struct core_workspace *w)
{
	unsigned count = 0;
	for (const struct package_change *at = w->packages->changes; at; at = at->later)
		count++;
	return count;
}

static bool is_busy(const struct core_workspace *w)
{
	return w->sandbox.exec_count || w->users > count_changes(w) || sandbox_has_processes(w);
}

static int copy_live(struct package_change *c, struct error *err)
{
	struct core_workspace *w = c->w;
	struct workspace_unsettled *unsettled = &w->model.unsettled[c->manager->slot];
	if (!c->old.environments.of[c->manager->slot])
		return fail_hint(err, ERR_CONFLICT, "try again when nothing runs in it",
			"workspace '%s' has no environment of %s yet, and it can't get one while "
			"something runs in it",
			w->model.name, c->manager->kind->row->name);
	struct live_change change = { .w = w,
		.arena = &c->arena,
		.before = pin_meta(c->pin),
		.after = pin_meta(w->packages->pins[c->manager->slot]),
		.names = unsettled->forced };
	if (c->manager->apply(c->fiber, &change, err))
		return -1;
	if (!has_new(c))
		return fail(err, ERR_CONFLICT,
			"workspace '%s' was rolled back while packages were copied into it",
			w->model.name);
	/* What commands change from now on stays. */
	unsettled->forced = text_list_copy(&w->arena, &c->old.unsettled[c->manager->slot].forced);
	w->is_dirty = true;
	c->result.is_live = true;
	workspace_save(w, NULL, NULL);
	return 0;
}

static void on_up(void *ctx, struct core_workspace *w, const struct error *err)
{
	if (!err)
		core_release(w);
	fiber_continue(ctx, err);
}

/* The row says that the workspace has the new environment. */
static int apply(struct package_change *c, struct error *err)
{
	struct core_workspace *w = c->w;
	struct error none;
	for (;;) {
		/* What still holds the workspace for a file lets go of it. */
		wait_turn(c->fiber, w->core);
		fault_point("packages_row");
		if (w->sandbox.state != SANDBOX_STARTING || w->removal)
			break;
		core_wake(w, c->request_id, on_up, c->fiber);
		if (fiber_wait(c->fiber, &none))
			return 0; /* one that can't be started has no files to be changed */
	}
	if (w->sandbox.state != SANDBOX_UP || w->removal)
		return 0; /* the next one has it */
	if (is_busy(w))
		return copy_live(c, err);
	core_end_sandbox(w, REASON_CANCELED);
	return 0;
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
	const struct env_meta *meta = pin_meta(c->w->packages->pins[c->manager->slot]);
	if (meta && env_package_version(&meta->packages, name))
		return fail_hint(err, ERR_CONFLICT, "uninstall the packages that need it",
			"package '%s' of workspace '%s' is a dependency of others", name,
			c->w->model.name);
	return fail_hint(err, ERR_NOT_FOUND, hint,
		"package '%s' was not installed by carrel in workspace '%s'", name,
		c->w->model.name);
}

/* What is in `to` and not, or in another version, in `from`; copied: environments may be released
 * or read again before it is told. */
static pair_list difference(struct arena *arena, const pair_list *from, const pair_list *to)
{
	pair_list found = { 0 };
	for (size_t i = 0; to && i < to->count; i++) {
		const char *version = env_package_version(from, to->items[i].key);
		if (!version || strcmp(version, to->items[i].value))
			vec_push(arena, &found,
				(struct text_pair){ arena_text(arena, to->items[i].key),
					arena_text(arena, to->items[i].value) });
	}
	return found;
}

/* That of the workspace, which may change or be tidied meanwhile. */
static void copy_model(struct package_change *c, struct workspace *model)
{
	*model = c->w->model;
	record_copy_texts(&workspace_record, &c->arena, model);
}

static int write_row(struct package_change *c, struct error *err)
{
	struct core_workspace *w = c->w;
	size_t slot = c->manager->slot;
	const struct env_meta *before = pin_meta(w->packages->pins[slot]),
			      *after = pin_meta(c->pin);
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
		unsettled->before = c->old.environments.of[c->manager->slot];
	unsettled->forced = text_list_copy(&c->arena, &unsettled->forced);
	for (size_t i = 0; i < c->names.count; i++)
		packages_push_unique(&c->arena, &unsettled->forced, c->names.items[i]);
	for (size_t i = 0; i < c->result.installed.count; i++)
		packages_push_unique(
			&c->arena, &unsettled->forced, c->result.installed.items[i].key);
	next.environments.of[slot] = arena_text(&c->arena, after->name);
	set_model(w, &next);
	struct env_pin *old = w->packages->pins[slot];
	w->packages->pins[slot] = c->pin;
	c->pin = old;
	environments_keep(w);
	fault_point("packages_write_row");
	workspace_save(w, fiber_continue, c->fiber);
	return fiber_wait(c->fiber, err);
}

/* A snapshot that is being made has the environment and what lies on top of it as they are: both
 * change when it has ended. */
static void wait_for_trees(struct package_change *c)
{
	struct error none;
	while (tree_is_taken(c->w)) {
		c->waits_for_trees = true;
		fiber_wait(c->fiber, &none);
	}
}

void packages_go_on(struct core_workspace *w)
{
	struct package_change *c = w->packages->changes;
	if (!c || !c->waits_for_trees)
		return;
	c->waits_for_trees = false;
	fiber_continue(c->fiber, NULL);
}

/* ---- the change ---- */

static int build(struct package_change *c, struct error *err)
{
	struct core_workspace *w = c->w;
	int failed = environment_build(
		c->fiber, w, &c->next, c->manager->slot, c->request_id, &c->build, &c->pin, err);
	if (!failed && (w->removal || w->is_gone))
		failed = fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
	if (!failed)
		failed = cancelable_check(&c->cancelable, err);
	fault_point("packages_built");
	/* With what it depends on. */
	if (failed || policies_check_environment(w, pin_meta(c->pin), err))
		return -1;
	return c->manager->complete ? c->manager->complete(c, err) : 0;
}

static int check_workspace(const struct core_workspace *w, struct error *err)
{
	if (w->core->is_stopping)
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	if (w->removal)
		return fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
	if (w->model.state == WORKSPACE_FAILED)
		return fail(err, ERR_CONFLICT, "workspace '%s' has failed", w->model.name);
	return 0;
}

static int change(struct package_change *c, struct error *err)
{
	struct core_workspace *w = c->w;
	if (check_workspace(w, err))
		return -1;
	core_touch(w);
	environments_sort(w);
	copy_model(c, &c->next);
	/* What can't be edited is refused before anything is built. */
	if (c->manager->make_recipe(c, err) || read_files(c, err) ||
		cancelable_check(&c->cancelable, err) ||
		(c->files[0].path && c->manager->edit(c, err)) || build(c, err) ||
		write_files(c, err))
		return -1;
	wait_for_trees(c);
	if (w->removal || w->is_gone)
		return fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
	if (!write_row(c, err) && !apply(c, err))
		return 0;
	put_back(c);
	return -1;
}

static void free_change(struct package_change *c)
{
	for (size_t i = 0; i < PROJECT_FILES; i++)
		buf_done(&c->files[i].changed);
	arena_done(&c->arena);
	free(c);
}

static void begin(struct loop *loop, void *ctx);

static void run_change(struct fiber *fiber, void *ctx)
{
	struct package_change *c = ctx;
	struct core_workspace *w = c->w;
	struct core *core = w->core;
	struct error err;
	c->fiber = fiber;
	int failed = change(c, &err);
	if (failed)
		restore_files(c);
	else
		journal_emit(&core->journal,
			c->wanted.is_removal ? "workspace.uninstalled" : "workspace.installed",
			w->model.id, w->model.name, "environment",
			w->model.environments.of[ENV_KIND_PYTHON], NULL);
	fault_point("packages_answer");
	c->done(c->ctx, failed ? NULL : &c->result, failed ? &err : NULL);
	w->packages->changes = c->later;
	if (w->packages->changes)
		loop_after(core->loop, 0, begin, w->packages->changes);
	environment_unpin(core, c->pin);
	free_change(c);
	core_release(w);
}

static void begin(struct loop *loop, void *ctx)
{
	fiber_start(run_change, ctx);
}

/* ---- what is asked for ---- */

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct package_change *c = ctx;
	c->done(c->ctx, NULL, err);
	core_release(c->w);
	free_change(c);
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
	struct package_change *c = xzalloc(sizeof *c), **last = &w->packages->changes;
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
	if (w->packages->changes == c)
		loop_after(w->core->loop, 0, begin, c);
	return &c->cancelable;
}
