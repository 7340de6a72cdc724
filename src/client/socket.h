/* socket.h -- the client's side of a WebSocket, on a connection that was upgraded
 * (client_upgrade_websocket). Nothing here waits but client_socket_flush_for: the caller watches
 * client->socket.
 * 1. What is to be sent is kept in memory: a caller that looks at client_socket_unsent before it
 * sends more keeps that small.
 * 2. Pings are answered here. */
#pragma once
#include "base/buf.h"
#include "client/client.h"
#include "format/http/websocket.h"

struct client_socket {
	struct client *client;
	bool is_ended; /* nothing more comes */
	/* private */
	struct buf in, out;
	size_t in_at, out_at; /* taken up to there */
	struct websocket_reader reader;
};
/* early: what came behind the answer of the upgrade. */
void client_socket_init(struct client_socket *s, struct client *client, struct str early);
void client_socket_done(struct client_socket *s);
/* Queues a message, its parts behind each other, and sends what can be sent now. -1: the connection
 * is broken. */
int client_socket_send(struct client_socket *s, enum websocket_opcode opcode,
	const struct str *parts, size_t part_count, struct error *err);
int client_socket_flush(struct client_socket *s, struct error *err);
/* Sends what is queued, for timeout_ms at most. */
void client_socket_flush_for(struct client_socket *s, int timeout_ms);
size_t client_socket_unsent(const struct client_socket *s);
/* Reads what has come. */
int client_socket_fill(struct client_socket *s, struct error *err);
/* The next message of what was read, but pings and pongs. 1: one is there, valid until the next
 * call; 0: none yet; -1. */
int client_socket_next(
	struct client_socket *s, struct websocket_message *message, struct error *err);
