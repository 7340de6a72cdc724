#include "store/writer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "base/fault.h"
#include "base/fd.h"
#include "store/wire.h"

#define READ_BYTES 65536
/* A batch is as large as all that was queued; who has no memory for it aborts, as elsewhere. */
#define MESSAGE_MAX (SIZE_MAX / 4)

/* -- the store's end -- */

void writer_init(struct writer *writer)
{
	*writer = (struct writer){ .socket = -1 };
	buf_init(&writer->out, MESSAGE_MAX);
	buf_init(&writer->heard, MESSAGE_MAX);
}

void writer_done(struct writer *writer)
{
	buf_done(&writer->out);
	buf_done(&writer->heard);
}

void writer_use(struct writer *writer, int socket)
{
	writer->socket = socket;
	writer->sent = 0;
	buf_clear(&writer->heard);
}

void writer_begin(struct writer *writer, const struct store_batch *batch)
{
	wire_print_batch(batch, &writer->out);
}

void writer_end(struct writer *writer)
{
	writer->sent = 0;
	buf_clear(&writer->out);
	buf_clear(&writer->heard);
}

static bool is_over(ssize_t len)
{
	return len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
}

/* The whole of the message that was heard, if it is that much. */
static bool is_whole(const struct buf *heard, struct str *message)
{
	uint64_t len;
	if (heard->len < sizeof len)
		return false;
	memcpy(&len, heard->data, sizeof len);
	if (heard->len - sizeof len < len)
		return false;
	*message = (struct str){ heard->data + sizeof len, len };
	return true;
}

int writer_go_on(struct writer *writer, struct str *message)
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
	do {
		char *room = buf_reserve(&writer->heard, READ_BYTES);
		if (!room)
			abort();
		len = recv(writer->socket, room, READ_BYTES, MSG_DONTWAIT);
		if (len > 0)
			buf_grew(&writer->heard, (size_t)len);
		if (is_whole(&writer->heard, message))
			return 1;
	} while (len > 0);
	return is_over(len) ? -1 : 0;
}

void writer_await(const struct writer *writer)
{
	short out = writer->sent < writer->out.len ? POLLOUT : 0;
	struct pollfd wait = { .fd = writer->socket, .events = (short)(POLLIN | out) };
	poll(&wait, 1, -1);
}

void writer_finish(struct writer *writer)
{
	char said;
	struct pollfd wait = { .fd = writer->socket, .events = POLLIN };
	shutdown(writer->socket, SHUT_WR);
	/* It has nothing to say any more; its end is the end of the stream. */
	do
		poll(&wait, 1, -1);
	while (!is_over(recv(writer->socket, &said, 1, MSG_DONTWAIT)));
}

/* -- the process -- */

/* 1: a message, in *bytes; 0: nobody wants anything any more; -1. */
static int receive(int socket, struct buf *bytes)
{
	uint64_t len;
	ssize_t got = fd_read_full(socket, &len, sizeof len);
	if (got != sizeof len)
		return got == 0 ? 0 : -1;
	buf_clear(bytes);
	char *room = buf_reserve(bytes, len);
	if (!room || fd_read_full(socket, room, len) != (ssize_t)len)
		return -1;
	buf_grew(bytes, len);
	return 1;
}

/* The database is opened by the first batch, and by each that finds it closed: who can't write is
 * told why. */
static int commit(const struct store_backend *backend, const struct store_place *place, void **db,
	struct store_batch *batch, struct error *err)
{
	if (!*db && backend->attach(place, false, db, err))
		return -1;
	return backend->commit(*db, batch, err);
}

int store_write_for(int socket, int directory, const char *path, const char *url, struct error *err)
{
	struct store_place place = { .directory = directory, .path = path };
	const struct store_backend *backend;
	void *db = NULL;
	int got;
	if (store_find_backend(url, &backend, &place.file, err))
		return -1;
	auto_buf struct buf in = buf_empty(MESSAGE_MAX);
	auto_buf struct buf out = buf_empty(MESSAGE_MAX);
	while ((got = receive(socket, &in)) > 0) {
		struct store_batch batch;
		struct error why;
		store_batch_init(&batch);
		if (wire_parse_batch((struct str){ in.data, in.len }, &batch))
			abort();
		int failed = commit(backend, &place, &db, &batch, &why);
		fault_point("store.written");
		buf_clear(&out);
		wire_print_outcome(&batch, failed ? &why : NULL, &out);
		arena_done(&batch.arena);
		got = fd_write_full(socket, out.data, out.len) == (ssize_t)out.len ? 1 : -1;
		if (got < 0)
			break;
		if (!failed)
			backend->settle(db, &place);
	}
	if (got < 0)
		fail_errno(err, "send to the process that writes the database");
	if (db)
		backend->close(db);
	return got;
}
