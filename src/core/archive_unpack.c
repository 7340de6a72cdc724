#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/archive_parts.h"
#include "format/archived.h"

#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define SYNCED_SINGLY                                                                              \
	256	    /* files: with more, the whole file system is, which waits for others, too */
#define BLOCK 4096u /* what a file takes on disk is a number of these */

/* A directory on the way to the latest entry: entries come in the order of a walk, mostly. What is
 * made in it changes its time, which is set again when it is left. */
struct level {
	int fd;
	struct timespec modified;
	char name[NAME_MAX + 1];
};
struct unpack {
	const struct archive_unpacking *limits;
	int in, stage;
	struct archive *archive;
	struct archived_place place; /* of the entry at hand */
	uint64_t got;		     /* bytes of the archive */
	uint64_t entries, files, bytes;
	size_t depth; /* of levels; none of the directories is ever removed, so that they stay true
		       */
	struct level levels[ARCHIVED_DEPTH_MAX];
	char data[ARCHIVE_BUFFER];
};

/* -- the archive -- */

static la_ssize_t read_more(struct archive *archive, void *ctx, const void **data)
{
	struct unpack *unpack = ctx;
	ssize_t got;

	do {
		got = read(unpack->in, unpack->data, ARCHIVE_BUFFER);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		archive_set_error(archive, errno, "read");
	else
		unpack->got += (uint64_t)got;
	*data = unpack->data;
	return got;
}

static int read_failed(struct unpack *unpack, struct error *err)
{
	const char *why = archive_error_string(unpack->archive);

	if (archive_errno(unpack->archive) == ENOMEM)
		return fail(err, ERR_LIMIT, "reading the archive needs too much memory");
	if (unpack->entries == 0)
		return fail(err, ERR_INVALID, "this is neither a tar nor a tar.zst archive: %s",
			why ? why : "unknown");
	return fail(err, ERR_INVALID, "the archive is damaged after '%s': %s", unpack->place.path,
		why ? why : "unknown");
}

static int open_archive(struct unpack *unpack, struct error *err)
{
	unpack->archive = archive_read_new();
	if (!unpack->archive)
		abort();
	if (archive_read_support_filter_zstd(unpack->archive) != ARCHIVE_OK ||
		archive_read_support_format_tar(unpack->archive) != ARCHIVE_OK)
		return fail(err, ERR_UNAVAILABLE, "libarchive can't read tar.zst: %s",
			archive_error_string(unpack->archive));
	if (archive_read_open(unpack->archive, unpack, NULL, read_more, NULL) != ARCHIVE_OK)
		return read_failed(unpack, err);
	return 0;
}

static int check_ratio(const struct unpack *unpack, struct error *err)
{
	uint64_t unpacked = (uint64_t)archive_filter_bytes(unpack->archive, 0);

	if (unpacked > ARCHIVE_RATIO_FREE && unpacked / ARCHIVE_RATIO_MAX > unpack->got)
		return fail(err, ERR_LIMIT,
			"the archive unpacks to more than %d times its size, at '%s'",
			ARCHIVE_RATIO_MAX, unpack->place.path);
	return 0;
}

static int charge(struct unpack *unpack, uint64_t bytes, struct error *err)
{
	if (bytes > unpack->limits->bytes_max - unpack->bytes)
		return fail_hint(err, ERR_LIMIT,
			"remove files, or make a workspace with a larger --disk",
			"the archive doesn't fit in the workspace's disk limit, at '%s'",
			unpack->place.path);
	unpack->bytes += bytes;
	return 0;
}

/* -- places in the stage -- */

/* A time that the file system can't hold is none. */
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

static int refuse_way(const struct unpack *unpack, const char *part, struct error *err)
{
	return fail(err, ERR_DENIED,
		"'%s' in the archive is below '%s', which is not a directory in the archive",
		unpack->place.path, part);
}

/* Opens directory `name` in dir, making it (with `make`) when it isn't there. */
static int enter(
	struct unpack *unpack, int dir, const char *name, bool make, int *fd, struct error *err)
{
	int opened = openat(dir, name, OPEN_DIRECTORY);

	if (opened < 0 && errno == ENOENT && make) {
		if (charge(unpack, BLOCK, err) < 0)
			return -1;
		if (mkdirat(dir, name, 0755) == 0)
			opened = openat(dir, name, OPEN_DIRECTORY);
	}
	if (opened < 0 && (errno == ELOOP || errno == ENOTDIR))
		return refuse_way(unpack, name, err);
	if (opened < 0)
		return fail_errno(err, "unpack '%s'", unpack->place.path);
	*fd = opened;
	return 0;
}

/* The directory that holds `path`, and its name there. *dir is in `levels`. */
static int reach(
	struct unpack *unpack, const char *path, int *dir, const char **name, struct error *err)
{
	size_t depth = 0;
	const char *slash;
	struct stat st;

	for (; (slash = strchr(path, '/')); path = slash + 1, depth++) {
		struct level *level = &unpack->levels[depth];
		size_t len = (size_t)(slash - path);

		if (depth < unpack->depth && strncmp(level->name, path, len) == 0 &&
			level->name[len] == '\0')
			continue;
		leave(unpack, depth);
		str_format(level->name, sizeof level->name, "%.*s", (int)len, path);
		if (enter(unpack, depth ? level[-1].fd : unpack->stage, level->name, true,
			    &level->fd, err) < 0)
			return -1;
		unpack->depth = depth + 1;
		if (fstat(level->fd, &st) < 0)
			return fail_errno(err, "unpack '%s'", unpack->place.path);
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
	if (unlinkat(dir, name, 0) == 0)
		return 0;
	if (errno == EISDIR || errno == EPERM)
		return fail(err, ERR_INVALID, "'%s' is also a directory in the archive",
			unpack->place.path);
	return fail_errno(err, "unpack '%s'", unpack->place.path);
}

/* -- entries -- */

static int write_at(const struct unpack *unpack, int fd, const char *data, size_t len, off_t at,
	struct error *err)
{
	while (len > 0) {
		ssize_t done = fault_fails("archive.write") ? -1 : pwrite(fd, data, len, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return fail_errno(err, "unpack '%s'", unpack->place.path);
		data += done;
		at += done;
		len -= (size_t)done;
	}
	return 0;
}

static int write_content(struct unpack *unpack, int fd, int64_t size, struct error *err)
{
	uint64_t blocks = 0;
	const void *data;
	size_t len;
	la_int64_t at;
	int got;

	while ((got = archive_read_data_block(unpack->archive, &data, &len, &at)) == ARCHIVE_OK) {
		/* In whole blocks, as far as they were not begun before. */
		uint64_t end = ((uint64_t)at + len + BLOCK - 1) / BLOCK;
		uint64_t first = (uint64_t)at / BLOCK > blocks ? (uint64_t)at / BLOCK : blocks;

		if (check_ratio(unpack, err) < 0 ||
			(len && end > first && charge(unpack, (end - first) * BLOCK, err) < 0) ||
			write_at(unpack, fd, data, len, at, err) < 0)
			return -1;
		blocks = end > blocks ? end : blocks;
	}
	if (got != ARCHIVE_EOF)
		return read_failed(unpack, err);
	/* It may end with a hole. */
	if (size > 0 && (uint64_t)size > blocks * BLOCK && ftruncate(fd, size) < 0)
		return fail_errno(err, "unpack '%s'", unpack->place.path);
	return 0;
}

static void keep_time(int fd, struct archive_entry *entry)
{
	if (archive_entry_mtime_is_set(entry))
		set_time(fd, (struct timespec){
				     archive_entry_mtime(entry), archive_entry_mtime_nsec(entry) });
}

static int unpack_file(struct unpack *unpack, struct archive_entry *entry, struct error *err)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const char *name;
	int dir;

	if (reach(unpack, unpack->place.path, &dir, &name, err) < 0)
		return -1;
	/* The owner's write permission comes with O_CREAT, whatever the mode says. */
	auto_close int fd = openat(dir, name, flags, unpack->place.mode);
	if (fd < 0 && errno == EEXIST) {
		if (make_way(unpack, dir, name, err) < 0)
			return -1;
		fd = openat(dir, name, flags, unpack->place.mode);
	}
	if (fd < 0)
		return fail_errno(err, "unpack '%s'", unpack->place.path);
	if (write_content(unpack, fd, archive_entry_size(entry), err) < 0)
		return -1;
	keep_time(fd, entry);
	if (++unpack->files <= SYNCED_SINGLY && fsync(fd) < 0)
		return fail_errno(err, "unpack '%s'", unpack->place.path);
	return 0;
}

static int unpack_directory(struct unpack *unpack, struct archive_entry *entry, struct error *err)
{
	const char *name;
	int dir;

	if (!unpack->place.path[0])
		return 0;
	if (reach(unpack, unpack->place.path, &dir, &name, err) < 0)
		return -1;
	auto_close int fd = -1;
	if (enter(unpack, dir, name, true, &fd, err) < 0)
		return -1;
	/* What couldn't be written to couldn't be moved, either. */
	if (fchmod(fd, unpack->place.mode | 0700) < 0)
		return fail_errno(err, "unpack '%s'", unpack->place.path);
	keep_time(fd, entry);
	return 0;
}

static int unpack_link(struct unpack *unpack, struct error *err)
{
	const char *name;
	int dir;

	if (reach(unpack, unpack->place.path, &dir, &name, err) < 0)
		return -1;
	if (symlinkat(unpack->place.target, dir, name) == 0)
		return 0;
	if (errno == EEXIST && make_way(unpack, dir, name, err) < 0)
		return -1;
	if (symlinkat(unpack->place.target, dir, name) < 0)
		return fail_errno(err, "unpack '%s'", unpack->place.path);
	return 0;
}

static int unpack_hard_link(struct unpack *unpack, struct error *err)
{
	const char *target = unpack->place.target, *name;
	struct stat st;
	int dir;

	/* In an empty directory of our own, and without following a link: an entry of this archive
	 * or nothing. */
	auto_close int found = path_open_nolinks(unpack->stage, target, O_PATH | O_NOFOLLOW, 0);
	if (found < 0 || fstat(found, &st) < 0 || !S_ISREG(st.st_mode))
		return fail(err, ERR_DENIED,
			"'%s' in the archive is a hard link to '%s', which is not an earlier file "
			"in the archive",
			unpack->place.path, target);
	if (reach(unpack, unpack->place.path, &dir, &name, err) < 0)
		return -1;
	if (linkat(unpack->stage, target, dir, name, 0) == 0)
		return 0;
	if (errno == EEXIST && make_way(unpack, dir, name, err) < 0)
		return -1;
	if (linkat(unpack->stage, target, dir, name, 0) < 0)
		return fail_errno(err, "unpack '%s'", unpack->place.path);
	return 0;
}

static int judge(struct unpack *unpack, struct archive_entry *entry, struct archived *asked,
	struct error *err)
{
	static const struct {
		unsigned type;
		enum archived_type means;
	} types[] = { { AE_IFREG, ARCHIVED_FILE }, { AE_IFDIR, ARCHIVED_DIRECTORY },
		{ AE_IFLNK, ARCHIVED_LINK } };
	const char *name, *hard = archive_entry_hardlink(entry);
	const void *value;
	size_t size;

	*asked = (struct archived){ .name = archive_entry_pathname(entry),
		.mode = archive_entry_mode(entry),
		.type = ARCHIVED_OTHER };
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (archive_entry_filetype(entry) == types[i].type)
			asked->type = types[i].means;
	if (hard)
		asked->type = ARCHIVED_HARD_LINK;
	asked->target = hard ? hard : archive_entry_symlink(entry);
	archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK)
		if (archived_judge_attribute(asked->name ? asked->name : "?", name, err) < 0)
			return -1;
	return archived_judge(asked, &unpack->place, err);
}

static int unpack_entry(struct unpack *unpack, struct archive_entry *entry, struct error *err)
{
	struct archived asked;

	if (++unpack->entries > unpack->limits->entries_max)
		return fail(err, ERR_LIMIT, "the archive has more than %llu entries",
			(unsigned long long)unpack->limits->entries_max);
	if (judge(unpack, entry, &asked, err) < 0 || check_ratio(unpack, err) < 0)
		return -1;
	switch (asked.type) {
	case ARCHIVED_FILE:
		return unpack_file(unpack, entry, err);
	case ARCHIVED_DIRECTORY:
		return unpack_directory(unpack, entry, err);
	case ARCHIVED_LINK:
		return unpack_link(unpack, err);
	case ARCHIVED_HARD_LINK:
		return unpack_hard_link(unpack, err);
	case ARCHIVED_OTHER:
		break;
	}
	return fail(
		err, ERR_FAILED, "'%s' in the archive has an unexpected type", unpack->place.path);
}

int archive_unpack(void *ctx, const int *fds, uint64_t *value, struct error *err)
{
	static struct unpack whole; /* too large for a stack, and the process does this only */
	struct unpack *unpack = &whole;
	struct archive_entry *entry;
	const void *rest;
	int got;

	unpack->limits = ctx;
	unpack->in = fds[0];
	unpack->stage = fds[1];
	if (open_archive(unpack, err) < 0)
		return -1;
	/* A warning: a name that couldn't be converted, which then is none. */
	while ((got = archive_read_next_header(unpack->archive, &entry)) == ARCHIVE_OK ||
		got == ARCHIVE_WARN)
		if (unpack_entry(unpack, entry, err) < 0)
			return -1;
	if (got != ARCHIVE_EOF)
		return read_failed(unpack, err);
	leave(unpack, 0);
	/* Who sends it must not find the pipe closed. */
	while (read_more(unpack->archive, unpack, &rest) > 0)
		;
	fault_point("archive.unpacked");
	if (unpack->files > SYNCED_SINGLY && syncfs(unpack->stage) < 0)
		return fail_errno(err, "write the archive's files to disk");
	*value = unpack->bytes;
	return 0;
}
