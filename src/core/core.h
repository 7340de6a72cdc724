/* core.h -- the brain: verbs over workspaces and execs; decides, records, never parses HTTP. One
 * loop, no threads; whatever takes long is a child or a message to the launcher, and answers by a
 * callback.
 * 1. Memory is the truth while core runs, the store its record, and the disk what both are about.
 * The rule after a crash (core/reconcile.c): what runs is adopted, what is half-made is removed,
 * what was acknowledged is there.
 * 2. A callback is called once, from the loop, never from inside the call that asked for it.
 * 3. Errors are for people: they name the object as the caller named it. */
#pragma once
#include "base/error.h"
#include "base/log.h"
#include "core/access/access.h"
#include "core/cancelable.h"
#include "core/journal.h"
#include "core/metrics.h"
#include "core/page.h"
#include "model/nouns/workspace.h"
#include "proc/loop.h"

/* Their members are of core/internal.h; what is shown of them comes as a value. */
struct core;
struct core_workspace;
struct store_table;
struct network_settings;

#define CORE_UIDS_MAX 64
struct core_uid { /* a peer of the unix socket, and what it may do */
	uid_t uid;
	unsigned scopes; /* of enum scope; 0: nothing */
};
#define CORE_CAPTURED_MAX_DEFAULT (128ull << 20)

struct core_options {
	int launcher;	  /* channel */
	int writer;	  /* socket to a process that does store_serve; core's then */
	int audit;	  /* socket to a process that does audit_serve, or -1: the log is off */
	bool audit_drops; /* records that can't be written; else verbs are refused */
	const char *config_digest; /* of config.yaml, for the audit log; NULL or "": unknown */
	const char *home;	   /* path */
	const char *store_url;	   /* as in store/store.h */
	uint64_t release_after_ms; /* idle time after which a sandbox is released */
	uint64_t captured_max;	   /* bytes of captured output of all execs together; 0: default */
	struct core_uid uids[CORE_UIDS_MAX]; /* others are refused */
	int uid_count;
	uint64_t approval_ttl_ms; /* 0: default */
	bool approvals_self;	  /* a principal may answer what it asked for */
	bool has_webhook;	  /* approvals are told to the operator's URL */
	const char *boot;	  /* id of this boot of the kernel, or "" */
	const char *blob_source;  /* names the blob store; NULL or "": the home's own */
	bool use_snapshots;	  /* templates are built once, into layers */
	bool auto_repair;	  /* a sandbox that can't start for damage is repaired first */
	bool keeps_spare; /* a workspace made ahead, for the next creation (core/workspaces/spare.c)
			   */
	bool archives_removed,
		archives_expired;	       /* before they are removed, unless asked otherwise */
	bool archives_gzip;		       /* tar.gz instead of tar.zst */
	const struct network_settings *egress; /* NULL: the defaults; it lives as long as core */
	bool landlock_writes; /* in sandboxes Landlock judges no reading; for what is shown */
	struct log log;
	/* NULL, or called with what the launcher has for TLS (PEM; client_ca may be ""), as soon
	 * as core runs and whenever it changes; the texts are the caller's. */
	void (*certificates)(
		void *ctx, const char *certificate, const char *key, const char *client_ca);
	loop_timer_fn *ready; /* NULL, or called once: what there is has been sorted out */
	void *ctx;
	/* NULL, or called with each row of a table that isn't core's own (core/nouns.h). */
	int (*row)(void *ctx, const struct store_table *table, const void *row);
	void *row_ctx;
};

/* Nothing may be asked of it before it is ready. */
int core_open(const struct core_options *options, struct loop *loop, struct core **core,
	struct error *err);
/* Begins to stop: foreground execs end `canceled`, sandboxes are ended (background execs with them,
 * recorded so); calls done when nothing runs any more. */
void core_stop(struct core *core, void (*done)(void *ctx), void *ctx);
/* Before that: what was begun goes on, nothing new is begun (ERR_UNAVAILABLE). */
void core_begin_stop(struct core *core);
/* Instead of core_stop, for a core that takes the place of this one: foreground execs end
 * `canceled`, everything else goes on. core_begin_stop comes before. */
void core_end_foreground(struct core *core);
/* What is being written is written, and those who wait for it are told. */
void core_flush(struct core *core);
void core_free(struct core *core);

/* ---- workspaces ---- */
/* By id, name or context_id; *w is valid until the next turn of the loop, or while it is held.
 * ERR_NOT_FOUND; for a removed workspace the text has the time and reason. */
core_verb int core_find(const struct request *request, struct core *core, const char *text,
	struct core_workspace **w, struct error *err);

typedef void core_workspace_fn(void *ctx, struct core_workspace *w, const struct error *err);
/* wanted: name NULL, id "": they are made; texts are copied; limits as given (0: default). owner:
 * of a service, else empty: a client gives labels (workspace_take_labels). done: it
 * is on disk, in the store, and ready. Errors: ERR_CONFLICT (name or context_id taken),
 * ERR_INVALID, ERR_NOT_FOUND (environment), ERR_DISK_FULL, … On an error nothing is left.
 * Returns what is being made, until done is called; NULL when it is refused. */
core_verb struct core_workspace *core_create(const struct request *request, struct core *core,
	const struct workspace *wanted, core_workspace_fn *done, void *ctx);
/* The same with a voucher of sandbox/plan/grants.h for its `dir` and `mounts`, which stays the
 * caller's; -1: none. */
core_verb struct core_workspace *core_create_with(const struct request *request, struct core *core,
	const struct workspace *wanted, int voucher, core_workspace_fn *done, void *ctx);
/* Cancels a creation in progress: done gets ERR_CANCELED, and the workspace is removed. */
void core_cancel_create(struct core_workspace *w);
/* Removes a workspace whose creation was not acknowledged to the client. Does nothing while core is
 * stopping, since that cuts connections itself. */
core_verb void core_cancel_created(
	const struct request *request, struct core *core, const char *id);
/* Ends what runs in it and removes all of it; `why` ("removed", "expired" …) is what core_find says
 * afterwards. done (or NULL) gets no workspace. */
core_verb void core_remove(const struct request *request, struct core_workspace *w, const char *why,
	core_workspace_fn *done, void *ctx);
/* Changes labels and variables (key with value NULL: removed), limits, ttl, idle_timeout. Limits
 * are a sandbox's from its start on: one that is used is ERR_CONFLICT, one that isn't is given
 * back. */
core_verb void core_update(const struct request *request, struct core_workspace *w,
	const struct workspace_change *change, core_workspace_fn *done, void *ctx);
/* Ends its processes (background execs end `canceled`, with an error that says why) and keeps its
 * files: state suspended. One that is suspended already stays so. ERR_CONFLICT: something runs in
 * it (the text names it), and is_forced isn't set; or it has failed. */
core_verb void core_suspend(const struct request *request, struct core_workspace *w, bool is_forced,
	core_workspace_fn *done, void *ctx);
/* Starts its sandbox, as the next exec would. */
core_verb void core_resume(const struct request *request, struct core_workspace *w,
	core_workspace_fn *done, void *ctx);
/* Newest first. `cursor`: as core_list gave it, or NULL. */
struct core_filter {
	const pair_list *labels; /* all must be equal; value NULL: the key must be there; or NULL */
	const char *service;	 /* that made it; NULL: whoever did */
	bool only_contexts;	 /* that have a context_id */
	int state;		 /* -1: any */
	const char *cursor;
	size_t limit;
};
/* Calls fn for at most filter->limit; *next is the cursor for more, or "". ERR_INVALID: an invalid
 * cursor. */
core_verb int core_list(const struct request *request, struct core *core,
	const struct core_filter *filter, void (*fn)(void *ctx, struct core_workspace *w),
	void *ctx, char next[CORE_CURSOR_SIZE], struct error *err);
/* What is shown of it: the record, valid until the next turn of the loop. */
const struct workspace *core_model(const struct core_workspace *w);
/* Its current state. A workspace is running while an exec runs or waits to start, also in the
 * background, or while a process left by an exec exists. */
struct workspace_now core_now(struct core_workspace *w);
/* Keeps its sandbox from being released by the idle timer, and the struct from being freed; each
 * hold needs a release. */
void core_hold(struct core_workspace *w);
void core_release(struct core_workspace *w);
/* Brings model.disk_usage_bytes up to date (measured in a child when it was used since); done (or
 * NULL) is called then. */
core_verb void core_measure(const struct request *request, struct core_workspace *w,
	core_workspace_fn *done, void *ctx);
/* What it uses just now. Cheap: only its sandbox is looked at, the disk as last measured. */
struct workspace_metrics;
core_verb int core_look(const struct request *request, struct core_workspace *w,
	struct workspace_metrics *metrics, struct error *err);
/* Whether `bytes` more (0: an unknown number) may not fit by the last measurement, and commands
 * have run since. */
bool core_must_measure(const struct core_workspace *w, uint64_t bytes);

/* ---- the daemon ---- */
/* What happens: to w, or (NULL) to all. The journal is core's. */
core_verb int core_events(const struct request *request, struct core *core,
	const struct core_workspace *w, struct journal **journal, struct error *err);
struct core_numbers {
	struct metrics metrics;
	uint64_t workspaces[WORKSPACE_STATE_COUNT]; /* by the state that is shown */
	uint64_t sandboxes_starting, sandboxes_up, sandboxes_ending;
	uint64_t execs;		 /* that run */
	uint64_t captured_bytes; /* of output that is kept until it is answered */
	uint64_t disk_bytes;	 /* of all workspaces, as last measured */
	uint64_t audit_records, audit_dropped;
	bool is_audit_failing; /* nothing can be recorded */
};
core_verb int core_count(const struct request *request, const struct core *core,
	struct core_numbers *numbers, struct error *err);
/* Counts bytes of a file that a door has sent. */
void core_count_read(struct core *core, uint64_t bytes);
