/* streams.h -- the command's three streams: what it gets, and what the supervisor relays or keeps.
 */
#pragma once
#include "plan/plan.h"
#include "sandbox/relay.h"
#include "sandbox/sandbox.h"
#include "sandbox/terminal.h"

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
	/* Of ours[]; of stdin to the terminal; the last one of the terminal's output. */
	struct relay relays[4];
	uint64_t budget;	/* output bytes left */
	int terminal;		/* the pty's master, or -1 */
	int slave;		/* kind.mirrors: its other end, or -1 */
	struct termios initial; /* kind.mirrors: its modes at first */
	struct loop *loop;
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
