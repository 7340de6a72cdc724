/* desk.h -- the steps of a service over one workspace: it is made, gets packages and files, runs
 * commands, and is removed.
 * 1. One step at a time; its `done` is called once, from the loop, never from inside the step.
 * 2. A desk names its workspace by id, and finds it anew for each step.
 * 3. Between desk_cancel and the next step, a command that ran is killed, an install is canceled,
 * and its step fails with ERR_CANCELED; other steps end as they would. */
#pragma once
#include "core/execs/execs.h"
#include "core/nouns.h"
#include "proc/fiber.h"

typedef void desk_fn(void *ctx, const struct error *err);
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
	/* private: */
	desk_fn *done;
	void *ctx;
	struct str bytes;
	const char *path; /* of desk_read, with what follows */
	size_t max;
	struct arena *arena;
	struct str *text;
	struct core_exec *exec;
	struct cancelable *install;
	struct loop_timer *later;
	struct error err;
};
void desk_init(struct desk *desk, struct core *core, const struct request *request);
/* No step may be under way. The workspace stays. */
void desk_done(struct desk *desk);

/* wanted: as for core_create; its owner is the service. */
void desk_create(struct desk *desk, const char *service, const struct workspace *wanted,
	desk_fn *done, void *ctx);
void desk_install(struct desk *desk, const text_list *packages, desk_fn *done, void *ctx);
/* bytes live until done. */
void desk_write(struct desk *desk, const char *path, struct str bytes, desk_fn *done, void *ctx);
/* The bytes of a file, with a NUL behind, in the arena. By core itself. ERR_LIMIT: more than max.
 */
void desk_read(struct desk *desk, const char *path, size_t max, struct arena *arena,
	struct str *text, desk_fn *done, void *ctx);
/* Captured. An error: it could not be started; else result, captured and limiter are set. */
void desk_run(struct desk *desk, const struct exec_spec *spec, desk_fn *done, void *ctx);
/* By core itself: it must work for whoever made it. No workspace, or one that is gone: success. */
void desk_remove(struct desk *desk, desk_fn *done, void *ctx);
void desk_cancel(struct desk *desk);

/* The same steps for a job on a fiber, which waits for their ends. A canceled wait for a command
 * ends at once (invariant 3). */
int desk_create_wait(struct fiber *fiber, struct desk *desk, const char *service,
	const struct workspace *wanted, struct error *err);
int desk_install_wait(
	struct fiber *fiber, struct desk *desk, const text_list *packages, struct error *err);
int desk_write_wait(struct fiber *fiber, struct desk *desk, const char *path, struct str bytes,
	struct error *err);
int desk_run_wait(
	struct fiber *fiber, struct desk *desk, const struct exec_spec *spec, struct error *err);
int desk_remove_wait(struct fiber *fiber, struct desk *desk, struct error *err);
/* *fd: the file, for reading; yours to close, also when the wait was canceled. */
int desk_open_wait(
	struct fiber *fiber, struct desk *desk, const char *path, int *fd, struct error *err);
/* An archive, which stays yours, into that directory of its workspace. */
int desk_unpack_wait(
	struct fiber *fiber, struct desk *desk, const char *path, int archive, struct error *err);
/* id: of the snapshot. */
int desk_freeze_wait(struct fiber *fiber, struct desk *desk, const struct snapshot_wanted *wanted,
	char id[ID_LEN + 1], struct error *err);

/* Begins to remove a workspace, if it is there; nobody waits for the end. */
void desk_drop(const struct request *request, struct core *core, const char *workspace);
/* Removes the workspaces of a service that a crash left behind: those that is_kept (NULL: none)
 * doesn't name. why: as of core_remove. */
void desk_sweep(struct core *core, const char *service, const char *why,
	bool (*is_kept)(void *ctx, const struct workspace *w), void *ctx);
