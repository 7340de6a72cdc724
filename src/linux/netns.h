/* netns.h -- what a new network namespace needs to be of use: `lo`, and nothing else. */
#pragma once
#include "base/error.h"

/* Brings `lo` up in the caller's network namespace. */
int netns_raise_loopback(struct error *err);
/* Lets every uid bind every port of the caller's network namespace. `proc`: a descriptor of /proc
 * with a writable sys. */
int netns_open_ports(int proc, struct error *err);
