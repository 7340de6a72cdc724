#include "services/desk.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/files/files.h"
#include "core/files/tree_archive.h"
#include "core/packages/packages.h"
#include "core/state/snapshots.h"

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

/* ---- open ---- */

struct opening {
	struct fiber *fiber;
	int *fd;
};

static void on_file(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct opening *opening = ctx;
	if (!err)
		*opening->fd = answer->fd;
	fiber_continue(opening->fiber, err);
}

int desk_open_wait(
	struct fiber *fiber, struct desk *desk, const char *path, int *fd, struct error *err)
{
	const struct files_request what = { .verb = FILES_OPEN, .path = path };
	struct opening opening = { fiber, fd };
	struct core_workspace *w;
	if (core_find(desk->request, desk->core, desk->id, &w, err))
		return -1;
	files_do(desk->request, w, &what, on_file, &opening);
	return fiber_wait(fiber, err);
}

/* ---- unpack ---- */

struct unpacking {
	struct fiber *fiber;
	struct loop *loop;
	struct archive_job *job;
	int from, to; /* bytes of the archive on their way */
};

static void end_pump(struct unpacking *unpacking)
{
	if (unpacking->to >= 0)
		loop_unwatch(unpacking->loop, unpacking->to);
	fd_close(&unpacking->to);
}

static void on_room(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct unpacking *unpacking = ctx;
	static char piece[65536];
	off_t at = lseek(unpacking->from, 0, SEEK_CUR);
	ssize_t got = pread(unpacking->from, piece, sizeof piece, at);
	ssize_t sent = got > 0 ? write(fd, piece, (size_t)got) : 0;
	if (sent > 0)
		lseek(unpacking->from, at + sent, SEEK_SET);
	/* At its end, or refused: the job says why. */
	if (got <= 0 || (sent < 0 && errno != EAGAIN && errno != EINTR))
		end_pump(unpacking);
}

static void on_unpacked(void *ctx, const struct error *err)
{
	struct unpacking *unpacking = ctx;
	end_pump(unpacking);
	fiber_continue(unpacking->fiber, err);
}

static void cut_unpacking(void *ctx)
{
	struct unpacking *unpacking = ctx;
	archive_cancel(unpacking->job);
	on_unpacked(unpacking, NULL);
}

static void on_unpack_begun(void *ctx, int fd)
{
	struct unpacking *unpacking = ctx;
	struct error err;
	unpacking->to = fd;
	lseek(unpacking->from, 0, SEEK_SET);
	if (loop_watch(unpacking->loop, fd, EPOLLOUT, on_room, unpacking, &err)) {
		archive_cancel(unpacking->job);
		on_unpacked(unpacking, &err);
	}
}

int desk_unpack_wait(
	struct fiber *fiber, struct desk *desk, const char *path, int archive, struct error *err)
{
	struct unpacking unpacking = {
		.fiber = fiber, .loop = core_loop(desk->core), .from = archive, .to = -1
	};
	const struct archive_listener listener = { on_unpack_begun, on_unpacked, &unpacking };
	struct core_workspace *w;
	if (core_find(desk->request, desk->core, desk->id, &w, err))
		return -1;
	unpacking.job = archive_in(desk->request, w, path, &listener);
	return fiber_wait_or_cut(fiber, cut_unpacking, &unpacking, err);
}

/* ---- freeze ---- */

struct freezing {
	struct fiber *fiber;
	char *id;
};

static void on_frozen(void *ctx, const struct snapshot *snapshot, const struct error *err)
{
	struct freezing *freezing = ctx;
	if (!err)
		memcpy(freezing->id, snapshot->id, ID_LEN + 1);
	fiber_continue(freezing->fiber, err);
}

int desk_freeze_wait(struct fiber *fiber, struct desk *desk, const struct snapshot_wanted *wanted,
	char id[ID_LEN + 1], struct error *err)
{
	struct freezing freezing = { fiber, id };
	struct core_workspace *w;
	if (core_find(desk->request, desk->core, desk->id, &w, err))
		return -1;
	core_snapshot_create(desk->request, w, wanted, on_frozen, &freezing);
	return fiber_wait(fiber, err);
}

/* ---- without a wait ---- */

void desk_drop(const struct request *request, struct core *core, const char *workspace)
{
	struct core_workspace *w;
	struct error ignored;
	if (!core_find(core_system(), core, workspace, &w, &ignored))
		core_remove(request, w, "removed", NULL, NULL);
}

/* ---- what a crash left ---- */

struct sweep {
	struct arena arena;
	text_list ids;
	bool (*is_kept)(void *ctx, const struct workspace *w);
	void *ctx;
};

static void add_stale(void *ctx, struct core_workspace *w)
{
	struct sweep *sweep = ctx;
	const struct workspace *model = core_model(w);
	if (!sweep->is_kept || !sweep->is_kept(sweep->ctx, model))
		vec_push(&sweep->arena, &sweep->ids, arena_text(&sweep->arena, model->id));
}

void desk_sweep(struct core *core, const char *service, const char *why,
	bool (*is_kept)(void *ctx, const struct workspace *w), void *ctx)
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
			core_remove(core_system(), w, why, NULL, NULL);
	arena_done(&sweep.arena);
}
