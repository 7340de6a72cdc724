/* files_in.c -- workspaces/<id>/.in: a file for each upload of an archive, which has the name of
 * the directory that it is unpacked in and says where that is. After a crash it is removed from
 * there. No sandbox sees it. And how much room there is. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "core/files_internal.h"
#include "format/quantity.h"

static int open_in(struct core_workspace *w)
{
	char path[ID_LEN + sizeof "/.in"];

	str_format(path, sizeof path, "%s/.in", w->model.id);
	return path_open_inside(w->core->workspaces, path, O_RDONLY | O_DIRECTORY);
}

void files_make_stage(char stage[FILES_STAGE_SIZE])
{
	char id[ID_LEN + 1];

	id_make(id);
	str_format(stage, FILES_STAGE_SIZE, ".carrel-%s", id);
}

int files_note_stage(
	struct core_workspace *w, const char *stage, const char *clean, struct error *err)
{
	char path[ID_LEN + sizeof "/.in"];

	str_format(path, sizeof path, "%s/.in", w->model.id);
	if (mkdirat(w->core->workspaces, path, 0700) < 0 && errno != EEXIST)
		return fail_errno(err, "make '.in' of workspace '%s'", w->model.name);
	auto_close int in = open_in(w);
	auto_close int fd =
		in < 0 ? -1 : openat(in, stage, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, clean, strlen(clean)) < 0)
		return fail_errno(err, "note an upload to workspace '%s'", w->model.name);
	return 0;
}

struct tidying {
	struct core_workspace *w;
	char stage[FILES_STAGE_SIZE];
};

static void on_tidied(void *ctx, const struct agent_answer *answer, const struct error *err)
{
	struct tidying *tidying = ctx;
	auto_close int in = err ? -1 : open_in(tidying->w);

	/* What could not be removed now is tried again at the next start. */
	if (in >= 0)
		unlinkat(in, tidying->stage, 0);
	free(tidying);
}

void files_forget_stage(
	struct core_workspace *w, const char *stage, const char *clean, bool is_left)
{
	struct tidying *tidying = xzalloc(sizeof *tidying);
	struct agent_ask ask = { .verb = AGENT_TIDY, .path = clean, .text = stage, .fd = -1 };

	tidying->w = w;
	str_copy(tidying->stage, sizeof tidying->stage, stage);
	if (is_left)
		agent_ask(w, &ask, on_tidied, tidying);
	else
		on_tidied(tidying, NULL, NULL);
}

void files_sweep(struct core_workspace *w)
{
	auto_walk DIR *walk = walk_from(open_in(w));
	struct dirent *entry;

	while ((entry = walk_next(walk))) {
		char path[AGENT_PATH_MAX];

		if (strlen(entry->d_name) < FILES_STAGE_SIZE &&
			fd_read_file(dirfd(walk), entry->d_name, path, sizeof path) >= 0)
			files_forget_stage(w, entry->d_name, path, true);
	}
}

/* -- how much -- */

uint64_t files_room(const struct core_workspace *w)
{
	uint64_t limit = w->model.limits.disk_bytes;
	uint64_t used = w->model.disk_usage_bytes + w->incoming_bytes;

	if (!limit || !workspace_counts_disk(&w->model))
		return UINT64_MAX;
	return used < limit ? limit - used : 0;
}

/* Until it is measured again. */
void files_charge(struct core_workspace *w, uint64_t bytes)
{
	w->model.disk_usage_bytes += bytes;
}

int files_over_limit(const struct core_workspace *w, struct error *err)
{
	char size[16];
	quantity_format_size(size, w->model.limits.disk_bytes);
	return fail_hint(err, ERR_LIMIT, "remove files, or make a workspace with a larger --disk",
		"not enough space: the disk limit of workspace '%s' is %s", w->model.name, size);
}
