/* relay.h -- bytes both ways between the connection of a client, which was upgraded, and a socket
 * of a sandbox, until both sides have ended.
 * 1. What one side has sent and the other has not taken is at most RELAY_CHUNK bytes; no more is
 * read until then.
 * 2. The end of one side is passed on after its last byte; an error of either resets both. */
#pragma once
#include "doors/call.h"
#include "net/stream.h"

#define RELAY_CHUNK 65536

/* Takes both and the share, and sends first what came early: from the client, and from the
 * sandbox. left (or
 * NULL) is called once, when the sandbox isn't used any more. */
void relay_start(struct api *api, struct net_stream *client, int socket, struct str from_client,
	struct str from_socket, const struct share *share, void (*left)(void *ctx), void *ctx);
void relays_stop(struct api *api); /* ends all of them */
