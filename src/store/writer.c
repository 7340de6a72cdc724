#include "store/writer.h"

#include <poll.h>
#include <sys/socket.h>

#define READ_BYTES 65536

void writer_init(struct writer *writer)
{
	*writer = (struct writer){ .socket = -1 };
	buf_init(&writer->out, WIRE_MAX);
	buf_init(&writer->in, WIRE_MAX);
}

void writer_done(struct writer *writer)
{
	buf_done(&writer->out);
	buf_done(&writer->in);
}

static void forget_answers(struct writer *writer)
{
	writer->sent = writer->used = 0;
	buf_clear(&writer->in);
}

void writer_use(struct writer *writer, int socket)
{
	writer->socket = socket;
	forget_answers(writer);
}

void writer_begin(struct writer *writer, const struct store_batch *batch)
{
	wire_print_batch(batch, &writer->out);
}

void writer_end(struct writer *writer)
{
	forget_answers(writer);
	buf_clear(&writer->out);
}

static bool is_over(ssize_t len)
{
	return len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
}

int writer_send(struct writer *writer)
{
	ssize_t len = 1;
	while (writer->sent < writer->out.len && len > 0) {
		len = send(writer->socket, writer->out.data + writer->sent,
			writer->out.len - writer->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (len > 0)
			writer->sent += (size_t)len;
		else if (is_over(len))
			return -1;
	}
	return 0;
}

int writer_go_on(struct writer *writer, struct str *message)
{
	ssize_t len;
	buf_drop_front(&writer->in, writer->used);
	writer->used = 0;
	if (writer_send(writer))
		return -1;
	for (;;) {
		if (wire_first(&writer->in, message, &writer->used))
			return 1;
		char *room = buf_reserve(&writer->in, READ_BYTES);
		if (!room)
			abort();
		len = recv(writer->socket, room, READ_BYTES, MSG_DONTWAIT);
		if (len <= 0)
			return is_over(len) ? -1 : 0;
		buf_grew(&writer->in, (size_t)len);
	}
}

void writer_await(const struct writer *writer)
{
	short out = writer->sent < writer->out.len ? POLLOUT : 0;
	struct pollfd wait = { .fd = writer->socket, .events = (short)(POLLIN | out) };
	poll(&wait, 1, -1);
}

void writer_finish(struct writer *writer)
{
	char said[4096];
	struct pollfd wait = { .fd = writer->socket, .events = POLLIN };
	shutdown(writer->socket, SHUT_WR);
	/* What it still says is for nobody; its end is the end of the stream. */
	do
		poll(&wait, 1, -1);
	while (!is_over(recv(writer->socket, said, sizeof said, MSG_DONTWAIT)));
}
