/* fd_message.h -- bytes with descriptors over a unix socket (SCM_RIGHTS). Every room but init,
 * which has no libc, sends and receives descriptors here.
 * 1. Both calls restart on EINTR. The flags are those of send(2) and recv(2); MSG_NOSIGNAL and
 * MSG_CMSG_CLOEXEC are always set.
 * 2. Descriptors that came are close-on-exec and belong to the receiver. At most FD_MESSAGE_MAX can
 * come: the kernel closes the rest, and has_lost_fds is set. */
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>

#define FD_MESSAGE_MAX 16

struct fd_message {
	int fds[FD_MESSAGE_MAX];
	int fd_count;
	bool is_cut;	   /* a packet was longer than the buffer */
	bool has_lost_fds; /* more came than there is room for, here or in the process */
};

/* Sends the parts, with fd_count (0 to FD_MESSAGE_MAX) descriptors that stay the caller's. Bytes
 * sent, or -1 with errno. */
ssize_t fd_message_send(int socket, const struct iovec *parts, size_t part_count, const int *fds,
	int fd_count, int flags);
/* Receives up to `size` bytes. Bytes received, 0 at the end or of an empty packet, or -1 with
 * errno; message->fds is set in all cases: with 0 and -1 there are none. */
ssize_t fd_message_receive(
	int socket, void *data, size_t size, int flags, struct fd_message *message);
/* Closes the descriptors from index `first` on. */
void fd_message_close(struct fd_message *message, int first);
