/* exec_socket.h -- interactive execs on WebSockets (docs/websocket.md): one that is started by the
 * first message and lives as long as its client, or a background one that is attached to. Private
 * to this room.
 * 1. Every message is checked like a request of its own: the verbs of core get the request that
 * opened the socket, and a token that was removed or has expired ends it.
 * 2. A socket that ends cancels the exec that it started, and withdraws the approval for which the
 * exec waits; one that it is attached to goes on.
 * 3. What was received and not taken by the command is at most one message and 4 kB: the socket
 * isn't read meanwhile. What the client doesn't take isn't read from the command. */
#pragma once
#include "core/execs/execs.h"
#include "core/journal.h"
#include "doors/call.h"
#include "model/nouns/exec_message.h"
#include "net/websocket.h"

struct exec_attachment;	      /* of exec_attach.c */
#define EXEC_SOCKETS_MAX 1024 /* of all principals */

struct exec_socket {
	struct api *api;
	struct exec_socket *next, **at;
	struct arena arena;
	const struct request *request;
	struct share share;	/* of the WebSockets */
	const char *id;		/* of the workspace, or of the exec that it attaches to */
	struct websocket *ws;	/* NULL: 101 isn't sent yet */
	struct core_exec *exec; /* or NULL: it isn't started yet, or has ended */
	struct exec_attachment *attachment;    /* NULL: it starts the exec itself */
	void (*opened)(struct exec_socket *s); /* or NULL */
	struct journal *journal;
	struct journal_listener listener;
	bool has_begun; /* the exec was asked for */
	bool is_told;	/* and `started` was sent */
	unsigned ticks; /* before it had begun */
	unsigned texts; /* text messages since the last ping */
	/* What the client sent and the command hasn't yet. */
	struct buf input;
	bool ends_input;    /* stdin is to be closed after it */
	bool is_input_over; /* the command takes no more */
	struct exec_writer writer;
	bool is_awaiting;	/* writer is */
	uint64_t signals;	/* sent before the start: bit n - 1 is signal n */
	uint64_t rows, columns; /* the same; 0: none */
};

/* Makes the socket of a handshake, which is answered with 101; `opened` is called when that was
 * sent. w: the workspace that it is about. */
int exec_socket_open(struct call *c, const struct core_workspace *w,
	void (*opened)(struct exec_socket *s), struct exec_socket **socket, struct error *err);
/* {"type":"started"}, once; then passes on what came before it. false: s is gone. */
bool exec_socket_started(struct exec_socket *s, const struct core_exec *e);
void exec_socket_waiting(struct exec_socket *s, const struct core_exec *e);
/* false: enough waits to be sent. */
bool exec_socket_output(struct exec_socket *s, int stream, struct str data);
/* s->exec has ended: nothing more goes to it. */
void exec_socket_leave(struct exec_socket *s);
/* After these s is gone. */
void exec_socket_exit(struct exec_socket *s, struct str message);
void exec_socket_refuse(struct exec_socket *s, const struct error *err);

/* exec_attach.c */
void attachment_writable(struct exec_socket *s);
void attachment_free(struct exec_socket *s);

/* Ends all of them: the daemon stops. */
void exec_sockets_stop(struct api *api);
