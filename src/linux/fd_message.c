#include "linux/fd_message.h"
#include <unistd.h>
#include "base/foreign.h"

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(FD_MESSAGE_MAX * sizeof(int))];
};

ssize_t fd_message_send(int socket, const struct iovec *parts, size_t part_count, const int *fds,
	int fd_count, int flags)
{
	union control control = { 0 };
	struct msghdr message = { .msg_iov = (struct iovec *)parts, .msg_iovlen = part_count };
	size_t len = (size_t)fd_count * sizeof(int);
	ssize_t sent;
	if (fd_count < 0 || fd_count > FD_MESSAGE_MAX)
		abort();
	if (fd_count > 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(len);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(&control.header), fds, len);
	}
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
	while (sent < 0 && errno == EINTR);
	return sent;
}

void fd_message_close(struct fd_message *message, int first)
{
	int saved = errno;
	while (message->fd_count > first)
		foreign_close(&message->fds[--message->fd_count]);
	errno = saved;
}

ssize_t fd_message_receive(
	int socket, void *data, size_t size, int flags, struct fd_message *message)
{
	union control control;
	struct iovec part = { data, size };
	struct msghdr header = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	ssize_t got;
	message->fd_count = 0;
	do
		got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | flags);
	while (got < 0 && errno == EINTR);
	message->is_cut = got >= 0 && header.msg_flags & MSG_TRUNC;
	message->has_lost_fds = got >= 0 && header.msg_flags & MSG_CTRUNC;
	for (struct cmsghdr *at = got >= 0 ? CMSG_FIRSTHDR(&header) : NULL; at;
		at = CMSG_NXTHDR(&header, at)) {
		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		/* The kernel merges all descriptors into one item, so that they fit. */
		size_t len = at->cmsg_len - CMSG_LEN(0);
		memcpy(message->fds + message->fd_count, CMSG_DATA(at), len);
		message->fd_count += (int)(len / sizeof(int));
	}
	/* An empty packet may carry some, and callers take it for the end. */
	if (got == 0)
		fd_message_close(message, 0);
	return got;
}
