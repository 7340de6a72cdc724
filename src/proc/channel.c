#include "proc/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include "base/arena.h"
#include "base/fd.h"

int channel_pair(int ends[2], struct error *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return fail_errno(err, "make a socket pair");
	return 0;
}

int channel_send(
	int socket, const void *data, size_t len, const int *fds, int fd_count, struct error *err)
{
	struct iovec part = { (void *)(uintptr_t)data, len };
	if (fd_count > CHANNEL_FDS_MAX || len > CHANNEL_SIZE_MAX || !len)
		return fail(err, ERR_INVALID, "a message of %zu bytes and %d descriptors", len,
			fd_count);
	if (fd_message_send(socket, &part, 1, fds, fd_count, MSG_DONTWAIT) >= 0)
		return 0;
	bool is_full = errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS;
	return fail_errno_code(
		err, is_full ? ERR_LIMIT : ERR_UNAVAILABLE, "send a message to another role");
}

int channel_receive(int socket, void *data, size_t size, size_t *len, int *fds, int fd_max,
	int *fd_count, struct error *err)
{
	struct fd_message message;
	ssize_t got = fd_message_receive(socket, data, size, MSG_DONTWAIT, &message);
	if (got < 0 && errno == EAGAIN)
		return CHANNEL_NOTHING;
	if (got < 0 && errno != ECONNRESET)
		return fail_errno(err, "receive a message from another role");
	if (got <= 0)
		return CHANNEL_EOF;
	if (message.is_cut || message.has_lost_fds || message.fd_count > fd_max) {
		fd_message_close(&message, 0);
		return fail(err, ERR_CORRUPT, "a message of another role was too long");
	}
	memcpy(fds, message.fds, (size_t)message.fd_count * sizeof(int));
	*fd_count = message.fd_count;
	*len = (size_t)got;
	return CHANNEL_MESSAGE;
}

struct channel_message {
	struct channel_message *next;
	size_t len;
	int fds[CHANNEL_FDS_MAX], fd_count;
	char data[];
};

static void drop_first(struct channel_queue *queue)
{
	struct channel_message *message = queue->first;
	queue->first = message->next;
	for (int i = 0; i < message->fd_count; i++)
		fd_close(&message->fds[i]);
	free(message);
}

int channel_send_or_queue(struct channel_queue *queue, int socket, const void *data, size_t len,
	const int *fds, int fd_count, struct error *err)
{
	struct error full;
	if (!queue->first) {
		if (!channel_send(socket, data, len, fds, fd_count, &full))
			return 0;
		if (full.code != ERR_LIMIT) {
			*err = full;
			return -1;
		}
	}
	struct channel_message *message = xzalloc(sizeof *message + len);
	message->len = len;
	memcpy(message->data, data, len);
	*(queue->first ? &queue->last->next : &queue->first) = message;
	queue->last = message;
	for (; message->fd_count < fd_count; message->fd_count++) {
		int copy = fcntl(fds[message->fd_count], F_DUPFD_CLOEXEC, 3);
		if (copy < 0)
			return fail_errno(err, "duplicate a descriptor for another role");
		message->fds[message->fd_count] = copy;
	}
	return 0;
}

int channel_flush(struct channel_queue *queue, int socket, struct error *err)
{
	while (queue->first) {
		const struct channel_message *message = queue->first;
		struct error full;
		if (channel_send(socket, message->data, message->len, message->fds,
			    message->fd_count, &full)) {
			if (full.code == ERR_LIMIT)
				return 0;
			*err = full;
			return -1;
		}
		drop_first(queue);
	}
	return 0;
}

void channel_queue_done(struct channel_queue *queue)
{
	while (queue->first)
		drop_first(queue);
}
