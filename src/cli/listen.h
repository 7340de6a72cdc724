/* listen.h -- the socket a daemon listens on: made, or handed over by a service manager; and what
 * that manager is told. No library of its own is needed for it. */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/error.h"
#include "linux/home.h"

struct listener {
	int fd;
	char path[4096]; /* where it is, for people */
	int dir;	 /* of a socket we made and have to remove, or -1 */
	const char *name;
	bool is_own; /* it lies in the home */
};
#define LISTENER_NONE                                                                              \
	{                                                                                          \
		.fd = -1, .dir = -1                                                                \
	}
/* The path of "unix:PATH" as it was typed, made absolute. ERR_INVALID: anything else. */
int listen_parse(const char *text, struct arena *arena, const char **path, struct error *err);
/* One that a service manager handed over (LISTEN_FDS, which is taken out of the environment): 1, 0
 * when there is none, -1. */
int listen_take(struct listener *listener, struct error *err);
/* Listens at `path`, or at the home's own place when that is NULL; mode 0600. Call it under the
 * home's lock: a socket that nobody listens on is replaced. ERR_CONFLICT: there is something else.
 */
int listen_open(
	const struct home *home, const char *path, struct listener *listener, struct error *err);
/* Removes the socket if we made it. */
void listen_done(const struct home *home, struct listener *listener);

/* A connected socket of the service manager (NOTIFY_SOCKET, which is taken out of the environment),
 * or -1. */
int listen_notifier(void);
