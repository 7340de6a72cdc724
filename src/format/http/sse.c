#include "format/http/sse.h"

void sse_init(struct sse *sse)
{
	*sse = (struct sse){ 0 };
	buf_init(&sse->data, SSE_EVENT_MAX);
	buf_init(&sse->in, SSE_EVENT_MAX);
}

void sse_done(struct sse *sse)
{
	buf_done(&sse->data);
	buf_done(&sse->in);
}

void sse_add(struct sse *sse, struct str bytes)
{
	buf_drop_front(&sse->in, sse->at);
	sse->at = 0;
	buf_append(&sse->in, bytes.data, bytes.len);
}

static void copy_name(char *out, size_t size, struct str value)
{
	size_t len = value.len < size ? value.len : size - 1;
	if (len > 0)
		memcpy(out, value.data, len);
	out[len] = '\0';
}

static void take_field(struct sse *sse, struct str line)
{
	struct str name, value;
	str_cut(line, ':', &name, &value);
	if (value.len > 0 && value.data[0] == ' ')
		value = (struct str){ value.data + 1, value.len - 1 };
	if (str_is(name, "data")) {
		if (sse->has_data)
			buf_char(&sse->data, '\n');
		buf_append(&sse->data, value.data, value.len);
		sse->has_data = true;
	} else if (str_is(name, "event")) {
		copy_name(sse->next_event, sizeof sse->next_event, value);
	} else if (str_is(name, "id") && (!value.len || !memchr(value.data, '\0', value.len))) {
		copy_name(sse->next_id, sizeof sse->next_id, value);
	}
}

/* At an empty line: whether what stands before it is an event. */
static bool end_event(struct sse *sse)
{
	bool is_one = sse->has_data;
	if (is_one)
		str_copy(sse->event, sizeof sse->event,
			sse->next_event[0] ? sse->next_event : "message");
	str_copy(sse->id, sizeof sse->id, sse->next_id);
	sse->next_event[0] = '\0';
	sse->has_data = false;
	return is_one;
}

int sse_next(struct sse *sse, struct error *err)
{
	if (sse->is_given)
		buf_clear(&sse->data);
	sse->is_given = false;
	while (!sse->in.overflow && !sse->data.overflow) {
		struct str line = { sse->in.data + sse->at, 0 };
		const char *end = memchr(line.data, '\n', sse->in.len - sse->at);
		if (!end)
			return 0;
		line.len = (size_t)(end - line.data);
		sse->at += line.len + 1;
		if (line.len > 0 && line.data[line.len - 1] == '\r')
			line.len--;
		if (line.len > 0) {
			take_field(sse, line);
		} else if (end_event(sse)) {
			sse->is_given = true;
			return 1;
		}
	}
	return fail(err, ERR_LIMIT, "an event is longer than %zu bytes", SSE_EVENT_MAX);
}
