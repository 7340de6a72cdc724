#include "sandbox/init/reply.h"

#include <stddef.h>
#include <sys/socket.h>
#include "sandbox/init/sys.h"

long reply_send(int master, struct init_reply *reply, const int *fds, unsigned fd_count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(INIT_LISTENERS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { reply, sizeof *reply };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	reply->magic = INIT_MAGIC;
	if (fd_count) {
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		for (unsigned i = 0; i < fd_count; i++)
			((int *)CMSG_DATA(&control.header))[i] = fds[i];
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	return SYS(sendmsg, master, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

unsigned reply_find_listeners(void)
{
	unsigned count = 0;
	int type = 0;
	unsigned len = sizeof type;
	while (count < INIT_LISTENERS_MAX &&
		SYS6(getsockopt, INIT_LISTENER_FD + count, SOL_SOCKET, SO_DOMAIN, &type, &len, 0) ==
			0 &&
		(type == AF_INET || type == AF_INET6))
		count++;
	SYS(close_range, INIT_LISTENER_FD + count, ~0u, 0);
	return count;
}
