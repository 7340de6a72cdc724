/* pty.h -- pseudo terminals, and the modes and size of a terminal. */
#pragma once
#include <stdint.h>
#include <termios.h>
#include "base/error.h"

struct pty_size {
	uint16_t rows, columns;
};

/* Makes a pair from the ptmx found in `dir` (a devpts mount, or /dev; a directory descriptor,
 * O_PATH is enough). The terminal's own end is opened through the master, so that no path is
 * believed. Both are close-on-exec, neither becomes the caller's controlling terminal, both are
 * yours to close. */
int pty_open(int dir, int *master, int *terminal, struct error *err);
int pty_get_size(int fd, struct pty_size *size, struct error *err);
/* Programs in the foreground of that terminal get SIGWINCH when the size changes. */
int pty_set_size(int fd, struct pty_size size, struct error *err);
/* Puts terminal fd into raw mode (bytes pass through as they are); *saved is what pty_restore
 * needs. */
int pty_make_raw(int fd, struct termios *saved, struct error *err);
/* Best effort, for exits: never waits, async-signal-safe. */
void pty_restore(int fd, const struct termios *saved);
