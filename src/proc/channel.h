/* channel.h -- messages with descriptors between two roles, over a pair of SOCK_SEQPACKET sockets.
 * 1. One packet is one message. Nothing here waits: a socket that is full or empty is said to be
 * so.
 * 2. Descriptors that came with a message are the receiver's from then on, close-on-exec; a message
 * that was cut, or brought more of them than asked for, is ERR_CORRUPT and has none. */
#pragma once
#include "base/error.h"
#include "linux/fd_message.h"

#define CHANNEL_FDS_MAX FD_MESSAGE_MAX
#define CHANNEL_SIZE_MAX 65536

/* Two connected ends, close-on-exec, non-blocking. */
int channel_pair(int ends[2], struct error *err);
/* Sends one message; fds stay the caller's. ERR_LIMIT: the socket is full, try when it is writable.
 * ERR_UNAVAILABLE: the other end is gone. */
int channel_send(
	int socket, const void *data, size_t len, const int *fds, int fd_count, struct error *err);

enum channel_got { CHANNEL_NOTHING, CHANNEL_MESSAGE, CHANNEL_EOF };
/* Takes one message without waiting: an enum channel_got, or -1. With CHANNEL_MESSAGE, *len bytes
 * are in data and *fd_count of at most fd_max descriptors in fds. */
int channel_receive(int socket, void *data, size_t size, size_t *len, int *fds, int fd_max,
	int *fd_count, struct error *err);

struct channel_message;
struct channel_queue { /* messages that found the channel full, in their order; {0}: none */
	struct channel_message *first, *last;
};
/* As channel_send, but keeps the message, with duplicates of its descriptors, while the channel is
 * full. With queue->first set, call channel_flush when the socket is writable. */
int channel_send_or_queue(struct channel_queue *queue, int socket, const void *data, size_t len,
	const int *fds, int fd_count, struct error *err);
/* Sends what the channel takes. */
int channel_flush(struct channel_queue *queue, int socket, struct error *err);
void channel_queue_done(struct channel_queue *queue);
