/* streams.h -- the command's three streams: what it gets, and what the supervisor relays or keeps.
 */
#pragma once
#include "base/buf.h"
#include "proc/loop.h"
#include "sandbox/native/sandbox.h"
#include "sandbox/native/terminal.h"
#include "sandbox/plan/plan.h"

#define RELAY_CHUNK 65536

struct relay_events {
	void (*finished)(void *ctx); /* this relay is done: end of file, or its reader went away */
	void (*over)(void *ctx);     /* the budget is used up */
	void (*failed)(void *ctx, const struct error *err);
	void *ctx;
};

enum relay_eof { RELAY_EOF_NONE, RELAY_EOF_DUE, RELAY_EOF_SENT };

/* A relay moves bytes between a host stream and a sandbox's pipe or terminal, in the
 * supervisor's loop.
 * 1. Nothing here blocks for long: pipes and terminals are written through a description of our
 * own, sockets with MSG_DONTWAIT; only regular files are written as they are.
 * 2. `budget` is shared by stdout and stderr: what goes past it is never delivered, and `over` is
 * called once. */
struct relay {
	struct streams *streams;
	const char *name; /* for errors: "standard output" */
	int from, to;	  /* ours to close; `to` is -1 when captured */
	struct buf *capture;
	bool may_lose;	       /* what doesn't fit there is passed over; else it is an error */
	uint64_t *budget;      /* bytes that may still pass; NULL: no limit */
	bool to_is_terminal;   /* end of file is then the EOF character */
	bool from_is_outer;    /* the caller's terminal: it is asked whether it may be read now */
	bool from_is_terminal; /* the command's; the caller's terminal maps newlines again */
	bool from_is_packets;  /* and is in packet mode */
	int reader; /* input to a terminal with EXTPROC: its other end, borrowed; else -1.
		     * Then the caller's end of file is passed on and isn't the last */
	bool to_is_socket;
	bool from_is_foreign; /* a stream of the caller's: may block */
	bool active, from_watched, to_watched;
	bool is_draining;
	size_t left;	/* then: bytes of `from` that still count */
	bool to_blocks; /* writing may block: only as much at once as surely fits */
	bool is_over;	/* the budget is used up: pass on what is held, then finish */
	bool is_held;	/* nothing is read until `retry` */
	struct loop_timer *retry;
	enum relay_eof eof;
	int empty_looks;
	bool has_return; /* a carriage return that may belong to a newline */
	uint64_t moved;	 /* bytes, in all */
	size_t start, len;
	char *data; /* RELAY_CHUNK bytes while active */
};

struct stream_state;

/* What the streams of one command are: of a plan, or of an exec that the daemon starts. */
struct streams_kind {
	bool is_privileged; /* carried out by root */
	enum plan_stream each[3];
	bool is_merged;	       /* stderr is relayed with stdout */
	bool mirrors;	       /* as in struct plan */
	uint64_t output_bytes; /* cap of what is relayed and captured; 0: none */
};

struct streams {
	struct streams_kind kind;
	struct sandbox_io *io;
	int inside[3]; /* for the spawn message; ours to close after it */
	bool owns_inside[3];
	int ours[3]; /* the other end of a pipe, or -1 */
	/* One per ours[], or stdin to the terminal; the last is the terminal's output. */
	struct relay relays[4];
	uint64_t budget;	/* output bytes left */
	int terminal;		/* the pty's master, or -1 */
	int slave;		/* kind.mirrors: its other end, or -1 */
	struct termios initial; /* kind.mirrors: its modes at first */
	struct loop *loop;
	const struct relay_events *events;
	struct loop_timer *mend;     /* the command has cleared EXTPROC: sets it again */
	struct terminal outer;	     /* the caller's, when stdin is read from it */
	struct stream_state *before; /* of the caller's three, to be put back at the end */
};

/* Makes the pipes. */
int streams_prepare(struct streams *streams, const struct streams_kind *kind, struct sandbox_io *io,
	struct error *err);
/* The child has made the terminal: slave becomes inside[] of those that are STREAM_TTY. Takes both
 * over. */
int streams_use_terminal(struct streams *streams, int master, int slave, struct error *err);
/* The spawn message is sent: what the command got is closed here, so that ends of file can be seen.
 */
void streams_close_inside(struct streams *streams);
int streams_start(struct streams *streams, struct loop *loop, const struct relay_events *events,
	struct error *err);
/* Passes the size of the caller's terminal on. */
void streams_resize(struct streams *streams);
/* Passes a signal that was typed (SIGINT, SIGQUIT, SIGTSTP) on to the foreground of the terminal
 * inside. false: there is none that takes it. */
bool streams_signal(const struct streams *streams, int signo);
/* A shell inside has put another process group than the command's in the foreground. */
bool streams_have_jobs(const struct streams *streams);
/* How much the terminal inside has put out so far. */
uint64_t streams_shown(const struct streams *streams);
/* Around a stop of this process: the caller's terminal is put back, and taken again if it is still
 * ours to use. */
void streams_suspend(struct streams *streams);
void streams_continue(struct streams *streams);
/* The sandbox is gone: input has nowhere to go, and of the output only what lies in its pipes is
 * left. */
void streams_drain(struct streams *streams);
bool streams_have_output(const struct streams *streams);
/* Nothing is relayed any more; before the loop is freed. Idempotent. */
void streams_stop(struct streams *streams);
/* Closes everything and gives the caller's terminal its mode back. */
void streams_done(struct streams *streams);
