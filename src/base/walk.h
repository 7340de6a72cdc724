/* walk.h -- the entries of one directory, in the order of its file system. */
#pragma once
#include <dirent.h>

/* Both: NULL with errno. walk_from takes `fd` also when it fails, and fails with -1; the last
 * component of `path` (at dir) may not be a link. */
DIR *walk_from(int fd);
DIR *walk_open(int dir, const char *path);
/* The next entry but "." and ".."; NULL at the end, where errno is 0, and of a walk that is NULL.
 */
struct dirent *walk_next(DIR *walk);
void walk_close(DIR **walk); /* keeps errno */
#define auto_walk __attribute__((cleanup(walk_close)))
