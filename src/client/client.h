/* client.h -- talks HTTP/1.1 to a daemon over its unix socket, or over TCP and TLS through a relay
 * (client/relay.h). Blocking; for the CLI.
 * 1. A response is believed to be ours but still checked: sizes, numbers, framing
 * (format/http/http_response.h is the pure part). */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "format/http/http_response.h"
#include "format/http/sse.h"
#include "linux/child.h"

#define CLIENT_FDS_MAX 4

struct client {
	int socket;		 /* or -1 */
	const char *host;	 /* its path or URL, for messages */
	int fds[CLIENT_FDS_MAX]; /* that came with the response: taken by take_fd, else closed at
				  * the next request or client_done */
	int fd_count;
	bool is_started_here; /* by this call, as tmux does */
	bool is_lost;	      /* the connection ended before the last answer did */
	/* private */
	struct child relay; /* of a URL */
	struct buf in;	    /* what came, taken up to in_at */
	size_t in_at;
	bool is_head; /* of the request sent */
	bool is_cut;  /* the request wasn't sent to its end */
	bool is_used; /* a response isn't read to its end, or was the connection's last: the next
			 request needs another one */
};
/* host: NULL (the home's run/carrel.sock), "unix:PATH", a path, "http://HOST:PORT" or
 * "https://HOST:PORT" (relay_use comes before). ERR_UNAVAILABLE: no daemon listens there. On
 * success client_done follows. */
int client_connect(struct client *client, const char *host, struct error *err);
void client_done(struct client *client);
/* Whether host is a URL: descriptors can't be sent there. */
bool client_is_url(const char *host);
/* ERR_INVALID: host is none of the above. */
int client_check_host(const char *host, struct error *err);
/* From now on every request of this process is sent as the bearer of that token, whose text is
 * copied. ERR_INVALID: not a token. */
int client_use_token(struct str text, struct error *err);

struct client_request {
	const char *method, *path; /* path percent-encoded, with its query */
	const char *accept;	   /* or NULL: application/json */
	const char *content_type;  /* or NULL: application/json when there is a body */
	const char *headers;	   /* further "Name: value\r\n" lines, or NULL */
	struct str body;
	int body_fd; /* >= 0: the body is all that comes from it, chunked (or body_len bytes when
			body_len_known); not read when the daemon refuses before */
	bool body_len_known;
	uint64_t body_len;
	void (*progress)(void *ctx, uint64_t bytes); /* or NULL */
	void *ctx;
	const int *fds; /* passed with the first byte */
	int fd_count;
};
#define CLIENT_REQUEST_NONE                                                                        \
	{                                                                                          \
		.body_fd = -1                                                                      \
	}
struct client_response {
	int status;
	const char *content_type;
	const char *location;
	uint64_t next_offset;			 /* Carrel-Next-Offset, or 0 */
	const char *upgrade, *accept, *protocol; /* of a 101: Upgrade, Sec-WebSocket-Accept and
						    -Protocol, or NULL */
	struct str body;			 /* client_call: whole */
	uint64_t length;			 /* client_begin: UINT64_MAX when unknown */
	bool is_chunked, will_close;
	bool at_end;
	/* private */
	uint64_t left;
	struct http1_chunks chunks;
};
/* Sends and reads the head of the answer. Then client_read until it returns 0. Calls are restarted
 * after EINTR: to wait for other events too, poll client->socket; client_read blocks only when
 * client_has_input is false. */
int client_begin(struct client *client, const struct client_request *request, struct arena *arena,
	struct client_response *response, struct error *err);
/* client_begin in two halves, for a caller that does something else meanwhile: after client_send,
 * the socket is readable when the answer's head comes. client_receive waits for all of that head;
 * bytes of the body that came with it are kept (the socket isn't readable for them):
 * client_has_input. */
int client_send(struct client *client, const struct client_request *request, struct error *err);
int client_receive(struct client *client, struct arena *arena, struct client_response *response,
	struct error *err);
static inline bool client_is_interim(const struct client_response *response)
{
	return response->status < 200 && response->status != 101;
}
/* The same, but an interim answer (1xx) is returned too: its status and location, no body. The
 * answer follows. */
int client_receive_next(struct client *client, struct arena *arena,
	struct client_response *response, struct error *err);
/* Bytes of the body; 0 at its end, -1 with *err (ERR_CORRUPT: it was cut). */
ssize_t client_read(struct client *client, struct client_response *response, void *data,
	size_t size, struct error *err);
bool client_has_input(const struct client *client);
/* The rest of the body, at most 64 MB, as response->body. */
int client_read_all(struct client *client, struct client_response *response, struct arena *arena,
	struct error *err);
/* client_begin and client_read_all. A status of 400 and above is turned into *err
 * (code, text and hint from the problem JSON); returns -1 then. */
int client_call(struct client *client, const struct client_request *request, struct arena *arena,
	struct client_response *response, struct error *err);
/* Asks the daemon to speak `protocol` on this connection from here on (101). The socket is the
 * protocol's then, after the bytes *early, which are valid until client_done. */
int client_upgrade(struct client *client, const char *path, const char *protocol,
	struct arena *arena, struct str *early, struct error *err);
/* The same for WebSocket, whose subprotocol is `protocol`: frames of format/http/websocket.h
 * follow. */
int client_upgrade_websocket(struct client *client, const char *path, const char *protocol,
	struct arena *arena, struct str *early, struct error *err);
/* The error of a problem JSON. Returns -1. */
int client_problem(int status, struct str body, struct arena *arena, struct error *err);

/* One server-sent event after the other: sse->event, ->id and ->data (sse_init before the first,
 * sse_done after the last). 1: one is there, 0: the response has ended, -1. */
int client_next_event(struct client *client, struct client_response *response, struct sse *sse,
	struct error *err);
