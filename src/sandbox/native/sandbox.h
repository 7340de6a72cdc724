/* sandbox.h -- carries a plan out with the kernel's own means, and stays until its command has
 * ended.
 * 1. Every layer of the plan is set, or the start fails and names the layer. Nothing here decides
 * what isn't in the plan.
 * 2. When sandbox_run returns, no process or mount of the sandbox is left (mounts: unless
 * io->is_last), and its control groups are removed.
 * 3. When the caller is killed, the kernel ends the sandbox (PDEATHSIG, and end of file on init's
 * socket). */
#pragma once
#include <signal.h>
#include "base/buf.h"
#include "base/error.h"
#include "linux/cgroup.h"
#include "model/nouns/result.h"
#include "sandbox/plan/plan.h"

struct loop;

struct sandbox_io {
	struct buf *out, *err; /* captured streams, when the plan says so */
	/* A socket that listens inside, yours to close; called once for each of
	 * plan.network.listeners, in order, by a callback of `loop`, which runs until the sandbox
	 * has ended and may watch the socket. */
	void (*listening)(
		void *ctx, struct loop *loop, const struct plan_listener *listener, int fd);
	void (*tick)(void *ctx); /* about ten times a second; NULL: not */
	void *ctx;
	bool ends_on_signal; /* SIGINT, SIGTERM and SIGHUP cancel the command, and aren't its own */
	/* The caller exits when it has the result, and needs none of the file systems unmounted:
	 * the kernel may end the mounts some milliseconds later (linux/late_close.h). */
	bool is_last;
	/* FILTER_OBSERVE: a process inside named `path`, absolute, in a call. */
	void (*looked)(void *ctx, const char *path);
};
/* Runs the plan's command on descriptors 0, 1 and 2 of the caller, as the plan says.
 * ERR_COMMAND_NOT_FOUND, ERR_NOT_EXECUTABLE: the command. `cgroups` is what cgroup_probe found. */
int sandbox_run(const struct plan *plan, const struct cgroup_host *cgroups, struct sandbox_io *io,
	struct result *result, struct error *err);
/* The signals that sandbox_run catches and passes on; blocked meanwhile. */
void supervise_signals(sigset_t *set);
