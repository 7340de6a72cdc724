/* writer.h -- the store's end of the process that writes for it (store_write_for, store.h), and
 * what passes between them: a batch, and how it went. Both ends are one program: no versions, no
 * byte order. Either message is a uint64_t with the length of what follows.
 * 1. It has one batch at a time. A batch whose result was lost is sent and done again: every write
 * is idempotent.
 * 2. Nothing here waits, but writer_await and writer_finish. */
#pragma once
#include "base/buf.h"
#include "store/backend.h"

struct writer {
	int socket;	/* owned by the caller; -1: none */
	struct buf out; /* the batch under way, as a message */
	size_t sent;	/* of it */
	struct buf in;
};
void writer_init(struct writer *writer);
void writer_done(struct writer *writer);
/* A process that was just started gets what is in `out` from its beginning. */
void writer_use(struct writer *writer, int socket);
void writer_begin(struct writer *writer, const struct store_batch *batch);
void writer_end(struct writer *writer); /* nothing is under way */
/* Sends and receives what can be, now. 1: *message is the outcome, and lives until writer_end; 0:
 * not yet; -1: the process is gone. */
int writer_go_on(struct writer *writer, struct str *message);
void writer_await(const struct writer *writer); /* until going on makes sense */
/* Tells it to end, and waits until it has closed the database. */
void writer_finish(struct writer *writer);
/* Gives the writes of the batch under way their `failed`. *failed and *err: all of it. -1: not an
 * outcome of this batch. */
int writer_read_outcome(
	struct str message, struct store_batch *batch, bool *failed, struct error *err);
