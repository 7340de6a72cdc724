#include "proc/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"

int channel_pair(int ends[2], struct error *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return fail_errno(err, "make a socket pair");
	return 0;
}

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(CHANNEL_FDS_MAX * sizeof(int))];
};

int channel_send(
	int socket, const void *data, size_t len, const int *fds, int fd_count, struct error *err)
{
	union control control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (fd_count > CHANNEL_FDS_MAX || len > CHANNEL_SIZE_MAX || !len)
		return fail(err, ERR_INVALID, "a message of %zu bytes and %d descriptors", len,
			fd_count);
	if (fd_count > 0) {
		size_t size = (size_t)fd_count * sizeof(int);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(size);
		control.header.cmsg_len = CMSG_LEN(size);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.header), fds, size);
	}
	ssize_t sent;
	do
		sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 0;
	bool is_full = errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS;
	return fail_errno_code(
		err, is_full ? ERR_LIMIT : ERR_UNAVAILABLE, "send a message to another role");
}

static void close_all(int *fds, int count)
{
	for (int i = 0; i < count; i++)
		close(fds[i]);
}

int channel_receive(int socket, void *data, size_t size, size_t *len, int *fds, int fd_max,
	int *fd_count, struct error *err)
{
	union control control;
	struct iovec iov = { data, size };
	struct msghdr message = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	int came[CHANNEL_FDS_MAX], count = 0;
	ssize_t got;
	do
		got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return CHANNEL_NOTHING;
	if (got < 0 && errno != ECONNRESET)
		return fail_errno(err, "receive a message from another role");
	for (struct cmsghdr *at = got > 0 ? CMSG_FIRSTHDR(&message) : NULL; at;
		at = CMSG_NXTHDR(&message, at)) {
		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		int more = (int)((at->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(came + count, CMSG_DATA(at), (size_t)more * sizeof(int));
		count += more;
	}
	if (got <= 0)
		return CHANNEL_EOF;
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || count > fd_max) {
		close_all(came, count);
		return fail(err, ERR_CORRUPT, "a message of another role was too long");
	}
	memcpy(fds, came, (size_t)count * sizeof(int));
	*fd_count = count;
	*len = (size_t)got;
	return CHANNEL_MESSAGE;
}
