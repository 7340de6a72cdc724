/* http1.h -- the heads and chunks of HTTP/1 messages, whichever side sent them. Pure.
 * 1. Strict: what two readers may read in two ways is refused. Lines end with CR LF alone, there
 * are no folded headers and no control bytes, at most one Content-Length and none beside
 * Transfer-Encoding, and no coding but `chunked`.
 * 2. Every byte that is there is judged: what can't become a head is refused at once. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/str.h"

#define HTTP1_HEADERS_MAX 128

struct http1_head {
	struct str line;    /* of the request, or of the status */
	struct str headers; /* the lines behind it, for http1_next_header */
	size_t len;	    /* of all, with the empty line */
	bool has_length, is_chunked;
	uint64_t length; /* has_length: less than INT64_MAX */
};
struct http1_header {
	struct str name, value; /* value trimmed */
};
/* 1: `bytes` begins with a head. 0: it isn't whole yet. -1: ERR_INVALID, or ERR_LIMIT when it has
 * more than `max` bytes or HTTP1_HEADERS_MAX headers. The strings point into `bytes`. */
int http1_read_head(struct str bytes, size_t max, struct http1_head *head, struct error *err);
/* Takes the next header off the headers of a head. false: there is none. */
bool http1_next_header(struct str *headers, struct http1_header *header);
/* Names of headers and their words are the same in either case. */
bool http1_is(struct str text, const char *word);
bool http1_is_token(struct str text);

struct http1_chunks {
	bool is_bare;  /* set it: extensions and trailers are refused */
	int state;     /* and the rest is private */
	uint64_t left; /* of the chunk */
	uint64_t beside;
	unsigned digits;
};
/* Takes the next piece: *used bytes of `in` are done with, *data (maybe empty) is body among them.
 * 1: the body has ended, 0: go on, -1: ERR_CORRUPT. Start with {0}. */
int http1_chunks_take(struct http1_chunks *chunks, struct str in, size_t *used, struct str *data,
	struct error *err);

#define HTTP1_CHUNK_FRAME 18 /* bytes of the longest line that says a chunk's size */
/* Writes that line for `len` bytes right before `data`, where there is room for it, and a CRLF
 * behind them; returns where it begins. */
char *http1_chunk_frame(char *data, size_t len);
