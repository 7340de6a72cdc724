/* wire.h -- what passes between the store and the process that has the database (store_serve,
 * store.h). Both ends are one program: no versions, no byte order. A message is a uint64_t with the
 * length of what follows. Asked is a batch; the answer is its outcome, and ahead of the outcome of
 * STORE_LOAD what was found on opening and the rows, in large packets.
 * 1. What is asked comes from a process that may have been taken over: wire_read_batch accepts
 * nothing but whole writes of known tables and kinds, with the columns that they need.
 * 2. What was read points into the message. */
#pragma once
#include "base/buf.h"
#include "store/backend.h"

#define WIRE_MAX (SIZE_MAX / 4) /* a batch may be as large as the queue */
#define WIRE_ROWS_BYTES (256 << 10)

enum wire_said { WIRE_OPENED, WIRE_ROWS, WIRE_OUTCOME };

void wire_print_batch(const struct store_batch *batch, struct buf *out);
/* -1: not a batch. */
int wire_read_batch(struct str message, struct store_batch *batch);

/* An answer begins, at a place that wire_end is told. */
size_t wire_begin(struct buf *out, enum wire_said said);
void wire_end(struct buf *out, size_t at);
void wire_print_row(struct buf *out, int table, const struct store_row *row);
void wire_print_outcome(const struct store_batch *batch, const struct error *err, struct buf *out);

/* 1: *message is the first in `in`, its end at *end; 0: not all of it has been received. */
int wire_first(const struct buf *in, struct str *message, size_t *end);
/* Cuts the kind of an answer off it. -1: not an answer. */
int wire_read_said(struct str *message);
int wire_read_opened(struct str message, struct store_opened *opened);
/* 1: a row was cut off; 0: there are no more; -1: not a row of a table. */
int wire_read_row(struct str *rest, int *table, struct store_row *row);
/* Gives each write of the batch its `failed` and `found`. *failed and *err: all of it. -1: not an
 * outcome of this batch. */
int wire_read_outcome(
	struct str message, struct store_batch *batch, bool *failed, struct error *err);
