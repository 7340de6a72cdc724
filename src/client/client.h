/* client.h -- talks HTTP/1.1 to a daemon over its unix socket. Blocking; for the CLI. No TLS, no
 * TCP (later, through carreld).
 * 1. A response is believed to be ours but still checked: sizes, numbers, framing
 * (format/http_response.h is the pure part). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "format/json_read.h"

struct client {
	int socket;	  /* or -1 */
	const char *host; /* for messages */
	struct buf in;	  /* private: what came and isn't taken yet */
	int fds[4];	  /* that came with the response */
	int fd_count;
	bool is_started_here; /* by this call, as tmux does */
};
/* host: NULL (the home's run/carrel.sock), "unix:PATH" or a path. ERR_UNAVAILABLE: nobody listens
 * there. */
int client_connect(struct client *client, const char *host, struct error *err);
void client_done(struct client *client);

struct client_request {
	const char *method, *path; /* path percent-encoded, with its query */
	const char *accept;	   /* or NULL: application/json */
	const char *content_type;  /* or NULL: application/json when there is a body */
	const char *headers;	   /* further "Name: value\r\n" lines, or NULL */
	struct str body;
	int body_fd; /* >= 0: the body is all that comes from it, chunked (or body_len bytes when
			body_len_known) */
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
	struct str body; /* client_call: whole */
	uint64_t length; /* client_begin: UINT64_MAX when unknown */
	bool is_chunked, will_close;
	uint64_t left; /* private */
	bool at_end;
};
/* Sends and reads the head of the answer. Then client_read until it returns 0. */
int client_begin(struct client *client, const struct client_request *request, struct arena *arena,
	struct client_response *response, struct error *err);
/* client_begin in two halves, for who has something else to do meanwhile: after client_send, the
 * socket is readable when the answer's head comes. client_receive waits for all of that head; bytes
 * of the body that came with it lie in `in` (the socket isn't readable for them). */
int client_send(struct client *client, const struct client_request *request, struct error *err);
int client_receive(struct client *client, struct arena *arena, struct client_response *response,
	struct error *err);
/* Bytes of the body; 0 at its end, -1 with *err (ERR_CORRUPT: it was cut). */
ssize_t client_read(struct client *client, struct client_response *response, void *data,
	size_t size, struct error *err);
/* client_begin and the whole body (at most 64 MB). A status of 400 and above is turned into *err
 * (code, text and hint from the problem JSON); returns -1 then. */
int client_call(struct client *client, const struct client_request *request, struct arena *arena,
	struct client_response *response, struct error *err);
/* The error of a problem JSON. Returns -1. */
int client_problem(int status, struct str body, struct arena *arena, struct error *err);
/* text as one path segment or query value, percent-encoded. */
const char *client_escape(struct arena *arena, struct str text, bool keep_slashes);

/* One server-sent event after the other: event name and data; false at the end. */
struct client_sse {
	struct buf line, data;
	char event[64], id[32];
};
/* 1: one is there (event, data), 0: end, -1. */
int client_next_event(struct client *client, struct client_response *response,
	struct client_sse *sse, struct error *err);
