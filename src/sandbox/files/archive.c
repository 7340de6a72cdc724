/* archive.c -- a tree of the sandbox to an archive and back: trees/pack/tree.h does it, here is
 * where. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "sandbox/files/server.h"
#include "trees/pack/tree.h"

#define CHUNK ((size_t)128 << 10)

int serve_pack(struct serve_job *job, struct error *err)
{
	struct tree_pack pack = { .out = job->fd };
	auto_close int fd = -1;
	if (serve_open_to_read(job, true, &fd, err) < 0 || serve_send_part(job, err) < 0)
		return -1;
	int failed = tree_pack(&pack, take_fd(&fd), path_basename(job->path), err);
	/* Close before replying: the reader of the archive sees its end before core gets the reply.
	 */
	fd_close(&job->fd);
	return failed;
}

/* Cuts the last component off `path`. false: `path` is "." or "/", and stays. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');
	if (strcmp(path, ".") == 0 || strcmp(path, "/") == 0)
		return false;
	if (!slash)
		str_copy(path, 2, ".");
	else
		slash[slash == path] = '\0';
	return true;
}

/* Opens the target, or its nearest existing parent directory. */
static int open_above(const struct serve_job *job, int *fd, struct error *err)
{
	char path[PATH_MAX];
	struct stat st;
	if (stat(job->path, &st) == 0 && !S_ISDIR(st.st_mode))
		return fail(err, ERR_CONFLICT, "'%s' is a %s", job->path, path_type(st.st_mode));
	str_copy(path, sizeof path, job->path);
	do {
		*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	} while (*fd < 0 && errno == ENOENT && go_up(path));
	return *fd < 0 ? fail_errno(err, "'%s'", job->path) : 0;
}

/* An earlier server may have made it and died before its reply. */
int serve_make_stage(int above, const char *name, struct error *err)
{
	int made = mkdirat(above, name, 0700);
	if (made < 0 && errno == EEXIST) {
		if (path_remove_tree(above, name, err) < 0)
			return -1;
		made = mkdirat(above, name, 0700);
	}
	return made < 0 ? fail_errno(err, "make a directory to unpack in") : 0;
}

static int unpack_stream(struct serve_job *job, struct tree_unpack *unpack, struct error *err)
{
	static char data[CHUNK];
	ssize_t got;
	int failed = 0;
	while (!failed && (got = read(job->fd, data, CHUNK)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read the archive");
		failed = tree_unpack_add(unpack, (struct str){ data, (size_t)got }, err);
	}
	if (!failed)
		failed = tree_unpack_end(unpack, err);
	if (!failed || err->code != ERR_CORRUPT)
		return failed;
	err->code = ERR_INVALID;
	return unpack->entries ? error_context(err, "after '%s'", unpack->place.path) : -1;
}

/* The archive is known to be good. */
static int put_in_place(struct serve_job *job, struct tree_unpack *unpack, struct error *err)
{
	fault_point("archive.unpacked");
	if (serve_is_canceled(job))
		return fail(err, ERR_CANCELED, "the upload was canceled");
	if (serve_make_directories(job->path, strlen(job->path), err) < 0)
		return -1;
	auto_close int target = open(job->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (target < 0)
		return fail_errno(err, "open '%s'", job->path);
	return tree_unpack_place(unpack, target, err);
}

int serve_unpack(struct serve_job *job, struct error *err)
{
	static struct tree_unpack
		unpack; /* too large for the stack; only one archive is in progress at a time */
	auto_close int above = -1, stage = -1;
	struct error ignored;
	if (!job->text || strchr(job->text, '/'))
		return fail(err, ERR_INVALID, "no name for a directory to unpack in");
	if (open_above(job, &above, err) < 0 || serve_make_stage(above, job->text, err) < 0)
		return -1;
	stage = fd_open_directory(above, job->text);
	tree_unpack_init(&unpack, stage);
	unpack.is_upload = true;
	unpack.limit = job->request.limit;
	int failed = stage < 0 ? fail_errno(err, "open the directory to unpack in") : 0;
	failed = failed || serve_send_part(job, err) < 0 || unpack_stream(job, &unpack, err) < 0 ||
		 put_in_place(job, &unpack, err) < 0;
	/* The sender of the archive gets EPIPE from now on. */
	fd_close(&job->fd);
	job->reply.bytes = unpack.bytes;
	tree_unpack_done(&unpack);
	/* Removes the stage; directories that were merged into existing ones are left in it, empty.
	 */
	if (path_remove_tree(above, job->text, failed ? &ignored : err) < 0)
		failed = -1;
	return failed ? -1 : 0;
}

int serve_tidy(struct serve_job *job, struct error *err)
{
	char path[PATH_MAX];
	struct stat st;
	if (!job->text || strchr(job->text, '/'))
		return fail(err, ERR_INVALID, "no name for a directory to remove");
	str_copy(path, sizeof path, job->path);
	do {
		auto_close int above = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Check existence first: on a read-only file system (the sandbox's root) removing a
		 * missing file fails, too. */
		if (above >= 0 && fstatat(above, job->text, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			(serve_undo_apply(above, job->text, err) < 0 ||
				path_remove_tree(above, job->text, err) < 0))
			return -1;
	} while (go_up(path));
	return 0;
}
