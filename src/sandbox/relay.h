/* relay.h -- moves bytes between a host stream and a sandbox's pipe or terminal, in the
 * supervisor's loop.
 * 1. Nothing here blocks for long: pipes and terminals are written through a description of our
 * own, sockets with MSG_DONTWAIT; only regular files are written as they are.
 * 2. `budget` is shared by stdout and stderr: what goes past it is never delivered, and `over` is
 * called once. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/error.h"
#include "proc/loop.h"

#define RELAY_CHUNK 65536

struct relay_events {
	void (*finished)(void *ctx); /* this relay is done: end of file, or its reader went away */
	void (*over)(void *ctx);     /* the budget is used up */
	void (*failed)(void *ctx, const struct error *err);
	void *ctx;
};

/* A pseudo terminal on one side: what its other side is asked and told. */
struct relay_terminal {
	/* Input: whether the caller's terminal may be read now; asked before each read, and again
	 * a moment later when it may not. NULL: always. */
	bool (*may_read)(void *ctx);
	/* Output, with TIOCPKT: the command has changed its terminal's modes. */
	void (*changed)(void *ctx);
	void *ctx;
};
enum relay_eof { RELAY_EOF_NONE, RELAY_EOF_DUE, RELAY_EOF_SENT };

struct relay {
	struct loop *loop;
	const struct relay_events *events;
	const char *name; /* for errors: "standard output" */
	int from, to;	  /* ours to close; `to` is -1 when captured */
	struct buf *capture;
	bool may_lose;	     /* what doesn't fit there is passed over; else it is an error */
	uint64_t *budget;    /* bytes that may still pass; NULL: no limit */
	bool to_is_terminal; /* end of file is then the EOF character */
	struct relay_terminal terminal;
	bool from_is_terminal; /* the command's: one that the caller's maps newlines for again */
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

/* Takes over from and to (or capture) and begins. Once: what isn't set is 0. */
void relay_start(struct relay *relay);
/* Everybody who was to write into `from` is gone: what lies in it now is passed on, and that is the
 * end, also when somebody else got hold of its other end. */
void relay_drain(struct relay *relay);
/* Looks again at once whether it may read. */
void relay_continue(struct relay *relay);
/* Ends it, closing what it holds; idempotent. */
void relay_stop(struct relay *relay);
/* Sets relay->to to a descriptor for the caller's stream `fd` that doesn't change the flags that
 * others share. -1 there, with errno, when there is none to be had. */
void relay_open_output(struct relay *relay, int fd);
