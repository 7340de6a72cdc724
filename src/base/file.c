#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/id.h"
#include "base/walk.h"

int file_read(int fd, size_t max, struct arena *arena, struct str *text)
{
	struct stat st;
	if (fstat(fd, &st))
		return -1;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max) {
		errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
		return -1;
	}
	char *data = arena_alloc(arena, (size_t)st.st_size + 1);
	ssize_t len = fd_read_full(fd, data, (size_t)st.st_size);
	if (len < 0)
		return -1;
	*text = (struct str){ data, (size_t)len };
	return 0;
}

int file_read_at(int dir, const char *path, size_t max, struct arena *arena, struct str *text)
{
	auto_close int fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -1 : file_read(fd, max, arena, text);
}

static int write_new(int dir, const char *path, mode_t mode, struct str text, bool is_synced)
{
	auto_close int fd =
		openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0 || fd_write_full(fd, text.data, text.len) != (ssize_t)text.len)
		return -1;
	return is_synced ? fdatasync(fd) : 0;
}

int file_create(int dir, const char *path, mode_t mode, struct str text)
{
	return write_new(dir, path, mode, text, false);
}

int file_replace(int dir, const char *name, mode_t mode, struct str text, bool is_synced)
{
	char id[ID_LEN + 1], fresh[ID_LEN + 8];
	id_make(id);
	str_format(fresh, sizeof fresh, ".new-%s", id);
	if (!write_new(dir, fresh, mode, text, is_synced) && !renameat(dir, fresh, dir, name))
		return 0;
	int saved = errno;
	unlinkat(dir, fresh, 0);
	errno = saved;
	return -1;
}

int file_names(int dir, const char *path, struct arena *arena, text_list *names)
{
	auto_walk DIR *list = walk_open(dir, path);
	text_list found = { 0 };
	struct dirent *entry;
	if (!list)
		return -1;
	while ((entry = walk_next(list))) {
		if (found.count == FILE_NAMES_MAX) {
			errno = E2BIG;
			break;
		}
		vec_push(arena, &found, arena_text(arena, entry->d_name));
	}
	if (errno)
		return -1;
	text_list_sort(&found);
	*names = found;
	return 0;
}

int file_hash(int fd, unsigned char sha256[SHA256_LEN], uint64_t *size)
{
	static char data[256 << 10];
	struct sha256 hash;
	uint64_t total = 0;
	ssize_t got = sizeof data;
	sha256_init(&hash);
	while (got == sizeof data && (got = fd_read_full(fd, data, sizeof data)) > 0) {
		sha256_add(&hash, data, (size_t)got);
		total += (size_t)got;
	}
	if (got < 0)
		return -1;
	sha256_end(&hash, sha256);
	if (size)
		*size = total;
	return 0;
}

int file_in_memory(const char *label, struct str text)
{
	auto_close int fd = memfd_create(label, MFD_CLOEXEC);
	if (fd < 0 || fd_write_full(fd, text.data, text.len) != (ssize_t)text.len ||
		lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return take_fd(&fd);
}
