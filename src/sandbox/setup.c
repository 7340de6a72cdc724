/* Packets between parent and child before carrel-init takes over the socket. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "base/fd.h"
#include "sandbox/start.h"

int setup_send(int socket, struct setup_message *message, const int *fds, int count)
{
	int packed[SETUP_FD_MAX], packed_count = 0;
	message->present = 0;
	for (int i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		message->present |= 1u << i;
		packed[packed_count++] = fds[i];
	}
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SETUP_FD_MAX * sizeof(int))];
	} control;
	struct iovec iov = { message, sizeof *message };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (packed_count) {
		size_t bytes = (size_t)packed_count * sizeof(int);
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(bytes);
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);
		*cmsg = (struct cmsghdr){ .cmsg_len = CMSG_LEN(bytes),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(cmsg), packed, bytes);
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
	/* A peer that died with unread packets leaves one ECONNRESET in front of what it said. */
	do
		got = recvmsg(socket, &header, (wait ? 0 : MSG_DONTWAIT) | MSG_CMSG_CLOEXEC);
	while (got < 0 && (errno == EINTR || errno == ECONNRESET));
	if (got <= 0)
		return got == 0 ? 0 : -1;
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);
	int packed[SETUP_FD_MAX], count = 0, taken = 0;
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS) {
		count = (int)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(packed, CMSG_DATA(cmsg), (size_t)count * sizeof(int));
	}
	bool is_whole = got == (ssize_t)sizeof *message;
	for (int i = 0; i < SETUP_FD_MAX; i++)
		if (is_whole && message->present & 1u << i && taken < count)
			fds[i] = packed[taken++];
	while (taken < count)
		fd_close(&packed[taken++]);
	if (got != (ssize_t)sizeof *message || message->magic != SETUP_MAGIC) {
		errno = EPROTO;
		return -1;
	}
	return 1;
}
