/* fd.h -- descriptors and memory with a visible owner. */
#pragma once
#include "base/error.h"

void fd_close(int *fd); /* closes when >= 0, sets -1, keeps errno */
static inline void free_pointer(void *p)
{
	free(*(void **)p);
}
#define auto_close __attribute__((cleanup(fd_close)))
#define auto_free __attribute__((cleanup(free_pointer)))

static inline int take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) *take_p_ = &(p);                                                     \
		__typeof__(p) take_v_ = *take_p_;                                                  \
		*take_p_ = NULL;                                                                   \
		take_v_;                                                                           \
	})

/* Reads or writes until done, EOF or error; restart on EINTR. Return bytes moved, or -1 with errno.
 */
ssize_t fd_read_full(int fd, void *data, size_t len);
ssize_t fd_write_full(int fd, const void *data, size_t len);

/* Reads the small file `path` (at dir; AT_FDCWD allowed) into data, NUL-terminated. Returns its
 * length, or -1 with errno (EFBIG when it doesn't fit). For files of /proc, /sys and cgroups: no
 * fstat. */
ssize_t fd_read_file(int dir, const char *path, char *data, size_t size);
/* Opens a file that exists, writes all of text in one write(2), closes. Neither creates nor
 * truncates: for files of /proc, /sys and cgroups. 0, or -1 with errno. */
int fd_write_file(int dir, const char *path, const char *text);

/* The directory `name` of dir, for reading; not through a link. -1 with errno. */
int fd_open_directory(int dir, const char *name);
int fd_set_nonblocking(int fd); /* 0 or -1 with errno */
/* Makes sure that 0, 1 and 2 are open, so that nothing opened later lands there. A closed stdin
 * becomes /dev/null; a closed stdout or stderr becomes a read-only /dev/null, so that writing to it
 * fails with EBADF as before. */
int fd_sanitize_standard(struct error *err);
/* Closes every descriptor above 2 but these (-1: none). For a child that was forked for one job. -1
 * with errno. */
int fd_close_others(const int *keep, int count);
