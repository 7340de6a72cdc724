/* internal.h -- declarations shared by the files of the HTTP server, private to them.
 * 1. A connection is run (connection_run) from an event, a timer or at the end of the loop's turn,
 * and only then are the handler's callbacks called. A function that a handler calls changes the
 * state, sends what it can, and schedules a run (connection_wake).
 * 2. Received bytes are in server->in while the connection is run; bytes left over are kept in the
 * connection's `in`, and the socket isn't read again before they are used up.
 * 3. A closed connection is freed at the end of the turn. */
#pragma once
#include <netinet/in.h>
#include "base/share.h"
#include "net/http.h"
#include "net/parse.h"
#include "net/stream.h"

#define HTTP_CHUNK 65536	 /* bytes per read or write */
#define HTTP_ENOUGH 65536	 /* bytes queued: the handler should pause */
#define HTTP_TOO_MUCH (1u << 20) /* bytes queued: the handler ignores that, and is cut off */
#define HTTP_INLINE_HEADERS 16
#define HTTP_LINGER_MS 5000 /* for the client to read an answer and stop sending */

/* What a connection waits for. */
enum deadline {
	DEADLINE_KEEP_ALIVE,
	DEADLINE_FIRST,
	DEADLINE_HEADER,
	DEADLINE_BODY,
	DEADLINE_WRITE,
	DEADLINE_LINGER,
	DEADLINE_COUNT,
	DEADLINE_NONE = DEADLINE_COUNT
};
enum connection_state {
	CONNECTION_OPEN,
	CONNECTION_LINGERING, /* response complete: sends the rest, discards input up to its end */
	CONNECTION_CLOSED
};
enum body_mode { BODY_UNDECIDED, BODY_TAKEN, BODY_STREAMED };
enum answer_state { ANSWER_NONE, ANSWER_BEGUN, ANSWER_ENDED };
enum flow { FLOW_DONE, FLOW_BLOCKED, FLOW_BROKEN };

/* One request and its response. */
struct exchange {
	struct http_request request; /* first */
	struct parser parser;
	struct http_header headers[HTTP_INLINE_HEADERS];
	bool has_begun;	  /* the handler's `begin` was called */
	bool is_complete; /* the whole request has been read */
	bool is_told;	  /* and the handler was told */
	bool is_paused, is_continued, must_close, is_cut;
	bool is_chunked, has_no_body; /* of the response */
	bool wants_writable;
	enum body_mode body_mode;
	enum answer_state answer;
	int refusal; /* status of a response that the server itself makes, or 0 */
	const char *refusal_detail;
	struct buf body;
	struct share share; /* of the bytes of bodies */
	size_t body_max;
	/* Source of the response's body, when the handler doesn't write it. */
	int file, pipe;
	uint64_t file_at, file_left;
	bool is_pipe_watched, is_pipe_dry, has_pipe_ended, is_pipe_ok;
	void (*pipe_ended)(void *ctx, struct http_request *r, bool ok);
	void *pipe_ctx;
	/* Takes over the connection after a 101 response was sent, or NULL. */
	void (*upgraded)(void *ctx, struct net_stream *stream, struct str early);
	void *upgraded_ctx;
	/* Descriptors to be sent with the next byte. */
	int out_fds[HTTP_FDS_MAX];
	int out_fd_count;
};

struct http_connection {
	struct http_server *server;
	struct exchange *exchange;
	struct http_connection *newer, *older; /* all */
	struct loop_timer *timer;	       /* at timer_ms, which is at most due_ms; or NULL */
	struct http_connection *next_awake;
	uint64_t due_ms, timer_ms;
	struct str unread; /* while it is run */
	struct buf in, out;
	size_t out_at; /* bytes of `out` already sent */
	struct net_stream stream;
	const struct listening *listening;
	void *visit; /* of the listener's `arrived` */
	uint32_t events, peer_uid;
	/* Of TCP: the peer's, and our own; "": a unix socket. */
	char address[INET6_ADDRSTRLEN], local[INET6_ADDRSTRLEN];
	int fds[HTTP_FDS_MAX]; /* received before their request */
	int fd_count;
	enum connection_state state;
	enum deadline deadline;
	bool is_running, is_awake, is_blocked, is_broken, is_shut;
	bool has_asked;	   /* its first request has begun */
	bool has_moved;	   /* its deadline begins anew */
	bool has_unwanted; /* input arrived while none is wanted */
	bool has_excess_fds, has_lost_fds;
};

struct listening {
	struct http_listener listener;
	struct http_server *server;
	struct listening *next;
};

struct http_server {
	struct loop *loop;
	struct http_limits limits;
	struct http_handler handler;
	struct listening *listeners;
	struct loop_timer *accept_again;
	struct http_connection *connections; /* the newest */
	size_t count, lingering;
	struct shares buffered; /* bytes of bodies */
	uint64_t now_ms;
	struct loop_timer *turn;
	struct http_connection *awake;
	bool is_draining, is_drained;
	void (*drained)(void *ctx);
	void *drained_ctx;
	char id_prefix[9];
	uint64_t id_count;
	int64_t date_s;
	char date[48];
	struct buf head; /* of the response being made */
	char *in, *out;	 /* HTTP_CHUNK bytes each, and room for a chunk's frame */
};

static inline struct exchange *exchange_of(struct http_request *r)
{
	return (struct exchange *)r;
}

/* server.c */
void server_forget(struct http_connection *c); /* c was closed */
void server_check_drained(struct http_server *server);

/* connection.c */
struct http_connection *connection_new(const struct listening *listening, int fd);
struct http_peer connection_peer(const struct http_connection *c); /* as long as c */
void connection_run(struct http_connection *c);
/* Schedules a run at the end of this turn, unless c is running; connection_again: also then. */
void connection_wake(struct http_connection *c);
void connection_again(struct http_connection *c);
/* It is due that kind's time from now: answered 408, or closed. */
void connection_set_deadline(struct http_connection *c, enum deadline kind);
/* Closes the connection; a request whose response isn't complete is reported to the handler as
 * aborted. */
void connection_close(struct http_connection *c);
/* After a 101 response: passes the stream to the owner of the new protocol, and closes c without
 * it. */
void connection_hand_over(struct http_connection *c);
void connection_leave(struct http_connection *c); /* no more requests: linger, then close */

/* exchange.c */
/* Ends c's exchange and tells the handler. */
void exchange_end(struct http_connection *c, bool aborted);
/* Whether the whole request was received and its whole response sent: only exchange_end is left. */
bool exchange_is_answered(const struct http_connection *c);
/* Processes received bytes. false: nothing more can be done now. */
bool exchange_step(struct http_connection *c);
/* Whether input is wanted now. */
bool exchange_wants_input(const struct http_connection *c);
/* The problem text for a body over its limit. */
const char *exchange_too_big(const struct exchange *x);

/* output.c */
/* Sends head and body in one call, with the waiting descriptors; queues what the socket doesn't
 * take. */
void output_send(struct http_connection *c, struct str head, struct str body);
void output_queue(struct http_connection *c, const void *data, size_t len);
/* Sends what is queued. */
void output_push(struct http_connection *c);
/* As output_push, and sends from the file or pipe. FLOW_BLOCKED: not all is sent. */
enum flow output_flush(struct http_connection *c);
void output_drop_sources(struct http_connection *c, struct exchange *x);
static inline size_t output_queued(const struct http_connection *c)
{
	return c->out.len - c->out_at;
}

/* respond.c */
/* Responds with a problem that the server itself found. */
void respond_problem(
	struct http_connection *c, const struct exchange *x, int status, const char *detail);
