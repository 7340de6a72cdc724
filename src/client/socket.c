#include "client/socket.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include "base/clock.h"

#define PIECE 65536
#define MESSAGE_MAX ((size_t)1 << 20)

void client_socket_init(struct client_socket *s, struct client *client, struct str early)
{
	*s = (struct client_socket){ .client = client };
	buf_init(&s->in, 2 * MESSAGE_MAX);
	buf_init(&s->out, BUF_MAX_DEFAULT);
	buf_append(&s->in, early.data, early.len);
	websocket_reader_init(&s->reader, MESSAGE_MAX);
}

void client_socket_done(struct client_socket *s)
{
	buf_done(&s->in);
	buf_done(&s->out);
	websocket_reader_done(&s->reader);
}

size_t client_socket_unsent(const struct client_socket *s)
{
	return s->out.len - s->out_at;
}

int client_socket_flush(struct client_socket *s, struct error *err)
{
	while (client_socket_unsent(s)) {
		ssize_t sent = send(s->client->socket, s->out.data + s->out_at,
			client_socket_unsent(s), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return 0;
		/* The daemon may have said why it takes no more: its last words are still read. */
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			break;
		if (sent < 0)
			return fail_errno(err, "write to the daemon at '%s'", s->client->host);
		s->out_at += (size_t)sent;
	}
	buf_clear(&s->out);
	s->out_at = 0;
	return 0;
}

void client_socket_flush_for(struct client_socket *s, int timeout_ms)
{
	uint64_t end_ms = clock_monotonic_ms() + (uint64_t)timeout_ms, now_ms;
	struct error ignored;
	while (!client_socket_flush(s, &ignored) && client_socket_unsent(s) &&
		(now_ms = clock_monotonic_ms()) < end_ms) {
		struct pollfd ready = { s->client->socket, POLLOUT, 0 };
		poll(&ready, 1, (int)(end_ms - now_ms));
	}
}

int client_socket_send(struct client_socket *s, enum websocket_opcode opcode,
	const struct str *parts, size_t part_count, struct error *err)
{
	unsigned char mask[4];
	if (getrandom(mask, sizeof mask, 0) != sizeof mask)
		return fail_errno(err, "get random bytes");
	buf_drop_front(&s->out, s->out_at);
	s->out_at = 0;
	if (!websocket_print(&s->out, opcode, mask, parts, part_count))
		return fail(err, ERR_LIMIT, "too much waits to be sent to the daemon");
	return client_socket_flush(s, err);
}

int client_socket_fill(struct client_socket *s, struct error *err)
{
	buf_drop_front(&s->in, s->in_at);
	s->in_at = 0;
	char *room = buf_reserve(&s->in, PIECE);
	if (!room)
		return fail(err, ERR_LIMIT, "the daemon's message is too long");
	ssize_t got = recv(s->client->socket, room, PIECE, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got < 0 && errno != ECONNRESET)
		return fail_errno(err, "read from the daemon at '%s'", s->client->host);
	if (got <= 0)
		s->is_ended = true;
	else
		buf_grew(&s->in, (size_t)got);
	return 0;
}

int client_socket_next(
	struct client_socket *s, struct websocket_message *message, struct error *err)
{
	for (;;) {
		struct str rest = { s->in.data + s->in_at, s->in.len - s->in_at };
		size_t used;
		int status = websocket_read(&s->reader, rest, &used, message, err);
		s->in_at += used;
		if (status < 0)
			return error_context(err, "daemon at '%s'", s->client->host);
		if (status == 0)
			return 0;
		if (message->opcode == WEBSOCKET_PING &&
			client_socket_send(s, WEBSOCKET_PONG, &message->data, 1, err))
			return -1;
		if (message->opcode != WEBSOCKET_PING && message->opcode != WEBSOCKET_PONG)
			return 1;
	}
}
