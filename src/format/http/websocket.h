/* websocket.h -- the bytes of RFC 6455 that need no connection: handshakes and frames. Pure.
 * 1. What a client sends is masked; a masked frame of the server is refused, as are reserved bits,
 * unknown opcodes, lengths that are not in their shortest form, control frames that are long or in
 * pieces, pieces without a beginning, and text that is not UTF-8.
 * 2. A message, in one frame or in several, has at most `max` bytes. */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

enum websocket_opcode {
	WEBSOCKET_TEXT = 1,
	WEBSOCKET_BINARY = 2,
	WEBSOCKET_CLOSE = 8,
	WEBSOCKET_PING = 9,
	WEBSOCKET_PONG = 10,
};
#define WEBSOCKET_CONTROL_MAX 125 /* bytes of a close, a ping or a pong */
#define WEBSOCKET_NONCE_LEN 16
#define WEBSOCKET_KEY_LEN 24
#define WEBSOCKET_ACCEPT_LEN 28	 /* characters of Sec-WebSocket-Accept */
#define WEBSOCKET_HEAD_MAX 10	 /* bytes of the head of a frame without a mask */
#define WEBSOCKET_REASON_MAX 123 /* bytes of the reason of a close */

/* Sec-WebSocket-Key of random bytes, NUL-terminated. */
void websocket_key(const unsigned char nonce[WEBSOCKET_NONCE_LEN], char out[WEBSOCKET_KEY_LEN + 1]);
/* Whether the key is valid: base64 of 16 bytes. */
bool websocket_key_is_valid(struct str key);
/* Sec-WebSocket-Accept for that key, NUL-terminated. */
void websocket_accept(struct str key, char out[WEBSOCKET_ACCEPT_LEN + 1]);
/* Writes the head of an unmasked frame that is a whole message of `len` bytes; returns the length
 * of the head. */
size_t websocket_put_head(
	unsigned char out[WEBSOCKET_HEAD_MAX], enum websocket_opcode opcode, size_t len);

/* Appends a message of a client as one frame, its parts behind each other. false: it doesn't fit
 * into out. */
bool websocket_print(struct buf *out, enum websocket_opcode opcode, const unsigned char mask[4],
	const struct str *parts, size_t part_count);

struct websocket_reader {
	size_t max;
	/* private */
	struct buf pieces; /* of a message in several frames */
	int opcode;	   /* of that message; 0: none is begun */
};
struct websocket_message {
	enum websocket_opcode opcode;
	struct str data; /* until the next call; of a close: the reason alone */
	unsigned code;	 /* of a close frame; 1005: the frame has no code */
};
void websocket_reader_init(struct websocket_reader *reader, size_t max);
void websocket_reader_done(struct websocket_reader *reader);
/* Reads one message from the beginning of `bytes`; *used of them were taken, also when there is no
 * message yet. 1: *message, 0: more bytes are needed, -1: ERR_CORRUPT or ERR_LIMIT. */
int websocket_read(struct websocket_reader *reader, struct str bytes, size_t *used,
	struct websocket_message *message, struct error *err);
