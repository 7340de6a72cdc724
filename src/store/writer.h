/* writer.h -- the store's end of the process that has the database: sends it a batch, and gives its
 * answers one after the other.
 * 1. It has one batch at a time. A batch whose outcome was lost is sent and done again: every write
 * is idempotent.
 * 2. Nothing here waits, but writer_await and writer_finish. */
#pragma once
#include "store/wire.h"

struct writer {
	int socket;	/* owned by the caller; -1: none */
	struct buf out; /* the batch under way, as a message */
	size_t sent;	/* of it */
	struct buf in;
	size_t used; /* of it: the answer that was given last */
};
void writer_init(struct writer *writer);
void writer_done(struct writer *writer);
/* A process that was just started gets what is in `out` from its beginning. */
void writer_use(struct writer *writer, int socket);
void writer_begin(struct writer *writer, const struct store_batch *batch);
void writer_end(struct writer *writer); /* nothing is under way */
int writer_send(struct writer *writer); /* what can be, now. -1: the process is gone */
/* Sends and receives what can be, now. 1: *message is the next answer, and lives until this is
 * called again, or writer_end; 0: not yet; -1: the process is gone. */
int writer_go_on(struct writer *writer, struct str *message);
void writer_await(const struct writer *writer); /* until going on makes sense */
/* Tells it to end, and waits until it has closed the database. */
void writer_finish(struct writer *writer);
