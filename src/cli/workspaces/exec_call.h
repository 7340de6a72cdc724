/* exec_call.h -- one command in a workspace whose streams are this process's own: what is asked
 * for, and how it ended. Private to exec.c and exec_socket.c. */
#pragma once
#include "base/id.h"
#include "cli/remote.h"
#include "sandbox/native/streams.h"

#define EXEC_CANCEL_AFTER 3 /* this many SIGINT or SIGTERM: the user means it */
#define EXEC_DRAIN_MS 3000  /* after a limit: how long to wait for a slow reader of the output */

struct exec_call {
	const char *path;	/* of the request */
	const struct buf *body; /* and its JSON */
	bool tty;
	bool interactive;      /* with tty: stdin goes in too */
	struct sandbox_io io;  /* captured; NULL: this process's own streams */
	uint64_t output_bytes; /* cap; 0: none */
	bool is_quiet;	       /* of what it waits for */
};
struct exec_ended {
	char id[ID_LEN + 1];
	struct result result;
	const char *limiter; /* "cgroup-v1" …, in the remote's arena; NULL: not known */
	struct str waiting;  /* --no-wait: the answer 202, in the remote's arena; or empty */
};
/* Without -i the terminal has no input: reads get end of file at once. */
int exec_replace_stdin(struct error *err);
/* Whether both lead to the same file, pipe or terminal. */
bool exec_lead_to_one_place(int a, int b);
void exec_say_waiting(const char *approval);

/* Of a daemon on another machine, which takes no descriptors: the streams go through a WebSocket.
 * The daemon keeps the limit of output. Otherwise as exec.c does it. */
int exec_over_socket(
	struct remote *remote, struct exec_call *call, struct exec_ended *ended, struct error *err);
