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

struct relay {
	struct loop *loop;
	const struct relay_events *events;
	const char *name; /* for errors: "standard output" */
	int from, to;	  /* ours to close; `to` is -1 when captured */
	struct buf *capture;
	bool may_lose;	     /* what doesn't fit there is passed over; else it is an error */
	uint64_t *budget;    /* bytes that may still pass; NULL: no limit */
	bool to_is_terminal; /* end of file is then the EOF character */
	bool to_is_socket;
	bool from_is_foreign; /* a stream of the caller's: may block */
	bool active, from_watched, to_watched;
	bool is_draining;
	size_t left;	/* then: bytes of `from` that still count */
	bool to_blocks; /* writing may block: only as much at once as surely fits */
	bool is_over;	/* the budget is used up: pass on what is held, then finish */
	size_t start, len;
	char *data; /* RELAY_CHUNK bytes while active */
};

/* Takes over from and to (or capture) and begins. */
int relay_start(struct relay *relay, struct error *err);
/* Everybody who was to write into `from` is gone: what lies in it now is passed on, and that is the
 * end, also when somebody else got hold of its other end. */
void relay_drain(struct relay *relay);
/* Ends it, closing what it holds; idempotent. */
void relay_stop(struct relay *relay);
/* Sets relay->to to a descriptor for the caller's stream `fd` that doesn't change the flags that
 * others share. -1 there, with errno, when there is none to be had. */
void relay_open_output(struct relay *relay, int fd);
