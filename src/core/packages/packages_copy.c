/* packages_copy.c -- files of layers copied into a sandbox that runs, by a file server inside. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fault.h"
#include "core/files/tree_archive.h"
#include "core/packages/packages_internal.h"

struct copying {
	struct live_files files;
	environment_fn *done;
	void *ctx;
	const text_list *rubbish; /* that is removed now */
	size_t at;
	struct measure packer;
	bool is_packing, is_unpacking;
	bool has_failed;
	struct error err;
};

static void finish(struct copying *copying)
{
	copying->done(copying->ctx, copying->has_failed ? &copying->err : NULL);
	free(copying);
}

static void copy_in(struct copying *copying);
static void remove_next(struct copying *copying);

static void on_removed(void *ctx, const struct files_answer *answer, const struct error *err)
{
	/* A file that is gone, a directory that isn't empty: as it should be. What could not be
	 * removed is hidden by the next start. */
	remove_next(ctx);
}

static void remove_next(struct copying *copying)
{
	if (copying->at == copying->rubbish->count) {
		if (copying->rubbish == &copying->files.first)
			copy_in(copying);
		else
			finish(copying);
		return;
	}
	const char *path = copying->rubbish->items[copying->at++];
	size_t len = strlen(path);
	struct files_request what = {
		.verb = FILES_REMOVE, .path = path, .recursive = path[len - 1] == '/'
	};
	files_do(&request_system, copying->files.w, &what, on_removed, copying);
}

static void go_on(struct copying *copying)
{
	if (copying->is_packing || copying->is_unpacking)
		return;
	fault_point("packages_copied");
	if (copying->has_failed) {
		finish(copying);
		return;
	}
	copying->rubbish = &copying->files.last;
	copying->at = 0;
	remove_next(copying);
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
		err = copying->err;
	/* EPIPE: the file server has refused it, and says why. */
	if (!ok || (failed && (err.sys_errno != EPIPE || !copying->is_unpacking)))
		note_failure(copying, &err);
	go_on(copying);
}

static uint64_t pack(void *ctx)
{
	struct copying *copying = ctx;
	const struct live_files *files = &copying->files;
	int fd = copying->packer.keep[0];
	fcntl(fd, F_SETFL, O_WRONLY);
	signal(SIGPIPE, SIG_IGN);
	return layers_write_tar(&files->w->core->envs.layers, files->layers.items,
		       files->layers.count, files->is_kept, files->keep_ctx, fd,
		       &copying->err) != 0;
}

static void on_begun(void *ctx, int fd)
{
	struct copying *copying = ctx;
	struct core *core = copying->files.w->core;
	copying->is_packing = true;
	copying->packer = (struct measure){ .loop = core->loop,
		.find = pack,
		.found = on_packed,
		.ctx = copying,
		.keep = { fd, core->envs.layers.dir },
		.keep_count = 2,
		.detail = &copying->err,
		.detail_len = sizeof copying->err };
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

static void copy_in(struct copying *copying)
{
	struct archive_listener listener = {
		.begun = on_begun, .done = on_unpacked, .ctx = copying
	};
	if (!copying->files.layers.count) {
		go_on(copying);
		return;
	}
	copying->is_unpacking = true;
	archive_in(&request_system, copying->files.w, copying->files.target, &listener);
}

void live_copy(const struct live_files *files, environment_fn *done, void *ctx)
{
	struct copying *copying = xzalloc(sizeof *copying);
	*copying = (struct copying){ .files = *files, .done = done, .ctx = ctx };
	copying->rubbish = &copying->files.first;
	remove_next(copying);
}
