#include <stdlib.h>
#include <string.h>
#include "store/wire.h"

/* -- fields of a write -- */

enum type { PLAIN, TEXT, BYTES };
struct wire_field {
	enum type type;
	size_t at, size; /* in struct store_write; size of a plain one */
};
#define AT(member) offsetof(struct store_write, member)
#define IS_PLAIN(member)                                                                           \
	{                                                                                          \
		PLAIN, AT(member), sizeof(((struct store_write *)0)->member)                       \
	}
#define IS_TEXT(member)                                                                            \
	{                                                                                          \
		TEXT, AT(member), 0                                                                \
	}
#define IS_BYTES(member)                                                                           \
	{                                                                                          \
		BYTES, AT(member), 0                                                               \
	}
static const struct wire_field row_fields[] = { IS_PLAIN(table), IS_TEXT(row.texts[0]),
	IS_TEXT(row.texts[1]), IS_TEXT(row.texts[2]), IS_PLAIN(row.times_ms),
	IS_BYTES(row.document), IS_PLAIN(row.sum) };
static const struct wire_field removal_fields[] = { IS_PLAIN(table), IS_TEXT(removal.id),
	IS_TEXT(removal.name), IS_TEXT(removal.why), IS_PLAIN(removal.at_ms) };
static const struct wire_field answer_fields[] = { IS_TEXT(answer.scope), IS_TEXT(answer.key),
	IS_PLAIN(answer.at_ms), IS_PLAIN(answer.answer.digest), IS_PLAIN(answer.answer.status),
	IS_BYTES(answer.answer.body), IS_TEXT(answer.answer.location) };
static const struct wire_field time_fields[] = { IS_PLAIN(at_ms) };

#define ALL(fields)                                                                                \
	{                                                                                          \
		fields, sizeof fields / sizeof *fields                                             \
	}
static const struct {
	const struct wire_field *fields;
	size_t count;
} kinds[] = {
	[STORE_PUT] = ALL(row_fields),
	[STORE_REMOVE] = ALL(removal_fields),
	[STORE_PUT_ANSWER] = ALL(answer_fields),
	[STORE_TIDY] = ALL(time_fields),
	[STORE_SETTLE] = { NULL, 0 },
	[STORE_PROBE] = { NULL, 0 },
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

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

/* -- batches -- */

static void print_field(
	const struct store_write *write, const struct wire_field *field, struct buf *out)
{
	const char *value = (const char *)write + field->at;
	if (field->type == PLAIN) {
		buf_append(out, value, field->size);
	} else if (field->type == BYTES) {
		print_bytes(out, *(const struct str *)(const void *)value);
	} else {
		const char *text = *(const char *const *)(const void *)value;
		print_bytes(out, (struct str){ text, text ? strlen(text) : 0 });
	}
}

static bool read_field(struct str *rest, const struct wire_field *field, struct store_write *write)
{
	char *value = (char *)write + field->at;
	struct str bytes;
	if (field->type == PLAIN)
		return read_plain(rest, value, field->size);
	if (!read_bytes(rest, &bytes))
		return false;
	if (field->type == BYTES)
		memcpy(value, &bytes, sizeof bytes);
	else
		memcpy(value, &bytes.data, sizeof bytes.data);
	return true;
}

void wire_print_batch(const struct store_batch *batch, struct buf *out)
{
	size_t at = begin(out);
	for (const struct store_write *write = batch->first; write; write = write->next) {
		if (write->failed)
			continue;
		buf_append(out, &write->kind, sizeof write->kind);
		for (size_t i = 0; i < kinds[write->kind].count; i++)
			print_field(write, &kinds[write->kind].fields[i], out);
	}
	end(out, at);
}

int wire_parse_batch(struct str message, struct store_batch *batch)
{
	while (message.len) {
		struct store_write *write = arena_alloc(&batch->arena, sizeof *write);
		*write = (struct store_write){ 0 };
		if (!read_plain(&message, &write->kind, sizeof write->kind) ||
			(size_t)write->kind >= KIND_COUNT)
			return -1;
		for (size_t i = 0; i < kinds[write->kind].count; i++)
			if (!read_field(&message, &kinds[write->kind].fields[i], write))
				return -1;
		if (write->table < 0 || write->table >= STORE_TABLE_COUNT)
			return -1;
		*batch->last = write;
		batch->last = &write->next;
	}
	return 0;
}

/* -- outcomes -- */

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
	size_t at = begin(out);
	print_error(err, out);
	for (const struct store_write *write = batch->first; write; write = write->next)
		print_error(write->failed, out);
	end(out, at);
}

int wire_parse_outcome(
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
