#include "store/wire.h"

/* The length comes first, and is known last. */
static size_t begin(struct buf *out)
{
	size_t at = out->len;
	buf_append(out, &(uint64_t){ 0 }, sizeof(uint64_t));
	return at;
}

void wire_end(struct buf *out, size_t at)
{
	uint64_t len = out->len - at - sizeof len;
	if (out->overflow)
		abort();
	memcpy(out->data + at, &len, sizeof len);
}

size_t wire_begin(struct buf *out, enum wire_said said)
{
	size_t at = begin(out);
	buf_append(out, &said, sizeof said);
	return at;
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

int wire_first(const struct buf *in, struct str *message, size_t *end)
{
	uint64_t len;
	if (in->len < sizeof len)
		return 0;
	memcpy(&len, in->data, sizeof len);
	if (in->len - sizeof len < len)
		return 0;
	*message = (struct str){ in->data + sizeof len, len };
	*end = sizeof len + len;
	return 1;
}

/* ---- rows ---- */

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

static void print_row(struct buf *out, const struct store_row *row)
{
	buf_append(out, row->numbers, sizeof row->numbers);
	for (int i = 0; i < STORE_TEXTS; i++)
		print_bytes(out,
			(struct str){ row->texts[i], row->texts[i] ? strlen(row->texts[i]) : 0 });
	print_bytes(out, row->bytes);
}

static bool read_row(struct str *rest, struct store_row *row)
{
	bool is_whole = read_plain(rest, row->numbers, sizeof row->numbers);
	for (int i = 0; is_whole && i < STORE_TEXTS; i++) {
		struct str text;
		is_whole = read_bytes(rest, &text);
		row->texts[i] = text.data;
	}
	return is_whole && read_bytes(rest, &row->bytes);
}

/* Whether it has what its table's columns need: so many texts and no more, and a document. */
static bool has_columns(int table, const struct store_row *row)
{
	const struct field *column;
	int texts = 0;
	if (table == STORE_GONE)
		return row->texts[0] && row->texts[1] && row->texts[2];
	for (size_t i = 0; (column = store_column(store_tables[table], i)); i++)
		texts += column->kind != FIELD_TIME;
	for (int i = 0; i < STORE_TEXTS; i++)
		if (!row->texts[i] != (i >= texts))
			return false;
	return row->bytes.data && row->bytes.len <= STORE_DOCUMENT_MAX;
}

/* ---- what is asked ---- */

void wire_print_batch(const struct store_batch *batch, struct buf *out)
{
	size_t at = begin(out);
	for (const struct store_write *write = batch->first; write; write = write->next) {
		if (write->failed) /* refused when it was queued */
			continue;
		buf_append(out, &write->kind, sizeof write->kind);
		buf_append(out, &write->table, sizeof write->table);
		print_row(out, &write->row);
	}
	wire_end(out, at);
}

static bool is_allowed(const struct store_batch *batch, const struct store_write *write)
{
	const struct store_row *row = &write->row;
	if ((unsigned)write->kind >= STORE_KIND_COUNT ||
		(unsigned)write->table >= STORE_TABLE_COUNT)
		return false;
	/* Nothing else is with it: it may open the database, and replace it. */
	if (batch->first && batch->first->kind == STORE_LOAD)
		return false;
	switch (write->kind) {
	case STORE_PUT:
		return has_columns(write->table, row);
	case STORE_REMOVE:
		return row->texts[0] && !row->texts[1] == !row->texts[2];
	case STORE_PUT_ANSWER:
		return row->texts[0] && row->texts[1] && row->texts[2] && row->bytes.data &&
		       row->bytes.len <= STORE_ANSWER_BODY_MAX;
	case STORE_FIND_ANSWER:
		return row->texts[0] && row->texts[1];
	case STORE_LOAD:
		return !batch->first;
	default:
		return true;
	}
}

int wire_read_batch(struct str message, struct store_batch *batch)
{
	while (message.len) {
		struct store_write *write = arena_alloc(&batch->arena, sizeof *write);
		if (!read_plain(&message, &write->kind, sizeof write->kind) ||
			!read_plain(&message, &write->table, sizeof write->table) ||
			!read_row(&message, &write->row) || !is_allowed(batch, write))
			return -1;
		*batch->last = write;
		batch->last = &write->next;
	}
	return 0;
}

/* ---- answers ---- */

void wire_print_row(struct buf *out, int table, const struct store_row *row)
{
	buf_append(out, &table, sizeof table);
	print_row(out, row);
}

int wire_read_row(struct str *rest, int *table, struct store_row *row)
{
	if (!rest->len)
		return 0;
	if (!read_plain(rest, table, sizeof *table) || (unsigned)*table > STORE_GONE ||
		!read_row(rest, row) || !has_columns(*table, row))
		return -1;
	return 1;
}

int wire_read_said(struct str *message)
{
	unsigned said;
	return read_plain(message, &said, sizeof said) && said <= WIRE_OUTCOME ? (int)said : -1;
}

static void end_text(char *text, size_t size)
{
	text[size - 1] = '\0';
}

int wire_read_opened(struct str message, struct store_opened *opened)
{
	if (message.len != sizeof *opened)
		return -1;
	memcpy(opened, message.data, sizeof *opened);
	end_text(opened->aside, sizeof opened->aside);
	end_text(opened->why, sizeof opened->why);
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

void wire_print_outcome(const struct store_batch *batch, const struct error *err, struct buf *out)
{
	size_t at = wire_begin(out, WIRE_OUTCOME);
	print_error(err, out);
	for (const struct store_write *write = batch->first; write; write = write->next) {
		unsigned char is_found = write->found != NULL;
		print_error(write->failed, out);
		buf_append(out, &is_found, sizeof is_found);
		if (is_found)
			print_row(out, write->found);
	}
	wire_end(out, at);
}

int wire_read_outcome(
	struct str message, struct store_batch *batch, bool *failed, struct error *err)
{
	if (!read_error(&message, failed, err))
		return -1;
	for (struct store_write *write = batch->first; write; write = write->next) {
		struct store_row found;
		struct error own;
		bool has_failed;
		unsigned char is_found;
		if (write->failed)
			continue;
		if (!read_error(&message, &has_failed, &own) ||
			!read_plain(&message, &is_found, sizeof is_found) ||
			(is_found && !read_row(&message, &found)))
			return -1;
		if (has_failed) {
			write->failed = arena_alloc(&batch->arena, sizeof own);
			*write->failed = own;
		}
		if (is_found) {
			write->found = arena_alloc(&batch->arena, sizeof found);
			*write->found = found;
		}
	}
	return message.len ? -1 : 0;
}
