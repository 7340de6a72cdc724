#include "net/stream.h"
#include <sys/sendfile.h>
#include "base/fd.h"

static ssize_t stream_receive(
	struct net_stream *s, void *data, size_t size, struct fd_message *message)
{
	return fd_message_receive(s->fd, data, size, MSG_DONTWAIT, message);
}

static ssize_t send_parts(struct net_stream *s, const struct iovec *parts, size_t part_count,
	const int *fds, int fd_count, bool more)
{
	return fd_message_send(
		s->fd, parts, part_count, fds, fd_count, MSG_DONTWAIT | (more ? MSG_MORE : 0));
}

static ssize_t send_file(struct net_stream *s, int file, off_t *at, size_t len)
{
	return sendfile(s->fd, file, at, len);
}

static void stream_end(struct net_stream *s)
{
	shutdown(s->fd, SHUT_WR);
}

static void close_plain(struct net_stream *s)
{
	fd_close(&s->fd);
}

void stream_open_plain(void *ctx, int fd, struct net_stream *stream)
{
	static const struct net_stream_kind plain = { stream_receive, send_parts, send_file,
		stream_end, close_plain };
	int family = AF_UNIX;
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &(socklen_t){ sizeof family });
	*stream = (struct net_stream){ .kind = &plain, .fd = fd, .is_unix = family == AF_UNIX };
}
