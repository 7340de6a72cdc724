/* unpack.c -- a tar archive becomes files: in a directory of its own first, and when it is whole
 * it is moved into place. What is in it is judged by format/archived.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/agent.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "format/archived.h"
#include "format/tar.h"

#define CHUNK ((size_t)128 << 10)
#define ENTRIES_MAX 1000000
#define SYNCED_SINGLY                                                                              \
	256	    /* files: with more, the whole file system is, which waits for others, too */
#define BLOCK 4096u /* what a file takes on disk is a number of these */
#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A directory on the way to the latest entry: entries come in the order of a walk, mostly. What is
 * made in it changes its time, which is set again when it is left. */
struct level {
	int fd;
	struct timespec modified;
	char name[NAME_MAX + 1];
};
struct unpack {
	struct agent_job *job;
	int above; /* directory that holds the stage */
	int stage;
	struct tar_reader reader;
	struct archived_place place; /* of the entry at hand */
	int file;		     /* being written, or -1 */
	uint64_t file_blocks, file_size;
	int64_t file_modified_s;
	uint64_t entries, files, bytes;
	size_t depth; /* of levels; no directory is ever removed, so that they stay true */
	struct level levels[ARCHIVED_DEPTH_MAX];
	char data[CHUNK];
};

static int unpack_failed(const struct unpack *unpack, struct error *err)
{
	return fail_errno(err, "unpack '%s'", unpack->place.path);
}

static int charge(struct unpack *unpack, uint64_t bytes, struct error *err)
{
	if (bytes > unpack->job->request.limit - unpack->bytes)
		return fail_hint(err, ERR_LIMIT,
			"remove files, or make a workspace with a larger --disk",
			"the archive doesn't fit in the workspace's disk limit, at '%s'",
			unpack->place.path);
	unpack->bytes += bytes;
	return 0;
}

/* -- places in the stage -- */

/* A time outside the range of the file system leaves the present time. */
static void set_time(int fd, struct timespec modified)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, modified };

	(void)!futimens(fd, times);
}

static void leave(struct unpack *unpack, size_t depth)
{
	while (unpack->depth > depth) {
		struct level *level = &unpack->levels[--unpack->depth];

		set_time(level->fd, level->modified);
		fd_close(&level->fd);
	}
}

/* Opens directory `name` in dir, making it when it isn't there. */
static int enter(struct unpack *unpack, int dir, const char *name, int *fd, struct error *err)
{
	int opened = openat(dir, name, OPEN_DIRECTORY);

	if (opened < 0 && errno == ENOENT) {
		if (charge(unpack, BLOCK, err) < 0)
			return -1;
		if (mkdirat(dir, name, 0755) == 0)
			opened = openat(dir, name, OPEN_DIRECTORY);
	}
	if (opened < 0 && (errno == ELOOP || errno == ENOTDIR))
		return fail(err, ERR_DENIED,
			"'%s' in the archive is below '%s', which is not a directory in the "
			"archive",
			unpack->place.path, name);
	if (opened < 0)
		return unpack_failed(unpack, err);
	*fd = opened;
	return 0;
}

/* The directory that holds the entry at hand, and its name there. *dir is in `levels`. */
static int reach(struct unpack *unpack, int *dir, const char **name, struct error *err)
{
	const char *path = unpack->place.path, *slash;
	size_t depth = 0;
	struct stat st;

	for (; (slash = strchr(path, '/')); path = slash + 1, depth++) {
		struct level *level = &unpack->levels[depth];
		size_t len = (size_t)(slash - path);

		if (depth < unpack->depth && strncmp(level->name, path, len) == 0 &&
			level->name[len] == '\0')
			continue;
		leave(unpack, depth);
		str_format(level->name, sizeof level->name, "%.*s", (int)len, path);
		if (enter(unpack, depth ? level[-1].fd : unpack->stage, level->name, &level->fd,
			    err) < 0)
			return -1;
		unpack->depth = depth + 1;
		if (fstat(level->fd, &st) < 0)
			return unpack_failed(unpack, err);
		level->modified = st.st_mtim;
	}
	leave(unpack, depth);
	*dir = depth ? unpack->levels[depth - 1].fd : unpack->stage;
	*name = path;
	return 0;
}

/* An entry of that name came before: it goes, but for a directory. */
static int make_way(struct unpack *unpack, int dir, const char *name, struct error *err)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno == EISDIR || errno == EPERM)
		return fail(err, ERR_INVALID, "'%s' is also a directory in the archive",
			unpack->place.path);
	return unpack_failed(unpack, err);
}

/* -- entries -- */

static int begin_file(struct unpack *unpack, struct error *err)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const char *name;
	int dir;

	if (reach(unpack, &dir, &name, err) < 0)
		return -1;
	/* The owner's write permission comes with O_CREAT, whatever the mode says. */
	int fd = openat(dir, name, flags, unpack->place.mode);
	if (fd < 0 && errno == EEXIST) {
		if (make_way(unpack, dir, name, err) < 0)
			return -1;
		fd = openat(dir, name, flags, unpack->place.mode);
	}
	if (fd < 0)
		return unpack_failed(unpack, err);
	unpack->file = fd;
	unpack->file_blocks = 0;
	unpack->file_size = unpack->reader.entry.size;
	unpack->file_modified_s = unpack->reader.entry.modified_s;
	return 0;
}

static int write_data(struct unpack *unpack, struct str data, struct error *err)
{
	uint64_t at = unpack->reader.offset;
	/* In whole blocks, as far as they were not begun before. */
	uint64_t end = (at + data.len + BLOCK - 1) / BLOCK, *blocks = &unpack->file_blocks;
	uint64_t first = at / BLOCK > *blocks ? at / BLOCK : *blocks;

	if (end > first && charge(unpack, (end - first) * BLOCK, err) < 0)
		return -1;
	*blocks = end > *blocks ? end : *blocks;
	while (data.len > 0) {
		ssize_t done = fault_fails("archive.write")
				       ? -1
				       : pwrite(unpack->file, data.data, data.len, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return unpack_failed(unpack, err);
		data = (struct str){ data.data + done, data.len - (size_t)done };
		at += (uint64_t)done;
	}
	return 0;
}

/* The file that was begun is whole. */
static int end_file(struct unpack *unpack, struct error *err)
{
	auto_close int fd = take_fd(&unpack->file);

	if (fd < 0)
		return 0;
	/* It may end with a hole. */
	if (unpack->file_size > unpack->file_blocks * BLOCK &&
		ftruncate(fd, (off_t)unpack->file_size) < 0)
		return unpack_failed(unpack, err);
	set_time(fd, (struct timespec){ .tv_sec = unpack->file_modified_s });
	if (++unpack->files <= SYNCED_SINGLY && fsync(fd) < 0)
		return unpack_failed(unpack, err);
	return 0;
}

static int unpack_directory(struct unpack *unpack, struct error *err)
{
	const char *name;
	int dir;

	if (!unpack->place.path[0])
		return 0;
	if (reach(unpack, &dir, &name, err) < 0)
		return -1;
	auto_close int fd = -1;
	if (enter(unpack, dir, name, &fd, err) < 0)
		return -1;
	/* What couldn't be written to couldn't be moved, either. */
	if (fchmod(fd, unpack->place.mode | 0700) < 0)
		return unpack_failed(unpack, err);
	set_time(fd, (struct timespec){ .tv_sec = unpack->reader.entry.modified_s });
	return 0;
}

static int unpack_link(struct unpack *unpack, struct error *err)
{
	const char *name;
	int dir;

	if (reach(unpack, &dir, &name, err) < 0 || make_way(unpack, dir, name, err) < 0)
		return -1;
	return symlinkat(unpack->place.target, dir, name) < 0 ? unpack_failed(unpack, err) : 0;
}

/* Whether `path` in the stage is a file, found without following a link. */
static bool is_staged_file(const struct unpack *unpack, const char *path)
{
	auto_close int at = openat(unpack->stage, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct str rest = str_from(path), part;
	char name[NAME_MAX + 1];
	struct stat st;

	while (str_next(&rest, '/', &part)) {
		str_format(name, sizeof name, "%.*s", (int)part.len, part.data);
		int next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		fd_close(&at);
		at = next;
	}
	return at >= 0 && fstat(at, &st) == 0 && S_ISREG(st.st_mode);
}

static int unpack_hard_link(struct unpack *unpack, struct error *err)
{
	const char *target = unpack->place.target, *name;
	int dir;

	if (!is_staged_file(unpack, target))
		return fail(err, ERR_DENIED,
			"'%s' in the archive is a hard link to '%s', which is not an earlier file "
			"in the archive",
			unpack->place.path, target);
	if (reach(unpack, &dir, &name, err) < 0 || make_way(unpack, dir, name, err) < 0)
		return -1;
	return linkat(unpack->stage, target, dir, name, 0) < 0 ? unpack_failed(unpack, err) : 0;
}

static int judge(struct unpack *unpack, enum archived_type *type, struct error *err)
{
	static const enum archived_type types[] = { [TAR_FILE] = ARCHIVED_FILE,
		[TAR_DIRECTORY] = ARCHIVED_DIRECTORY,
		[TAR_SYMLINK] = ARCHIVED_LINK,
		[TAR_HARDLINK] = ARCHIVED_HARD_LINK,
		[TAR_OTHER] = ARCHIVED_OTHER };
	const struct tar_entry *entry = &unpack->reader.entry;
	const struct buf *attributes = &unpack->reader.attributes;
	struct archived asked = { .name = entry->name,
		.type = types[entry->kind],
		.mode = entry->mode,
		.target = entry->link };

	for (size_t at = 0; at < attributes->len; at += strlen(attributes->data + at) + 1)
		if (archived_judge_attribute(entry->name, attributes->data + at, err) < 0)
			return -1;
	*type = asked.type;
	return archived_judge(&asked, &unpack->place, err);
}

static int unpack_entry(struct unpack *unpack, struct error *err)
{
	enum archived_type type;

	if (++unpack->entries > ENTRIES_MAX)
		return fail(err, ERR_LIMIT, "the archive has more than %d entries", ENTRIES_MAX);
	if (judge(unpack, &type, err) < 0)
		return -1;
	switch (type) {
	case ARCHIVED_FILE:
		return begin_file(unpack, err);
	case ARCHIVED_DIRECTORY:
		return unpack_directory(unpack, err);
	case ARCHIVED_LINK:
		return unpack_link(unpack, err);
	default:
		return unpack_hard_link(unpack, err);
	}
}

/* -- the archive -- */

static int read_failed(const struct unpack *unpack, struct error *err)
{
	if (err->code != ERR_CORRUPT)
		return -1;
	err->code = ERR_INVALID;
	return unpack->entries ? error_context(err, "after '%s'", unpack->place.path) : -1;
}

static int unpack_piece(struct unpack *unpack, struct str input, struct error *err)
{
	struct str data;
	int step;

	do {
		step = tar_read(&unpack->reader, &input, &data, err);
		if (step < 0)
			return read_failed(unpack, err);
		if (step == TAR_ENTRY &&
			(end_file(unpack, err) < 0 || unpack_entry(unpack, err) < 0))
			return -1;
		if (step == TAR_DATA && unpack->file >= 0 && write_data(unpack, data, err) < 0)
			return -1;
	} while (step == TAR_ENTRY || step == TAR_DATA);
	return 0;
}

static int unpack_stream(struct unpack *unpack, struct error *err)
{
	ssize_t got;

	while ((got = read(unpack->job->fd, unpack->data, CHUNK)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read the archive");
		if (unpack_piece(unpack, (struct str){ unpack->data, (size_t)got }, err) < 0)
			return -1;
	}
	if (tar_reader_finish(&unpack->reader, err) < 0)
		return read_failed(unpack, err);
	if (end_file(unpack, err) < 0)
		return -1;
	leave(unpack, 0);
	if (unpack->files > SYNCED_SINGLY && syncfs(unpack->stage) < 0)
		return fail_errno(err, "write the archive's files to disk");
	return 0;
}

/* -- the stage, and the place -- */

/* Cuts the last component off a path; false when there is none. */
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

/* The target, or the nearest directory above it that is there. */
static int open_above(const struct agent_job *job, int *fd, struct error *err)
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

/* An agent before this one may have made it, and ended before it could say so. */
static int make_stage(int above, const char *name, struct error *err)
{
	int made = mkdirat(above, name, 0700);

	if (made < 0 && errno == EEXIST) {
		if (path_remove_tree(above, name, err) < 0)
			return -1;
		made = mkdirat(above, name, 0700);
	}
	return made < 0 ? fail_errno(err, "make a directory to unpack in") : 0;
}

/* The archive is known to be good. */
static int put_in_place(struct unpack *unpack, struct error *err)
{
	const char *path = unpack->job->path;

	fault_point("archive.unpacked");
	if (agent_is_canceled(unpack->job))
		return fail(err, ERR_CANCELED, "the upload was canceled");
	if (agent_make_directories(path, strlen(path), err) < 0)
		return -1;
	auto_close int target = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (target < 0)
		return fail_errno(err, "open '%s'", path);
	return agent_place(unpack->stage, target, err);
}

int agent_unpack(struct agent_job *job, struct error *err)
{
	static struct unpack whole; /* too large for a stack, and there is one at a time */
	struct unpack *unpack = &whole;
	struct error ignored;

	*unpack = (struct unpack){ .job = job, .above = -1, .stage = -1, .file = -1 };
	if (!job->text || strchr(job->text, '/'))
		return fail(err, ERR_INVALID, "no name for a directory to unpack in");
	if (open_above(job, &unpack->above, err) < 0)
		return -1;
	auto_close int above = unpack->above;
	if (make_stage(above, job->text, err) < 0)
		return -1;
	unpack->stage = openat(above, job->text, OPEN_DIRECTORY);
	tar_reader_init(&unpack->reader);
	int failed = unpack->stage < 0 ? fail_errno(err, "open the directory to unpack in") : 0;
	failed = failed || agent_send_part(job, err) < 0 || unpack_stream(unpack, err) < 0 ||
		 put_in_place(unpack, err) < 0;
	/* Whoever sends the archive learns that nobody reads it any more. */
	fd_close(&job->fd);
	leave(unpack, 0);
	fd_close(&unpack->file);
	fd_close(&unpack->stage);
	tar_reader_done(&unpack->reader);
	job->reply.bytes = unpack->bytes;
	/* Directories that were there already are left, empty. */
	if (path_remove_tree(above, job->text, failed ? &ignored : err) < 0)
		failed = -1;
	return failed ? -1 : 0;
}

int agent_tidy(struct agent_job *job, struct error *err)
{
	char path[PATH_MAX];
	struct stat st;

	if (!job->text || strchr(job->text, '/'))
		return fail(err, ERR_INVALID, "no name for a directory to remove");
	str_copy(path, sizeof path, job->path);
	do {
		auto_close int above = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Looked at first: on a read-only file system (the sandbox's root) the removal of
		 * what isn't there fails as well. */
		if (above >= 0 && fstatat(above, job->text, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			path_remove_tree(above, job->text, err) < 0)
			return -1;
	} while (go_up(path));
	return 0;
}
