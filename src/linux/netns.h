/* netns.h -- what a new network namespace needs to be of use: `lo`, and nothing else. */
#pragma once
#include <pthread.h>
#include <stdint.h>
#include "base/error.h"

/* *fd: a new network namespace, ready for a sandbox: `lo` is up, every uid may bind every port. It
 * belongs to the caller's user namespace. The caller is in it for a moment, and then in `own` (a
 * descriptor of the one it is in) again. Needs CAP_SYS_ADMIN. */
int netns_make(int own, int *fd, struct error *err);
/* *fd: the one that the caller is in. */
int netns_open_own(int *fd, struct error *err);
/* A new network namespace with `lo` up, made by a thread while the caller goes on: the kernel takes
 * some 0.5 ms for it, a tenth of a whole start. Until _enter has returned the caller has a second
 * thread: it must change its ids by the system call (libc would change both threads') and must not
 * execute anything. */
struct netns_maker {
	pthread_t thread;
	int fd, failed;
	struct error err;
};
int netns_maker_start(struct netns_maker *maker, struct error *err);
/* Waits for the thread and enters what it made. */
int netns_maker_enter(struct netns_maker *maker, struct error *err);
/* Lets every uid bind every port of the caller's network namespace. `proc`: a descriptor of /proc
 * with a writable sys. */
int netns_open_ports(int proc, struct error *err);
/* *fd: a TCP socket that listens on 127.0.0.1:port of the caller's network namespace (`lo` must be
 * up for anybody to reach it), and stays there whoever holds it. Port 0: any. ERR_CONFLICT: taken.
 */
int netns_listen(uint16_t port, int *fd, struct error *err);
