#include <inttypes.h>
#include "api/call.h"
#include "model/exec.h"

void sse_print(struct buf *out, uint64_t id, const char *event, struct str data)
{
	if (id)
		buf_printf(out, "id: %" PRIu64 "\n", id);
	buf_printf(out, "event: %s\ndata: ", event);
	buf_append(out, data.data, data.len);
	buf_text(out, "\n\n");
}

/* {"data","encoding"} of the bytes, by the rule of a result's streams. */
static void print_data(struct buf *out, const char *event, struct str data)
{
	struct exec_output output = exec_output_whole(data, STR(""), false);

	buf_printf(out, "event: %s\ndata: ", event);
	struct json j = json_to(out, false);
	json_object(&j, NULL);
	if (output.is_base64)
		json_base64(&j, "data", data.data, data.len);
	else
		json_str(&j, "data", data);
	json_text(&j, "encoding", output.is_base64 ? "base64" : "utf-8");
	json_end(&j);
	buf_text(out, "\n\n");
}

void sse_print_output(
	struct buf *out, const char *event, struct sse_tail *tail, struct str data, bool is_last)
{
	auto_buf struct buf joined = buf_empty(BUF_MAX_DEFAULT);
	if (tail->len) {
		buf_append(&joined, tail->bytes, tail->len);
		buf_append(&joined, data.data, data.len);
		data = (struct str){ joined.data, joined.len };
		tail->len = 0;
	}
	size_t held = is_last ? 0 : str_utf8_incomplete(data.data, data.len);
	memcpy(tail->bytes, data.data + data.len - held, held);
	tail->len = held;
	data.len -= held;
	if (data.len)
		print_data(out, event, data);
}
