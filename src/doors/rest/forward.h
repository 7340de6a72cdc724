/* forward.h -- passes a request on to a server in a workspace, and its response back (ports.c). */
#pragma once
#include "doors/call.h"

/* The rest of the call's path is the path at the server; what stands before it is the prefix.
 * `request` connects. left (or NULL) is called once, when the server isn't used any more. -1: *err,
 * and it isn't. */
int forward_start(struct call *c, const struct request *request, struct core_workspace *w,
	uint16_t port, void (*left)(void *ctx), void *ctx, struct error *err);
