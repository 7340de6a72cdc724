/* files_write.c -- writing a file: a server creates it without a name, core writes it, a server
 * links it at its path, or copies it when the path is on a tmpfs. An unfinished file vanishes with
 * its last descriptor. */
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "core/access/audit_records.h"
#include "core/access/policies.h"
#include "core/files/files_ask.h"
#include "core/files/internal.h"
#include "format/text/quantity.h"

#define SYNC_STEP                                                                                  \
	((uint64_t)8 << 20) /* so much is left to the end, at most, for fsync to write             \
			     */

struct file_write {
	struct core_workspace *w; /* held */
	int fd;
	char path[FILE_PATH_MAX]; /* clean */
	char temporary[FILES_STAGE_SIZE];
	unsigned mode;
	unsigned flags;	   /* enum file_request_flags */
	bool is_counted;   /* it goes to the workspace's trees, not to a tmpfs of the sandbox */
	uint64_t room;	   /* when it isn't counted: of the tmpfs */
	uint64_t start_ns; /* of the sandbox that made the file */
	struct audit_actor actor;
	uint64_t written, begun; /* begun: to be written to disk */
	union {
		files_begun_fn *begun_fn;
		files_fn *done;
	};
	void *ctx;
};

static uint64_t *incoming(const struct file_write *write)
{
	return write->is_counted ? &write->w->file_work->incoming_bytes
				 : &write->w->file_work->incoming_tmp_bytes;
}

static void free_write(struct file_write *write)
{
	struct core_workspace *w = write->w;

	*incoming(write) -= write->written;
	fd_close(&write->fd);
	free(write);
	core_release(w);
}

void files_abort_write(struct file_write *write)
{
	if (write)
		free_write(write);
}

static bool is_counted(const struct file_write *write)
{
	struct statfs fs;
	struct stat st, home;

	return fstatfs(write->fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
	       fstat(write->fd, &st) < 0 || fstat(write->w->core->workspaces, &home) < 0 ||
	       st.st_dev == home.st_dev;
}

/* What is written to a tmpfs counts as memory of the process that writes it, and this one has no
 * limit: core writes to a file outside, which a server copies. */
static int write_outside(struct file_write *write, struct error *err)
{
	const struct limits *limits = &write->w->model.limits;
	uint64_t most =
		limits->tmp_bytes < limits->memory_bytes ? limits->tmp_bytes : limits->memory_bytes;
	struct statfs fs;

	if (fstatfs(write->fd, &fs) < 0)
		return fail_errno(err, "write '%s'", write->path);
	uint64_t used = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	write->room = used < most ? most - used : 0;
	int fd = openat(
		write->w->core->workspaces, ".", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return fail_errno(err, "write '%s'", write->path);
	fd_close(&write->fd);
	write->fd = fd;
	return 0;
}

static void on_created(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct file_write *write = ctx;
	struct error failure;

	if (err) {
		write->begun_fn(write->ctx, NULL, err);
		free_write(write);
		return;
	}
	write->fd = answer->fd;
	write->start_ns = write->w->start_ns;
	write->is_counted = is_counted(write);
	if (!write->is_counted && write_outside(write, &failure) < 0) {
		write->begun_fn(write->ctx, NULL, &failure);
		free_write(write);
		return;
	}
	write->begun_fn(write->ctx, write, NULL);
}

void files_begin_write(const struct request *request, struct core_workspace *w, const char *path,
	unsigned mode, unsigned how, files_begun_fn *begun, void *ctx)
{
	struct file_write *write = xzalloc(sizeof *write);
	struct error err;

	*write = (struct file_write){ .w = w,
		.fd = -1,
		.mode = mode & 0777,
		.flags =
			(how & WRITE_PARENTS ? FILE_PARENTS : 0) | (how & WRITE_NEW ? FILE_NEW : 0),
		.begun_fn = begun,
		.actor = audit_actor(request),
		.ctx = ctx };
	core_hold(w);
	if (files_enter(request, VERB_FILE_WRITE, w, &err) < 0 ||
		files_clean_path(path, write->path, &err) < 0 ||
		policies_judge_file(request, w, POLICY_WRITE, write->path, false, &err)) {
		files_refuse(w, &err, on_created, write);
		return;
	}
	struct file_ask ask = {
		.verb = FILE_CREATE, .path = write->path, .flags = write->flags, .fd = -1
	};
	files_ask(w, &ask, on_created, write);
}

/* A quota of the file system is this workspace's limit. */
static int write_failed(const struct file_write *write, struct error *err)
{
	if (errno == EDQUOT)
		return files_over_limit(write->w, err);
	return fail_errno(err, "write '%s'", write->path);
}

int files_write(struct file_write *write, const void *data, size_t len, struct error *err)
{
	if (write->is_counted && len > files_room(write->w))
		return files_over_limit(write->w, err);
	if (!write->is_counted && *incoming(write) + len > write->room)
		return fail_hint(err, ERR_LIMIT,
			"remove files there, or make a workspace with a larger --memory and --tmp",
			"write '%s': not enough space in /tmp and /dev/shm, which are memory",
			write->path);
	ssize_t done = fault_fails("files.write") ? -1 : fd_write_full(write->fd, data, len);
	if (done < 0 || (size_t)done != len)
		return write_failed(write, err);
	write->written += len;
	write->w->core->metrics.file_written_bytes += len;
	*incoming(write) += len;
	if (write->written - write->begun >= SYNC_STEP) {
		/* Without waiting for it. */
		sync_file_range(write->fd, (off_t)write->begun,
			(off_t)(write->written - write->begun), SYNC_FILE_RANGE_WRITE);
		write->begun = write->written;
	}
	return 0;
}

static void on_named(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct file_write *write = ctx;
	struct error ignored, ended;

	/* The next sandbox has another user and other mounts: it can't give the file a name. */
	if (err && write->start_ns != write->w->start_ns) {
		fail_hint(&ended, ERR_UNAVAILABLE, "try again",
			"the sandbox of workspace '%s' ended during the upload of '%s'",
			write->w->model.name, write->path);
		err = &ended;
	}
	/* A server that was killed may have left the file under its other name. */
	if (err && err->code == ERR_UNAVAILABLE &&
		files_note_stage(write->w, write->temporary, write->path, &ignored) == 0)
		files_forget_stage(write->w, write->temporary, write->path, true);
	if (!err && write->is_counted)
		files_charge(write->w, write->written);
	const struct audit_file file = { .type = "file.write",
		.path = write->path,
		.has_bytes = true,
		.bytes = write->written,
		.err = err };
	audit_file(write->w, &write->actor, &file);
	write->done(write->ctx, answer, err);
	free_write(write);
}

void files_finish_write(struct file_write *write, files_fn *done, void *ctx)
{
	struct file_ask ask = { .verb = FILE_COMMIT,
		.path = write->path,
		.text = write->temporary,
		.flags = write->flags & FILE_NEW,
		.mode = write->mode,
		.fd = write->fd };

	files_make_stage(write->temporary);
	write->done = done;
	write->ctx = ctx;
	files_ask(write->w, &ask, on_named, write);
}

/* ---- notes of uploads: workspaces/<id>/.in, which no sandbox sees ----
 * A file for each upload of an archive has the name of the directory that it is unpacked in, and
 * says where that is: after a crash it is removed from there. */

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

static void on_tidied(void *ctx, const struct file_answer *answer, const struct error *err)
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
	struct file_ask ask = { .verb = FILE_TIDY, .path = clean, .text = stage, .fd = -1 };

	tidying->w = w;
	str_copy(tidying->stage, sizeof tidying->stage, stage);
	if (is_left)
		file_ask(w, &ask, on_tidied, tidying);
	else
		on_tidied(tidying, NULL, NULL);
}

void files_sweep(struct core_workspace *w)
{
	auto_walk DIR *walk = walk_from(open_in(w));
	struct dirent *entry;

	while ((entry = walk_next(walk))) {
		char path[FILE_PATH_MAX];

		if (strlen(entry->d_name) < FILES_STAGE_SIZE &&
			fd_read_file(dirfd(walk), entry->d_name, path, sizeof path) >= 0)
			files_forget_stage(w, entry->d_name, path, true);
	}
}

/* ---- how much room there is ---- */

uint64_t files_room(const struct core_workspace *w)
{
	uint64_t limit = w->model.limits.disk_bytes;
	uint64_t used = w->model.disk_usage_bytes + w->file_work->incoming_bytes;

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
	return fail_hint(err, ERR_LIMIT, "remove files, or raise the disk limit of the workspace",
		"not enough space: the disk limit of workspace '%s' is %s", w->model.name, size);
}
