/* The answer to a captured exec. Small ones are made whole; a large one is made a slice at a time,
 * as its client takes it: no second copy of the output is in memory, and no client waits for
 * another's. */
#include "core/execs/execs.h"
#include "doors/call.h"

#define SMALL_BYTES (128u << 10)
#define SLICE 49152 /* bytes of output; a multiple of 3, for base64 */
/* While captured output is short, a client that takes less than this in this time is cut off. */
#define SLOW_BYTES 65536
#define SLOW_MS 5000

/* What comes out in order: the parts of the frame around the two streams. */
enum part { BEFORE_OUT, OUT, BEFORE_ERRORS, ERRORS, REST, PART_COUNT };
struct result_stream {
	struct call *call;
	struct exec_captured captured;
	struct exec_output output;
	struct buf frame; /* the object with empty streams */
	size_t places[2]; /* of the streams in it */
	enum part part;
	size_t at; /* in this part */
	struct loop_timer *later;
	struct loop_timer *slow;
	uint64_t taken_bytes; /* by the client since `slow` was set; what is queued counts */
};

static struct exec_output output_of(const struct core_exec *e)
{
	const struct exec_captured *captured = exec_captured_of(e);
	const struct buf *out = &captured->streams[0], *errors = &captured->streams[1];
	return exec_output_of((struct str){ out->data, out->len },
		(struct str){ errors->data, errors->len }, captured->measures,
		exec_record_of(e)->result.truncated);
}

void result_print(struct json *j, const char *type, const struct core_exec *e,
	const struct exec_output *output, size_t places[2])
{
	struct exec_output captured = output_of(e);
	json_object(j, NULL);
	if (type)
		json_text(j, "type", type);
	exec_print_result(j, exec_record_of(e)->id, &exec_record_of(e)->result,
		output ? output : &captured, exec_limiter(e), places);
	json_end(j);
}

/* ---- large ---- */

static void on_gone(struct call *c)
{
	struct result_stream *stream = c->priv;
	loop_cancel(c->api->loop, stream->later);
	loop_cancel(c->api->loop, stream->slow);
	exec_captured_done(&stream->captured);
	buf_done(&stream->frame);
	free(stream);
}

static struct str part_of(const struct result_stream *stream)
{
	const char *frame = stream->frame.data;
	const size_t *places = stream->places;
	switch (stream->part) {
	case BEFORE_OUT:
		return (struct str){ frame, places[0] };
	case OUT:
		return stream->output.streams[0];
	case BEFORE_ERRORS:
		return (struct str){ frame + places[0], places[1] - places[0] };
	case ERRORS:
		return stream->output.streams[1];
	default:
		return (struct str){ frame + places[1], stream->frame.len - places[1] };
	}
}

/* The next slice as it is sent. Text is cut between characters. */
static void make_slice(struct result_stream *stream, struct buf *slice)
{
	struct str left = part_of(stream);
	left = (struct str){ left.data + stream->at, left.len - stream->at };
	if (left.len > SLICE) {
		left.len = SLICE;
		if (!stream->output.is_base64)
			left.len -= str_utf8_incomplete(left.data, left.len);
	}
	stream->at += left.len;
	if (stream->part != OUT && stream->part != ERRORS)
		buf_append(slice, left.data, left.len);
	else if (stream->output.is_base64)
		buf_base64(slice, left.data, left.len);
	else
		buf_escaped(slice, left);
}

static void on_later(struct loop *loop, void *ctx);

/* One slice, then the other clients have their turn. */
static void send_on(struct result_stream *stream)
{
	struct call *c = stream->call;
	auto_buf struct buf slice = buf_empty(BUF_MAX_DEFAULT);
	while (!slice.len && stream->part < PART_COUNT) {
		make_slice(stream, &slice);
		if (stream->at < part_of(stream).len)
			break;
		stream->part++;
		stream->at = 0;
	}
	stream->taken_bytes += slice.len;
	bool has_room = http_write(c->r, (struct str){ slice.data, slice.len });
	if (stream->part == PART_COUNT)
		call_end(c);
	else if (has_room)
		stream->later = loop_after(c->api->loop, 0, on_later, stream);
}

static void on_later(struct loop *loop, void *ctx)
{
	struct result_stream *stream = ctx;
	stream->later = NULL;
	send_on(stream);
}

static void on_writable(struct call *c)
{
	struct result_stream *stream = c->priv;
	if (!stream->later)
		send_on(stream);
}

/* What it doesn't take, other execs can't have. */
static void on_slow(struct loop *loop, void *ctx)
{
	struct result_stream *stream = ctx;
	struct call *c = stream->call;
	bool is_slow = stream->taken_bytes < SLOW_BYTES;
	stream->slow = NULL;
	if (is_slow && exec_captured_is_short(stream->captured.core)) {
		call_let_go(c);
		http_abort(c->r);
		return;
	}
	stream->taken_bytes = 0;
	stream->slow = loop_after(loop, SLOW_MS, on_slow, stream);
}

static void answer_large(struct call *c, struct core_exec *e, const struct exec_output *output)
{
	struct result_stream *stream = xzalloc(sizeof *stream);
	const struct exec_output empty = { { STR(""), STR("") }, output->is_base64 };
	buf_init(&stream->frame, BUF_MAX_DEFAULT);
	struct json j = json_to(&stream->frame, false);
	result_print(&j, NULL, e, &empty, stream->places);
	buf_text(&stream->frame, "\n");
	stream->call = c;
	stream->output = *output;
	stream->captured = exec_take_captured(e);
	c->priv = stream;
	c->gone = on_gone;
	c->writable = on_writable;
	call_begin(c, 200, "application/json", NULL);
	stream->slow = loop_after(c->api->loop, SLOW_MS, on_slow, stream);
	send_on(stream);
}

/* ---- either ---- */

static uint64_t size_of(const struct core_exec *e, const struct exec_output *output)
{
	const struct json_measure *measures = exec_captured_of(e)->measures;
	return output->is_base64 ? (output->streams[0].len + output->streams[1].len) / 3 * 4
				 : measures[0].escaped + measures[1].escaped;
}

void result_answer(struct pending *op, struct core_exec *e)
{
	struct exec_output output = output_of(e);
	struct idempotency_entry *entry = op->entry;
	struct json j;
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	if (size_of(e, &output) <= (entry ? IDEMPOTENCY_BODY_MAX : SMALL_BYTES)) {
		j = json_to(&body, false);
		result_print(&j, NULL, e, &output, NULL);
		pending_answer(op, 200, NULL, &body);
		return;
	}
	/* Too large to be stored for its key: a retry gets an error that tells this. */
	struct call *c = pending_end(op);
	if (c)
		answer_large(c, e, &output);
	if (entry)
		idempotency_end(entry, NULL);
}
