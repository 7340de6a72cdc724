#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "core/files_parts.h"

#define SYNC_STEP                                                                                  \
	((uint64_t)8 << 20) /* so much is left to the end, at most, for fsync to write             \
			     */

struct file_write {
	struct core_workspace *w;
	int fd, in;
	char temporary[ID_LEN + 1]; /* in `in` */
	struct files_place place;
	char *path; /* as it was given */
	unsigned mode;
	bool must_be_new;
	uint64_t written, begun; /* begun: to be written to disk */
	files_written_fn *done;
	void *ctx;
};

static void free_write(struct file_write *write)
{
	fd_close(&write->fd);
	fd_close(&write->in);
	files_leave(&write->place);
	core_release(write->w);
	free(write->path);
	free(write);
}

void files_abort_write(struct file_write *write)
{
	if (!write)
		return;
	unlinkat(write->in, write->temporary, 0);
	files_charge(write->w, -(int64_t)write->written);
	free_write(write);
}

static int fail_there(const char *path, struct error *err)
{
	return fail(err, ERR_CONFLICT, "'%s' already exists", path);
}

static int check_target(
	const struct files_place *place, const char *path, unsigned how, struct error *err)
{
	if (place->is_there && (how & WRITE_NEW))
		return fail_there(path, err);
	if (place->name[0] == '\0' || (place->is_there && S_ISDIR(place->st.st_mode)))
		return fail(err, ERR_CONFLICT, "'%s' is a directory", path);
	if (place->is_there && !S_ISREG(place->st.st_mode))
		return fail(err, ERR_INVALID, "'%s' is a %s, not a file", path,
			files_type(place->st.st_mode));
	return 0;
}

int files_begin_write(const struct request *request, struct core_workspace *w, const char *path,
	unsigned mode, unsigned how, struct file_write **write, struct error *err)
{
	auto_place struct files_place place = FILES_NOWHERE;
	auto_close int in = -1;
	char name[ID_LEN + 1];

	if (files_enter(request, VERB_FILE_WRITE, w, err))
		return -1;
	if (files_locate(w, path, FILES_FOLLOW | (how & WRITE_PARENTS ? FILES_MAKE : 0), &place,
		    err) < 0 ||
		check_target(&place, path, how, err) < 0 || files_open_in(w, &in, err) < 0)
		return -1;
	if (mode == 0)
		mode = place.is_there ? place.st.st_mode : 0644;
	id_make(name);
	int fd = openat(in, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(err, "write '%s'", path);
	struct file_write *made = malloc(sizeof *made);
	char *kept = strdup(path);
	if (!made || !kept)
		abort();
	*made = (struct file_write){ .w = w,
		.fd = fd,
		.in = take_fd(&in),
		.place = place,
		.path = kept,
		.mode = mode & 0777,
		.must_be_new = how & WRITE_NEW };
	memcpy(made->temporary, name, sizeof name);
	place.dir = -1;
	core_hold(w);
	*write = made;
	return 0;
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
	if (len > files_room(write->w))
		return files_over_limit(write->w, err);
	ssize_t done = fault_fails("files.write") ? -1 : fd_write_full(write->fd, data, len);
	if (done < 0 || (size_t)done != len)
		return write_failed(write, err);
	write->written += len;
	files_charge(write->w, (int64_t)len);
	write->w->core->metrics.file_written_bytes += len;
	if (write->written - write->begun >= SYNC_STEP) {
		/* Without waiting for it. */
		sync_file_range(write->fd, (off_t)write->begun,
			(off_t)(write->written - write->begun), SYNC_FILE_RANGE_WRITE);
		write->begun = write->written;
	}
	return 0;
}

/* -- the end -- */

/* `keep` of the child that does it. */
enum { KEEP_FILE, KEEP_IN, KEEP_DIR };

/* fsync of a directory known by an O_PATH descriptor. 0, or -1 with errno. */
static int sync_directory(int dir)
{
	auto_close int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* One that its owner may not read: its own choice. */
	if (fd < 0)
		return errno == EACCES ? 0 : -1;
	return fsync(fd);
}

/* Durable first, then named. */
static int put_in_place(struct file_write *write, const int *fds, bool *created, struct error *err)
{
	const char *name = write->place.name;

	if (fchmod(fds[KEEP_FILE], write->mode) < 0 || fault_fails("files.sync") ||
		fsync(fds[KEEP_FILE]) < 0)
		return write_failed(write, err);
	fault_point("files.rename");
	int in = fds[KEEP_IN], dir = fds[KEEP_DIR];
	bool is_new = renameat2(in, write->temporary, dir, name, RENAME_NOREPLACE) == 0;
	if (!is_new && errno == EEXIST && write->must_be_new)
		return fail_there(write->path, err);
	if (!is_new && (errno != EEXIST || renameat(in, write->temporary, dir, name) < 0)) {
		if (errno == EISDIR)
			return fail(err, ERR_CONFLICT, "'%s' is a directory", write->path);
		return write_failed(write, err);
	}
	if (sync_directory(dir) < 0)
		return write_failed(write, err);
	*created = is_new;
	return 0;
}

static int put_in_child(void *ctx, const int *fds, uint64_t *value, struct error *err)
{
	bool created = false;

	if (put_in_place(ctx, fds, &created, err) < 0)
		return -1;
	*value = created;
	return 0;
}

static void on_end(void *ctx, uint64_t value, const struct error *failed)
{
	struct file_write *write = ctx;
	const struct files_place *place = &write->place;
	files_written_fn *done = write->done;
	void *done_ctx = write->ctx;

	if (failed) {
		files_abort_write(write);
	} else {
		if (!value && place->is_there && place->st.st_nlink == 1)
			files_charge(write->w, -(int64_t)place->st.st_blocks * 512);
		free_write(write);
	}
	done(done_ctx, value, failed);
}

/* There was no child to be had. */
static void on_turn(struct loop *loop, void *ctx)
{
	struct file_write *write = ctx;
	int fds[] = { write->fd, write->in, write->place.dir };
	struct error err;
	bool created = false;
	int failed = put_in_place(write, fds, &created, &err);

	on_end(write, created, failed ? &err : NULL);
}

void files_finish_write(struct file_write *write, files_written_fn *done, void *ctx)
{
	struct loop *loop = write->w->core->loop;
	struct files_job job = { .what = "write to disk",
		.work = put_in_child,
		.work_ctx = write,
		.keep = { write->fd, write->in, write->place.dir },
		.keep_count = 3,
		.writable = 1 << KEEP_IN | 1 << KEEP_DIR,
		.done = on_end,
		.ctx = write };
	struct error err;

	write->done = done;
	write->ctx = ctx;
	if (files_child_start(loop, &job, NULL, &err) < 0)
		loop_after(loop, 0, on_turn, write);
}
