/* point.h -- mount points in a tree that carrel owns and that commands of earlier sandboxes have
 * written to. No command of this tree runs while they are made. */
#pragma once
#include "base/error.h"

/* Opens (O_PATH) the mount point `path` below `root`, following no link, and makes it and the
 * directories above it when they are missing. What has another type (a link, a file in place of a
 * directory) gets the name NAME.aside-XXXXXXXX, so that it can't keep the sandbox from starting. A
 * file as mount point: is_directory = false. */
int point_open(int root, const char *path, bool is_directory, int *fd, struct error *err);
/* Gives what has this name in `dir` that other name. -1 with errno. */
int point_move_aside(int dir, const char *name);
