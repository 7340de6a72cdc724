/* reply.h -- what init sends to its master: one packet, with descriptors. No libc. */
#pragma once
#include "sandbox/init/protocol.h"

/* The descriptors (INIT_LISTENERS_MAX at most) stay the caller's. As sendmsg: -errno on failure. */
long reply_send(int master, struct init_reply *reply, const int *fds, unsigned fd_count);
/* How many sockets there are from INIT_LISTENER_FD on; closes every other descriptor behind. */
unsigned reply_find_listeners(void);
