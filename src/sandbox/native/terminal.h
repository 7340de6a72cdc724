/* terminal.h -- the caller's terminal, while the command uses a pseudo terminal in its place.
 * 1. It is read only while this process is in its foreground, and while its modes are the ones that
 *    this process found or set. So a pager or a password prompt of the same job reads alone, and so
 *    does the shell when this process is stopped or in the background.
 * 2. A terminal that is not the controlling one is never read: nobody says who its foreground is.
 * 3. Its modes are changed in the foreground only, and put back before a stop and at the end,
 * unless another process has changed them since. */
#pragma once
#include <termios.h>

struct terminal {
	int fd;	      /* the caller's stream, never closed here; -1: none */
	bool may_set; /* its modes may be changed */
	/* private */
	bool is_known, is_set;
	struct termios found, set;
};

bool terminal_may_read(struct terminal *terminal);
/* Bytes pass through as they are. */
void terminal_make_raw(struct terminal *terminal);
/* Gives it the modes that the command has set `inside`, where they differ from what it began with
 * (`initial`). */
void terminal_follow(
	struct terminal *terminal, const struct termios *inside, const struct termios *initial);
/* Puts back what was changed. Before a stop, and at the end. */
void terminal_restore(struct terminal *terminal);
/* After a stop: a shell may have changed the modes meanwhile. */
void terminal_continue(struct terminal *terminal);
/* Whether the terminal fd puts a carriage return before each newline. false also for anything that
 * is not a terminal. */
bool terminal_maps_newlines(int fd);
