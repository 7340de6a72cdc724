/* stream.h -- the bytes of one connection, whatever carries them: a socket, or TLS over one.
 * 1. Nothing here waits: what can't be done now is -1 with EAGAIN, and the loop watches `fd`.
 * 2. Descriptors travel on unix sockets alone.
 * 3. Receive with room for NET_RECEIVE_LEAST bytes or more: with less, bytes that the kernel has
 * delivered may stay inside the stream, and the loop does not announce them.
 * 4. Bytes that a `send` did not take are offered again, the same ones first, before others. */
#pragma once
#include "linux/fd_message.h"

#define NET_RECEIVE_LEAST 16384

struct net_stream;
struct net_stream_kind {
	/* Bytes received with their descriptors, 0 at the end; -1 with errno. */
	ssize_t (*receive)(
		struct net_stream *s, void *data, size_t size, struct fd_message *message);
	/* Bytes sent of all parts; fds go with the first. `more` follows at once. -1 with errno. */
	ssize_t (*send)(struct net_stream *s, const struct iovec *parts, size_t part_count,
		const int *fds, int fd_count, bool more);
	/* Bytes sent of a regular file from *at on, which is moved; 0: the file ends there. */
	ssize_t (*send_file)(struct net_stream *s, int file, off_t *at, size_t len);
	void (*end)(struct net_stream *s);   /* nothing more will be sent */
	void (*close)(struct net_stream *s); /* closes `fd` and frees the state */
};
struct net_stream {
	const struct net_stream_kind *kind;
	int fd; /* -1: no stream */
	bool is_unix;
	void *state; /* the kind's */
	bool is_tls;
	bool wants_output;   /* the last receive can only go on when `fd` is writable */
	const char *subject; /* of the verified certificate of the peer (RFC 2253), or NULL */
};
#define STREAM_NONE ((struct net_stream){ .fd = -1 })
/* The socket itself; takes fd. */
void stream_open_plain(void *ctx, int fd, struct net_stream *stream);
