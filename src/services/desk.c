#include "services/desk.h"

#include <errno.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/files/files.h"
#include "core/packages/packages.h"

void desk_init(struct desk *desk, struct core *core, const struct request *request)
{
	*desk = (struct desk){ .core = core, .request = request };
}

static void drop_output(struct desk *desk)
{
	if (desk->captured.core)
		exec_captured_done(&desk->captured);
	desk->captured = (struct exec_captured){ 0 };
}

void desk_done(struct desk *desk)
{
	loop_cancel(core_loop(desk->core), desk->later);
	drop_output(desk);
}

/* ---- one step ---- */

static void begin(struct desk *desk, desk_fn *done, void *ctx)
{
	desk->done = done;
	desk->ctx = ctx;
	desk->err = (struct error){ 0 };
}

static void end(struct desk *desk, const struct error *err)
{
	desk_fn *done = desk->done;
	desk->done = NULL;
	done(desk->ctx, err);
}

static void on_later(struct loop *loop, void *ctx)
{
	struct desk *desk = ctx;
	desk->later = NULL;
	end(desk, desk->err.code ? &desk->err : NULL);
}

/* For what is known already: its callback comes from the loop all the same. */
static void end_later(struct desk *desk)
{
	desk->later = loop_after(core_loop(desk->core), 0, on_later, desk);
}

static bool find(struct desk *desk, struct core_workspace **w)
{
	if (!core_find(desk->request, desk->core, desk->id, w, &desk->err))
		return true;
	end_later(desk);
	return false;
}

/* ---- create ---- */

static void on_created(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct desk *desk = ctx;
	if (!err)
		str_copy(desk->id, sizeof desk->id, core_model(w)->id);
	end(desk, err);
}

void desk_create(struct desk *desk, const char *service, const struct workspace *wanted,
	desk_fn *done, void *ctx)
{
	struct workspace made = *wanted;
	made.owner.service = service;
	begin(desk, done, ctx);
	core_create(desk->request, desk->core, &made, on_created, desk);
}

/* ---- install ---- */

static void on_installed(void *ctx, const struct packages_result *result, const struct error *err)
{
	struct desk *desk = ctx;
	desk->install = NULL;
	if (!err)
		str_copy(desk->environment, sizeof desk->environment, result->environment);
	end(desk, err);
}

void desk_install(struct desk *desk, const text_list *packages, desk_fn *done, void *ctx)
{
	struct core_workspace *w;
	struct packages_wanted wanted = { .packages = *packages,
		.kind = &env_kind_rows[ENV_KIND_PYTHON] };
	begin(desk, done, ctx);
	if (find(desk, &w))
		desk->install = packages_change(desk->request, w, &wanted, on_installed, desk);
}

/* ---- write ---- */

static void on_written(void *ctx, const struct files_answer *answer, const struct error *err)
{
	end(ctx, err);
}

static void on_begun(void *ctx, struct file_write *write, const struct error *err)
{
	struct desk *desk = ctx;
	struct error why;
	if (err) {
		end(desk, err);
		return;
	}
	if (files_write(write, desk->bytes.data, desk->bytes.len, &why)) {
		files_abort_write(write);
		end(desk, &why);
		return;
	}
	files_finish_write(write, on_written, desk);
}

void desk_write(struct desk *desk, const char *path, struct str bytes, desk_fn *done, void *ctx)
{
	struct core_workspace *w;
	begin(desk, done, ctx);
	desk->bytes = bytes;
	if (find(desk, &w))
		files_begin_write(desk->request, w, path, 0, WRITE_PARENTS, on_begun, desk);
}

/* ---- read ---- */

static void on_opened(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct desk *desk = ctx;
	struct error why;
	if (err) {
		end(desk, err);
		return;
	}
	auto_close int fd = answer->fd;
	if (!file_read(fd, desk->max, desk->arena, desk->text)) {
		end(desk, NULL);
		return;
	}
	if (errno == EFBIG)
		fail(&why, ERR_LIMIT, "'%s' has more than %zu bytes", desk->path, desk->max);
	else
		fail_errno(&why, "read '%s'", desk->path);
	end(desk, &why);
}

void desk_read(struct desk *desk, const char *path, size_t max, struct arena *arena,
	struct str *text, desk_fn *done, void *ctx)
{
	const struct files_request what = { .verb = FILES_OPEN, .path = path };
	struct core_workspace *w;
	begin(desk, done, ctx);
	desk->path = path;
	desk->max = max;
	desk->arena = arena;
	desk->text = text;
	if (find(desk, &w))
		files_do(core_system(), w, &what, on_opened, desk);
}

/* ---- run ---- */

static void on_ended(void *ctx, struct core_exec *e, const struct error *err)
{
	struct desk *desk = ctx;
	desk->exec = NULL;
	if (!err) {
		desk->result = exec_record_of(e)->result;
		desk->captured = exec_take_captured(e);
		const char *limiter = exec_limiter(e);
		str_copy(desk->exec_id, sizeof desk->exec_id, exec_record_of(e)->id);
		str_copy(desk->limiter, sizeof desk->limiter, limiter ? limiter : "");
	}
	end(desk, err);
}

void desk_run(struct desk *desk, const struct exec_spec *spec, desk_fn *done, void *ctx)
{
	struct core_workspace *w;
	const struct exec_listener listener = { .ended = on_ended, .ctx = desk };
	begin(desk, done, ctx);
	drop_output(desk);
	if (find(desk, &w) && exec_start(desk->request, w, spec, EXEC_CAPTURED, NULL, &listener,
				      &desk->exec, &desk->err))
		end_later(desk);
}

void desk_cancel(struct desk *desk)
{
	if (desk->install)
		cancelable_cancel(desk->install);
	if (!desk->exec)
		return;
	exec_detach(desk->exec);
	desk->exec = NULL;
	fail(&desk->err, ERR_CANCELED, "canceled by the client");
	end_later(desk);
}

/* ---- remove ---- */

static void on_removed(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct desk *desk = ctx;
	if (!err)
		desk->id[0] = '\0';
	end(desk, err);
}

void desk_remove(struct desk *desk, desk_fn *done, void *ctx)
{
	struct core_workspace *w;
	struct error err;
	begin(desk, done, ctx);
	if (desk->id[0] && !core_find(core_system(), desk->core, desk->id, &w, &err)) {
		core_remove(core_system(), w, "removed", on_removed, desk);
		return;
	}
	desk->id[0] = '\0';
	end_later(desk);
}

/* ---- for fibers ---- */

int desk_create_wait(struct fiber *fiber, struct desk *desk, const char *service,
	const struct workspace *wanted, struct error *err)
{
	desk_create(desk, service, wanted, fiber_continue, fiber);
	return fiber_wait(fiber, err);
}

static void cut(void *desk)
{
	desk_cancel(desk);
}

int desk_install_wait(
	struct fiber *fiber, struct desk *desk, const text_list *packages, struct error *err)
{
	desk_install(desk, packages, fiber_continue, fiber);
	return fiber_wait_or_cut(fiber, cut, desk, err);
}

int desk_write_wait(struct fiber *fiber, struct desk *desk, const char *path, struct str bytes,
	struct error *err)
{
	desk_write(desk, path, bytes, fiber_continue, fiber);
	return fiber_wait(fiber, err);
}

int desk_run_wait(
	struct fiber *fiber, struct desk *desk, const struct exec_spec *spec, struct error *err)
{
	desk_run(desk, spec, fiber_continue, fiber);
	return fiber_wait_or_cut(fiber, cut, desk, err);
}

int desk_remove_wait(struct fiber *fiber, struct desk *desk, struct error *err)
{
	desk_remove(desk, fiber_continue, fiber);
	return fiber_wait(fiber, err);
}

/* ---- what a crash left ---- */

struct sweep {
	struct arena arena;
	text_list ids;
	bool (*is_kept)(void *ctx, const char *workspace);
	void *ctx;
};

static void add_stale(void *ctx, struct core_workspace *w)
{
	struct sweep *sweep = ctx;
	const char *id = core_model(w)->id;
	if (!sweep->is_kept || !sweep->is_kept(sweep->ctx, id))
		vec_push(&sweep->arena, &sweep->ids, arena_text(&sweep->arena, id));
}

void desk_sweep(struct core *core, const char *service,
	bool (*is_kept)(void *ctx, const char *workspace), void *ctx)
{
	struct sweep sweep = { .is_kept = is_kept, .ctx = ctx };
	const struct core_filter filter = { .service = service, .state = -1, .limit = SIZE_MAX };
	char next[CORE_CURSOR_SIZE];
	struct core_workspace *w;
	struct error err;
	if (core_list(core_system(), core, &filter, add_stale, &sweep, next, &err))
		log_record(core_log(core), LOG_LEVEL_WARN,
			"workspaces of a service can't be listed", "service", service, "error",
			err.text, NULL);
	for (size_t i = 0; i < sweep.ids.count; i++)
		if (!core_find(core_system(), core, sweep.ids.items[i], &w, &err))
			core_remove(core_system(), w, "left behind", NULL, NULL);
	arena_done(&sweep.arena);
}
