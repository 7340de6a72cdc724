#include "format/http/websocket.h"

#include "base/arena.h"
#include "format/text/base64.h"

#define SHA1_LEN 20
#define SHA1_BLOCK 64
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* of RFC 6455 */
#define CODE_NONE 1005

/* ---- the handshake ---- */

static uint32_t rotate(uint32_t value, int bits)
{
	return value << bits | value >> (32 - bits);
}

static void sha1_block(uint32_t state[5], const unsigned char *block)
{
	static const uint32_t constants[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t words[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
	for (int i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
			   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 80; i++)
		words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t mixed = i < 20	  ? (b & c) | (~b & d)
				 : i < 40 ? b ^ c ^ d
				 : i < 60 ? (b & c) | (b & d) | (c & d)
					  : b ^ c ^ d;
		uint32_t next = rotate(a, 5) + mixed + e + constants[i / 20] + words[i];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

/* Of at most 119 bytes, which is more than a key and the GUID. RFC 6455 wants SHA-1; no secret
 * depends on it. */
static void sha1_short(const char *text, size_t len, unsigned char out[SHA1_LEN])
{
	uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	unsigned char blocks[2 * SHA1_BLOCK] = { 0 };
	size_t size = len + 9 > SHA1_BLOCK ? 2 * SHA1_BLOCK : SHA1_BLOCK;
	memcpy(blocks, text, len);
	blocks[len] = 0x80;
	blocks[size - 2] = (unsigned char)(len * 8 >> 8);
	blocks[size - 1] = (unsigned char)(len * 8);
	for (size_t at = 0; at < size; at += SHA1_BLOCK)
		sha1_block(state, blocks + at);
	for (int i = 0; i < SHA1_LEN; i++)
		out[i] = (unsigned char)(state[i / 4] >> (24 - i % 4 * 8));
}

static void print_base64(const unsigned char *data, size_t len, char *out, size_t size)
{
	auto_buf struct buf text = buf_empty(64);
	buf_base64(&text, data, len);
	str_copy(out, size, text.data);
}

void websocket_key(const unsigned char nonce[WEBSOCKET_NONCE_LEN], char out[WEBSOCKET_KEY_LEN + 1])
{
	print_base64(nonce, WEBSOCKET_NONCE_LEN, out, WEBSOCKET_KEY_LEN + 1);
}

bool websocket_key_is_valid(struct str key)
{
	auto_arena struct arena arena = { 0 };
	struct str bytes;
	return key.len == WEBSOCKET_KEY_LEN && base64_decode(key, &arena, &bytes) &&
	       bytes.len == WEBSOCKET_NONCE_LEN;
}

void websocket_accept(struct str key, char out[WEBSOCKET_ACCEPT_LEN + 1])
{
	char text[WEBSOCKET_KEY_LEN + sizeof GUID];
	unsigned char hash[SHA1_LEN];
	int len = (int)(key.len < WEBSOCKET_KEY_LEN ? key.len : WEBSOCKET_KEY_LEN);
	str_format(text, sizeof text, "%.*s%s", len, key.data, GUID);
	sha1_short(text, strlen(text), hash);
	print_base64(hash, sizeof hash, out, WEBSOCKET_ACCEPT_LEN + 1);
}

/* ---- frames that are sent ---- */

size_t websocket_put_head(
	unsigned char out[WEBSOCKET_HEAD_MAX], enum websocket_opcode opcode, size_t len)
{
	size_t bytes = len < 126 ? 0 : len <= UINT16_MAX ? 2 : 8;
	out[0] = (unsigned char)(0x80 | opcode);
	out[1] = (unsigned char)(bytes == 0 ? len : bytes == 2 ? 126 : 127);
	for (size_t i = 0; i < bytes; i++)
		out[2 + i] = (unsigned char)((uint64_t)len >> (bytes - 1 - i) * 8);
	return 2 + bytes;
}

bool websocket_print(struct buf *out, enum websocket_opcode opcode, const unsigned char mask[4],
	const struct str *parts, size_t part_count)
{
	unsigned char head[WEBSOCKET_HEAD_MAX];
	size_t len = 0, at = 0;
	for (size_t i = 0; i < part_count; i++)
		len += parts[i].len;
	size_t head_len = websocket_put_head(head, opcode, len);
	char *room = buf_reserve(out, head_len + 4 + len);
	if (!room)
		return false;
	head[1] |= 0x80;
	memcpy(room, head, head_len);
	memcpy(room + head_len, mask, 4);
	room += head_len + 4;
	for (size_t i = 0; i < part_count; i++)
		for (size_t n = 0; n < parts[i].len; n++, at++)
			room[at] = (char)((unsigned char)parts[i].data[n] ^ mask[at % 4]);
	buf_grew(out, head_len + 4 + len);
	return true;
}

/* ---- frames that come ---- */

struct frame {
	bool is_last;
	int opcode; /* 0: a further piece */
	size_t head_len;
	uint64_t len;
};

void websocket_reader_init(struct websocket_reader *reader, size_t max)
{
	*reader = (struct websocket_reader){ .max = max };
	buf_init(&reader->pieces, max);
}

void websocket_reader_done(struct websocket_reader *reader)
{
	buf_done(&reader->pieces);
}

static bool is_control(int opcode)
{
	return opcode >= WEBSOCKET_CLOSE;
}

/* 1: the head is there, 0: more is needed, -1. */
static int read_head(struct str bytes, struct frame *frame, struct error *err)
{
	const unsigned char *data = (const unsigned char *)bytes.data;
	if (bytes.len < 2)
		return 0;
	frame->is_last = data[0] & 0x80;
	frame->opcode = data[0] & 0x0f;
	if (data[0] & 0x70)
		return fail(err, ERR_CORRUPT, "a WebSocket frame with reserved bits");
	if (frame->opcode > WEBSOCKET_PONG ||
		(frame->opcode > WEBSOCKET_BINARY && !is_control(frame->opcode)))
		return fail(err, ERR_CORRUPT, "a WebSocket frame with unknown opcode %d",
			frame->opcode);
	if (data[1] & 0x80)
		return fail(err, ERR_CORRUPT, "a WebSocket frame of the server is masked");
	frame->len = data[1];
	if (is_control(frame->opcode) && (frame->len > WEBSOCKET_CONTROL_MAX || !frame->is_last))
		return fail(err, ERR_CORRUPT, "a WebSocket control frame is long or in pieces");
	size_t more = frame->len < 126 ? 0 : frame->len == 126 ? 2 : 8;
	frame->head_len = 2 + more;
	if (bytes.len < frame->head_len)
		return 0;
	if (more)
		frame->len = 0;
	for (size_t i = 0; i < more; i++)
		frame->len = frame->len << 8 | data[2 + i];
	if ((more == 2 && frame->len < 126) || (more == 8 && frame->len <= UINT16_MAX))
		return fail(err, ERR_CORRUPT,
			"the length of a WebSocket frame is not in its shortest form");
	return 1;
}

static int check_order(
	const struct websocket_reader *reader, const struct frame *frame, struct error *err)
{
	if (is_control(frame->opcode))
		return 0;
	if (frame->opcode == 0 && !reader->opcode)
		return fail(err, ERR_CORRUPT, "a WebSocket message without a beginning");
	if (frame->opcode != 0 && reader->opcode)
		return fail(err, ERR_CORRUPT, "a WebSocket message in the middle of another");
	if (frame->len > reader->max - reader->pieces.len)
		return fail(err, ERR_LIMIT, "a WebSocket message is longer than %zu bytes",
			reader->max);
	return 0;
}

static int read_close(struct str data, struct websocket_message *message, struct error *err)
{
	const unsigned char *code = (const unsigned char *)data.data;
	message->code = CODE_NONE;
	message->data = (struct str){ data.data, 0 };
	if (data.len == 0)
		return 0;
	message->code = data.len < 2 ? 0 : (unsigned)(code[0] << 8 | code[1]);
	/* Those that a peer may send: 1004 to 1006 and 1015 stand for something else. */
	if (message->code < 1000 || message->code > 4999 || message->code == 1015 ||
		(message->code >= 1004 && message->code <= 1006))
		return fail(
			err, ERR_CORRUPT, "a WebSocket close with invalid code %u", message->code);
	message->data = (struct str){ data.data + 2, data.len - 2 };
	return 0;
}

static int check_text(const struct websocket_message *message, struct error *err)
{
	bool is_text = message->opcode == WEBSOCKET_TEXT || message->opcode == WEBSOCKET_CLOSE;
	return !is_text || str_utf8_prefix(message->data.data, message->data.len) ==
				       message->data.len
		       ? 0
		       : fail(err, ERR_CORRUPT, "a WebSocket message is not valid UTF-8");
}

/* A whole frame of data: 1 when it ends its message. */
static int take_data(struct websocket_reader *reader, const struct frame *frame, struct str data,
	struct websocket_message *message)
{
	if (frame->opcode)
		reader->opcode = frame->opcode;
	message->opcode = (enum websocket_opcode)reader->opcode;
	message->data = data;
	if (frame->is_last && frame->opcode) {
		reader->opcode = 0;
		return 1;
	}
	buf_append(&reader->pieces, data.data, data.len);
	if (!frame->is_last)
		return 0;
	reader->opcode = 0;
	message->data = (struct str){ reader->pieces.data, reader->pieces.len };
	return 1;
}

int websocket_read(struct websocket_reader *reader, struct str bytes, size_t *used,
	struct websocket_message *message, struct error *err)
{
	struct frame frame = { 0 };
	struct websocket_message read = { 0 };
	*used = 0;
	/* The last message was in pieces, and has been seen. */
	if (!reader->opcode)
		buf_clear(&reader->pieces);
	for (;;) {
		struct str rest = { bytes.data + *used, bytes.len - *used };
		int status = read_head(rest, &frame, err);
		if (status <= 0)
			return status;
		if (check_order(reader, &frame, err))
			return -1;
		if (rest.len - frame.head_len < frame.len)
			return 0;
		struct str data = { rest.data + frame.head_len, (size_t)frame.len };
		*used += frame.head_len + data.len;
		if (is_control(frame.opcode)) {
			read = (struct websocket_message){ (enum websocket_opcode)frame.opcode,
				data, 0 };
			if (frame.opcode == WEBSOCKET_CLOSE && read_close(data, &read, err))
				return -1;
		} else if (!take_data(reader, &frame, data, &read)) {
			continue;
		}
		if (check_text(&read, err))
			return -1;
		*message = read;
		return 1;
	}
}
