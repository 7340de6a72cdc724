/* internal.h -- struct core_exec: what the files behind execs.h and watch.h share. Private to this
 * folder.
 *	execs.c		the verbs: start, detach, signal, find, list
 *	exec_asks.c	those that wait for an approval
 *	exec_inputs.c	those whose policy looks at files first
 *	exec_end.c	how one ends, and what is kept of it
 *	exec_stage.c	which stage may follow which
 *	exec_uses.c	what others of core want to know of the execs of a workspace
 *	init_connection.c	the socket to a sandbox's init
 *	exec_streams.c	pipes and terminals
 *	exec_spool.c	background output
 *	exec_restore.c	after a restart of core
 *	watch_disk.c	the disk limit
 *	watch.c		other limits that the kernel doesn't keep by itself */
#pragma once
#include "base/share.h"
#include "core/access/audit_records.h"
#include "core/execs/execs.h"
#include "core/execs/init_connection.h"
#include "core/execs/watch.h"
#include "core/files/file_servers.h"
#include "core/internal.h"
#include "core/workspaces/ports.h"
#include "sandbox/init/protocol.h"

#define EXEC_READ_SIZE 65536
#define EXEC_SPOOL_REST_MS 50

/* The stage of an exec; clients see record.state, which is derived from it. */
enum exec_stage {
	STAGE_ASKED, /* for an approval: exec_asks.c; or its policy looks at files: exec_inputs.c */
	STAGE_WAITING,	/* for its row, for the sandbox, or (linked) for room in init's socket */
	STAGE_STARTING, /* sent to init, which hasn't reported its start yet */
	STAGE_RUNNING,
	STAGE_ENDING, /* its command has ended; the rest of its output, or `judgement`, is not there
			 yet */
	STAGE_ENDED,
	STAGE_COUNT
};
enum exec_judgement { JUDGEMENT_DUE, JUDGEMENT_AWAITED, JUDGEMENT_GIVEN };
/* Whether its policy has looked at files, and what its command is. */
enum exec_looked { LOOKED_AT_NOTHING, LOOKED_AT_WORDS, LOOKED_AT_SCRIPT };
enum exec_stdin { STDIN_OPEN, STDIN_CLOSING /* after stdin_rest */, STDIN_CLOSED };

struct exec_stream {
	int fd;	    /* our end, non-blocking, or -1 */
	int inside; /* the command's end: kept until its exit, so that no hang-up wakes the loop */
	uint64_t cap;	 /* after the exit: what lay in it then */
	uint32_t events; /* watched for */
};

struct core_exec {
	struct exec_record record;
	struct arena arena;
	struct core *core;
	struct core_workspace *workspace;
	enum exec_mode mode;
	struct exec_listener listener; /* ended NULL: no listener */
	struct exec_captured captured; /* EXEC_CAPTURED */
	int terminal;		       /* master of its pty, or -1 */
	uint64_t number;	       /* its id for init: the first 60 bits of record.id */
	char request_id[ID_LEN + 1];
	struct audit_actor actor; /* principal "": unknown, or not recorded */
	struct core_exec *next;	  /* the next exec of its sandbox */

	enum exec_stage stage;	       /* set by exec_move alone */
	enum exec_judgement judgement; /* the last check of its limits */
	enum exec_looked looked_at;
	enum reason limit; /* the limit that it is killed for; REASON_EXITED: none */
	bool is_linked;	   /* it is in the list of its sandbox */
	bool is_restored;  /* found after a start of core; init hasn't confirmed it yet */
	bool is_paused;	   /* its listener wants no output for now */
	bool is_draining;  /* streams_drain is running */
	bool is_internal;  /* a check or repair of core's own: not listed after its end */
	bool is_cli;	   /* started by a command of carrel, perhaps on another machine */
	bool may_not_grow; /* it was sent with INIT_NO_GROWTH */
	bool has_streams;  /* its streams are open, and fds are for the command */
	unsigned tries;	   /* number of sandboxes that ended before init received it */
	int wait_status;
	int signal_sent;	   /* the last signal that a caller sent, or 0 */
	size_t texts_bytes;	   /* size of its argv */
	uint64_t began_ns;	   /* when it was requested */
	uint64_t cpu_base_ms;	   /* CPU time of its sandbox when it was sent to init */
	struct exec_spec *spec;	   /* a copy, while it waits to be sent */
	char approval[ID_LEN + 1]; /* of STAGE_ASKED: that it waits for; else "" */
	unsigned awaited;	   /* callbacks that will get it: it isn't freed before they ran */
	bool is_freed;
	bool is_unacknowledged;	    /* init keeps its end until that is in the store */
	struct loop_timer *timeout; /* its timeout, then the time for a killed command to end */
	struct loop_timer *later;

	int fds[3]; /* for the command, until they are sent */
	bool is_ours[3];
	struct exec_stream streams[2];
	struct share share; /* of execs->fds */
	int stdin_fd;	    /* our end of its pipe, or -1 */
	uint32_t stdin_events;
	struct str stdin_rest;
	enum exec_stdin stdin_state;
	struct exec_writer *writers;

	struct loop_timer *rest; /* a captured exec isn't watched until then */
	struct core_exec *kept_next;
	struct core_exec *judged_next;
	unsigned judged_by; /* the walk of the tree that it waits for */

	/* background */
	int spool;	   /* terminal: where its output goes, or -1 */
	int rotators[2];   /* its files, open to drop the oldest output; or -1 */
	int watches[2];	   /* of inotify, or -1 */
	bool is_closed[2]; /* no process can write to the file any more */
	bool is_spool_watched, is_news;
	bool is_polled;		 /* checked by `look`, since inotify can't watch it */
	uint64_t spool_bytes;	 /* size of its files when last checked */
	struct loop_timer *look; /* the next check of the spool */
	struct exec_follower *followers, *cursor;
};

/* What waits for room in init's socket. */
struct exec_message {
	enum init_type type;
	uint64_t id;
	int value;
	struct core_exec *spawn;    /* or NULL: taken back */
	struct file_server *server; /* of core/files/file_servers.c, to be spawned; or NULL */
	struct exec_message *next;
};

/* One sandbox. */
struct init_connection {
	struct core_workspace *w;
	struct arena arena;
	text_list env; /* of every command here; items[count] is NULL */
	struct arena env_arena;
	struct exec_message *queue;
	bool is_watched; /* the socket is watched */
	bool is_adopted; /* the sandbox was started by an earlier core */
	bool is_broken;	 /* its messages are ignored */
	const char *why; /* it is being ended, for the records; or NULL */
	unsigned unacknowledged;
	uint64_t sent, asked, confirmed; /* spawns; those before the last ping, its answer */
	bool is_asking;
	unsigned stats_due, listeners_due; /* answers */
	struct loop_timer *ping;
	struct watch_limits *limits;
};

/* What all execs share. */
struct execs {
	struct core *core;
	struct map by_id; /* those that have not ended, background ones, the latest others */
	int spool;	  /* <home>/run/execs */
	uint64_t captured_max, captured_bytes; /* of all captured execs, until they are answered */
	int null;
	struct core_exec *kept, **kept_last; /* ended foreground ones, the oldest first */
	size_t kept_count, kept_bytes;
	struct shares fds; /* descriptors of commands that run */
	int inotify;
	struct map watches; /* inotify's descriptors to execs */
	struct loop_timer *inotify_rest;
	unsigned sampled;    /* sandboxes that are looked at just now */
	unsigned measures;   /* trees that are walked */
	unsigned disk_looks; /* timers of watch_disk.c that are set */
	uint64_t tree_after_ms;
	uint64_t looks_paid_us; /* of watch_measure: its looks are paid for until then */
	unsigned cpus;
	uint64_t ping_ms;  /* an init without a reply for this time has stalled */
	int outputs[2][2]; /* pipes of the next exec: to read, to write; -1: not made yet */
	char scratch[EXEC_READ_SIZE];
};

/* ---- exec_stage.c ---- */
void exec_move(struct core_exec *e, enum exec_stage to);
/* init has its command. */
static inline bool exec_is_sent(const struct core_exec *e)
{
	return e->stage == STAGE_STARTING || e->stage == STAGE_RUNNING;
}
static inline bool exec_has_exited(const struct core_exec *e)
{
	return e->stage >= STAGE_ENDING;
}

/* ---- execs.c ---- */
struct core_exec *exec_new(
	struct core_workspace *w, const struct exec_record *record, enum exec_mode mode);
/* Out of all lists, and freed. */
void exec_free(struct core_exec *e);
/* In a callback that `awaited` counts. false: e was freed meanwhile. */
bool exec_came_back(struct core_exec *e);
void exec_link(struct core_exec *e);
void exec_unlink(struct core_exec *e);
void exec_arm_timeout(struct core_exec *e, uint64_t delay_ms);
void exec_disarm_timeout(struct core_exec *e);
/* Copies what it needs later. */
void exec_keep_spec(struct core_exec *e, const struct exec_spec *spec);
/* Kills it with this reason, unless it has one already. */
void exec_kill(struct core_exec *e, enum reason reason);
/* Its sandbox ended before init received it: waits for another sandbox. */
void exec_again(struct core_exec *e);
/* init has it: INIT_STARTED came. */
void exec_started(struct core_exec *e);

/* What a background exec has for its limits, where its caller doesn't wait. */
void exec_make_background(struct core_exec *e);
/* Approved: writes the row of a background one, then sends it off. */
void exec_begin(struct core_exec *e);

/* ---- exec_asks.c ---- */
/* Has it wait for an approval of what *verdict asks. fds: of EXEC_HANDED. On a failure it is the
 * caller's to free. */
int exec_ask(const struct request *request, struct core_exec *e, const struct exec_spec *spec,
	const int fds[3], const struct policy_verdict *verdict, struct error *err);
/* The same for an exec that exec_look has delayed. */
int exec_ask_later(struct core_exec *e, const char *requested_by,
	const struct policy_verdict *verdict, struct error *err);
/* Lets an exec that waited for an approval when core ended wait again. false: it has no approval.
 */
bool exec_ask_again(struct core_exec *e);
/* It doesn't wait any more. */
void exec_unask(struct core_exec *e);

/* ---- exec_inputs.c ---- */
/* Has it wait until the files that its policy wants are read, and settles what happens to it then.
 * fds: of EXEC_HANDED. On a failure it is the caller's to free. */
int exec_look(const struct request *request, struct core_exec *e, const struct exec_spec *spec,
	const int fds[3], struct error *err);
/* It has ended: judges the files as they are now, and tells when they have become what is denied.
 */
void exec_look_again(struct core_exec *e);

/* ---- exec_end.c ---- */
/* Into the audit log; err: it did not start. */
void exec_audit_end(const struct core_exec *e, const struct error *err);
void exec_exited(struct core_exec *e, const struct init_reply *reply);
/* Ends it when nothing is left to wait for. e may be gone afterwards. */
void exec_go_on_ending(struct core_exec *e);
/* It could not be started. Frees e. */
void exec_failed(struct core_exec *e, const struct error *err);
/* The same, of the command itself: one that doesn't exist, or can't be executed, ends as it would
 * in a shell: with exit status 127 or 126, and the cause on stderr. e may be gone afterwards. */
void exec_not_run(struct core_exec *e, const struct error *err);
/* It ends without an exit status of its own. e may be gone afterwards. */
void exec_lost(struct core_exec *e, enum reason reason, const char *error);

/* ---- init_connection.c ---- */
int connection_open(struct core_workspace *w, struct error *err);
void connection_done(struct core_workspace *w);
/* Watches what init says. */
int connection_listen(struct core_workspace *w, struct error *err);
/* Sends the spawn, or queues it (and copies what it needs of spec). */
int connection_spawn(struct core_exec *e, const struct exec_spec *spec, struct error *err);
/* init violated the protocol or can't be reached: ends the sandbox; every record of its execs gets
 * `why`. */
void connection_break(struct core_workspace *w, enum reason reason, const char *why);

/* ---- exec_streams.c ---- */
/* Makes what the command gets as 0 to 2, and our ends of it. handed: of EXEC_HANDED. */
int streams_open(
	struct core_exec *e, const struct exec_spec *spec, const int handed[3], struct error *err);
/* handed descriptors that have to wait. */
int streams_keep(struct core_exec *e, const int handed[3], struct error *err);
int streams_check_handed(const int handed[3], struct error *err);
void streams_sent(struct core_exec *e);
void streams_started(struct core_exec *e);
/* After the exit: true when all is read that lay there. */
bool streams_drain(struct core_exec *e);
void streams_mark_end(struct core_exec *e);
/* On its stderr, or its terminal, before it ends. */
void streams_say(struct core_exec *e, struct str text);
void streams_close(struct core_exec *e);
/* Creates the pipes of the next exec ahead, off the path of a request. */
void streams_make_ahead(struct execs *execs);
void streams_close_ahead(struct execs *execs);

/* ---- exec_spool.c ---- */
/* Empty files, of an exec that has not begun: it can be followed. */
int spool_make(struct core_exec *e, struct error *err);
int spool_open(struct core_exec *e, struct error *err);
void spool_watch(struct core_exec *e);
void spool_unwatch(struct core_exec *e);
/* Call it when the spool has no writer left. */
void spool_settle(struct core_exec *e);
/* Bytes in it, into the record. */
void spool_measure(struct core_exec *e);
void spool_remove(struct core_exec *e);
/* After output of a terminal: drops the oldest when there is too much. false: that isn't possible.
 */
bool spool_rotate(struct core_exec *e);
/* To a file that no command writes to. */
void spool_append(struct core_exec *e, int stream, struct str text);
/* It has ended: kept within its cap, followers are told. */
void spool_end(struct core_exec *e);
/* A callback may remove any follower. */
void spool_tell_followers(struct core_exec *e);
/* Too many or too much of one workspace: the oldest ended ones go. */
void spool_trim(struct core_workspace *w);
void execs_sweep_spools(struct core *core);
