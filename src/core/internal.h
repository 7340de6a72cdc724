/* internal.h -- what the files behind core.h share. Private to this room. */
#pragma once
#include "base/arena.h"
#include "base/map.h"
#include "base/share.h"
#include "core/core.h"
#include "core/jobs.h"
#include "core/launcher.h"
#include "envs/store.h"
#include "linux/home.h"
#include "policy/policy.h"
#include "proc/measure.h"
#include "sandbox/init/protocol.h"
#include "sandbox/native/pace.h"
#include "sandbox/native/view.h"
#include "sandbox/plan/launch.h"
#include "store/store.h"

struct core_exec;
struct env_pin;
struct fiber;
struct exec_record;
struct audit;

enum principal_kind {
	PRINCIPAL_UID,	   /* a user of this host, by the peer of its socket */
	PRINCIPAL_TOKEN,   /* the bearer of an access token */
	PRINCIPAL_SANDBOX, /* a command in a sandbox; always bound to its workspace */
	PRINCIPAL_SYSTEM,  /* core itself: timers, and the recovery after a start */
	PRINCIPAL_SUBJECT, /* the subject of a verified client certificate */
	PRINCIPAL_NOBODY,  /* a TCP client without a credential: no scope */
	PRINCIPAL_CLIENT,  /* a client of an agent whose routes need no credential: no scope */
	PRINCIPAL_AGENT,   /* an agent, in its own workspaces */
};
struct principal { /* the texts belong to the request; access_keep copies them */
	enum principal_kind kind;
	uid_t uid;	       /* PRINCIPAL_UID */
	const char *token_id;  /* PRINCIPAL_TOKEN */
	unsigned scopes;       /* enum scope */
	const char *workspace; /* id of the workspace it is bound to, or NULL */
	const char *address;   /* of the TCP peer, or NULL */
	const char *subject;   /* PRINCIPAL_SUBJECT, _CLIENT and _AGENT */
};
struct request {
	const struct principal *principal;
	const char *id;		   /* for the log and the launcher; "": none */
	const char *door;	   /* name of the protocol it came by, a literal */
	uint64_t deadline_ms;	   /* monotonic; 0: none. Verbs refuse to start after it */
	struct request_note *note; /* filled by access_check; NULL: not wanted */
};
struct request_note { /* for access_trail, access_learned */
	struct arena *arena;
	const char *trail, *learned; /* JSON */
};
extern const struct request request_system;

struct init_connection; /* of core/execs: the connection to one sandbox */

enum sandbox_state {
	SANDBOX_NONE,
	SANDBOX_STARTING, /* the launcher was asked to start it */
	SANDBOX_UP,	  /* init is connected, and execs can be sent */
	SANDBOX_ENDING,	  /* the launcher was asked to end it, or said that it ended */
	SANDBOX_STATE_COUNT
};
/* The sandbox of a workspace. */
struct core_sandbox {
	enum sandbox_state state;
	struct sandbox_view view;
	struct core_exec *execs; /* running here, linked by exec->next */
	unsigned exec_count;
	bool is_damaged; /* one of its layers is damaged: it starts no more commands, see core_wake
			  */
	bool is_alone;	 /* init was the only process when it last reported an exit */
	struct init_connection *connection;
	uint64_t own_sockets[INIT_LISTENERS_MAX]; /* inodes of what leads out of it: not listed */
	size_t own_socket_count;
	struct network *network; /* its egress policy (core/workspaces/networks.c), or NULL */
	enum reason limit;	 /* the limit that ends it, and the reason of every exec in it;
				  * REASON_EXITED: no limit was exceeded */
};

struct core_workspace {
	struct core *core;
	struct workspace model;
	struct arena arena; /* holds the model's texts; see workspace_tidy */
	size_t texts_bytes; /* size of the arena after the last workspace_tidy */
	struct core_sandbox sandbox;
	int64_t expires_from_ms; /* model.expires_ms for which the time of its end was computed */
	int64_t saved_last_used_ms;
	uint64_t used_ms; /* monotonic: last use */
	bool is_dirty;	  /* was used after its disk usage was last measured */
	struct {	  /* the last measurement of its disk usage; counters.files 0: outdated */
		struct pace_counters counters;
		uint64_t bytes, at_ms, cost_ms;
		unsigned moves; /* how often files were moved to or from layers */
	} measured;
	bool is_overgrown; /* exceeds its counted disk limit, and still grew after that was found */
	unsigned users; /* references (transfers, execs): its sandbox isn't ended by the idle timer,
			 * nor the struct freed, before this is 0 */
	bool is_gone;	/* removed; freed with the last reference */
	bool is_spare;	/* made ahead by core/workspaces/spare.c, not yet assigned to a request */
	bool is_canceled;		/* its creation was canceled while in progress */
	struct core_waiter *suspenders; /* called when it is suspended */
	struct core_waiter *removal; /* called when it is removed; NULL: it isn't being removed */
	bool wants_archive;	     /* an archive is made before it is removed */
	bool archive_is_partial;     /* an expiry leaves out what can't be archived */
	void *archive_ctx;	     /* argument of core_remove_as, or NULL */
	char start_request[ID_LEN + 1]; /* id of the request that the sandbox is started for */
	uint64_t start_ns;
	struct port_call *ports; /* connections to its ports in progress */
	pair_list files;	 /* of its template, while the workspace is created */
	bool is_frozen; /* the uppers of its sandbox were frozen: nothing mounts them again */
	bool has_state; /* created from layers that already hold its first files */
	bool is_paused; /* its processes are stopped for a snapshot: no command starts */
	struct core_policies *policies;	      /* compiled; NULL: not yet */
	struct workspace_packages *packages;  /* of core/packages */
	struct workspace_trees *trees;	      /* of core/state */
	struct file_work *file_work;	      /* of core/files */
	struct workspace_life *life;	      /* of core/workspaces */
	struct cancelable *operations;	      /* cancelable operations that use it */
	struct workspace_traffic traffic;     /* since the start of core */
	struct core_waiter *waiters;	      /* called when its sandbox is up */
	struct core_workspace *newer, *older; /* all of them, by creation */
};

/* Its disk limit is kept by core, not by a quota of the file system. */
static inline bool workspace_counts_disk(const struct workspace *model)
{
	return !model->disk_mechanism || !strcmp(model->disk_mechanism, "counted");
}

struct core {
	struct loop *loop;
	struct arena arena;
	struct log log;
	struct home home;
	int workspaces; /* <home>/workspaces */
	struct store *store;
	struct store_opened store_opened;
	struct error *load_failure; /* why its rows could not be read, or NULL */
	struct env_store envs;
	struct launcher launcher;
	struct access *access;		/* of core/access */
	struct execs *execs;		/* of core/execs */
	struct core_packages *packages; /* of core/packages */
	struct core_state *state;	/* of core/state */
	struct core_files *files;	/* of core/files */
	struct core_upkeep *upkeep;	/* of core/workspaces */
	struct audit *audit;		/* core/access/audit.c; NULL: the audit log is off */
	const char *config_digest;
	struct networks *networks; /* core/workspaces/networks.c */
	struct journal journal;
	struct metrics metrics;
	struct map ids, names, contexts; /* of workspaces */
	bool use_snapshots;		 /* templates are built into layers */
	bool auto_repair;		 /* damage that keeps a sandbox from starting is repaired */
	int sockets;			 /* <home>/run/sb */
	struct core_workspace *newest, *oldest;
	bool landlock_writes;
	bool keeps_spare;
	uint64_t release_after_ms;
	bool is_ready;		  /* the recovery after the start is done */
	bool is_stopping;	  /* after SIGTERM: new work is refused */
	bool is_leaving;	  /* another core replaces this one */
	struct loop_timer *flush; /* store_begin is due */
	struct loop_timer *tidy;  /* of workspace_tidy */
	struct measure rotation;  /* of the log */
	int writer;		  /* socket of the role that writes the database, or -1 */
	int closer;		  /* socket of the process of core/closer.c, or -1 */
	struct child closer_child;
	struct job_queue tree_jobs, blobs;
	struct shares uploads, creations;
	bool has_rubbish_inside; /* workspaces/<id>/.del-<id> exist, in workspaces that stay */
	loop_timer_fn *ready;
	void *ready_ctx;
	int (*row)(void *ctx, const struct store_table *table, const void *row); /* or NULL */
	void *row_ctx;
	void (*certificates)(void *ctx, const char *certificate, const char *key, const char *ca);
	void (*stopped)(void *ctx);
	void *stopped_ctx;
};

/* A pending callback, alone or in a list. */
struct core_waiter {
	core_workspace_fn *fn; /* or NULL */
	void *ctx;
	struct core_workspace *w; /* held, or NULL */
	bool has_failed;
	struct error err; /* has_failed: passed to fn instead of the caller's error */
	struct core_waiter *next;
};

/* ---- access/open.c ---- */
void access_open(struct core *core, const struct core_options *options);
void access_close(struct core *core); /* no workspace is left, and the store is closed */

/* ---- access/access.c ---- */
/* Whether the request may do that to what is in w (NULL: to the daemon as a whole). ERR_DENIED: a
 * scope is missing, or w isn't the workspace that the principal is bound to; ERR_CANCELED: too
 * late.
 */
int access_check(const struct core *core, const struct request *request, enum verb verb,
	const struct core_workspace *w, struct error *err) __attribute__((nonnull(2)));
/* The workspace itself, for verbs over all of them; NULL: not bound, or it is gone. */
struct core_workspace *access_bound(const struct core *core, const struct request *request);
bool access_is_bound(const struct request *request);
const char *access_noun(enum noun noun);
/* Whether a principal finds what is in w. */
bool access_reaches(const struct request *request, const struct core_workspace *w);

/* ---- core.c ---- */
/* Something happened in it: not idle now. */
void core_touch(struct core_workspace *w);
/* A copy of *model that is in all tables and lists. */
struct core_workspace *workspace_new(struct core *core, const struct workspace *model);
/* Puts *model in the place of what w was: in tables and lists as a new one. */
void workspace_replace(struct core_workspace *w, const struct workspace *model);
/* Removes it from tables and lists; freed with the last reference (core_release). */
void workspace_drop(struct core_workspace *w);
void workspace_set_state(struct core_workspace *w, enum workspace_state state);
void workspace_save(struct core_workspace *w, store_done_fn *done, void *ctx);
/* Texts that were replaced stay in its arena. When these outweigh those of the model, the model's
 * are copied and all others freed, at the next turn of the loop: whatever is to outlive this turn
 * has copies of the texts of a workspace. For changes that workspace_save does not follow. */
void workspace_tidy(struct core_workspace *w);
void core_check_stopped(struct core *core);

/* ---- waiters.c ---- */
/* Holds w until the callback; err is copied. */
struct core_waiter *waiter_new(
	core_workspace_fn *fn, void *ctx, struct core_workspace *w, const struct error *err);
void waiter_append(struct core_waiter **list, struct core_waiter *waiter);
/* Calls fn(ctx, w, err) and frees the waiter. w NULL: the waiter's own. */
void waiter_call(struct core_waiter *waiter, struct core_workspace *w, const struct error *err);
/* Calls all of them in order. The list is empty meanwhile: a callback may add to it. */
void waiters_call(struct core_waiter **list, struct core_workspace *w, const struct error *err);
void waiters_forget(struct core_waiter *list); /* core ends: frees, calls nobody */
/* fn(ctx, w, err) at the next turn of the loop, as invariant 2 wants; holds w until then. err is
 * copied. */
void core_later(struct core *core, core_workspace_fn *fn, void *ctx, struct core_workspace *w,
	const struct error *err);

/* ---- create.c ---- */
#define CREATIONS_MAX 8192 /* workspaces at once: each has a fiber */
/* Workspaces whose rows are committed together, when the last one is made; with the first failure
 * none has one. Ends with the last. */
struct create_group {
	size_t awaited; /* whose rows are not due yet */
	struct creation *due;
	struct error err; /* the first one */
};
struct create_group *create_group_new(size_t count);
/* As core_create_with. has_state: *asked has the layers, the environment and its recipe that the
 * new workspace begins with. group: one of those that it counts; or NULL. */
struct core_workspace *workspace_create(const struct request *request, struct core *core,
	const struct workspace *asked, bool has_state, int voucher, struct create_group *group,
	core_workspace_fn *done, void *ctx);
/* ERR_CONFLICT: it is taken. */
int create_check_name(struct core *core, const char *name, struct error *err);
/* As core_create of what has `from`: the id of a snapshot, or a workspace. */
void create_from(const struct request *request, struct core *core, const struct workspace *asked,
	core_workspace_fn *done, void *ctx);
/* Makes its directory, by the launcher where a quota keeps the disk limit, and the tree in it. */
void workspace_make_tree(
	struct core_workspace *w, const char *request_id, core_workspace_fn *done, void *ctx);

/* ---- grants.c ---- */
/* Whether it shows anything besides its own tree. */
bool grants_are_asked(const struct workspace *model);
/* is_vouched: a voucher of sandbox/plan/grants.h came along. ERR_INVALID, ERR_LIMIT,
 * ERR_NOT_FOUND. */
int grants_check(const struct core *core, const struct workspace *wanted, bool is_vouched,
	struct error *err);
/* Has the launcher check and keep them; voucher (-1: none) stays the caller's. */
void grants_ask(struct core_workspace *w, const char *request_id, int voucher,
	core_workspace_fn *done, void *ctx);
void grants_revoke(struct core_workspace *w);
/* The links to shared trees in a new tree. */
int grants_make_links(const struct core_workspace *w, int upper, struct error *err);
/* ERR_CONFLICT: its files are in a directory of the host (--dir), and can't be `verb` ("forked").
 */
int workspace_check_own_tree(const struct core_workspace *w, const char *verb, struct error *err);

/* ---- spare.c ---- */
/* The workspace that was made ahead, with the model *wanted (whose id and disk mechanism are set);
 * NULL: there is none, or another kind is wanted. Sees to it that there is one the next time. */
struct core_workspace *spare_take(struct core *core, struct workspace *wanted);
/* Its row could not be written: ends the workspace. */
void spare_return(struct core_workspace *w);
void spare_ended(struct core_workspace *w); /* its sandbox is gone */
void spare_check(struct core *core);	    /* a workspace is gone */

/* ---- trees.c ---- */
/* `find` in a child that has these descriptors (-1: none) and no others; then found, in core. */
void core_start_child(struct core *core, struct measure *child, uint64_t (*find)(void *ctx),
	void (*found)(void *ctx, bool ok, uint64_t value), int dir, int fd);

/* ---- writer.c ---- */
/* What the store asks of core: its turns of the loop, and the process that writes. */
struct store_host core_store_host(struct core *core);
/* A socket to that process, which is core's then. */
int core_use_writer(struct core *core, int socket, struct error *err);

/* ---- closer.c ---- */
int closer_open(struct core *core, struct error *err);
void closer_done(struct core *core);
/* Closes them without waiting for their file systems to be unmounted. is_late: not at once. Files
 * of an overlay are about to be removed, and what is removed first need not be written to the disk;
 * or they are about to be frozen, which syncs them itself. */
void closer_close(struct core *core, int *fds, size_t count, bool is_late);

/* ---- log.c ---- */
/* Puts the log aside when it is run/carrel.log and longer than LOG_FILE_BYTES_MAX. */
void log_bound(struct core *core);

/* ---- trees.c: workspaces/<id> ---- */
/* In a directory that the launcher made, or else in one of its own, which is counted. */
int tree_make(struct core_workspace *w, bool is_there, struct error *err);
/* Renames the tree at once; a child removes it after its row was deleted. A missing tree is
 * success. */
int tree_remove(struct core *core, const char *id, struct error *err);
/* The same for one that has no row: after a crash nothing tells whose it was. */
int tree_discard(struct core *core, const char *id, struct error *err);
void trees_clean_later(struct core *core);
/* The file system is nearly full: what is removed must be free before it is said to be gone. */
bool trees_room_is_low(const struct core *core);
/* Calls fn(NULL, w, NULL) when the bytes of removed trees are free again: at once where the file
 * system has room to spare, else after the child that removes them. Holds w until then. */
void trees_when_clean(struct core_workspace *w, core_workspace_fn *fn);
/* Makes the directory of its /.cache unless it exists; before a sandbox starts. */
int tree_make_cache(struct core_workspace *w, struct error *err);
/* Only while it has no sandbox: nobody but the overlay may change a mounted upper. */
int tree_write_context(struct core_workspace *w, struct error *err);
/* package.json and the lock of its environment of Node, if it has one; a template's own files
 * replace these. */
int tree_write_project(
	const struct core_workspace *w, int upper, bool is_synced, struct error *err);
/* Files of a template, into a tree that nothing runs in. */
int tree_write_files(int upper, const pair_list *files, bool is_synced, struct error *err);
/* Makes .workspace_configured and .venv again where /workspace does not show them; tells which it
 * made. Only while it has no sandbox. */
#define TREE_MADE_MARK 1u
#define TREE_MADE_VENV 2u
unsigned tree_restore_marks(const struct core_workspace *w);
/* false: made by a version whose workspaces were plain directories; marks_sweep is due. */
bool tree_is_overlay(const struct core_workspace *w);
/* Bytes on disk of what it holds. Without `work`, where overlay keeps an unreadable directory.
 * Slow for a large tree: call it in a child. TREE_CLOSED: a directory is closed to its owner, and
 * tree_measure_closed is due; TREE_ENDLESS: too deep, or unreadable for another reason. */
#define TREE_ENDLESS UINT64_MAX
#define TREE_CLOSED (UINT64_MAX - 1)
uint64_t tree_measure(const struct core_workspace *w);
/* The same by a process that may read such directories. Then fn(ctx, ok, bytes), later; false: it
 * could not be started, or was killed. Holds w until then. */
typedef void tree_measured_fn(void *ctx, bool ok, uint64_t bytes);
struct closed_measure *tree_measure_closed(
	struct core_workspace *w, tree_measured_fn *fn, void *ctx);
void tree_measure_forget(struct closed_measure *measure); /* fn isn't called; NULL: nothing */

/* ---- marks.c ---- */
/* Removes the marks of overlays from a tree that never was one, and makes `work`. The caller holds
 * w. */
int marks_sweep(struct fiber *fiber, struct core_workspace *w, struct error *err);

/* ---- state/open.c ---- */
void state_open(struct core *core, const struct core_options *options);
void state_close(struct core *core);	     /* no workspace is left */
void state_attach(struct core_workspace *w); /* to a new one, with nothing in it */
void state_detach(struct core_workspace *w);

/* ---- takers.c ---- */
/* Calls taken(ctx, w, NULL) when w has no sandbox, one after the other; no sandbox starts until
 * tree_release. One that nobody uses is ended. While commands run or files are in transfer:
 * WHEN_BUSY_WAIT waits for their end, at most timeout_ms (0: the default); WHEN_BUSY_PAUSE calls it
 * although there is a sandbox; else, too late, and when the owner (NULL: none) is canceled,
 * ERR_CONFLICT. The caller holds w. */
void tree_take(struct core_workspace *w, enum when_busy when_busy, uint64_t timeout_ms,
	const struct cancelable *owner, core_workspace_fn *taken, void *ctx);
/* At once: false when w has a sandbox, or another operation has its trees. Also for a workspace
 * whose files lie in a directory of the host, which tree_take refuses. */
bool tree_take_now(struct core_workspace *w);
void tree_release(struct core_workspace *w);
void takers_go_on(struct core_workspace *w); /* something has changed that they wait for */
bool tree_is_taken(const struct core_workspace *w);
bool tree_is_awaited(const struct core_workspace *w); /* by a tree_take that has not called back */

/* ---- parts.c ---- */
/* One that has_packages is used where the workspace has an environment below it. */
struct workspace_part;
bool part_is_used(const struct core_workspace *w, const struct workspace_part *part);
/* Appends a list of names as a job over trees reads it, "" at its end; more NULL: an empty one. */
void parts_add_list(struct arena *arena, text_list *names, const text_list *more);
/* Appends such lists of the package layers below each part, topmost first (tree_take_packages). */
void parts_add_packages(struct core_workspace *w, struct arena *arena, text_list *names);

/* ---- freeze.c: layers/snap-<id>; all but the last four only while w's trees are taken ---- */
/* Whether any upper holds something. */
bool freeze_is_due(const struct core_workspace *w);
/* Renames the uppers into layer `name`; empty ones take their place. Files are changed before rows:
 * the row of w must name the layer next, and then freeze_settle; or freeze_undo. err->sys_errno
 * EXDEV: they lie on another file system than layers. */
int freeze_uppers(struct core_workspace *w, const char *name, struct error *err);
/* The same when layer `name` is a copy of the uppers. */
int freeze_copied(struct core_workspace *w, const char *name, struct error *err);
int freeze_undo(struct core_workspace *w, const char *name, struct error *err);
void freeze_settle(struct core *core, const char *layer);
/* "missing", "damaged" (trees/layers/damage.h), or NULL: by a look, not by its files. */
const char *layer_problem(const struct core *core, const char *name);
/* ERR_CORRUPT names the first of its frozen layers that has a problem. */
int layers_check_whole(const struct core_workspace *w, struct error *err);
#define REPAIR_HINT "carrel repair %s"
void layer_discard(struct core *core, const char *name); /* renames it; removed later */
/* A workspace other than w whose sandbox has the layer: it may not be replaced below it. */
const struct core_workspace *layer_user(const struct core_workspace *w, const char *layer);
/* The finished tree `stage` gets the name `layer`; what has it goes. ERR_CONFLICT: layer_user. */
int layer_replace(
	const struct core_workspace *w, const char *stage, const char *layer, struct error *err);
/* Gives the empty uppers of w the modes, times and attributes that its layers say. */
int freeze_dress(struct core_workspace *w, struct error *err);
/* The same for a rollback, whose row is to be written next; freeze_dress_end follows, with is_named
 * when it is. Else, and after a start, the layers of the row say it again. */
int freeze_dress_begin(struct core_workspace *w, struct error *err);
void freeze_dress_end(struct core_workspace *w, bool is_named);
/* A layer that has no row yet stays until layer_release. */
void layer_hold(struct core *core, const char *name);
void layer_release(struct core *core, const char *name);
void layers_hold_all(struct core *core, const text_list *names);
void layers_release_all(struct core *core, const text_list *names);
/* Adds the names of all layers that are needed: by workspaces, snapshots, builds of templates, jobs
 * on trees that have not ended, and those that are held. */
void layers_named(const struct core *core, struct map *named);
void layers_recover(struct core *core); /* at the start, when all rows are read */
/* Removes frozen layers that layers_named does not add, and unfinished ones, soon. */
void layers_sweep(struct core *core);

/* ---- merge_layers.c ---- */
/* Begins to merge layers of a workspace that has many, if it is not done already. */
void merges_check(struct core *core);
/* Its sandbox is gone: what was merged is put in its place before another one starts. */
void merge_go_on(struct core_workspace *w);
void merges_done(struct core *core);

/* ---- snapshots.c ---- */
void snapshot_restore(struct core *core, const struct snapshot *row);
/* Removes the snapshots of a workspace that is removed; NULL: of all that are gone. */
void snapshots_forget(struct core *core, const char *workspace);
void snapshots_done(struct core *core);
/* The newest for which fits() says so, or NULL. */
const struct snapshot *snapshots_find(const struct core *core,
	bool (*fits)(const void *ctx, const struct snapshot *snapshot), const void *ctx);

/* ---- packages/open.c ---- */
void packages_open(struct core *core);
void packages_close(struct core *core);		/* no workspace is left */
void packages_attach(struct core_workspace *w); /* to a new one, with nothing in it */
void packages_detach(struct core_workspace *w); /* after environments_release */

/* ---- packages.c ---- */
/* Installs or removals are under way, or wait. */
bool packages_are_changing(const struct core_workspace *w);
/* Its trees are released: an install that waits for them goes on. */
void packages_go_on(struct core_workspace *w);

/* ---- snapshot_content.c ---- */
/* Finds out the sizes and content ids that are not known yet, in the background. */
void snapshots_examine(struct core *core);
void inquiries_done(struct core *core);

/* ---- environments.c ---- */
/* Finds or builds environment `slot` of `recipe`, which must stay until then; w's own stays as
 * it is. The caller holds w. The pin is yours, for environment_unpin. *tag: of the build while it
 * is under way, for environment_cancel_build. */
int environment_build(struct fiber *fiber, struct core_workspace *w, const struct workspace *recipe,
	size_t slot, const char *request_id, uint64_t *tag, struct env_pin **pin,
	struct error *err);
void environment_cancel_build(struct core *core, uint64_t tag); /* 0: nothing */
void environment_unpin(struct core *core, struct env_pin *pin); /* NULL: nothing */
const struct env_meta *pin_meta(const struct env_pin *pin);	/* NULL: NULL */
/* Finds or builds (through the launcher) the environments that the workspace requests, and pins
 * them; sets model.environments. The caller holds w. */
int environment_prepare(
	struct fiber *fiber, struct core_workspace *w, const char *request_id, struct error *err);
/* Ends the build of it that is under way; its preparation then fails. */
void environment_cancel(struct core_workspace *w);
bool environment_is_asked(const struct workspace *model);
/* After a start of core: pins the environments that it had, if they exist and are whole. */
void environments_keep(struct core_workspace *w);
void environments_release(struct core_workspace *w); /* lets its pins go */
/* One that was given as `environment`, but is of another kind than the first, gets its place. */
void environments_sort(struct core_workspace *w);
struct env_kind;
bool environments_are_pinned(const struct core_workspace *w); /* one of them, or more */
/* The kind of the environment that is pinned as model.environments.of[slot], or NULL: none is. */
const struct env_kind *environment_kind(const struct core_workspace *w, size_t slot);
const struct env_meta *environment_pinned(
	const struct core_workspace *w, size_t slot); /* the same */
/* What a START says of them: how many strings, head->value, and the descriptors to send along. 0:
 * no environment. The strings are the pins'. */
size_t environments_describe(const struct core_workspace *w, struct launch_message *head,
	const char *strings[LAUNCH_STRINGS_MAX], int fds[ENV_KINDS], int *fd_count);
/* Of its environment of that kind, topmost first, valid until the next turn of the loop; NULL: it
 * has none. */
const text_list *environment_layers(struct core_workspace *w, const struct env_kind *kind);

/* ---- settle.c ---- */
/* Whether what lies on top of its environments was made on others. */
bool environment_is_unsettled(const struct workspace *model);
/* Brings that in line, and notes in its row that it is done. It has no sandbox meanwhile. With
 * `layer`, a frozen one that was copied of its uppers and has no row yet, the same is done there,
 * and the row stays. An error is logged too; the next start tries again. The caller holds w. */
int environment_settle(
	struct fiber *fiber, struct core_workspace *w, const char *layer, struct error *err);

/* ---- transitions.c: one row per state says which ones it may follow; anything else is a bug, and
 * core aborts (the next one adopts what runs) ---- */
void sandbox_move(struct core_sandbox *sandbox, enum sandbox_state to);

/* ---- sandboxes.c ---- */
/* Calls back when its sandbox is up (at the next turn of the loop when it is already), with one
 * hold that is the callee's to release. For core/execs/execs.c. One on damaged layers is ended for
 * that; ERR_CORRUPT: it is in use. */
void core_wake(
	struct core_workspace *w, const char *request_id, core_workspace_fn *done, void *ctx);
/* Ends the sandbox; its execs end with `reason`. */
void core_end_sandbox(struct core_workspace *w, enum reason reason);
/* For /metrics: it is up. */
void sandbox_count_start(struct core_workspace *w);
void sandbox_clear(struct core_sandbox *sandbox); /* none */
/* What core holds of it; none then. is_late: as in closer_close. */
void sandbox_close(struct core *core, struct core_sandbox *sandbox, bool is_late);
void sandbox_adopt(struct core_workspace *w, int limiter, const int *fds);
/* The launcher has reported its end. */
void sandbox_ended(struct core_workspace *w, int wait_status);

/* ---- suspend.c ---- */
/* It has no sandbox now: .context.json and its row say that it is suspended. */
void sandbox_suspended(struct core_workspace *w);
/* It is being removed: tells those who wait for its suspension. */
void suspension_fail(struct core_workspace *w);
/* Its sandbox is up: it is ready, whether it was suspended or not. */
void workspace_resumed(struct core_workspace *w);

/* Starts one if requests wait for it. */
void sandbox_go_on(struct core_workspace *w);
/* ERR_CONFLICT names what uses it: an exec, files in transfer, processes. */
int workspace_check_unused(const struct core_workspace *w, struct error *err);
/* The same of its sandbox: a command that waits for one may have another. */
int sandbox_check_unused(const struct core_workspace *w, struct error *err);

/* ---- workspaces/open.c ---- */
void upkeep_open(struct core *core);
void upkeep_close(struct core *core);	    /* no workspace is left */
void life_attach(struct core_workspace *w); /* to a new one, with nothing in it */
void life_detach(struct core_workspace *w); /* after lifetime_disarm */

/* ---- lifetimes.c ---- */
/* Arms what its ttl, idle_timeout and sandbox ask for. */
void lifetime_arm(struct core_workspace *w);
void lifetime_disarm(struct core_workspace *w);
/* It was used now: where its ttl runs from the last use, it runs anew. */
void lifetime_used(struct core_workspace *w);
/* Whether such a ttl stands still, because something runs in it or waits for an approval. */
bool lifetime_is_held(const struct core_workspace *w);
/* Ends its sandbox, if it has one. ERR_CONFLICT: something runs in it, or is under way. */
/* What is under way with w besides execs, each once; the rest of the list stays NULL. */
void lifetime_list_uses(const struct core_workspace *w, const char *uses[WORKSPACE_USES_MAX]);
int lifetime_release(struct core_workspace *w, struct error *err);
/* Processes that outlive their exec keep the sandbox; init alone doesn't. */
bool sandbox_has_processes(const struct core_workspace *w);
/* Its disk usage was measured: tells, once, that it has grown to 80 % of the limit. */
void disk_usage_changed(struct core_workspace *w);
void lifetimes_start(struct core *core);
void lifetimes_stop(struct core *core);

/* An expired workspace that could not be removed expires again after a minute. */
void lifetime_postpone(struct core_workspace *w);

/* ---- remove.c ---- */
/* Its archive was made, or err says why not. */
struct archive_row;
void removal_archived(
	struct core_workspace *w, const struct archive_row *row, const struct error *err);

/* ---- archives.c ---- */
/* Makes the archive of a workspace that has no sandbox and gets none; then removal_archived. */
void archive_begin(struct core_workspace *w);
bool archive_is_in_progress(const struct core_workspace *w);
bool archives_keep_expired(const struct core *core); /* as configured */
void removal_note_archive(void *ctx, const struct archive_row *row);

void removal_go_on(struct core_workspace *w); /* its sandbox is gone */

/* ---- reconcile.c ---- */
/* Asks the store for all rows, which are taken in reconcile_begin: the process that reads them
 * works meanwhile. */
void reconcile_ask(struct core *core);
/* Takes the rows, then asks the launcher what runs; core->is_ready when that has been sorted out.
 */
int reconcile_begin(struct core *core, struct error *err);

/* ---- exec_restore.c ---- */
/* The sandbox is up: its init socket is watched from now on. */
int execs_attach(struct core_workspace *w, struct error *err);
/* The model's variables have changed: execs from now on get them. */
void execs_change_env(struct core_workspace *w);
/* The sandbox has ended (its fds are still open): its execs end with its limit as the reason, or as
 * canceled. */
void execs_sandbox_gone(struct core_workspace *w);
/* A background exec from the store, at start. */
void execs_restore(struct core_workspace *w, const struct exec_record *record);
/* What runs is known: an exec that isn't ended is looked for in its adopted sandbox; when that is
 * gone its end is unknown: `canceled`, with an error that says so. Spools of unknown execs are
 * removed. */
void execs_settle(struct core *core);
/* The workspace goes: its ended execs and spools too. */
void execs_forget(struct core_workspace *w);
/* Those that wait for an approval end `canceled`: of a workspace that is removed, or (NULL) those
 * in the foreground. */
void execs_end_asked(struct core *core, const struct core_workspace *w);
/* Kills foreground execs: they end `canceled`. */
void execs_end_foreground(struct core *core);
/* Frees what is left; nothing runs any more, or core is about to exit. */
void execs_done(struct core *core);
