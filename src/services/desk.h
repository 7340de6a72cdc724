/* desk.h -- the steps of a job over one workspace: it is made, gets packages and files, runs
 * commands, is frozen, and is removed. Each waits in the fiber of the job for its end.
 * 1. A desk names its workspace by id, and finds it anew for each step.
 * 2. A canceled wait for a command, an install or an unpacking ends it at once; others last until
 * the step has ended, and what it made is there to be removed.
 * 3. No step of a workspace fails before the next turn of the loop: a job doesn't end inside the
 * call that began it. */
#pragma once
#include "core/execs/execs.h"
#include "core/nouns.h"
#include "proc/fiber.h"

struct desk {
	struct core *core;
	const struct request *request; /* lives as long as the desk */
	char id[ID_LEN + 1];	       /* of the workspace, or "" */
	/* Of the command that desk_run has ended: */
	struct result result;
	struct exec_captured captured;
	char exec_id[ID_LEN + 1];
	char limiter[24]; /* "cgroup-v1" …, or "" */
	/* Of desk_install: */
	char environment[161];
	/* private, of a step: */
	struct fiber *fiber;
	struct core_exec *exec;
	struct cancelable *install;
	struct file_write *write;
	int *opened;
	char *snapshot;
};
void desk_init(struct desk *desk, struct core *core, const struct request *request);
/* No step may be under way. The workspace stays. */
void desk_done(struct desk *desk);

/* wanted: as for core_create; its owner is the service. */
int desk_create(struct fiber *fiber, struct desk *desk, const char *service,
	const struct workspace *wanted, struct error *err);
int desk_install(
	struct fiber *fiber, struct desk *desk, const text_list *packages, struct error *err);
int desk_write(struct fiber *fiber, struct desk *desk, const char *path, struct str bytes,
	struct error *err);
/* *fd: the file, for reading; the caller closes it, also when the wait was canceled. */
int desk_open(struct fiber *fiber, struct desk *desk, const char *path, int *fd, struct error *err);
/* The bytes of a file, with a NUL behind, in the arena. ERR_LIMIT: more than max. */
int desk_read(struct fiber *fiber, struct desk *desk, const char *path, size_t max,
	struct arena *arena, struct str *text, struct error *err);
/* Unpacks the archive, whose descriptor stays the caller's, into that directory. */
int desk_unpack(
	struct fiber *fiber, struct desk *desk, const char *path, int archive, struct error *err);
/* Captured. An error: it could not be started; else result, captured and limiter are set. */
int desk_run(
	struct fiber *fiber, struct desk *desk, const struct exec_spec *spec, struct error *err);
/* id: of the snapshot. */
int desk_freeze(struct fiber *fiber, struct desk *desk, const struct snapshot_wanted *wanted,
	char id[ID_LEN + 1], struct error *err);
/* By core itself: it must work for whoever made it. No workspace, or one that is gone: success. */
int desk_remove(struct fiber *fiber, struct desk *desk, struct error *err);

/* Begins to remove a workspace, if it is there; nobody waits for the end. */
void desk_drop(const struct request *request, struct core *core, const char *workspace);
/* Removes the workspaces of a service that a crash left behind: those that is_kept (NULL: none)
 * doesn't name. why: as of core_remove. */
void desk_sweep(struct core *core, const char *service, const char *why,
	bool (*is_kept)(void *ctx, const struct workspace *w), void *ctx);
