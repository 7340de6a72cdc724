/* Answers that go on, and server-sent events. */
#include "doors/call.h"
#include "model/nouns/exec.h"

void stream_add(struct call *c, struct stream *stream)
{
	struct stream **first = &c->api->streams;
	*stream = (struct stream){ .call = c, .next = *first, .at = first };
	if (*first)
		(*first)->at = &stream->next;
	*first = stream;
}

void stream_remove(struct stream *stream)
{
	if (!stream->at)
		return;
	*stream->at = stream->next;
	if (stream->next)
		stream->next->at = stream->at;
	stream->at = NULL;
}

/* One that has no head yet is refused: its client may ask again. */
void streams_stop(struct api *api)
{
	while (api->streams) {
		struct stream *stream = api->streams;
		stream_remove(stream);
		if (stream->call->status) {
			call_end(stream->call);
			continue;
		}
		struct error err;
		struct call *c = stream->call;
		fail_hint(&err, ERR_UNAVAILABLE, "ask again when it serves again",
			"the daemon is stopping");
		call_let_go(c);
		call_problem(c, &err);
	}
}

void sse_begin(struct buf *out, const char *event, struct json *j)
{
	buf_printf(out, "event: %s\ndata: ", event);
	*j = json_to(out, false);
}

void sse_end(struct buf *out)
{
	buf_text(out, "\n\n");
}

void sse_print(struct buf *out, uint64_t id, const char *event, struct str data)
{
	struct json none;
	if (id)
		buf_printf(out, "id: %" PRIu64 "\n", id);
	sse_begin(out, event, &none);
	buf_append(out, data.data, data.len);
	sse_end(out);
}

void sse_print_output(
	struct buf *out, const char *event, struct sse_tail *tail, struct str data, bool is_last)
{
	auto_buf struct buf joined = buf_empty(BUF_MAX_DEFAULT);
	struct json j;
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
	if (!data.len)
		return;
	/* {"type","data","encoding"} of the bytes, by the rule of a result's streams. */
	bool is_base64 = exec_output_whole(data, STR(""), false).is_base64;
	sse_begin(out, event, &j);
	json_object(&j, NULL);
	json_text(&j, "type", event);
	if (is_base64)
		json_base64(&j, "data", data.data, data.len);
	else
		json_str(&j, "data", data);
	json_text(&j, "encoding", is_base64 ? "base64" : "utf-8");
	json_end(&j);
	sse_end(out);
}
