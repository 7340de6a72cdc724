/* exec_attach.h -- a foreground exec seen from here: its streams are this process's own, signals
 * are passed on, its end is ours.
 * 1. Pipes and /dev/null go to the daemon as descriptors and from there into the sandbox: output
 * never passes through here nor through the daemon. Terminals, files, sockets, what is captured and
 * what is capped is relayed here, as `carrel run` does (sandbox/streams.h).
 * 2. The exec's id is made here, so that a signal can be sent before anything was answered.
 * 3. The terminal is as it was when exec_attach returns, however it went. */
#pragma once
#include "base/buf.h"
#include "cli/remote.h"
#include "model/result.h"

struct exec_call {
	const char *path;	/* of the request */
	const struct buf *body; /* and its JSON */
	bool tty;
	bool interactive;      /* with tty: stdin goes in too */
	struct buf *out, *err; /* captured; NULL: this process's own streams */
	uint64_t output_bytes; /* cap; 0: none */
};
struct exec_ended {
	struct result result;
	const char *limiter; /* "cgroup-v1" …, in the remote's arena; NULL: not known */
};
/* A descriptor of a host file can be opened again for writing through /proc/self/fd; a pipe or
 * /dev/null gives no more than it is. A terminal would: what the command leaves running in the
 * workspace would have it when we are gone, and read what is typed to others (core refuses it). */
bool exec_can_be_handed(int fd);
/* Until the command has ended and its output is delivered. A third SIGINT or SIGTERM, or one before
 * it has begun, ends it: `canceled`. ERR_COMMAND_NOT_FOUND, ERR_NOT_EXECUTABLE: the command. */
int exec_attach(struct remote *remote, const struct exec_call *call, struct exec_ended *ended,
	struct error *err);
