/* http_response.h -- the head of an HTTP/1.1 response. Pure. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "format/http/http1.h"

#define HTTP_RESPONSE_HEAD_MAX 65536
#define HTTP_LENGTH_UNKNOWN UINT64_MAX

struct http_response {
	int status;	 /* 100 to 599 */
	struct str text; /* all header lines, for http_response_header */
	bool is_chunked, will_close;
	uint64_t length; /* HTTP_LENGTH_UNKNOWN: chunked, or until the connection ends */
};
/* 1: the head is `text` up to *used, 0: it isn't whole yet, -1: ERR_CORRUPT, or ERR_LIMIT when it
 * is over HTTP_RESPONSE_HEAD_MAX. is_head: the answer to a HEAD request. A response that has no
 * body (1xx, 204, 304, is_head) has length 0. The strings point into `text`. */
int http_response_parse(struct str text, bool is_head, size_t *used, struct http_response *response,
	struct error *err);
/* The first header of that name, trimmed; data NULL when there is none. */
struct str http_response_header(const struct http_response *response, const char *name);
