#include <inttypes.h>
#include "api/call.h"

void sse_print(struct buf *out, uint64_t id, const char *event, struct str data)
{
	if (id)
		buf_printf(out, "id: %" PRIu64 "\n", id);
	buf_printf(out, "event: %s\ndata: ", event);
	buf_append(out, data.data, data.len);
	buf_text(out, "\n\n");
}

/* {"data","encoding"} of the bytes, base64 when they aren't UTF-8. */
static void print_data(struct buf *out, const char *event, struct str data)
{
	bool is_text = str_utf8_prefix(data.data, data.len) == data.len;
	struct json j;

	buf_printf(out, "event: %s\ndata: ", event);
	json_init(&j, out, false);
	json_object(&j, NULL);
	if (is_text)
		json_str(&j, "data", data);
	else
		json_base64(&j, "data", data.data, data.len);
	json_text(&j, "encoding", is_text ? "utf-8" : "base64");
	json_end(&j);
	buf_text(out, "\n\n");
}

/* How many bytes at the end are the beginning of a character. */
static size_t incomplete(struct str data)
{
	for (size_t back = 1; back <= 3 && back <= data.len; back++) {
		unsigned char c = (unsigned char)data.data[data.len - back];
		size_t needs = c >= 0xf0 && c <= 0xf4 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

		if ((c & 0xc0) == 0x80)
			continue;
		return c <= 0xf4 && needs > back ? back : 0;
	}
	return 0;
}

void sse_print_output(
	struct buf *out, const char *event, struct sse_tail *tail, struct str data, bool is_last)
{
	auto_buf struct buf joined;

	buf_init(&joined, BUF_MAX_DEFAULT);
	if (tail->len) {
		buf_append(&joined, tail->bytes, tail->len);
		buf_append(&joined, data.data, data.len);
		data = (struct str){ joined.data, joined.len };
		tail->len = 0;
	}
	size_t held = is_last ? 0 : incomplete(data);
	memcpy(tail->bytes, data.data + data.len - held, held);
	tail->len = held;
	data.len -= held;
	if (data.len)
		print_data(out, event, data);
}
