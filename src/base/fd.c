#include <fcntl.h>
#include <unistd.h>
#include "base/fd.h"

void fd_close(int *fd)
{
	int saved = errno;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

ssize_t fd_read_full(int fd, void *data, size_t len)
{
	size_t done = 0;
	while (done < len) {
		ssize_t got = read(fd, (char *)data + done, len - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

ssize_t fd_write_full(int fd, const void *data, size_t len)
{
	size_t done = 0;
	while (done < len) {
		ssize_t put = write(fd, (const char *)data + done, len - done);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -1;
		done += (size_t)put;
	}
	return (ssize_t)done;
}

ssize_t fd_read_file(int dir, const char *path, char *data, size_t size)
{
	auto_close int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	/* All of size is read, so that a file that just doesn't fit shows. */
	ssize_t got = fd_read_full(fd, data, size);
	if (got < 0)
		return -1;
	if ((size_t)got >= size) {
		errno = EFBIG;
		return -1;
	}
	data[got] = '\0';
	return got;
}

int fd_write_file(int dir, const char *path, const char *text)
{
	auto_close int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	ssize_t len = (ssize_t)strlen(text), put;
	if (fd < 0)
		return -1;
	/* One write: to the kernel's files a second one would be a second value. */
	do {
		put = write(fd, text, (size_t)len);
	} while (put < 0 && errno == EINTR);
	if (put >= 0 && put != len)
		errno = EIO;
	return put == len ? 0 : -1;
}

int fd_open_directory(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int fd_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int fd_sanitize_standard(struct error *err)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest free number is this one: those below are open. */
		if (open("/dev/null", O_RDONLY) != fd)
			return fail_errno(
				err, "open /dev/null in place of closed descriptor %d", fd);
	}
	return 0;
}

int fd_close_others(const int *keep, int count)
{
	unsigned from = 3;
	for (;;) {
		int next = -1; /* the least that is kept, from there on */
		for (int i = 0; i < count; i++)
			if (keep[i] >= (int)from && (next < 0 || keep[i] < next))
				next = keep[i];
		if (next < 0)
			break;
		if ((unsigned)next > from && close_range(from, (unsigned)next - 1, 0))
			return -1;
		from = (unsigned)next + 1;
	}
	return close_range(from, ~0u, 0);
}
