#include "envs/upper.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"

bool upper_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

int upper_open_directory(int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode))
		return -1;
	if ((st.st_mode & 0700) != 0700 && path_grant_access(dir, name))
		return -1;
	return path_open_entry(dir, name);
}

int upper_open(int upper, struct str path)
{
	auto_close int dir = fcntl(upper, F_DUPFD_CLOEXEC, 3);
	struct str piece;
	while (dir >= 0 && str_next(&path, '/', &piece)) {
		char name[NAME_MAX + 1];
		if (piece.len > NAME_MAX)
			return -1;
		memcpy(name, piece.data, piece.len);
		name[piece.len] = 0;
		int next = upper_open_directory(dir, name);
		fd_close(&dir);
		dir = next;
	}
	return take_fd(&dir);
}

bool upper_is_same(
	int dir, const char *name, const struct stat *st, const struct manifest_entry *entry)
{
	char data[MANIFEST_TARGET_MAX + 1];
	unsigned char found[SHA256_LEN];
	ssize_t len;
	if (entry->kind == MANIFEST_LINK) {
		len = S_ISLNK(st->st_mode) ? readlinkat(dir, name, data, sizeof data) : -1;
		return len >= 0 && (size_t)len == strlen(entry->target) &&
		       !memcmp(data, entry->target, (size_t)len);
	}
	if (entry->kind != MANIFEST_FILE || !S_ISREG(st->st_mode) ||
		(uint64_t)st->st_size != entry->size)
		return false;
	auto_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	return !file_hash(fd, found, NULL) && !memcmp(found, entry->sha256, sizeof found);
}

/* Opens the directory `path` of the upper, as far as it is one: what hides the layers on the way,
 * a deleted or replaced directory or an opaque mark, is removed. -1: nothing lies there. */
int upper_open_shown(int upper, struct str path, struct error *err)
{
	struct str part;
	char name[NAME_MAX + 1];
	auto_close int at = fcntl(upper, F_DUPFD_CLOEXEC, 3);
	while (at >= 0 && str_next(&path, '/', &part)) {
		struct stat st;
		if (!str_format(name, sizeof name, "%.*s", (int)part.len, part.data) ||
			fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
			return -1;
		if (!S_ISDIR(st.st_mode)) {
			path_remove_tree(at, name, err);
			return -1;
		}
		int next = fd_open_directory(at, name);
		if (next >= 0)
			fremovexattr(next, UPPER_OPAQUE);
		fd_close(&at);
		at = next;
	}
	return take_fd(&at);
}

int upper_remove(int upper, const char *path, struct error *err)
{
	auto_close int dir = upper_open_shown(upper, path_parent(path), err);
	return dir < 0 ? 0 : path_remove_tree(dir, path_basename(path), err);
}
