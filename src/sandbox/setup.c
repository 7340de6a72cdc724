/* Packets between parent and child before carrel-init takes over the socket. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "sandbox/start.h"

int setup_send(int socket, const struct setup_message *message, const int *fds, int count)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SETUP_FD_MAX * sizeof(int))];
	} control;
	struct iovec iov = { (void *)(uintptr_t)message, sizeof *message };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (count) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);
		*cmsg = (struct cmsghdr){ .cmsg_len = CMSG_LEN((size_t)count * sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(cmsg), fds, (size_t)count * sizeof(int));
	}
	ssize_t sent;
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)sizeof *message ? 0 : -1;
}

int setup_receive(int socket, bool wait, struct setup_message *message, int fds[SETUP_FD_MAX])
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SETUP_FD_MAX * sizeof(int))];
	} control;
	struct iovec iov = { message, sizeof *message };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	for (int i = 0; i < SETUP_FD_MAX; i++)
		fds[i] = -1;
	ssize_t got;
	do
		got = recvmsg(socket, &header, (wait ? 0 : MSG_DONTWAIT) | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got == 0 ? 0 : -1;
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	if (got != (ssize_t)sizeof *message || message->magic != SETUP_MAGIC) {
		errno = EPROTO;
		return -1;
	}
	return 1;
}
