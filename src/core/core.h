/* core.h -- the brain: verbs over workspaces and execs; decides, records, never parses HTTP. One
 * loop, no threads; whatever takes long is a child or a message to the launcher, and answers by a
 * callback.
 * 1. Memory is the truth while core runs, the store its record, and the disk what both are about.
 * The rule after a crash (core/reconcile.c): what runs is adopted, what is half-made is removed,
 * what was acknowledged is there.
 * 2. A callback is called once, from the loop, never from inside the call that asked for it.
 * 3. Errors are for people: they name the object as the caller named it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/table.h"
#include "base/log.h"
#include "core/journal.h"
#include "core/launcher.h"
#include "core/metrics.h"
#include "envs/store.h"
#include "linux/home.h"
#include "model/workspace.h"
#include "plan/launch.h"
#include "proc/loop.h"
#include "store/store.h"

struct core_exec;
struct exec_watch; /* core/watch.h: keeps the limits of one sandbox */

#define CORE_CAPTURED_MAX_DEFAULT (128ull << 20)

struct core_options {
	int listener;	       /* for the API; not core's business */
	int launcher;	       /* channel */
	const char *home;      /* path */
	uint64_t give_back_ms; /* a sandbox that has nothing to do for so long is given back */
	uint64_t captured_max; /* bytes of captured output of all execs together; 0: default */
	bool landlock_writes;  /* in sandboxes Landlock judges no reading; for what is shown */
	struct log log;
	loop_timer_fn *ready; /* NULL, or called once: what there is has been sorted out */
	void *ctx;
};

/* The sandbox a workspace has just now. */
struct core_sandbox {
	bool is_starting;	 /* asked for, not there yet */
	bool is_up;		 /* init is connected, and execs can be sent */
	int init;		 /* socket, or -1 */
	int fds[LAUNCH_FD_MAX];	 /* of launch.h, or -1 */
	const char *limiter;	 /* "cgroup-v1" … */
	struct core_exec *execs; /* running here, linked by exec->next */
	unsigned exec_count;
	bool is_alone; /* nobody but init was there when it last told of an exit */
	struct exec_watch *watch;
	bool is_ending;
	bool has_limit;
	enum reason limit; /* why it is being ended: every exec in it ends with this reason */
};

struct core_workspace {
	struct core *core;
	struct workspace model;
	struct arena arena; /* of the model's texts */
	struct core_sandbox sandbox;
	struct loop_timer *idle, *expiry;
	uint64_t expires_at_ms;	 /* monotonic */
	int64_t expires_from_ms; /* the model's time it was reckoned from */
	int64_t saved_last_used_ms;
	uint64_t used_ms;  /* monotonic: last use */
	uint64_t kept_ms;  /* monotonic: something that a command had left was found running */
	bool is_dirty;	   /* used since it was measured */
	bool is_overgrown; /* over its counted disk limit, and has grown since that was known */
	unsigned users; /* requests that hold it: files in transfer, execs; not given back nor freed
			   meanwhile */
	bool is_gone;	/* removed; freed when the last user lets go */
	bool is_canceled;		/* while it is made: nobody wants it any more */
	uint64_t build_tag;		/* of its environment's build, while that runs, or 0 */
	bool is_suspending;		/* idle_timeout: when its sandbox is gone, and measured */
	struct core_removal *removal;	/* who waits for its end */
	bool has_no_row;		/* any more: it is being removed */
	bool has_made_room;		/* its tree was removed before its row, which had none */
	char start_request[ID_LEN + 1]; /* whose request the sandbox is started for */
	uint64_t start_ns;
	unsigned lost_starts;		      /* in a row: dead before they were of use */
	struct env_pin *pin;		      /* its environment's, of core/environments.c */
	struct core_waiter *waiters;	      /* for the sandbox to come up */
	struct core_refusal *refusals;	      /* while it is made: who wanted the same name */
	struct core_workspace *newer, *older; /* all of them, by creation */
};

struct core {
	struct loop *loop;
	struct arena arena;
	struct log log;
	struct home home;
	int workspaces; /* <home>/workspaces */
	int spool;	/* <home>/run/execs */
	struct store *store;
	struct store_opened store_opened;
	struct env_store envs;
	struct launcher launcher;
	struct journal journal;
	struct metrics metrics;
	struct table ids, names, contexts; /* of workspaces */
	struct table execs; /* by id: running, and background ones that have ended, and the latest
			       others */
	struct table pins;  /* environments in use, by name */
	int sockets;	    /* <home>/run/sb */
	struct core_workspace *newest, *oldest;
	size_t workspace_count;
	bool landlock_writes;
	uint64_t give_back_ms;
	uint64_t captured_max, captured_bytes; /* of all captured execs, until they are answered */
	bool is_ready;			       /* reconciled */
	bool is_stopping;		       /* SIGTERM: nothing new */
	bool counts_disk;	  /* the launcher has said that no kernel mechanism is there */
	struct core_own *own;	  /* of core/internal.h */
	struct exec_shelf *shelf; /* of core/exec_internal.h: what all execs share */
};

/* Nothing may be asked of it before it is ready. */
int core_open(const struct core_options *options, struct loop *loop, struct core **core,
	struct error *err);
/* Begins to stop: foreground execs end `canceled`, sandboxes are ended (background execs with them,
 * recorded so); calls done when nothing runs any more. */
void core_stop(struct core *core, void (*done)(void *ctx), void *ctx);
void core_free(struct core *core);

/* ---- workspaces (core/workspaces.c) ---- */
/* By id, name or context_id. ERR_NOT_FOUND; says when and why it went, if it was there once. */
int core_find(struct core *core, const char *text, struct core_workspace **w, struct error *err);

typedef void core_workspace_fn(void *ctx, struct core_workspace *w, const struct error *err);
struct core_create {
	struct workspace wanted; /* name NULL, id "": they are made; texts are copied; limits as
				    given (0: default) */
	const char *request_id;
};
/* done: it is on disk, in the store, and ready. Errors: ERR_CONFLICT (name or context_id taken),
 * ERR_INVALID, ERR_NOT_FOUND (environment), ERR_DISK_FULL, … On an error nothing is left. */
/* Returns what is being made, until done is called; NULL when it is refused. */
struct core_workspace *core_create(
	struct core *core, const struct core_create *create, core_workspace_fn *done, void *ctx);
/* Nobody wants what is being made any more: done gets ERR_CANCELED, and nothing is left. */
void core_cancel_create(struct core_workspace *w);
/* Ends what runs in it and removes all of it. done's w is NULL. */
void core_remove(struct core *core, struct core_workspace *w, const char *why,
	const char *request_id, core_workspace_fn *done, void *ctx);
/* Changes labels (key with value NULL: removed), limits, ttl, idle_timeout. Limits are a sandbox's
 * from its start on: one that is used is ERR_CONFLICT, one that isn't is given back. */
struct core_change {
	const pair_list *labels;     /* NULL: as they are */
	const struct limits *limits; /* the same; of 0 too */
	bool has_ttl, has_idle_timeout;
	uint64_t ttl_ms, idle_timeout_ms;
};
void core_update(struct core *core, struct core_workspace *w, const struct core_change *change,
	core_workspace_fn *done, void *ctx);
/* Newest first. `cursor`: as core_list gave it, or NULL. */
#define CORE_CURSOR_SIZE 24
struct core_filter {
	const pair_list *labels; /* all must be equal; value NULL: the key must be there */
	int state;		 /* -1: any */
	const char *cursor;
	size_t limit;
};
/* Calls fn for at most filter->limit; *next is the cursor for more, or "". ERR_INVALID: a cursor
 * that is none. */
int core_list(struct core *core, const struct core_filter *filter,
	void (*fn)(void *ctx, struct core_workspace *w), void *ctx, char next[CORE_CURSOR_SIZE],
	struct error *err);
/* What is shown of it now. It is running while an exec runs or waits to start there, in the
 * background too, or while something is there that a past exec has left. */
struct workspace_now core_now(const struct core_workspace *w);
/* Keeps it from being given back or freed; each hold needs its release. */
void core_hold(struct core_workspace *w);
void core_release(struct core_workspace *w);
/* Calls back when its sandbox is up (at the next turn of the loop when it is already), with one
 * hold that is the callee's to release. For core/execs.c. */
void core_wake(
	struct core_workspace *w, const char *request_id, core_workspace_fn *done, void *ctx);
/* Ends the sandbox; its execs end with `reason`. */
void core_end_sandbox(struct core_workspace *w, enum reason reason);
/* Something happened in it: not idle now. */
void core_touch(struct core_workspace *w);
/* Brings model.disk_usage_bytes up to date (measured in a child when it was used since); done (or
 * NULL) is called then. */
void core_measure(struct core_workspace *w, core_workspace_fn *done, void *ctx);
