#include <fcntl.h>
#include "base/fd.h"
#include "base/walk.h"

DIR *walk_from(int fd)
{
	DIR *walk = fd < 0 ? NULL : fdopendir(fd);
	if (!walk)
		fd_close(&fd);
	return walk;
}

DIR *walk_open(int dir, const char *path)
{
	return walk_from(openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

struct dirent *walk_next(DIR *walk)
{
	struct dirent *entry = NULL;
	if (!walk)
		return NULL;
	do {
		errno = 0;
		entry = readdir(walk);
	} while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry;
}

void walk_close(DIR **walk)
{
	int saved = errno;
	if (*walk)
		closedir(*walk);
	*walk = NULL;
	errno = saved;
}
