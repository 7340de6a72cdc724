/* streams.h -- the command's three streams: what it gets, and what the supervisor relays or keeps.
 */
#pragma once
#include "plan/plan.h"
#include "sandbox/relay.h"
#include "sandbox/sandbox.h"

struct stream_state;

struct streams {
	const struct plan *plan;
	struct sandbox_io *io;
	int inside[3]; /* for the spawn message; ours to close after it */
	bool owns_inside[3];
	int ours[3];		     /* the other end of a pipe, or -1 */
	struct relay relays[3];	     /* of ours[] */
	uint64_t budget;	     /* output bytes left */
	int terminal;		     /* the pty's master, or -1 */
	struct stream_state *before; /* of the caller's three, to be put back at the end */
};

/* Makes the pipes. */
int streams_prepare(
	struct streams *streams, const struct plan *plan, struct sandbox_io *io, struct error *err);
/* The child has made the terminal: slave becomes all of inside[]. Takes both over. */
int streams_use_terminal(struct streams *streams, int master, int slave, struct error *err);
/* The spawn message is sent: what the command got is closed here, so that ends of file can be seen.
 */
void streams_close_inside(struct streams *streams);
int streams_start(struct streams *streams, struct loop *loop, const struct relay_events *events,
	struct error *err);
/* Passes the size of the caller's terminal on. */
void streams_resize(struct streams *streams);
/* The sandbox is gone: input has nowhere to go, and of the output only what lies in its pipes is
 * left. */
void streams_drain(struct streams *streams);
bool streams_have_output(const struct streams *streams);
/* Closes everything and gives the caller's terminal its mode back. */
void streams_done(struct streams *streams);
