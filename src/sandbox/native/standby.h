/* standby.h -- a process that keeps a sandbox's limits while its supervisor is stopped: by Ctrl-Z,
 * SIGSTOP, or by writing to a terminal from the background.
 * 1. It is a child of the supervisor in a session of its own, so that no terminal stops it; it dies
 *    with the supervisor, and holds none of its streams.
 * 2. It looks several times a second whether the supervisor is stopped, and does nothing else while
 *    it isn't.
 * 3. It is a copy of the supervisor as that was at the start: start it anew after a stop, and
 * before one that is known beforehand. */
#pragma once
#include "linux/child.h"
#include "sandbox/native/guard.h"

struct standby_shared;
struct standby {
	struct child child;
	struct standby_shared *shared; /* NULL: no standby process */
};

/* `pidfd` is PID 1 of the sandbox. `suspended`: all of the sandbox was stopped on purpose, and is
 * kept stopped, whatever timers continue it. ERR_*: there is none, and nothing has changed. */
int standby_start(
	struct standby *standby, struct guard *guard, int pidfd, bool suspended, struct error *err);
/* Ends it, if there is one. true: it has ended the sandbox, for *reason. */
bool standby_stop(struct standby *standby, struct guard *guard, enum reason *reason);
