/* websocket.h -- WebSocket connections (RFC 6455), the server's side, on streams that were
 * upgraded.
 * 1. Messages arrive whole, fragmented or not, and have a maximum; text is UTF-8. A client that
 * breaks the protocol gets the close code for it (1002, 1007, 1009) and is gone.
 * 2. A paused connection isn't read, nor one that has WEBSOCKET_ENOUGH bytes waiting to be sent:
 * the memory of one is bounded whatever its client does.
 * 3. A ping is sent every ping_ms. A client that answers none of WEBSOCKET_PINGS in a row is gone,
 * and so is one that doesn't complete a message in that time. Pings that are sent while the
 * connection isn't read, or while the client doesn't read, don't count.
 * 4. The handler is called from the loop only, never from inside a function below. `closed` is its
 * last call. */
#pragma once
#include "base/str.h"
#include "net/stream.h"
#include "proc/loop.h"

#define WEBSOCKET_ENOUGH 65536
#define WEBSOCKET_PINGS 3

/* Codes of RFC 6455, 7.4.1. */
enum websocket_code {
	WEBSOCKET_NORMAL = 1000,
	WEBSOCKET_GOING_AWAY = 1001,
	WEBSOCKET_PROTOCOL = 1002,
	WEBSOCKET_REFUSED = 1008,
	WEBSOCKET_TOO_LONG = 1009,
	WEBSOCKET_FAILED = 1011,
};
struct websocket_times {
	uint64_t ping_ms;
	uint64_t flush_ms;  /* for a client that takes nothing of the last bytes */
	uint64_t linger_ms; /* for the client to close after a Close that was sent */
};
extern const struct websocket_times websocket_times_default;

struct websocket;
struct websocket_handler {
	void (*message)(void *ctx, bool is_text, struct str data);
	void (*writable)(void *ctx); /* after websocket_send returned false */
	void (*tick)(void *ctx);     /* with every ping */
	void (*closed)(void *ctx);   /* the client has closed, or is gone */
	void *ctx;
};
/* All connections of one server. */
struct websocket_group;
struct websocket_group *websocket_group_new(struct loop *loop, const struct websocket_times *times);
/* Cuts those that are left; their handlers are called (`closed`). NULL: nothing. */
void websocket_group_free(struct websocket_group *group);
size_t websocket_count(const struct websocket_group *group);

/* Takes the stream; `early` are the bytes that came behind the handshake. The handler is called for
 * them in a later turn of the loop. */
struct websocket *websocket_new(struct websocket_group *group, struct net_stream *stream,
	struct str early, const struct websocket_handler *handler);
/* The longest messages that are accepted from now on; longer ones: 1009. */
void websocket_set_max(struct websocket *ws, size_t text_max, size_t binary_max);
/* At most one buffer of messages (4 kB) that was read already may still arrive. */
void websocket_pause(struct websocket *ws, bool paused);
void websocket_send_text(struct websocket *ws, struct str text);
/* A binary message that begins with the byte `first`. false: enough is waiting, `writable` will be
 * called; what was given is taken all the same. */
bool websocket_send_binary(struct websocket *ws, unsigned char first, struct str data);
/* Sends what waits, then Close with that code and reason (cut to WEBSOCKET_REASON_MAX bytes). The
 * handler isn't called any more, and ws is no longer the caller's. */
void websocket_close(struct websocket *ws, enum websocket_code code, const char *reason);
