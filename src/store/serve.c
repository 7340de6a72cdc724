/* The process that has the database (store_serve): opens it, makes a new one where it is damaged,
 * reads and writes it. */
#include <fcntl.h>
#include <sys/socket.h>
#include "base/fault.h"
#include "base/fd.h"
#include "store/wire.h"

struct server {
	const struct store_backend *backend;
	struct store_place place;
	void *db; /* NULL: not opened yet, or a failed attempt */
	int socket;
	struct buf out;
	bool has_written; /* what was asked last */
};

/* ---- opening ---- */

static int look_at_row(void *ctx, int table, const struct store_row *row, struct error *err)
{
	const struct server *s = ctx;
	auto_arena struct arena arena = { 0 };
	if (table == STORE_GONE)
		return 0;
	return row_load(table, row, s->place.file, &arena, &(void *){ NULL }, err);
}

static int load_all(struct server *s, store_row_fn *fn, struct error *err)
{
	for (int i = 0; i <= STORE_GONE; i++)
		if (s->backend->load(s->db, i, fn, s, err))
			return -1;
	return 0;
}

/* Looks at every row. */
static int open_and_look(struct server *s, struct store_opened *opened, struct error *err)
{
	if (s->backend->open(&s->place, opened, &s->db, err))
		return -1;
	if (!load_all(s, look_at_row, err))
		return 0;
	s->backend->close(take_ptr(s->db));
	return -1;
}

static bool is_readable(const struct store_table *table, const struct store_row *row)
{
	auto_arena struct arena arena = { 0 };
	struct error err;
	return !row_read(table, row, &arena, arena_alloc(&arena, table->size), &err);
}

static int open_or_replace(struct server *s, struct store_opened *opened, struct error *err)
{
	if (!open_and_look(s, opened, err))
		return 0;
	if (err->code != ERR_CORRUPT)
		return -1;
	*opened = (struct store_opened){ .was_corrupt = true };
	str_copy(opened->why, sizeof opened->why, err->text);
	return s->backend->replace(&s->place, is_readable, opened, err) ||
			       open_and_look(s, opened, err)
		       ? -1
		       : 0;
}

/* Each batch that finds the database closed opens it, so that the reply has the reason of a
 * failure.
 */
static int attach(struct server *s, struct error *err)
{
	return s->db ? 0 : s->backend->attach(&s->place, &s->db, err);
}

/* ---- answers ---- */

static int send_all(struct server *s, struct error *err)
{
	bool is_sent = fd_write_full(s->socket, s->out.data, s->out.len) == (ssize_t)s->out.len;
	buf_clear(&s->out);
	return is_sent ? 0 : fail_errno(err, "send rows of the database");
}

/* Rows gather in `out`, behind the beginning of a message. */
static int add_row(void *ctx, int table, const struct store_row *row, struct error *err)
{
	struct server *s = ctx;
	if (!s->out.len)
		wire_begin(&s->out, WIRE_ROWS);
	wire_print_row(&s->out, table, row);
	if (s->out.len < WIRE_ROWS_BYTES)
		return 0;
	wire_end(&s->out, 0);
	return send_all(s, err);
}

static int load(struct server *s, struct error *err)
{
	struct store_opened opened = { 0 };
	int failed = s->db ? 0 : open_or_replace(s, &opened, err);
	size_t at = wire_begin(&s->out, WIRE_OPENED);
	buf_append(&s->out, &opened, sizeof opened);
	wire_end(&s->out, at);
	if (failed)
		return -1;
	if (send_all(s, err) || load_all(s, add_row, err)) {
		buf_clear(&s->out);
		return -1;
	}
	if (s->out.len)
		wire_end(&s->out, 0);
	return 0;
}

/* What is looked up is read ahead of the transaction: it is found also when nothing can be written.
 */
static int commit(struct server *s, struct store_batch *batch, struct error *err)
{
	if (attach(s, err))
		return -1;
	for (struct store_write *write = batch->first; write; write = write->next) {
		if (write->kind == STORE_FIND_ANSWER)
			write->found = s->backend->find_answer(s->db, &write->row, &batch->arena);
		else
			s->has_written = true;
	}
	if (!s->has_written)
		return 0;
	int failed = s->backend->commit(s->db, batch, err);
	fault_point("store.written");
	return failed;
}

static int answer(struct server *s, struct str message, struct error *err)
{
	struct store_batch batch;
	struct error why;
	store_batch_init(&batch);
	if (wire_read_batch(message, &batch)) {
		arena_done(&batch.arena);
		return fail(err, ERR_INVALID, "received an invalid message");
	}
	s->has_written = false;
	bool is_load = batch.first && batch.first->kind == STORE_LOAD;
	int failed = is_load ? load(s, &why) : commit(s, &batch, &why);
	wire_print_outcome(&batch, failed ? &why : NULL, &s->out);
	arena_done(&batch.arena);
	if (send_all(s, err))
		return -1;
	if (!failed && s->has_written)
		s->backend->settle(s->db, &s->place);
	return 0;
}

/* ---- serving ---- */

/* 1: a message, in *bytes; 0: the other end was closed; -1. */
static int receive(int socket, struct buf *bytes, struct error *err)
{
	uint64_t len;
	ssize_t got = fd_read_full(socket, &len, sizeof len);
	if (got == 0)
		return 0;
	buf_clear(bytes);
	char *room = got == sizeof len ? buf_reserve(bytes, len) : NULL;
	if (!room || fd_read_full(socket, room, len) != (ssize_t)len)
		return fail_errno(err, "receive what the database is asked");
	buf_grew(bytes, len);
	return 1;
}

int store_serve(int socket, int directory, const char *path, const char *url, struct error *err)
{
	struct server s = { .socket = socket, .place = { .directory = directory, .path = path } };
	int got;
	if (store_find_backend(url, &s.backend, &s.place.file, err))
		return -1;
	auto_buf struct buf in = buf_empty(WIRE_MAX);
	buf_init(&s.out, WIRE_MAX);
	while ((got = receive(socket, &in, err)) > 0)
		if ((got = answer(&s, (struct str){ in.data, in.len }, err)))
			break;
	if (s.db)
		s.backend->close(s.db);
	buf_done(&s.out);
	return got;
}
