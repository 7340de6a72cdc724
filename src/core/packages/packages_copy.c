/* packages_copy.c -- files of layers copied into a sandbox that runs, by a file server inside. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include "base/fault.h"
#include "core/files/tree_archive.h"
#include "core/packages/packages_internal.h"
#include "core/waits.h"

#define LIST_STEP 1000

struct copying {
	struct fiber *fiber;
	const struct live_files *files;
	struct measure packer;
	bool is_packing, is_unpacking;
	bool has_failed;
	struct error err;     /* the first one */
	struct error packing; /* of the process that packs */
};

/* ---- files that a fiber waits for ---- */

struct file_wait {
	struct fiber *fiber;
	const struct files_answer *answer; /* until the fiber waits again */
};

static void on_answer(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct file_wait *wait = ctx;
	wait->answer = answer;
	fiber_continue(wait->fiber, err);
}

int files_wait(struct fiber *fiber, struct core_workspace *w, const struct files_request *what,
	const struct files_answer **answer, struct error *err)
{
	struct file_wait wait = { .fiber = fiber };
	files_do(&request_system, w, what, on_answer, &wait);
	int failed = fiber_wait(fiber, err);
	*answer = wait.answer;
	return failed;
}

int files_open(
	struct fiber *fiber, struct core_workspace *w, const char *path, int *fd, struct error *err)
{
	const struct files_request what = { .verb = FILES_OPEN, .path = path };
	const struct files_answer *answer;
	if (files_wait(fiber, w, &what, &answer, err))
		return -1;
	*fd = answer->fd;
	return 0;
}

int files_list_directories(struct fiber *fiber, struct core_workspace *w, const char *path,
	bool (*add)(void *ctx, const char *name), void *ctx, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct files_request what = { .verb = FILES_LIST, .path = path, .limit = LIST_STEP };
	bool wants_more = true;
	do {
		const struct files_answer *answer;
		if (files_wait(fiber, w, &what, &answer, err))
			return err->code == ERR_NOT_FOUND ? 0 : -1;
		for (size_t i = 0; i < answer->infos.count; i++)
			if (!strcmp(answer->infos.items[i].type, "directory"))
				wants_more = add(ctx, answer->infos.items[i].name);
		what.cursor = arena_text(&arena, answer->next);
	} while (what.cursor && wants_more);
	return 0;
}

/* A file that is gone, a directory that isn't empty: as it should be. What could not be removed is
 * hidden by the next start. */
static void remove_all(struct fiber *fiber, struct core_workspace *w, const text_list *paths)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->items[i];
		const struct files_request what = { .verb = FILES_REMOVE,
			.path = path,
			.recursive = path[strlen(path) - 1] == '/' };
		const struct files_answer *answer;
		struct error ignored;
		files_wait(fiber, w, &what, &answer, &ignored);
	}
}

/* ---- copied ---- */

static void go_on(struct copying *copying)
{
	if (!copying->is_packing && !copying->is_unpacking)
		fiber_continue(copying->fiber, copying->has_failed ? &copying->err : NULL);
}

static void note_failure(struct copying *copying, const struct error *err)
{
	if (!copying->has_failed)
		copying->err = *err;
	copying->has_failed = true;
}

static void on_packed(void *ctx, bool ok, uint64_t failed)
{
	struct copying *copying = ctx;
	struct error err;
	copying->is_packing = false;
	if (!ok)
		fail(&err, ERR_FAILED, "the layers of the environment could not be packed");
	else if (failed)
		err = copying->packing;
	/* EPIPE: the file server has refused it, and says why. */
	if (!ok || (failed && (err.sys_errno != EPIPE || !copying->is_unpacking)))
		note_failure(copying, &err);
	go_on(copying);
}

static uint64_t pack(void *ctx)
{
	struct copying *copying = ctx;
	const struct live_files *files = copying->files;
	int fd = copying->packer.keep[0];
	fcntl(fd, F_SETFL, O_WRONLY);
	signal(SIGPIPE, SIG_IGN);
	return layers_write_tar(&files->w->core->envs.layers, files->layers.items,
		       files->layers.count, files->is_kept, files->keep_ctx, fd,
		       &copying->packing) != 0;
}

static void on_begun(void *ctx, int fd)
{
	struct copying *copying = ctx;
	struct core *core = copying->files->w->core;
	copying->is_packing = true;
	copying->packer = (struct measure){ .loop = core->loop,
		.find = pack,
		.found = on_packed,
		.ctx = copying,
		.keep = { fd, core->envs.layers.dir },
		.keep_count = 2,
		.detail = &copying->packing,
		.detail_len = sizeof copying->packing };
	measure_start(&copying->packer);
	close(fd);
}

static void on_unpacked(void *ctx, const struct error *err)
{
	struct copying *copying = ctx;
	copying->is_unpacking = false;
	if (err)
		note_failure(copying, err);
	go_on(copying);
}

static int copy_in(struct fiber *fiber, const struct live_files *files, struct error *err)
{
	struct copying copying = { .fiber = fiber, .files = files, .is_unpacking = true };
	const struct archive_listener listener = {
		.begun = on_begun, .done = on_unpacked, .ctx = &copying
	};
	archive_in(&request_system, files->w, files->target, &listener);
	return fiber_wait(fiber, err);
}

int live_copy(struct fiber *fiber, const struct live_files *files, struct error *err)
{
	remove_all(fiber, files->w, &files->first);
	int failed = files->layers.count ? copy_in(fiber, files, err) : 0;
	fault_point("packages_copied");
	if (!failed)
		remove_all(fiber, files->w, &files->last);
	return failed;
}
