#include "services/desk.h"

#include <sys/epoll.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/files/files.h"
#include "core/files/tree_archive.h"
#include "core/packages/packages.h"
#include "core/state/snapshots.h"
#include "services/waits.h"

void desk_init(struct desk *desk, struct core *core, const struct request *request)
{
	*desk = (struct desk){ .core = core, .request = request };
}

void desk_done(struct desk *desk)
{
	if (desk->captured.core)
		exec_captured_done(&desk->captured);
	desk->captured = (struct exec_captured){ 0 };
}

/* A failure that is known at once is told later (invariant 3). */
static int begin(
	struct fiber *fiber, struct desk *desk, struct core_workspace **w, struct error *err)
{
	desk->fiber = fiber;
	return core_find(desk->request, desk->core, desk->id, w, err)
		       ? fail_later(fiber, desk->core)
		       : 0;
}

/* ---- create, remove ---- */

static void on_created(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct desk *desk = ctx;
	if (!err)
		str_copy(desk->id, sizeof desk->id, core_model(w)->id);
	fiber_continue(desk->fiber, err);
}

int desk_create(struct fiber *fiber, struct desk *desk, const char *service,
	const struct workspace *wanted, struct error *err)
{
	struct workspace made = *wanted;
	made.owner.service = service;
	desk->fiber = fiber;
	core_create(desk->request, desk->core, &made, on_created, desk);
	return fiber_wait(fiber, err);
}

static void on_removed(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct desk *desk = ctx;
	if (!err)
		desk->id[0] = '\0';
	fiber_continue(desk->fiber, err);
}

int desk_remove(struct fiber *fiber, struct desk *desk, struct error *err)
{
	struct core_workspace *w;
	desk->fiber = fiber;
	if (!desk->id[0] || core_find(core_system(), desk->core, desk->id, &w, err)) {
		desk->id[0] = '\0';
		return 0;
	}
	core_remove(core_system(), w, "removed", on_removed, desk);
	return fiber_wait(fiber, err);
}

/* ---- packages and commands ---- */

static void cut(void *ctx)
{
	struct desk *desk = ctx;
	if (desk->install)
		cancelable_cancel(desk->install);
	if (!desk->exec)
		return;
	exec_detach(desk->exec);
	desk->exec = NULL;
	fiber_continue(desk->fiber, NULL);
}

static void on_installed(void *ctx, const struct packages_result *result, const struct error *err)
{
	struct desk *desk = ctx;
	desk->install = NULL;
	if (!err)
		str_copy(desk->environment, sizeof desk->environment, result->environment);
	fiber_continue(desk->fiber, err);
}

int desk_install(
	struct fiber *fiber, struct desk *desk, const text_list *packages, struct error *err)
{
	const struct packages_wanted wanted = { .packages = *packages,
		.kind = &env_kind_rows[ENV_KIND_PYTHON] };
	struct core_workspace *w;
	if (begin(fiber, desk, &w, err))
		return -1;
	desk->install = packages_change(desk->request, w, &wanted, on_installed, desk);
	return fiber_wait_or_cut(fiber, cut, desk, err);
}

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
	fiber_continue(desk->fiber, err);
}

int desk_run(
	struct fiber *fiber, struct desk *desk, const struct exec_spec *spec, struct error *err)
{
	const struct exec_listener listener = { .ended = on_ended, .ctx = desk };
	struct core_workspace *w;
	desk_done(desk);
	if (begin(fiber, desk, &w, err))
		return -1;
	if (exec_start(desk->request, w, spec, EXEC_CAPTURED, NULL, &listener, &desk->exec, err)) {
		desk->exec = NULL;
		return fail_later(fiber, desk->core);
	}
	return fiber_wait_or_cut(fiber, cut, desk, err);
}

/* ---- files ---- */

static void on_written(void *ctx, const struct files_answer *answer, const struct error *err)
{
	fiber_continue(ctx, err);
}

static void on_begun(void *ctx, struct file_write *write, const struct error *err)
{
	struct desk *desk = ctx;
	desk->write = err ? NULL : write;
	fiber_continue(desk->fiber, err);
}

int desk_write(struct fiber *fiber, struct desk *desk, const char *path, struct str bytes,
	struct error *err)
{
	struct core_workspace *w;
	if (begin(fiber, desk, &w, err))
		return -1;
	files_begin_write(desk->request, w, path, 0, WRITE_PARENTS, on_begun, desk);
	if (fiber_wait(fiber, err) || files_write(desk->write, bytes.data, bytes.len, err)) {
		files_abort_write(desk->write);
		return -1;
	}
	files_finish_write(desk->write, on_written, fiber);
	return fiber_wait(fiber, err);
}

static void on_opened(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct desk *desk = ctx;
	if (!err)
		*desk->opened = answer->fd;
	fiber_continue(desk->fiber, err);
}

int desk_open(struct fiber *fiber, struct desk *desk, const char *path, int *fd, struct error *err)
{
	const struct files_request what = { .verb = FILES_OPEN, .path = path };
	struct core_workspace *w;
	if (begin(fiber, desk, &w, err))
		return -1;
	desk->opened = fd;
	files_do(desk->request, w, &what, on_opened, desk);
	return fiber_wait(fiber, err);
}

int desk_read(struct fiber *fiber, struct desk *desk, const char *path, size_t max,
	struct arena *arena, struct str *text, struct error *err)
{
	auto_close int fd = -1;
	if (desk_open(fiber, desk, path, &fd, err))
		return -1;
	if (!file_read(fd, max, arena, text))
		return 0;
	return errno == EFBIG ? fail(err, ERR_LIMIT, "'%s' has more than %zu bytes", path, max)
			      : fail_errno(err, "read '%s'", path);
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

int desk_unpack(
	struct fiber *fiber, struct desk *desk, const char *path, int archive, struct error *err)
{
	struct unpacking unpacking = {
		.fiber = fiber, .loop = core_loop(desk->core), .from = archive, .to = -1
	};
	const struct archive_listener listener = { on_unpack_begun, on_unpacked, &unpacking };
	struct core_workspace *w;
	if (begin(fiber, desk, &w, err))
		return -1;
	unpacking.job = archive_in(desk->request, w, path, &listener);
	return fiber_wait_or_cut(fiber, cut_unpacking, &unpacking, err);
}

/* ---- freeze ---- */

static void on_frozen(void *ctx, const struct snapshot *snapshot, const struct error *err)
{
	struct desk *desk = ctx;
	if (!err)
		memcpy(desk->snapshot, snapshot->id, ID_LEN + 1);
	fiber_continue(desk->fiber, err);
}

int desk_freeze(struct fiber *fiber, struct desk *desk, const struct snapshot_wanted *wanted,
	char id[ID_LEN + 1], struct error *err)
{
	struct core_workspace *w;
	if (begin(fiber, desk, &w, err))
		return -1;
	desk->snapshot = id;
	core_snapshot_create(desk->request, w, wanted, on_frozen, desk);
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
