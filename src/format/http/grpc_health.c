#include "format/http/grpc_health.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PATH "/grpc.health.v1.Health/Check"
#define FRAME_HEAD 9
#define FRAME_MAX 16384 /* SETTINGS_MAX_FRAME_SIZE, as no other was told */
#define STREAM 1
#define MESSAGE_HEAD 5

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY };
enum { END_STREAM = 1, END_HEADERS = 4, PADDED = 8 };

static void put_frame(
	struct buf *out, unsigned type, unsigned flags, unsigned stream, const struct buf *payload)
{
	const char head[FRAME_HEAD] = { (char)(payload->len >> 16), (char)(payload->len >> 8),
		(char)payload->len, (char)type, (char)flags, 0, 0, 0, (char)stream };
	buf_append(out, head, sizeof head);
	if (payload->len)
		buf_append(out, payload->data, payload->len);
}

/* HPACK: a literal that isn't indexed, with a new name; both shorter than 127 bytes. */
static void put_header(struct buf *out, const char *name, const char *value)
{
	buf_char(out, 0);
	buf_char(out, (char)strlen(name));
	buf_text(out, name);
	buf_char(out, (char)strlen(value));
	buf_text(out, value);
}

void grpc_health_request(struct buf *out)
{
	static const char message[MESSAGE_HEAD] = { 0 }; /* not compressed, no bytes: any service */
	auto_buf struct buf payload = buf_empty(4096);
	buf_append(out, PREFACE, sizeof PREFACE - 1);
	put_frame(out, SETTINGS, 0, 0, &payload);
	put_header(&payload, ":method", "POST");
	put_header(&payload, ":scheme", "http");
	put_header(&payload, ":path", PATH);
	put_header(&payload, ":authority", "localhost");
	put_header(&payload, "content-type", "application/grpc");
	put_header(&payload, "te", "trailers");
	put_frame(out, HEADERS, END_HEADERS, STREAM, &payload);
	buf_clear(&payload);
	buf_append(&payload, message, sizeof message);
	put_frame(out, DATA, END_STREAM, STREAM, &payload);
}

/* HealthCheckResponse {status = 1}, behind the head of a message; SERVING is 1. */
static bool says_serving(struct str message)
{
	return message.len == 2 && message.data[0] == 0x08 && message.data[1] == 1;
}

struct frame {
	unsigned type, flags;
	uint32_t stream;
	struct str payload;
};

/* 1: *frame, and *rest behind it; 0: it isn't whole; -1: no HTTP/2. */
static int next_frame(struct str *rest, struct frame *frame, struct error *err)
{
	const unsigned char *head = (const unsigned char *)rest->data;
	if (rest->len < FRAME_HEAD)
		return 0;
	size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
	if (len > FRAME_MAX)
		return fail(err, ERR_INVALID, "not HTTP/2: a frame of %zu bytes", len);
	if (rest->len < FRAME_HEAD + len)
		return 0;
	*frame = (struct frame){ .type = head[3],
		.flags = head[4],
		.stream = (uint32_t)(head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 |
			  (uint32_t)head[7] << 8 | head[8],
		.payload = { rest->data + FRAME_HEAD, len } };
	rest->data += FRAME_HEAD + len;
	rest->len -= FRAME_HEAD + len;
	return 1;
}

/* The bytes of a DATA frame, without its padding. */
static struct str data_of(const struct frame *frame)
{
	struct str data = frame->payload;
	if (!(frame->flags & PADDED) || !data.len)
		return data;
	size_t padding = (unsigned char)data.data[0];
	return padding < data.len ? (struct str){ data.data + 1, data.len - 1 - padding }
				  : (struct str){ data.data, 0 };
}

static enum grpc_health grpc_health_judge(const char *message, size_t len, bool has_ended)
{
	if (len >= MESSAGE_HEAD) {
		size_t size = (size_t)(unsigned char)message[3] << 8 | (unsigned char)message[4];
		if (message[0] || message[1] || message[2] || size > len)
			return GRPC_HEALTH_NOT_SERVING;
		if (len >= MESSAGE_HEAD + size)
			return says_serving((struct str){ message + MESSAGE_HEAD, size })
				       ? GRPC_HEALTH_SERVING
				       : GRPC_HEALTH_NOT_SERVING;
	}
	return has_ended ? GRPC_HEALTH_NO_SERVICE : GRPC_HEALTH_MORE;
}

int grpc_health_read(struct str bytes, enum grpc_health *health, struct error *err)
{
	char message[64];
	size_t len = 0;
	bool has_ended = false, is_first = true;
	struct frame frame = { 0 };
	int got;
	while ((got = next_frame(&bytes, &frame, err)) > 0 && !has_ended) {
		if (is_first && frame.type != SETTINGS)
			return fail(err, ERR_INVALID, "HTTP/2 begins with SETTINGS");
		is_first = false;
		if (frame.type == GOAWAY || (frame.type == RST_STREAM && frame.stream == STREAM))
			has_ended = true;
		if (frame.stream != STREAM || (frame.type != DATA && frame.type != HEADERS))
			continue;
		has_ended |= frame.flags & END_STREAM;
		struct str data = frame.type == DATA ? data_of(&frame) : (struct str){ 0 };
		for (size_t i = 0; i < data.len && len < sizeof message; i++)
			message[len++] = data.data[i];
	}
	if (got < 0)
		return -1;
	*health = grpc_health_judge(message, len, has_ended);
	return 0;
}
