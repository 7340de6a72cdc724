#include "store/writer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "base/fault.h"
#include "base/fd.h"

#define READ_BYTES 65536
/* A batch may be as large as the queue; out of memory aborts, as elsewhere. */
#define MESSAGE_MAX (SIZE_MAX / 4)

/* -- messages -- */

/* The length comes first, and is known last. */
static size_t begin(struct buf *out)
{
	size_t at = out->len;
	buf_append(out, &(uint64_t){ 0 }, sizeof(uint64_t));
	return at;
}

static void end(struct buf *out, size_t at)
{
	uint64_t len = out->len - at - sizeof len;
	if (out->overflow)
		abort();
	memcpy(out->data + at, &len, sizeof len);
}

/* NULL when there is less. */
static const char *cut(struct str *rest, size_t len)
{
	const char *data = rest->data;
	if (rest->len < len)
		return NULL;
	rest->data += len;
	rest->len -= len;
	return data;
}

static bool read_plain(struct str *rest, void *to, size_t size)
{
	const char *data = cut(rest, size);
	if (data)
		memcpy(to, data, size);
	return data;
}

/* With a NUL behind it, so that it can be used where it lies; data NULL is something else than "".
 */
static void print_bytes(struct buf *out, struct str bytes)
{
	uint64_t size = bytes.data ? bytes.len + 1 : 0;
	buf_append(out, &size, sizeof size);
	if (size) {
		buf_append(out, bytes.data, bytes.len);
		buf_char(out, '\0');
	}
}

static bool read_bytes(struct str *rest, struct str *bytes)
{
	uint64_t size;
	if (!read_plain(rest, &size, sizeof size))
		return false;
	*bytes = (struct str){ NULL, 0 };
	if (!size)
		return true;
	const char *data = cut(rest, size);
	if (!data || data[size - 1])
		return false;
	*bytes = (struct str){ data, size - 1 };
	return true;
}

static void print_batch(const struct store_batch *batch, struct buf *out)
{
	size_t at = begin(out);
	for (const struct store_write *write = batch->first; write; write = write->next) {
		if (write->failed) /* refused when it was queued */
			continue;
		buf_append(out, &write->kind, sizeof write->kind);
		buf_append(out, &write->table, sizeof write->table);
		buf_append(out, write->row.numbers, sizeof write->row.numbers);
		for (int i = 0; i < STORE_TEXTS; i++)
			print_bytes(out,
				(struct str){ write->row.texts[i],
					write->row.texts[i] ? strlen(write->row.texts[i]) : 0 });
		print_bytes(out, write->row.bytes);
	}
	end(out, at);
}

/* The batch points into the message. */
static int read_batch(struct str message, struct store_batch *batch)
{
	while (message.len) {
		struct store_write *write = arena_alloc(&batch->arena, sizeof *write);
		bool is_whole = read_plain(&message, &write->kind, sizeof write->kind) &&
				read_plain(&message, &write->table, sizeof write->table) &&
				read_plain(&message, write->row.numbers, sizeof write->row.numbers);
		for (int i = 0; is_whole && i < STORE_TEXTS; i++) {
			struct str text;
			is_whole = read_bytes(&message, &text);
			write->row.texts[i] = text.data;
		}
		if (!is_whole || !read_bytes(&message, &write->row.bytes) ||
			(unsigned)write->kind >= STORE_KIND_COUNT ||
			(unsigned)write->table >= STORE_TABLE_COUNT)
			return -1;
		*batch->last = write;
		batch->last = &write->next;
	}
	return 0;
}

/* For all of the batch, then for each write that was sent: whether it failed, and how. */
static void print_error(const struct error *err, struct buf *out)
{
	bool has_failed = err;
	buf_append(out, &has_failed, sizeof has_failed);
	if (err)
		buf_append(out, err, sizeof *err);
}

static bool read_error(struct str *rest, bool *has_failed, struct error *err)
{
	unsigned char is;
	if (!read_plain(rest, &is, sizeof is) || (is && !read_plain(rest, err, sizeof *err)))
		return false;
	*has_failed = is;
	if (is)
		error_adopt(err);
	return true;
}

static void print_outcome(const struct store_batch *batch, const struct error *err, struct buf *out)
{
	size_t at = begin(out);
	print_error(err, out);
	for (const struct store_write *write = batch->first; write; write = write->next)
		print_error(write->failed, out);
	end(out, at);
}

int writer_read_outcome(
	struct str message, struct store_batch *batch, bool *failed, struct error *err)
{
	if (!read_error(&message, failed, err))
		return -1;
	for (struct store_write *write = batch->first; write; write = write->next) {
		struct error own;
		bool has_failed;
		if (write->failed)
			continue;
		if (!read_error(&message, &has_failed, &own))
			return -1;
		if (has_failed) {
			write->failed = arena_alloc(&batch->arena, sizeof own);
			*write->failed = own;
		}
	}
	return message.len ? -1 : 0;
}

/* -- the store's end -- */

void writer_init(struct writer *writer)
{
	*writer = (struct writer){ .socket = -1 };
	buf_init(&writer->out, MESSAGE_MAX);
	buf_init(&writer->in, MESSAGE_MAX);
}

void writer_done(struct writer *writer)
{
	buf_done(&writer->out);
	buf_done(&writer->in);
}

void writer_use(struct writer *writer, int socket)
{
	writer->socket = socket;
	writer->sent = 0;
	buf_clear(&writer->in);
}

void writer_begin(struct writer *writer, const struct store_batch *batch)
{
	print_batch(batch, &writer->out);
}

void writer_end(struct writer *writer)
{
	writer->sent = 0;
	buf_clear(&writer->out);
	buf_clear(&writer->in);
}

static bool is_over(ssize_t len)
{
	return len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
}

/* The message, once all of it has been received. */
static bool is_whole(const struct buf *in, struct str *message)
{
	uint64_t len;
	if (in->len < sizeof len)
		return false;
	memcpy(&len, in->data, sizeof len);
	if (in->len - sizeof len < len)
		return false;
	*message = (struct str){ in->data + sizeof len, len };
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
		char *room = buf_reserve(&writer->in, READ_BYTES);
		if (!room)
			abort();
		len = recv(writer->socket, room, READ_BYTES, MSG_DONTWAIT);
		if (len > 0)
			buf_grew(&writer->in, (size_t)len);
		if (is_whole(&writer->in, message))
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

/* 1: a message, in *bytes; 0: the other end was closed; -1. */
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

/* The first batch opens the database, and so does each that finds it closed, so that the reply has
 * the reason of a failure. */
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
		if (read_batch((struct str){ in.data, in.len }, &batch))
			abort();
		int failed = commit(backend, &place, &db, &batch, &why);
		fault_point("store.written");
		buf_clear(&out);
		print_outcome(&batch, failed ? &why : NULL, &out);
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
