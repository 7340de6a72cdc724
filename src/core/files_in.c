/* files_in.c -- workspaces/<id>/.in: what is on its way into the tree, or out of it for good. It is
 * on the tree's file system, and under its quota, so that a rename is all that is needed; no
 * sandbox sees it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "core/files_parts.h"
#include "format/quantity.h"

static int open_tree(const struct core_workspace *w, int flags)
{
	return files_open_at(w->core->workspaces, w->model.id, flags | O_DIRECTORY);
}

int files_open_in(struct core_workspace *w, int *fd, struct error *err)
{
	auto_close int dir = open_tree(w, O_PATH);

	if (dir < 0 || (mkdirat(dir, ".in", 0700) < 0 && errno != EEXIST))
		return fail_errno(err, "make '.in' of workspace '%s'", w->model.name);
	int in = files_open_at(dir, ".in", O_RDONLY | O_DIRECTORY);
	if (in < 0)
		return fail_errno(err, "open '.in' of workspace '%s'", w->model.name);
	*fd = in;
	return 0;
}

/* -- going -- */

/* *value: the bytes that this freed, as far as they could be counted. */
static int remove_names(void *ctx, const int *fds, uint64_t *value, struct error *err)
{
	const text_list *list = ctx;
	int failed = 0;

	for (size_t i = 0; i < list->count; i++) {
		auto_close int dir = files_open_at(fds[0], list->items[i], O_RDONLY | O_DIRECTORY);
		uint64_t bytes = 0;

		if (dir < 0 || path_charge_tree(dir, &bytes, err) < 0)
			bytes = 0;
		if (path_remove_tree(fds[0], list->items[i], err) < 0)
			failed = -1;
		else
			*value += bytes;
	}
	return failed;
}

/* What can't be removed now is there at the next start. */
static int remove_later(
	struct loop *loop, int in, const text_list *list, files_worked_fn *done, void *ctx)
{
	struct files_job job = { .what = "remove files",
		.work = remove_names,
		.work_ctx = (void *)list,
		.keep = { in },
		.keep_count = 1,
		.writable = 1,
		.done = done,
		.ctx = ctx };
	struct error err;

	return files_child_start(loop, &job, NULL, &err);
}

void files_discard(struct loop *loop, int in, const char *name)
{
	text_list list = { &name, 1, 1 };

	if (unlinkat(in, name, 0) == 0 || errno == ENOENT)
		return;
	if (unlinkat(in, name, AT_REMOVEDIR) < 0)
		remove_later(loop, in, &list, NULL, NULL);
}

struct discard {
	struct core_workspace *w; /* held */
	files_freed_fn *done;
	void *ctx;
};

static void on_freed(void *ctx, uint64_t bytes, const struct error *err)
{
	struct discard discard = *(struct discard *)ctx;

	free(ctx);
	files_charge(discard.w, -(int64_t)bytes);
	if (discard.done)
		discard.done(discard.ctx);
	core_release(discard.w);
}

int files_discard_known(
	struct core_workspace *w, int in, const char *name, files_freed_fn *done, void *ctx)
{
	text_list list = { &name, 1, 1 };
	struct discard *discard = malloc(sizeof *discard);

	if (!discard)
		abort();
	*discard = (struct discard){ w, done, ctx };
	if (remove_later(w->core->loop, in, &list, on_freed, discard) < 0) {
		free(discard);
		return 0;
	}
	core_hold(w);
	return 1;
}

void files_sweep(struct core_workspace *w)
{
	auto_arena struct arena arena;
	auto_close int dir = open_tree(w, O_PATH);
	auto_close int in = dir < 0 ? -1 : files_open_at(dir, ".in", O_RDONLY | O_DIRECTORY);
	int reading = in < 0 ? -1 : fcntl(in, F_DUPFD_CLOEXEC, 0);
	DIR *walk = reading < 0 ? NULL : fdopendir(reading);
	struct dirent *entry;
	text_list list = { 0 };

	arena_init(&arena);
	if (!walk)
		return;
	while ((entry = readdir(walk)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			vec_push(&arena, &list, arena_text(&arena, entry->d_name));
	closedir(walk);
	if (list.count)
		remove_later(w->core->loop, in, &list, NULL, NULL);
}

/* -- how much -- */

static bool is_counted(const struct core_workspace *w)
{
	return w->model.limits.disk_bytes &&
	       (!w->model.disk_mechanism || strcmp(w->model.disk_mechanism, "counted") == 0);
}

uint64_t files_room(const struct core_workspace *w)
{
	uint64_t limit = w->model.limits.disk_bytes, used = w->model.disk_usage_bytes;

	if (!is_counted(w))
		return UINT64_MAX;
	return used < limit ? limit - used : 0;
}

/* Until it is measured again. */
void files_charge(struct core_workspace *w, int64_t bytes)
{
	uint64_t *used = &w->model.disk_usage_bytes;

	if (bytes < 0 && (uint64_t)-bytes > *used)
		*used = 0;
	else
		*used += (uint64_t)bytes;
}

int files_over_limit(const struct core_workspace *w, struct error *err)
{
	char size[16];
	quantity_format_size(size, w->model.limits.disk_bytes);
	return fail_hint(err, ERR_LIMIT, "remove files, or make a workspace with a larger --disk",
		"not enough space: the disk limit of workspace '%s' is %s", w->model.name, size);
}
