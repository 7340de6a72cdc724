/* http1.h -- the heads and chunks of HTTP/1 requests and responses. Pure.
 * 1. Strict: input that two parsers may interpret differently is refused. Lines end with CR LF
 * alone, there are no folded headers and no control bytes, at most one Content-Length and none
 * beside Transfer-Encoding, and no coding but `chunked`.
 * 2. Incremental input is checked as far as it has come: bytes that can't become a head are refused
 * before the head is complete. */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define HTTP1_HEADERS_MAX 128

struct http1_head {
	struct str line;    /* the request line or the status line */
	struct str headers; /* the lines after it, for http1_next_header */
	size_t len;	    /* of the whole head, with the empty line */
	bool has_length, is_chunked;
	uint64_t length; /* has_length: less than INT64_MAX */
};
struct http1_header {
	struct str name, value; /* value trimmed */
};
/* 1: `bytes` begins with a whole head. 0: the head isn't complete yet. -1: ERR_INVALID, or
 * ERR_LIMIT when it has more than `max` bytes or HTTP1_HEADERS_MAX headers. The strings of *head
 * point into `bytes`. */
int http1_read_head(struct str bytes, size_t max, struct http1_head *head, struct error *err);
/* Takes the next header off the headers of a head. false: there is none. */
bool http1_next_header(struct str *headers, struct http1_header *header);
/* Appends "name: value" with its line end. */
void http1_print_header(const struct http1_header *header, struct buf *out);
/* Compares without regard to case, as for header names and tokens. */
bool http1_is(struct str text, const char *word);
bool http1_is_one_of(struct str text, const char *const *words); /* ended by NULL */
/* Whether a list of words with commas between them, as in the header Connection, has the word. */
bool http1_lists(struct str list, struct str word);
/* Whether a header of that name, which may be given several times, lists the word. */
bool http1_headers_list(struct str headers, const char *name, struct str word);
bool http1_is_token(struct str text);

struct http1_chunks {
	bool is_bare;	      /* set by the caller: extensions and trailers are refused */
	int state;	      /* this and the rest are private */
	uint64_t left;	      /* bytes of the chunk */
	uint64_t extra_bytes; /* of extensions and trailers */
	unsigned digits;
};
/* Decodes the next piece: consumes *used bytes of `in`; *data (may be empty) points at the body
 * bytes among them. 1: the body has ended, 0: call again, -1: ERR_CORRUPT. Start with {0}. */
int http1_chunks_take(struct http1_chunks *chunks, struct str in, size_t *used, struct str *data,
	struct error *err);

#define HTTP1_CHUNK_FRAME 18 /* bytes of the longest chunk-size line */
/* Writes the chunk-size line for `len` bytes right before `data` and a CRLF after them; returns
 * where the line begins. The caller has HTTP1_CHUNK_FRAME bytes before `data` and two after it. */
char *http1_chunk_frame(char *data, size_t len);
