/* tree_fixture.h -- files, directories and links, put and opened. */
#pragma once
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "unit.h"

static inline int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static inline void put_dir(int dir, const char *name)
{
	assert_int_equal(mkdirat(dir, name, 0755), 0);
}

static inline void put_link(const char *target, int dir, const char *name)
{
	assert_int_equal(symlinkat(target, dir, name), 0);
}

static inline void put_file(int dir, const char *name, const char *content)
{
	auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, content, strlen(content)), (ssize_t)strlen(content));
}

static inline void write_file(int dir, const char *path, const char *text, mode_t mode)
{
	auto_close int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

static inline void assert_file(int dir, const char *path, const char *text, mode_t mode)
{
	char data[64];
	struct stat st;

	assert_int_equal(fd_read_file(dir, path, data, sizeof data), strlen(text));
	assert_string_equal(data, text);
	assert_int_equal(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & 07777, mode);
}

static inline bool is_there(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}
