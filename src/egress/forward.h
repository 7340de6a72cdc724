/* forward.h -- which requests egress passes on, and how: pure functions over bytes.
 * 1. CONNECT host:port, http://host:port/… (absolute form), and in a tunnel /… with a Host header
 * that says the tunnel's name. Bytes that two parsers may read in two ways are refused, because the
 * upstream server has another parser.
 * 2. A request is written anew: its target, Host and framing are what was judged.
 * 3. Whether its host may be reached is decided by model/network/network.h. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/http/http1.h"

#define FORWARD_FAILURE_SIZE 480 /* of "host:port: why it was not reached" */

struct forward_host {
	const char *host; /* lower case; a name, or an IPv4/IPv6 literal without brackets */
	uint16_t port;
	bool is_named; /* written by the operator: any address is allowed */
};

struct forward_request {
	bool is_connect;
	char host[256]; /* as in struct forward_host */
	uint16_t port;
	size_t head_len; /* bytes of the head, up to and with the empty line */
	/* Absolute form only: */
	struct str method, path; /* of the rewritten request line; views of the bytes, or static */
	struct str headers;	 /* a view of the bytes */
	bool has_nominated;	 /* Connection names headers */
	bool is_old;		 /* HTTP/1.0 */
	bool keeps;		 /* the client keeps the connection for a next request */
	bool is_upgrade;	 /* to WebSocket */
	bool is_chunked, has_length;
	uint64_t body_bytes; /* when not chunked */
};
/* 1: whole and valid. 0: more bytes are needed (at most FORWARD_HEAD_MAX). -1: *err says why it is
 * refused (400). A Host header must be there (but for HTTP/1.0, whose clients may not know it),
 * once, and say what the request line says. */
#define FORWARD_HEAD_MAX 16384
int forward_parse(struct str bytes, struct forward_request *out, struct error *err);
/* A request in a tunnel to host:port: origin form, `*`, or absolute form with the same host. A Host
 * header must say the host, with the port or without one. CONNECT is refused. */
int forward_parse_origin(struct str bytes, const char *host, uint16_t port,
	struct forward_request *out, struct error *err);
/* Appends the head for the upstream server to `out`; the bytes are still there. Origin form; Host
 * and framing are written anew, `Connection: close` unless it is kept, hop-by-hop and Proxy-*
 * headers are left out. */
void forward_rewrite(const struct forward_request *request, struct buf *out);

/* Where the body of a request ends: nothing after it may go upstream, where it would be a request
 * that was not judged. Chunked bodies with extensions or trailers are refused: clients don't send
 * them, and parsers differ. */
struct forward_body {
	bool is_chunked, is_done;
	uint64_t left; /* when not chunked */
	struct http1_chunks chunks;
};
void forward_body_start(struct forward_body *body, const struct forward_request *request);
/* *taken: how many of the bytes are the body's (all of them unless it is_done after). -1:
 * malformed. */
int forward_body_take(
	struct forward_body *body, struct str bytes, size_t *taken, struct error *err);

struct forward_answer { /* of an upstream server */
	unsigned status;
	size_t head_len;
	struct str line, headers; /* views of the bytes */
	bool keeps;		  /* the server keeps the connection for a next request */
	bool is_old, is_chunked, has_length;
	uint64_t length;
};
#define FORWARD_ANSWER_MAX 65536 /* bytes of its head */
/* 1: whole. 0: more bytes are needed. -1: not an answer that can be framed. */
int forward_parse_answer(struct str bytes, struct forward_answer *out, struct error *err);
/* Appends the head for the client: hop-by-hop headers are written anew. keeps: the client's
 * connection. */
void forward_rewrite_answer(const struct forward_answer *answer, bool keeps, struct buf *out);
/* The body of an answer; chunk extensions and trailers are passed on. */
void forward_answer_body(
	struct forward_body *body, const struct forward_answer *answer, bool is_empty);

/* "https://user:pw@host:8080/simple/" -> host, port (443, 80 or as written). ERR_INVALID, in words
 * that show nothing of the URL. */
int forward_host_from_url(
	const char *url, struct arena *arena, struct forward_host *host, struct error *err);

struct forward_proxy {
	char host[256]; /* as in struct forward_host; "": none */
	uint16_t port;
	char authorization[1024]; /* of Proxy-Authorization, or "" */
};
#define FORWARD_EXCEPT_SIZE 4096
struct forward_proxies {
	struct forward_proxy https, http; /* for CONNECT, and for http:// requests */
	char except[FORWARD_EXCEPT_SIZE]; /* as NO_PROXY: hosts that are reached directly */
};
/* "http://user:password@host:port" or "host:port". ERR_INVALID, in words that show nothing of it.
 */
int forward_proxy_parse(const char *url, struct forward_proxy *proxy, struct error *err);
/* Names, domains (".example.com"), addresses, each with or without a port, and "*". */
bool forward_proxy_is_excepted(const char *except, const char *host, uint16_t port);
/* From HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, or the same in lower case, which count
 * first. */
int forward_proxies_find(struct forward_proxies *proxies, struct error *err);
