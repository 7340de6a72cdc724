/* http.h -- an HTTP/1.1 server on llhttp and our loop, over a list of listening sockets.
 * 1. Everything a client sends has a maximum (struct http_limits) and a time; what is over it is
 * answered 4xx (408, 413, 414, 431) and the connection closed. A client that reads slowly holds
 * only its own connection: output is bounded, and the handler told to wait.
 * 2. Strict: exactly one Host (also on unix sockets), no obs-fold, no bare LF, Content-Length and
 * Transfer-Encoding exclude each other, only `chunked`; what llhttp or these rules refuse is 400
 * and close. HTTP/1.0 (which needs no Host) is answered and closed. No pipelined request is begun
 * before the one before it is answered, but it may lie in the buffer.
 * 3. `Expect: 100-continue` is answered when the handler has taken the request (http_take_body…),
 * so that a refusal costs no body.
 * 4. A request's memory is its arena's and ends with it. An idle connection costs at most 4 kB of
 * ours and the kernel's.
 * 5. The handler is called from the loop only, never from inside a call of its own to a function
 * below. A client is gone when both directions of its unix socket are closed; one that has only
 * ended its sending gets its answer. On TCP the end of its sending is its end.
 * 6. Descriptors that came along on a unix socket (SCM_RIGHTS) belong to the request being read;
 * the handler takes them or they are closed. At most HTTP_FDS_MAX, else 400.
 * 7. Each listener has its authenticator, which finds the principal of every request before the
 * handler sees it. The server doesn't know whether a stream is TLS. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "proc/loop.h"

#define HTTP_FDS_MAX 4

struct http_limits {
	size_t line_bytes;   /* request target: 8192 */
	size_t header_bytes; /* all of them: 32768 */
	size_t header_count; /* 64 */
	size_t body_bytes;   /* of a buffered body: 16 MB */
	size_t bodies_bytes; /* of all buffered bodies together: 256 MB; more: 503. A quarter of one
			      * principal; more: 429 */
	uint64_t header_ms;  /* from first byte to the end of headers: 10 s */
	uint64_t body_idle_ms;	/* between two pieces of a body: 30 s */
	uint64_t write_idle_ms; /* to a client that reads nothing of a response, before it is
				   dropped: 60 s */
	uint64_t keep_alive_ms; /* idle between requests: 300 s */
	uint64_t first_ms;	/* to the first byte of the first request, by TCP: 10 s; TLS
				 * handshakes are in it */
	size_t connections;	/* 10,000; more: 503 and close */
};
extern const struct http_limits http_limits_default;

/* The other end of a connection. */
enum http_peer_kind { HTTP_PEER_UNIX, HTTP_PEER_TCP };
struct http_peer {
	enum http_peer_kind kind;
	uint32_t uid;	     /* of a unix socket; else HTTP_NO_UID */
	const char *address; /* of TCP, as text without the port; an authenticator may set that of
			      * the client for which a proxy asks. NULL: a unix socket */
	const char *local;   /* our own address on the connection; NULL: a unix socket */
	bool is_tls;	     /* the same */
	struct str host;     /* by which the client knows this server; data NULL: as in Host */
	const char *subject; /* of its verified certificate (RFC 2253), or NULL */
};
#define HTTP_NO_UID UINT32_MAX

struct http_header {
	struct str name, value; /* name in lower case; value trimmed */
};
struct http_request {
	struct arena arena;
	struct str method; /* "GET" */
	struct str target; /* as sent */
	struct str path;   /* before '?', still percent-encoded */
	struct str query;  /* after it */
	VEC(struct http_header) headers;
	struct str body;       /* whole, when the body was taken so; NUL-terminated */
	int fds[HTTP_FDS_MAX]; /* taken by take_fd; -1 */
	int fd_count;
	struct http_peer peer;
	const struct principal *principal; /* found by the listener's authenticator */
	const char *holder; /* name of the principal, whose share of bodies_bytes its body takes;
			     * NULL: nobody's. The authenticator sets it */
	char id[21]; /* request id: X-Request-Id of the client when it is [A-Za-z0-9._-]{1,20}, else
			made */
	uint64_t began_ns; /* monotonic: when its first byte was read */
	void *ctx;	   /* the handler's */
	/* Header lines ("Name: value\r\n") that every response to it gets; NULL: none. The
	 * authenticator sets them. */
	const char *common_headers;
	void *visit; /* of its connection: what the listener's `arrived` returned */
	/* private */
	struct http_connection *connection;
};
/* A header's value; data NULL when the header is missing. name in lower case. */
struct str http_header(const struct http_request *r, const char *name);
/* The index'th parameter of the query, decoded ('+' is a blank there); false at the end. One
 * without '=' has the value "". What is malformed
 * (percent-encoding, a NUL) has data NULL. */
bool http_query_at(struct http_request *r, size_t index, struct str *name, struct str *value);
/* Percent-decodes into the request's arena. false: malformed, or a NUL. */
bool http_decode(struct http_request *r, struct str text, struct str *out);

struct principal; /* opaque here */
struct http_connection;
struct net_stream; /* net/stream.h */
struct http_listener {
	int fd; /* stays the caller's */
	/* Finds the principal from the head of r (its peer, its headers). -1: the handler's
	 * `refused` is called. 1: it has responded itself, and neither is called, but `done` is.
	 * NULL: no request is refused, and none has a principal. */
	int (*authenticate)(void *ctx, struct http_request *r, const struct principal **principal,
		struct error *err);
	/* Makes the stream of an accepted socket, which it takes. NULL: stream_open_plain. */
	void (*open)(void *stream_ctx, int fd, struct net_stream *stream);
	void *ctx, *stream_ctx;
	/* A connection was accepted, or NULL. What it returns is kept with the connection, also for
	 * the authenticator, and `left` gets it when the connection ends or is upgraded, unless it
	 * is NULL. May http_drop other connections of the server. */
	void *(*arrived)(
		void *ctx, const struct http_peer *peer, struct http_connection *connection);
	void (*left)(void *ctx, void *visit);
	bool is_remote; /* its clients leave a sixteenth of limits.connections to the others */
};

struct http_handler {
	/* Headers are complete. Must call one of http_take_body, http_stream_body or a response. */
	void (*begin)(void *ctx, struct http_request *r);
	/* Called instead of `begin` when authentication failed. Must respond; the connection is
	 * closed after it. */
	void (*refused)(void *ctx, struct http_request *r, const struct error *err);
	/* http_take_body: body is whole (at once when there is none). */
	void (*complete)(void *ctx, struct http_request *r);
	/* http_stream_body: a piece; then an empty piece at the end. The connection isn't read
	 * while http_pause_body holds. */
	void (*body)(void *ctx, struct http_request *r, struct str data);
	/* The output has room again, after http_write returned false. */
	void (*writable)(void *ctx, struct http_request *r);
	/* The request ends: answered, or (`aborted`) the client is gone, the body was refused by
	 * the server (too big, malformed, too slow), or http_abort cut it. Called exactly once for
	 * each that `begin` saw; r is freed after it. */
	void (*done)(void *ctx, struct http_request *r, bool aborted);
	void *ctx;
};

struct http_server;
/* SIGPIPE gets a handler that does nothing, where it has none. */
int http_server_new(struct loop *loop, const struct http_limits *limits,
	const struct http_handler *handler, struct http_server **server, struct error *err);
/* Listens there, too; *listener is copied. */
int http_server_listen(
	struct http_server *server, const struct http_listener *listener, struct error *err);
/* No new connections nor requests; calls done when the last response is out. */
void http_server_drain(struct http_server *server, void (*done)(void *ctx), void *ctx);
/* Not from a handler's function; from `done` of the drain it may be. What is under way is aborted.
 */
void http_server_free(struct http_server *server);
/* Closes a connection as if its client had gone, without an answer. Only from `arrived`. */
void http_drop(struct http_connection *connection);
size_t http_server_connections(const struct http_server *server);

void http_take_body(struct http_request *r, size_t max); /* more: 413 by itself */
void http_stream_body(struct http_request *r);
void http_pause_body(struct http_request *r, bool paused);

const char *http_status_title(int status); /* "Not Found"; "Error": not one that is answered here */
/* An interim answer, before the response: 102, with a Location. Nothing for HTTP/1.0. */
void http_inform(struct http_request *r, const char *location);
/* One whole response. headers: "Name: value\r\n" lines or NULL (Content-Length, Date, X-Request-Id
 * and Connection are the server's). HEAD gets no body. */
void http_respond(struct http_request *r, int status, const char *content_type, const char *headers,
	struct str body);
/* A response of unknown length: chunked (HTTP/1.0: until close). */
void http_begin(struct http_request *r, int status, const char *content_type, const char *headers);
/* The same of a known length: exactly so many bytes are written before http_end. */
void http_begin_length(struct http_request *r, int status, const char *content_type,
	const char *headers, uint64_t length);
/* The same with descriptors, which go with the first byte, on unix sockets only; they stay the
 * caller's. */
void http_begin_fds(struct http_request *r, int status, const char *content_type,
	const char *headers, const int *fds, int fd_count);
/* Queues a copy; false: enough is queued, wait for `writable` (what was given is taken all the
 * same, up to 1 MB in all). */
bool http_write(struct http_request *r, struct str data);
void http_end(struct http_request *r);
/* After http_begin: the response can't be completed; the connection is cut so that the client sees
 * it isn't whole. */
void http_abort(struct http_request *r);
/* `len` bytes of a regular file from offset, with Content-Length, by sendfile in constant memory;
 * takes fd. */
void http_respond_file(struct http_request *r, int status, const char *content_type,
	const char *headers, int fd, uint64_t offset, uint64_t len);
/* Everything that comes out of `fd` (a pipe), chunked, until its end; takes fd. ended tells the
 * handler (then http_end or http_abort). */
void http_pipe(struct http_request *r, int fd,
	void (*ended)(void *ctx, struct http_request *r, bool ok), void *ctx);
/* Answers 101 to a request without a body: when that is sent, the connection is `taken`'s, with the
 * bytes that came behind the request, and the server has forgotten it; `done` comes before. A
 * client that goes first is told by `done` alone. protocol: what the header Upgrade names. */
void http_upgrade(struct http_request *r, const char *protocol, const char *headers,
	void (*taken)(void *ctx, struct net_stream *stream, struct str early), void *ctx);
