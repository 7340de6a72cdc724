/* netns.h -- what a new network namespace needs to be of use: `lo`, and nothing else. */
#pragma once
#include <stdint.h>
#include "base/error.h"

/* Brings `lo` up in the caller's network namespace. */
int netns_raise_loopback(struct error *err);
/* Lets every uid bind every port of the caller's network namespace. `proc`: a descriptor of /proc
 * with a writable sys. */
int netns_open_ports(int proc, struct error *err);
/* *fd: a TCP socket that listens on 127.0.0.1:port of the caller's network namespace (`lo` must be
 * up for anybody to reach it), and stays there whoever holds it. Port 0: any. ERR_CONFLICT: taken.
 */
int netns_listen(uint16_t port, int *fd, struct error *err);
