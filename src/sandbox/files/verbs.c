/* verbs.c -- one file or directory at a time. Paths are walked by the kernel, as for a command:
 * where a link or a race leads, a command could go as well. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/walk.h"
#include "sandbox/files/server.h"

#define LINKS_MAX 40 /* as many as the kernel follows */
#define RETRIES 16   /* of what only a race can make fail */

/* -- what a thing is -- */

/* `name` in dir; false with errno. */
static bool read_info(int dir, const char *name, struct file_entry *info, char target[PATH_MAX])
{
	struct stat st;
	target[0] = '\0';
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return false;
	*info = (struct file_entry){ .size = (uint64_t)st.st_size,
		.mode = st.st_mode,
		.modified_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 };
	if (!S_ISLNK(st.st_mode))
		return true;
	ssize_t len = readlinkat(dir, name, target, PATH_MAX - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	return true;
}

static int add_path(struct serve_job *job, const char *path, struct error *err)
{
	char target[PATH_MAX];
	struct file_entry info;
	if (!read_info(AT_FDCWD, path, &info, target))
		return fail_errno(err, "'%s'", path);
	return serve_add_entry(job, "", &info, target, err);
}

int serve_stat(struct serve_job *job, struct error *err)
{
	return add_path(job, job->path, err);
}

/* -- listing -- */

/* The names after job->text, in no order. */
static int read_names(struct serve_job *job, DIR *walk, text_list *list, struct error *err)
{
	struct dirent *entry;
	size_t seen = 0;
	while ((entry = walk_next(walk))) {
		if (++seen > FILE_ENTRIES_MAX)
			return fail_hint(err, ERR_LIMIT, "list it with a command in the workspace",
				"'%s' has more than %d entries", job->path, FILE_ENTRIES_MAX);
		if (!job->text || strcmp(entry->d_name, job->text) > 0)
			vec_push(&job->arena, list, arena_text(&job->arena, entry->d_name));
	}
	return errno ? fail_errno(err, "list '%s'", job->path) : 0;
}

static int list_page(struct serve_job *job, DIR *walk, struct error *err)
{
	char target[PATH_MAX];
	struct file_entry info;
	text_list list = { 0 };
	if (read_names(job, walk, &list, err) < 0)
		return -1;
	text_list_sort(&list);
	/* What vanishes meanwhile is left out. */
	for (size_t i = 0; i < list.count && i < job->request.limit; i++) {
		bool is_known = read_info(dirfd(walk), list.items[i], &info, target);
		if (is_known && serve_add_entry(job, list.items[i], &info, target, err) < 0)
			return -1;
	}
	if (list.count <= job->request.limit || !job->request.limit)
		return 0;
	job->reply.flags |= FILE_MORE;
	info = (struct file_entry){ 0 };
	return serve_add_entry(job, list.items[job->request.limit - 1], &info, NULL, err);
}

int serve_list(struct serve_job *job, struct error *err)
{
	auto_walk DIR *walk =
		walk_from(open(job->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
	struct stat st;
	if (!walk && errno == ENOTDIR && stat(job->path, &st) == 0)
		return fail(err, ERR_INVALID, "'%s' is a %s, not a directory", job->path,
			path_type(st.st_mode));
	return walk ? list_page(job, walk, err) : fail_errno(err, "'%s'", job->path);
}

/* -- reading -- */

static bool is_readable(const struct stat *st, bool takes_directory)
{
	return S_ISREG(st->st_mode) || (takes_directory && S_ISDIR(st->st_mode));
}

int serve_open_to_read(
	const struct serve_job *job, bool takes_directory, int *fd, struct error *err)
{
	struct stat st;
	/* Check the type before opening: opening a fifo wakes a process that waits at its other
	 * end. */
	if (stat(job->path, &st) < 0)
		return fail_errno(err, "'%s'", job->path);
	if (!is_readable(&st, takes_directory))
		return fail(err, ERR_INVALID, "'%s' is a %s, not a file", job->path,
			path_type(st.st_mode));
	auto_close int opened = open(job->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (opened < 0 || fstat(opened, &st) < 0)
		return fail_errno(err, "open '%s'", job->path);
	if (!is_readable(&st, takes_directory))
		return fail(err, ERR_CONFLICT, "open '%s': it was replaced while it was opened",
			job->path);
	*fd = take_fd(&opened);
	return 0;
}

int serve_open(struct serve_job *job, struct error *err)
{
	return serve_open_to_read(job, false, &job->answer_fd, err);
}

/* -- writing -- */

/* The target of a write: its directory, and the last component, which is not a link. */
struct target {
	char dir[PATH_MAX];
	const char *name; /* in it */
	bool is_there;
	struct stat st;
};

/* Splits path, in place, into a directory and a name. */
static void split(struct target *target, char path[PATH_MAX])
{
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	char *slash = strrchr(path, '/');
	target->name = slash ? slash + 1 : path;
	if (!slash)
		str_copy(target->dir, sizeof target->dir, ".");
	else
		str_format(target->dir, sizeof target->dir, "%.*s",
			slash == path ? 1 : (int)(slash - path), path);
}

static bool is_no_name(const char *name)
{
	return !name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int serve_make_directories(const char *path, size_t len, struct error *err)
{
	char part[PATH_MAX];
	for (size_t i = 1; i <= len; i++) {
		if (i < len && path[i] != '/')
			continue;
		str_format(part, sizeof part, "%.*s", (int)i, path);
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return fail_errno(err, "make directory '%s'", part);
	}
	return 0;
}

/* `path` has room for PATH_MAX, and is what target->name lies in afterwards. */
static int find_target(
	const struct serve_job *job, char path[PATH_MAX], struct target *target, struct error *err)
{
	char link[PATH_MAX], joined[PATH_MAX];
	str_copy(path, PATH_MAX, job->path);
	for (int links = 0; links <= LINKS_MAX; links++) {
		split(target, path);
		target->is_there = lstat(path, &target->st) == 0;
		if (!target->is_there && errno != ENOENT)
			return fail_errno(err, "'%s'", job->path);
		if (!target->is_there || !S_ISLNK(target->st.st_mode))
			return 0;
		ssize_t len = readlink(path, link, sizeof link - 1);
		if (len < 0)
			return fail_errno(err, "read link '%s'", path);
		link[len] = '\0';
		bool fits = link[0] == '/'
				    ? str_copy(joined, sizeof joined, link)
				    : str_format(joined, sizeof joined, "%s/%s", target->dir, link);
		if (!fits) {
			errno = ENAMETOOLONG;
			return fail_errno(err, "'%s'", job->path);
		}
		memcpy(path, joined, PATH_MAX);
	}
	return fail(err, ERR_INVALID, "'%s': too many links", job->path);
}

static int fail_taken(const struct serve_job *job, struct error *err)
{
	return fail(err, ERR_CONFLICT, "'%s' already exists", job->path);
}

static int check_target(const struct serve_job *job, const struct target *target, struct error *err)
{
	if (target->is_there && job->request.flags & FILE_NEW)
		return fail_taken(job, err);
	if (is_no_name(target->name) || (target->is_there && S_ISDIR(target->st.st_mode)))
		return fail(err, ERR_CONFLICT, "'%s' is a directory", job->path);
	if (target->is_there && !S_ISREG(target->st.st_mode))
		return fail(err, ERR_INVALID, "'%s' is a %s, not a file", job->path,
			path_type(target->st.st_mode));
	return 0;
}

int serve_create(struct serve_job *job, struct error *err)
{
	char path[PATH_MAX];
	struct target target;
	if (find_target(job, path, &target, err) < 0 || check_target(job, &target, err) < 0)
		return -1;
	int fd = open(target.dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 && errno == ENOENT && job->request.flags & FILE_PARENTS) {
		if (serve_make_directories(target.dir, strlen(target.dir), err) < 0)
			return -1;
		fd = open(target.dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	}
	if (fd < 0 && errno == EOPNOTSUPP)
		return fail(err, ERR_UNAVAILABLE,
			"write '%s': its file system has no files without a name (O_TMPFILE)",
			job->path);
	if (fd < 0)
		return fail_errno(err, "write '%s'", job->path);
	job->answer_fd = fd;
	return 0;
}

/* fsync of a directory. One that its owner may not read: its own choice. */
static int sync_directory(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? 0 : -1;
	return fsync(fd);
}

static bool is_file(int dir, const char *name, const struct stat *file)
{
	struct stat there;
	return fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       there.st_ino == file->st_ino && there.st_dev == file->st_dev;
}

/* By a name of its own first: a link can't replace. A server before this one may have made that: it
 * stays, since a file that has lost its last name can't get another. */
static int replace(struct serve_job *job, int dir, const struct stat *mine, const char *file,
	const char *name, struct error *err)
{
	const char *temporary = job->text;
	if (linkat(AT_FDCWD, file, dir, temporary, AT_SYMLINK_FOLLOW) < 0 &&
		(errno != EEXIST || !is_file(dir, temporary, mine)))
		return fail_errno(err, "write '%s'", job->path);
	if (renameat(dir, temporary, dir, name) == 0)
		return 0;
	int reason = errno;
	unlinkat(dir, temporary, 0);
	errno = reason;
	if (reason == EISDIR)
		return fail(err, ERR_CONFLICT, "'%s' is a directory", job->path);
	return fail_errno(err, "write '%s'", job->path);
}

static int give_name(struct serve_job *job, const struct target *target, struct error *err)
{
	auto_close int dir = open(target->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char file[32];
	struct stat mine;
	if (!job->text || strchr(job->text, '/'))
		return fail(err, ERR_INVALID, "no name for a temporary file");
	if (dir < 0 || fstat(job->fd, &mine) < 0)
		return fail_errno(err, "write '%s'", job->path);
	str_format(file, sizeof file, "/proc/self/fd/%d", job->fd);
	bool is_new = linkat(AT_FDCWD, file, dir, target->name, AT_SYMLINK_FOLLOW) == 0;
	if (!is_new && errno != EEXIST)
		return fail_errno(err, "write '%s'", job->path);
	if (is_new && mine.st_nlink > 0 && is_file(dir, job->text, &mine))
		unlinkat(dir, job->text, 0);
	/* An earlier server may have done it and died before its reply. */
	if (!is_new && is_file(dir, target->name, &mine))
		is_new = true;
	else if (!is_new && job->request.flags & FILE_NEW)
		return fail_taken(job, err);
	else if (!is_new && replace(job, dir, &mine, file, target->name, err) < 0)
		return -1;
	if (sync_directory(target->dir) < 0)
		return fail_errno(err, "write '%s'", job->path);
	job->reply.flags |= is_new ? FILE_CREATED : 0;
	return 0;
}

static int copy(int from, int to)
{
	static char data[1 << 16];
	off_t at = 0;
	ssize_t got;
	while ((got = pread(from, data, sizeof data, at)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || fd_write_full(to, data, (size_t)got) != got)
			return -1;
		at += got;
	}
	return 0;
}

/* What core writes to a tmpfs would be core's memory, not the sandbox's: it wrote elsewhere, and
 * the file is copied here. */
static int take_to_memory(struct serve_job *job, const struct target *target, struct error *err)
{
	struct stat from, to;
	struct statfs fs;
	if (stat(target->dir, &to) < 0 || fstat(job->fd, &from) < 0)
		return fail_errno(err, "write '%s'", job->path);
	if (from.st_dev == to.st_dev)
		return 0;
	if (statfs(target->dir, &fs) < 0)
		return fail_errno(err, "write '%s'", job->path);
	if (fs.f_type != TMPFS_MAGIC)
		return 0;
	auto_close int fd = open(target->dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || copy(job->fd, fd) < 0)
		return fail_errno(err, "write '%s'", job->path);
	fd_close(&job->fd);
	job->fd = take_fd(&fd);
	return 0;
}

/* Durable first, then named. */
int serve_commit(struct serve_job *job, struct error *err)
{
	char path[PATH_MAX];
	struct target target;
	if (find_target(job, path, &target, err) < 0)
		return -1;
	/* With FILE_NEW, give_name sees whether the name is taken by this very file. */
	if ((!target.is_there || !(job->request.flags & FILE_NEW)) &&
		check_target(job, &target, err) < 0)
		return -1;
	unsigned mode = job->request.mode;
	if (mode == 0)
		mode = target.is_there ? target.st.st_mode : 0644;
	if (take_to_memory(job, &target, err) < 0)
		return -1;
	if (fchmod(job->fd, mode & 0777) < 0 || fault_fails("files.sync") || fsync(job->fd) < 0)
		return fail_errno(err, "write '%s'", job->path);
	fault_point("files.rename");
	if (give_name(job, &target, err) < 0)
		return -1;
	return add_path(job, job->path, err);
}

/* -- directories -- */

int serve_mkdir(struct serve_job *job, struct error *err)
{
	char path[PATH_MAX];
	struct target target;
	struct stat st;
	str_copy(path, sizeof path, job->path);
	split(&target, path);
	if (mkdir(job->path, 0755) == 0) {
		job->reply.flags |= FILE_CREATED;
	} else if (errno == ENOENT) {
		if (serve_make_directories(target.dir, strlen(target.dir), err) < 0)
			return -1;
		if (mkdir(job->path, 0755) < 0)
			return fail_errno(err, "make directory '%s'", job->path);
		job->reply.flags |= FILE_CREATED;
	} else if (stat(job->path, &st) < 0) {
		return fail_errno(err, "make directory '%s'", job->path);
	} else if (!S_ISDIR(st.st_mode)) {
		return fail(err, ERR_CONFLICT, "'%s' is a %s", job->path, path_type(st.st_mode));
	}
	return add_path(job, job->path, err);
}

static int rename_failed(const char *from, const char *to, struct error *err)
{
	switch (errno) {
	case EINVAL:
		return fail(err, ERR_INVALID, "'%s' can't be moved into itself, to '%s'", from, to);
	case EISDIR:
	case ENOTEMPTY:
	case EEXIST:
		return fail(err, ERR_CONFLICT, "move '%s': '%s' is a directory", from, to);
	case ENOTDIR:
		return fail(err, ERR_CONFLICT, "move '%s': '%s' exists and is not a directory",
			from, to);
	case EXDEV:
		return fail_hint(err, ERR_INVALID, "copy it, then remove it",
			"'%s' and '%s' are on different file systems", from, to);
	default:
		return fail_errno(err, "move '%s' to '%s'", from, to);
	}
}

int serve_move(struct serve_job *job, struct error *err)
{
	struct stat st;
	const char *to = job->text && job->text[0] ? job->text : ".";
	if (lstat(job->path, &st) < 0)
		return fail_errno(err, "'%s'", job->path);
	if (rename(job->path, to) < 0)
		return rename_failed(job->path, to, err);
	return add_path(job, to, err);
}

static int remove_tree(const char *path, struct error *err)
{
	char copy[PATH_MAX];
	struct target target;
	str_copy(copy, sizeof copy, path);
	split(&target, copy);
	auto_close int dir = open(target.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "remove '%s'", path);
	return path_remove_tree(dir, target.name, err);
}

int serve_remove(struct serve_job *job, struct error *err)
{
	for (int tries = 0; tries < RETRIES; tries++) {
		if (unlink(job->path) == 0)
			return 0;
		if (errno != EISDIR)
			return fail_errno(err, "remove '%s'", job->path);
		if (rmdir(job->path) == 0)
			return 0;
		if (errno == ENOTDIR)
			continue; /* replaced meanwhile */
		if (errno != ENOTEMPTY && errno != EEXIST)
			return fail_errno(err, "remove '%s'", job->path);
		if (!(job->request.flags & FILE_RECURSIVE))
			return fail(err, ERR_CONFLICT, "'%s' isn't empty", job->path);
		return remove_tree(job->path, err);
	}
	return fail(err, ERR_CONFLICT, "remove '%s': something keeps replacing it", job->path);
}
