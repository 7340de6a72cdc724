/* tail.h -- the output of a background exec on its way here: one stream, by a connection of its
 * own, which is made again when the daemon restarts. */
#pragma once
#include "cli/remote.h"

struct tail {
	const char *name; /* "stdout" */
	int to;
	struct buf *capture; /* or NULL: to `to` */
	struct remote remote;
	struct client_response response;
	const char *exec;
	uint64_t offset; /* of the next byte */
	bool follows, is_open;
};
/* Sets the offset to the end of what there is now. ERR_NOT_FOUND as below. */
int tail_skip(struct tail *tail, struct error *err);
/* Asks for what follows the offset; ctx is the tail. ERR_NOT_FOUND: there is no such exec, or its
 * output isn't kept. */
int tail_begin(void *ctx, struct error *err);
/* Takes one piece; waits for it unless tail_has_input. At the end is_open is false. */
int tail_pump(struct tail *tail, struct error *err);
/* Whether tail_pump needn't wait for the socket. */
bool tail_has_input(const struct tail *tail);
