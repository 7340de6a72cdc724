/* listen.h -- the sockets that a daemon listens on: made, handed over by a service manager, or by
 * the program that this one was executed in place of; and what that manager is told. No library of
 * its own is needed for it. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "format/network/inet_address.h"
#include "launch/launch.h"
#include "linux/home.h"

#define LISTENERS_MAX LAUNCH_LISTENERS_MAX
struct listener {
	int fd;
	char path[4096]; /* where it is, for people; of TCP "ADDRESS:PORT" */
	int dir;	 /* of a socket we made and have to remove, or -1 */
	const char *name;
	bool is_own;	/* it lies in the home */
	bool is_shared; /* set before listen_open: every user may connect, and the daemon judges */
	bool is_tcp, is_exposed; /* and other hosts reach it */
};
#define LISTENER_NONE                                                                              \
	{                                                                                          \
		.fd = -1, .dir = -1                                                                \
	}
struct listeners {
	struct listener items[LISTENERS_MAX];
	size_t count;
};

/* One of the two. */
struct listen_address {
	const char *path; /* absolute; NULL: TCP */
	union inet_address tcp;
};
/* "unix:PATH", which is below `base` unless it is absolute, or "ADDRESS:PORT". ERR_INVALID:
 * anything else. */
int listen_parse(const char *text, const char *base, struct arena *arena,
	struct listen_address *address, struct error *err);
/* Appends the sockets that a service manager handed over, and takes LISTEN_FDS out of the
 * environment. 1: they are there; 0: no socket was handed over; -1: an error. */
int listen_take(struct listeners *all, struct error *err);
int listen_take_over(
	const struct launch_listener *from, struct listener *listener, struct error *err);
/* Listens at `path`, or at the home's own place when that is NULL; mode 0600, or
 * 0666 of a shared one. Call it under the
 * home's lock: a stale socket is replaced. ERR_CONFLICT: the path is taken by another file. */
int listen_open(
	const struct home *home, const char *path, struct listener *listener, struct error *err);
/* Port 0: the kernel chooses one. */
int listen_open_tcp(
	const union inet_address *address, struct listener *listener, struct error *err);
/* ERR_INVALID: other hosts reach one of them, tokens would be sent in the clear, and that was not
 * allowed. */
int listen_check(const struct listeners *all, bool has_tls, bool is_insecure, struct error *err);
/* Removes the socket if we made it. */
void listen_done(const struct home *home, struct listener *listener);

/* A connected socket of the service manager (NOTIFY_SOCKET, which is taken out of the environment),
 * or -1. */
int listen_notifier(void);
