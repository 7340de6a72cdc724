#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/archive_parts.h"

struct archive_job {
	struct core_workspace *w;
	struct files_child *child;
	archive_fn *done; /* NULL: cancelled when it was too late */
	void *ctx;
	/* of archive_in: */
	int in;
	char stage[ID_LEN + 1]; /* name in `in`; "": none */
	char *path;
	bool is_placing;
	uint64_t bytes;
	struct archive_unpacking limits;
};

static struct archive_job *new_job(struct core_workspace *w, archive_fn *done, void *ctx)
{
	struct archive_job *job = malloc(sizeof *job);

	if (!job)
		abort();
	*job = (struct archive_job){ .w = w, .done = done, .ctx = ctx, .in = -1 };
	core_hold(w);
	return job;
}

static void free_job(struct archive_job *job)
{
	if (job->stage[0])
		files_discard(job->w->core->loop, job->in, job->stage);
	fd_close(&job->in);
	core_release(job->w);
	free(job->path);
	free(job);
}

static void finish(struct archive_job *job, const struct error *err)
{
	archive_fn *done = job->done;
	void *ctx = job->ctx;

	free_job(job);
	if (done)
		done(ctx, err);
}

void archive_cancel(struct archive_job *job)
{
	if (!job)
		return;
	/* What is moved into place is whole: it gets there. */
	if (job->is_placing) {
		job->done = NULL;
		return;
	}
	files_child_kill(job->child);
	free_job(job);
}

/* A pipe whose end `core_end` (0 reads, 1 writes) doesn't block. */
static int open_pipe(int ends[2], int core_end, struct error *err)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_errno(err, "make a pipe");
	if (fd_set_nonblocking(ends[core_end]) < 0) {
		fail_errno(err, "make a pipe");
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	/* Fewer changes between processes; the host may allow no more than it has. */
	fcntl(ends[0], F_SETPIPE_SZ, (int)ARCHIVE_BUFFER * 2);
	return 0;
}

/* -- out -- */

static void on_packed(void *ctx, uint64_t value, const struct error *err)
{
	finish(ctx, err);
}

int archive_out(const struct request *request, struct core_workspace *w, const char *path,
	enum archive_format format, int *fd, archive_fn *done, void *ctx, struct archive_job **job,
	struct error *err)
{
	auto_place struct files_place place = FILES_NOWHERE;
	auto_close int source = -1;
	int ends[2];

	if (files_enter(request, VERB_FILE_READ, w, err))
		return -1;
	if (files_locate_known(w, path, FILES_FOLLOW, &place, err) < 0)
		return -1;
	bool is_directory = S_ISDIR(place.st.st_mode);
	if (!is_directory && !S_ISREG(place.st.st_mode))
		return fail(err, ERR_INVALID, "'%s' is a %s", path, files_type(place.st.st_mode));
	if (files_open_place(
		    &place, path, O_RDONLY | (is_directory ? O_DIRECTORY : 0), &source, err) < 0 ||
		open_pipe(ends, 0, err) < 0)
		return -1;
	auto_close int reading = ends[0];
	auto_close int writing = ends[1];
	struct archive_packing packing = { format, is_directory ? NULL : place.name };
	struct archive_job *made = new_job(w, done, ctx);
	struct files_job work = { .what = "pack an archive",
		.work = archive_pack,
		.work_ctx = &packing,
		.keep = { writing, source },
		.keep_count = 2,
		.readable = is_directory ? 2 : 0,
		.needs_locale = true,
		.done = on_packed,
		.ctx = made };
	if (files_child_start(w->core->loop, &work, &made->child, err) < 0) {
		free_job(made);
		return -1;
	}
	*fd = take_fd(&reading);
	*job = made;
	return 0;
}

/* -- in -- */

static void on_placed(void *ctx, uint64_t value, const struct error *err)
{
	struct archive_job *job = ctx;

	if (!err)
		files_charge(job->w, (int64_t)job->bytes);
	finish(job, err);
}

/* The directory it goes to, made now that the archive is known to be good. */
static int open_target(struct archive_job *job, int *fd, struct error *err)
{
	auto_place struct files_place place = FILES_NOWHERE;

	if (files_locate(job->w, job->path, FILES_FOLLOW | FILES_MAKE, &place, err) < 0)
		return -1;
	if (!place.is_there) {
		if (mkdirat(place.dir, place.name, 0755) < 0 && errno != EEXIST)
			return fail_errno(err, "make directory '%s'", job->path);
		files_leave(&place);
		if (files_locate_known(job->w, job->path, FILES_FOLLOW, &place, err) < 0)
			return -1;
	}
	return files_open_place(&place, job->path, O_RDONLY | O_DIRECTORY, fd, err);
}

static int start_placing(struct archive_job *job, struct error *err)
{
	auto_close int stage = files_open_at(job->in, job->stage, O_RDONLY | O_DIRECTORY);
	auto_close int target = -1;

	if (stage < 0)
		return fail_errno(err, "open what was unpacked");
	if (open_target(job, &target, err) < 0)
		return -1;
	struct files_job work = { .what = "move an archive's files into place",
		.work = archive_place,
		.work_ctx = job->stage,
		.keep = { stage, target, job->in },
		.keep_count = 3,
		.writable = 7,
		.done = on_placed,
		.ctx = job };
	job->is_placing = true;
	return files_child_start(job->w->core->loop, &work, &job->child, err);
}

static void on_unpacked(void *ctx, uint64_t value, const struct error *failed)
{
	struct archive_job *job = ctx;
	struct error err = { 0 };

	job->child = NULL;
	job->bytes = value;
	if (failed && failed->sys_errno == EDQUOT)
		files_over_limit(job->w, &err);
	else if (failed)
		err = *failed;
	if (failed || start_placing(job, &err) < 0)
		finish(job, &err);
}

static int check_target(struct core_workspace *w, const char *path, struct error *err)
{
	auto_place struct files_place place = FILES_NOWHERE;

	/* What isn't there will be made. */
	if (files_locate(w, path, FILES_FOLLOW, &place, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	if (place.is_there && !S_ISDIR(place.st.st_mode))
		return fail(err, ERR_CONFLICT, "'%s' is a %s", path, files_type(place.st.st_mode));
	return 0;
}

static int start_unpacking(struct archive_job *job, int reading, struct error *err)
{
	char name[ID_LEN + 1];

	if (files_open_in(job->w, &job->in, err) < 0)
		return -1;
	id_make(name);
	if (mkdirat(job->in, name, 0700) < 0)
		return fail_errno(err, "make a directory to unpack in");
	memcpy(job->stage, name, sizeof name);
	auto_close int stage = files_open_at(job->in, name, O_RDONLY | O_DIRECTORY);
	if (stage < 0)
		return fail_errno(err, "open the directory to unpack in");
	job->limits = (struct archive_unpacking){ files_room(job->w), ARCHIVE_ENTRIES_MAX };
	struct files_job work = { .what = "unpack the archive",
		.work = archive_unpack,
		.work_ctx = &job->limits,
		.keep = { reading, stage },
		.keep_count = 2,
		.writable = 2,
		.file_bytes_max = job->w->model.limits.disk_bytes,
		.needs_locale = true,
		.done = on_unpacked,
		.ctx = job };
	return files_child_start(job->w->core->loop, &work, &job->child, err);
}

int archive_in(const struct request *request, struct core_workspace *w, const char *path, int *fd,
	archive_fn *done, void *ctx, struct archive_job **job, struct error *err)
{
	int ends[2];

	if (files_enter(request, VERB_FILE_WRITE, w, err))
		return -1;
	if (check_target(w, path, err) < 0 || open_pipe(ends, 1, err) < 0)
		return -1;
	auto_close int reading = ends[0];
	auto_close int writing = ends[1];
	struct archive_job *made = new_job(w, done, ctx);
	made->path = strdup(path);
	if (!made->path)
		abort();
	if (start_unpacking(made, reading, err) < 0) {
		free_job(made);
		return -1;
	}
	*fd = take_fd(&writing);
	*job = made;
	return 0;
}
