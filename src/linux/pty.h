/* pty.h -- pseudo terminals, and the modes and size of a terminal. */
#pragma once
#include <termios.h>
#include "base/error.h"

struct pty_size {
	uint16_t rows, columns;
};

/* Makes a pair from the ptmx found in `dir` (a devpts mount, or /dev; a directory descriptor,
 * O_PATH is enough). The slave is opened through the master, so that no path has to be trusted.
 * Both are close-on-exec, neither becomes the caller's controlling terminal, both are yours to
 * close. */
int pty_open(int dir, int *master, int *terminal, struct error *err);
int pty_get_size(int fd, struct pty_size *size, struct error *err);
/* Programs in the foreground of that terminal get SIGWINCH when the size changes. */
int pty_set_size(int fd, struct pty_size size, struct error *err);
/* The number of the terminal behind fd, the same for every name of it (/dev/tty too). -1: none. */
int pty_get_device(int fd, unsigned *device);
