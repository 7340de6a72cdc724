/* The quick half of wheelhouse.h: reads, and runs nothing. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/walk.h"
#include "envs/python/wheelhouse.h"

#define LOCK_MAX ((size_t)8 << 20)

int wheelhouse_open(const char *directory, int *dir, struct error *err)
{
	*dir = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *dir < 0 ? fail_errno(err, "open '%s'", directory) : 0;
}

/* A regular file, not through a link. */
int wheelhouse_open_file(int dir, const char *name, int *file, struct error *err)
{
	struct stat st;
	auto_close int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno != ELOOP)
		return fail_errno(err, "open '%.200s'", name);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return fail(err, ERR_DENIED, "'%.200s' is not a regular file", name);
	*file = take_fd(&fd);
	return 0;
}

static int check_entries(int dir, struct error *err)
{
	auto_walk DIR *walk = walk_open(dir, ".");
	if (!walk)
		return fail_errno(err, "read the directory");
	for (struct dirent *entry; (entry = walk_next(walk));)
		if (strcmp(entry->d_name, WHEELHOUSE_LOCK) != 0 &&
			strcmp(entry->d_name, WHEELHOUSE_WHEELS) != 0)
			return fail_hint(err, ERR_INVALID, WHEELHOUSE_HINT,
				"'%.200s' is neither " WHEELHOUSE_LOCK " nor " WHEELHOUSE_WHEELS,
				entry->d_name);
	return 0;
}

int wheelhouse_read(const char *directory, struct arena *arena, struct str *lock,
	const char **sha256, struct error *err)
{
	auto_close int dir = -1, file = -1;
	if (wheelhouse_open(directory, &dir, err) < 0)
		return -1;
	if (faccessat(dir, WHEELHOUSE_LOCK, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_hint(err, ERR_INVALID, WHEELHOUSE_HINT,
			"there is no " WHEELHOUSE_LOCK
			": the files of a virtualenv without the wheels that "
			"they come from can't be checked");
	if (check_entries(dir, err) < 0 ||
		wheelhouse_open_file(dir, WHEELHOUSE_LOCK, &file, err) < 0)
		return -1;
	if (file_read(file, LOCK_MAX, arena, lock) < 0)
		return fail_errno(err, "read '" WHEELHOUSE_LOCK "'");
	if (memchr(lock->data, 0, lock->len) || str_utf8_prefix(lock->data, lock->len) != lock->len)
		return fail(err, ERR_INVALID, "'" WHEELHOUSE_LOCK "' is not valid UTF-8");
	*sha256 = sha256_text_of(lock->data, lock->len, arena);
	return 0;
}
