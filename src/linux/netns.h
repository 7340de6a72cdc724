/* netns.h -- what a new network namespace needs to be of use: `lo`, and nothing else. */
#pragma once
#include "base/error.h"

/* *fd: a new network namespace, ready for a sandbox: `lo` is up, every uid may bind every port. It
 * belongs to the caller's user namespace. The caller is in it for a moment, and then in `own` (a
 * descriptor of the one it is in) again. Needs CAP_SYS_ADMIN. */
int netns_make(int own, int *fd, struct error *err);
/* *fd: the caller's network namespace. */
int netns_open_own(int *fd, struct error *err);
/* Leaves the caller in a new network namespace with `lo` up. *fd: that namespace, for another
 * thread to enter. The kernel takes some 0.5 ms for it, a tenth of a whole start. */
int netns_leave_for_new(int *fd, struct error *err);
int netns_enter(int fd, struct error *err);
/* Lets every uid bind every port of the caller's network namespace. `proc`: a descriptor of /proc
 * with a writable sys. */
int netns_open_ports(int proc, struct error *err);
/* *fd: a TCP socket that listens on 127.0.0.1:port of the caller's network namespace (reachable
 * once `lo` is up), and stays in that namespace when it is passed on. Port 0: any. ERR_CONFLICT:
 * taken.
 */
int netns_listen(uint16_t port, int *fd, struct error *err);
/* The same on every address of the namespace, IPv4 and (where the kernel has it) IPv6. No other
 * socket can listen on this port then, on whatever address. */
int netns_listen_all(uint16_t port, int *fd, struct error *err);
/* *fd: a UDP socket bound to 127.0.0.1:port. */
int netns_bind(uint16_t port, int *fd, struct error *err);
/* Makes every address of 198.18.0.0/15 and of fd00:ca::/64 one of the caller's network namespace,
 * the first of each an address of `lo`. Nothing is routed: a connection to one of them is taken by
 * a socket of netns_listen_all. Needs CAP_NET_ADMIN in the namespace. */
int netns_add_ranges(struct error *err);
