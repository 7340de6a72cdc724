#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/map.h"
#include "base/path.h"
#include "core/archive_parts.h"

#define EXTENTS_MAX 10000 /* of one file: with more, the rest of its holes are zeros */

struct pack {
	struct archive *archive;
	struct archive_entry *entry;
	struct buf path; /* of what is being packed */
	struct arena arena;
	struct map links; /* inode -> the first name of a file that has several */
};

static int write_failed(struct pack *pack, struct error *err)
{
	const char *why = archive_error_string(pack->archive);

	return fail(err, ERR_FAILED, "pack '%s': %s", pack->path.data, why ? why : "unknown");
}

static void set_entry(struct pack *pack, const struct stat *st)
{
	struct archive_entry *entry = archive_entry_clear(pack->entry);

	archive_entry_copy_pathname(entry, pack->path.data);
	archive_entry_set_filetype(entry, st->st_mode & S_IFMT);
	/* Bits that archive_in would refuse are of no use to anybody. */
	archive_entry_set_perm(entry, st->st_mode & 0777);
	archive_entry_set_mtime(entry, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	archive_entry_set_size(entry, S_ISREG(st->st_mode) ? st->st_size : 0);
}

static int write_header(struct pack *pack, struct error *err)
{
	/* A warning: the name isn't UTF-8. It is written as it is, and marked. */
	return archive_write_header(pack->archive, pack->entry) < ARCHIVE_WARN
		       ? write_failed(pack, err)
		       : 0;
}

/* -- files -- */

/* Where data is, when there are holes. */
static void find_extents(struct pack *pack, int fd, const struct stat *st)
{
	off_t at = 0, end;

	if (st->st_blocks * 512 >= st->st_size)
		return;
	for (int i = 0; i < EXTENTS_MAX; i++) {
		at = lseek(fd, at, SEEK_DATA);
		end = at < 0 ? -1 : lseek(fd, at, SEEK_HOLE);
		if (at < 0 || end < 0 || at >= st->st_size)
			break;
		if (end > st->st_size || i == EXTENTS_MAX - 1)
			end = st->st_size;
		archive_entry_sparse_add_entry(pack->entry, at, end - at);
		at = end;
	}
	/* A hole and nothing else. */
	if (archive_entry_sparse_count(pack->entry) == 0)
		archive_entry_sparse_add_entry(pack->entry, st->st_size, 0);
}

/* [at, end) of the file, or that many zeros (fd -1). */
static int write_range(struct pack *pack, int fd, int64_t at, int64_t end, struct error *err)
{
	static char data[ARCHIVE_BUFFER];
	static const char zeros[ARCHIVE_BUFFER];

	while (at < end) {
		size_t want =
			end - at < (int64_t)ARCHIVE_BUFFER ? (size_t)(end - at) : ARCHIVE_BUFFER;
		ssize_t got = fd < 0 ? (ssize_t)want : pread(fd, data, want, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read '%s'", pack->path.data);
		if (got == 0)
			return fail(err, ERR_CONFLICT, "'%s' became shorter while it was read",
				pack->path.data);
		if (archive_write_data(pack->archive, fd < 0 ? zeros : data, (size_t)got) != got)
			return write_failed(pack, err);
		at += got;
	}
	return 0;
}

/* libarchive wants all of it, holes too, and leaves them out itself. */
static int write_content(struct pack *pack, int fd, int64_t size, struct error *err)
{
	int64_t at = 0, offset, len;

	if (archive_entry_sparse_reset(pack->entry) == 0)
		return write_range(pack, fd, 0, size, err);
	while (archive_entry_sparse_next(pack->entry, &offset, &len) == ARCHIVE_OK) {
		if (write_range(pack, -1, at, offset, err) < 0 ||
			write_range(pack, fd, offset, offset + len, err) < 0)
			return -1;
		at = offset + len;
	}
	return write_range(pack, -1, at, size, err);
}

static int pack_file(struct pack *pack, int fd, const struct stat *st, struct error *err)
{
	set_entry(pack, st);
	if (st->st_nlink > 1) {
		uint64_t id[2] = { st->st_dev, st->st_ino };
		struct str key = { (char *)id, sizeof id };
		const char *first = map_get(&pack->links, key);

		if (first) {
			archive_entry_copy_hardlink(pack->entry, first);
			archive_entry_unset_size(pack->entry);
			return write_header(pack, err);
		}
		map_set(&pack->links, key, arena_text(&pack->arena, pack->path.data));
	}
	find_extents(pack, fd, st);
	if (write_header(pack, err) < 0 || write_content(pack, fd, st->st_size, err) < 0)
		return -1;
	return archive_write_finish_entry(pack->archive) < ARCHIVE_WARN ? write_failed(pack, err)
									: 0;
}

static int pack_link(
	struct pack *pack, int dir, const char *name, const struct stat *st, struct error *err)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(dir, name, target, sizeof target - 1);

	if (len < 0)
		return errno == ENOENT || errno == EINVAL
			       ? 0
			       : fail_errno(err, "read link '%s'", pack->path.data);
	target[len] = '\0';
	set_entry(pack, st);
	archive_entry_copy_symlink(pack->entry, target);
	return write_header(pack, err);
}

/* -- directories -- */

static int pack_directory(struct pack *pack, int fd, int depth, struct error *err);

/* Gone, or something else by now. */
static bool is_vanished(int sys_errno)
{
	return sys_errno == ENOENT || sys_errno == ELOOP || sys_errno == ENOTDIR ||
	       sys_errno == ENXIO || sys_errno == EXDEV;
}

static int pack_opened(struct pack *pack, int dir, const char *name, bool is_directory, int depth,
	struct error *err)
{
	struct stat st;
	int fd = files_open_at(dir, name, O_RDONLY | (is_directory ? O_DIRECTORY : 0));

	if (fd < 0)
		return is_vanished(errno) ? 0 : fail_errno(err, "open '%s'", pack->path.data);
	int failed = 0;
	if (fstat(fd, &st) < 0) {
		failed = fail_errno(err, "open '%s'", pack->path.data);
	} else if (S_ISREG(st.st_mode)) {
		failed = pack_file(pack, fd, &st, err);
	} else if (S_ISDIR(st.st_mode)) {
		set_entry(pack, &st);
		failed = write_header(pack, err);
		/* Owns the descriptor. */
		return failed ? (close(fd), -1) : pack_directory(pack, fd, depth + 1, err);
	}
	close(fd);
	return failed;
}

static int pack_entry(struct pack *pack, int dir, const char *name, int depth, struct error *err)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return is_vanished(errno) ? 0 : fail_errno(err, "look at '%s'", pack->path.data);
	if (S_ISLNK(st.st_mode))
		return pack_link(pack, dir, name, &st, err);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	return pack_opened(pack, dir, name, S_ISDIR(st.st_mode), depth, err);
}

/* What is in it; closes fd. */
static int pack_directory(struct pack *pack, int fd, int depth, struct error *err)
{
	DIR *walk = fdopendir(fd);
	size_t len = pack->path.len;
	struct dirent *entry;
	int failed = 0;

	if (!walk) {
		close(fd);
		return fail_errno(err, "open '%s'", pack->path.data);
	}
	if (depth > PATH_DEPTH_MAX)
		failed = fail(err, ERR_LIMIT, "'%.200s...' is deeper than %d directories",
			pack->path.data, PATH_DEPTH_MAX);
	for (errno = 0; !failed && (entry = readdir(walk)); errno = 0) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		buf_printf(&pack->path, "%s%s", len ? "/" : "", entry->d_name);
		failed = pack_entry(pack, dirfd(walk), entry->d_name, depth, err);
		pack->path.len = len;
		pack->path.data[len] = '\0';
	}
	if (!failed && errno)
		failed = fail_errno(err, "read directory '%s'", pack->path.data);
	closedir(walk);
	return failed;
}

/* -- the whole -- */

static int open_archive(struct pack *pack, enum archive_format format, int fd, struct error *err)
{
	pack->archive = archive_write_new();
	pack->entry = archive_entry_new();
	if (!pack->archive || !pack->entry)
		abort();
	/* Zeros behind it would be no zstd. */
	if (archive_write_set_format_pax_restricted(pack->archive) != ARCHIVE_OK ||
		archive_write_set_bytes_in_last_block(pack->archive, 1) != ARCHIVE_OK ||
		(format == ARCHIVE_TAR_ZST &&
			archive_write_add_filter_zstd(pack->archive) != ARCHIVE_OK) ||
		archive_write_open_fd(pack->archive, fd) != ARCHIVE_OK)
		return write_failed(pack, err);
	return 0;
}

int archive_pack(void *ctx, const int *fds, uint64_t *value, struct error *err)
{
	const struct archive_packing *packing = ctx;
	struct pack pack = { 0 };
	struct stat st;
	int failed;

	arena_init(&pack.arena);
	map_init(&pack.links, &pack.arena);
	buf_init(&pack.path, (size_t)1 << 20);
	if (open_archive(&pack, packing->format, fds[0], err) < 0)
		return -1;
	if (packing->name) {
		buf_text(&pack.path, packing->name);
		failed = fstat(fds[1], &st) < 0 ? fail_errno(err, "open '%s'", packing->name)
						: pack_file(&pack, fds[1], &st, err);
	} else {
		failed = pack_directory(&pack, fds[1], 0, err);
	}
	if (!failed && archive_write_close(pack.archive) != ARCHIVE_OK)
		failed = write_failed(&pack, err);
	*value = (uint64_t)archive_filter_bytes(pack.archive, -1);
	/* Nothing is freed: the process ends. */
	return failed;
}
