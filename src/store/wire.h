/* wire.h -- what passes between the store and the process that writes for it (writer.h): a batch,
 * and how it went. Both ends are one program, one a fork of the other: no versions, no byte order.
 * Either message is a uint64_t with the length of what follows. */
#pragma once
#include "base/buf.h"
#include "store/backend.h"

/* Appends a message with all writes of the batch that weren't refused. */
void wire_print_batch(const struct store_batch *batch, struct buf *out);
/* Of what follows the length, which *batch points into afterwards. -1: that is no batch. */
int wire_parse_batch(struct str message, struct store_batch *batch);

/* Appends a message: err NULL: committed, but for those writes that have failed alone. */
void wire_print_outcome(const struct store_batch *batch, const struct error *err, struct buf *out);
/* Gives the writes of the batch that was printed their `failed`. *failed and *err: all of it. -1:
 * that is no outcome of this batch. */
int wire_parse_outcome(
	struct str message, struct store_batch *batch, bool *failed, struct error *err);
