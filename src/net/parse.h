/* parse.h -- requests out of a stream of bytes: llhttp, asked for one event after the other, and
 * the rules that it leaves to us. No I/O.
 * 1. However the bytes are cut, the events are the same (but for the cuts of the body).
 * 2. After PARSE_END the next byte belongs to another request, and to another parser. */
#pragma once
#include <llhttp.h>
#include "base/buf.h"
#include "net/http.h"

enum parse_event {
	PARSE_MORE,  /* all bytes are taken, more are needed */
	PARSE_HEAD,  /* the request's fields are set, but body and id */
	PARSE_BODY,  /* `piece` */
	PARSE_END,   /* the request is whole */
	PARSE_ERROR, /* `status` and `detail`; nothing more can be read here */
};
struct parser {
	llhttp_t llhttp; /* must be first: llhttp's callbacks cast it to struct parser */
	struct http_request *request;
	const struct http_limits *limits;
	enum parse_event event;
	struct str piece; /* points into `in` of parser_next */
	bool is_old;	  /* HTTP/1.0 */
	bool is_chunked, has_body, expects_continue, keep_alive;
	uint64_t length; /* Content-Length; 0 when there is none */
	int status;
	const char *detail;
	/* private */
	bool has_head;
	struct buf text; /* target, names and values, a NUL after each; the request's strings lie
			    here */
	size_t header_count, header_bytes;
	uint64_t taken, data_taken; /* of the head, then of the body */
};
void parser_init(
	struct parser *parser, struct http_request *request, const struct http_limits *limits);
void parser_done(struct parser *parser);
/* The next event. *used bytes of `in` are done with. Call it until PARSE_MORE, PARSE_END or
 * PARSE_ERROR: an event may need no further byte. */
enum parse_event parser_next(struct parser *parser, struct str in, size_t *used);
