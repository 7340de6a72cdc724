#include <math.h>
#include "format/text/json.h"

struct json json_to(struct buf *out, bool pretty)
{
	return (struct json){ .out = out, .pretty = pretty };
}

static void new_line(struct json *j)
{
	if (j->pretty && j->depth > 0)
		buf_printf(j->out, "\n%*s", 2 * j->depth, "");
}

/* What goes before a value: comma, indentation, key. */
static void begin_value(struct json *j, const char *key)
{
	bool wants_key = j->depth > 0 && !j->is_array[j->depth];
	if (wants_key != (key != NULL) || (j->depth == 0 && j->has_items[0]))
		abort();
	if (j->has_items[j->depth])
		buf_char(j->out, ',');
	new_line(j);
	j->has_items[j->depth] = true;
	if (key) {
		buf_quoted(j->out, str_from(key));
		buf_text(j->out, j->pretty ? ": " : ":");
	}
}

static void open_level(struct json *j, const char *key, bool is_array)
{
	begin_value(j, key);
	if (j->depth + 1 == JSON_DEPTH_MAX)
		abort();
	j->depth++;
	j->is_array[j->depth] = is_array;
	j->has_items[j->depth] = false;
	buf_char(j->out, is_array ? '[' : '{');
}

void json_object(struct json *j, const char *key)
{
	open_level(j, key, false);
}

void json_array(struct json *j, const char *key)
{
	open_level(j, key, true);
}

void json_end(struct json *j)
{
	if (j->depth == 0)
		abort();
	bool had_items = j->has_items[j->depth], is_array = j->is_array[j->depth];
	j->depth--;
	if (had_items && j->pretty)
		buf_printf(j->out, "\n%*s", 2 * j->depth, "");
	buf_char(j->out, is_array ? ']' : '}');
}

void json_finish(const struct json *j)
{
	if (j->depth != 0 || !j->has_items[0])
		abort();
}

void json_text(struct json *j, const char *key, const char *value)
{
	if (value)
		json_str(j, key, str_from(value));
	else
		json_null(j, key);
}

void json_str(struct json *j, const char *key, struct str value)
{
	begin_value(j, key);
	buf_quoted(j->out, value);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	begin_value(j, key);
	buf_printf(j->out, "%" PRIu64, value);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
	begin_value(j, key);
	buf_printf(j->out, "%" PRId64, value);
}

void json_real(struct json *j, const char *key, double value)
{
	char text[350]; /* the largest double has 309 digits */
	begin_value(j, key);
	if (!isfinite(value)) {
		buf_text(j->out, "null");
		return;
	}
	int len = snprintf(text, sizeof text, "%.3f", value);
	while (text[len - 1] == '0' && text[len - 2] != '.')
		len--;
	buf_append(j->out, text, (size_t)len);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin_value(j, key);
	buf_text(j->out, value ? "true" : "false");
}

void json_raw(struct json *j, const char *key, const char *text)
{
	begin_value(j, key);
	buf_text(j->out, text);
}

void json_texts(struct json *j, const char *key, const text_list *texts)
{
	json_array(j, key);
	for (size_t i = 0; i < texts->count; i++)
		json_text(j, NULL, texts->items[i]);
	json_end(j);
}

void json_null(struct json *j, const char *key)
{
	begin_value(j, key);
	buf_text(j->out, "null");
}

void json_base64(struct json *j, const char *key, const void *data, size_t len)
{
	begin_value(j, key);
	buf_char(j->out, '"');
	buf_base64(j->out, data, len);
	buf_char(j->out, '"');
}

/* Completes the character that the piece before began. How many bytes of `piece` that took. */
static size_t complete_tail(struct json_measure *m, struct str piece)
{
	size_t taken = 0;
	while (m->tail_len && taken < piece.len && !m->is_binary) {
		m->tail[m->tail_len++] = piece.data[taken++];
		if (str_utf8_char(m->tail, m->tail_len) == m->tail_len) {
			m->bytes += m->tail_len;
			m->escaped += buf_escaped_len((struct str){ m->tail, m->tail_len });
			m->tail_len = 0;
		} else if (!str_utf8_incomplete(m->tail, m->tail_len)) {
			m->is_binary = true;
		}
	}
	return taken;
}

void json_measure_add(struct json_measure *m, struct str piece)
{
	size_t taken = complete_tail(m, piece);
	piece = (struct str){ piece.data + taken, piece.len - taken };
	if (m->is_binary || !piece.len)
		return;
	m->tail_len = (unsigned)str_utf8_incomplete(piece.data, piece.len);
	piece.len -= m->tail_len;
	memcpy(m->tail, piece.data + piece.len, m->tail_len);
	m->is_binary = str_utf8_prefix(piece.data, piece.len) != piece.len;
	m->bytes += piece.len;
	m->escaped += buf_escaped_len(piece);
}
