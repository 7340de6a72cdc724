#include "sandbox/native/point.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"

#define SUFFIX_LEN 8 /* of an id: nobody can take all such names */

int point_move_aside(int dir, const char *name)
{
	char id[ID_LEN + 1], aside[NAME_MAX + 1];
	id_make(id);
	str_format(aside, sizeof aside, "%.200s.aside-%s", name, id + ID_LEN - SUFFIX_LEN);
	return renameat(dir, name, dir, aside);
}

static int make(int dir, const char *name, bool is_directory)
{
	return is_directory ? mkdirat(dir, name, 0755) : mknodat(dir, name, S_IFREG | 0644, 0);
}

/* A descriptor, or -1 with errno. */
static int open_one(int dir, const char *name, bool is_directory)
{
	struct stat st;
	auto_close int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return -1;
	if (fd >= 0) {
		if (fstat(fd, &st))
			return -1;
		if (is_directory ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode))
			return take_fd(&fd);
		/* A directory in place of a file stays: its content may be worth more. */
		if (S_ISDIR(st.st_mode)) {
			errno = EISDIR;
			return -1;
		}
		if (point_move_aside(dir, name))
			return -1;
	}
	if (make(dir, name, is_directory))
		return -1;
	return openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

int point_open(int root, const char *path, bool is_directory, int *fd, struct error *err)
{
	struct str rest = str_from(path), name;
	auto_close int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return fail_errno(err, "open the tree of mount point '/%s'", path);
	while (str_next(&rest, '/', &name)) {
		char one[NAME_MAX + 1];
		if (!name.len || !str_format(one, sizeof one, "%.*s", (int)name.len, name.data))
			return fail(
				err, ERR_INVALID, "mount point '/%s' is not a plain path", path);
		int next = open_one(at, one, rest.len || is_directory);
		if (next < 0) {
			fail_errno(err, "make mount point '/%s' at '%s'", path, one);
			return error_hint(err, "carrel snapshot rollback brings back files as they "
					       "were; carrel rm --archive keeps them");
		}
		fd_close(&at);
		at = next;
	}
	*fd = take_fd(&at);
	return 0;
}
