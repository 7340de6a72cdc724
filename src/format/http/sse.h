/* sse.h -- server-sent events out of a stream of bytes. Pure.
 * 1. An event ends at its empty line; what has come of one at the end of the stream is dropped, as
 * the format says.
 * 2. Lines end by LF or CRLF; comments, unknown fields and events without data are passed over. */
#pragma once
#include "base/buf.h"
#include "base/error.h"

#define SSE_EVENT_MAX ((size_t)16 << 20) /* bytes of one, with its names */

struct sse {
	char event[64]; /* of the last one: "message" when it has no name of its own */
	char id[32]; /* the last that was given, by an event or without one; kept until the next */
	struct buf data;
	/* private */
	struct buf in;
	size_t at;			  /* up to where it is read */
	char next_event[64], next_id[32]; /* count from their empty line on */
	bool has_data, is_given;
};
void sse_init(struct sse *sse);
void sse_done(struct sse *sse);
/* Adds what has come. */
void sse_add(struct sse *sse, struct str bytes);
/* 1: a complete event (event, id, data), 0: more bytes are needed, -1: ERR_LIMIT. */
int sse_next(struct sse *sse, struct error *err);
