/* exec_message.h -- the text messages of an interactive exec on a WebSocket, as docs/websocket.md
 * has them: what a client sends, and how the end is told. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "model/nouns/exec.h"

#define EXEC_SOCKET_PROTOCOL "carrel.exec.v1"

/* The first byte of a binary message. */
enum exec_stream_byte { EXEC_STREAM_STDIN, EXEC_STREAM_STDOUT, EXEC_STREAM_STDERR };

#define EXEC_MESSAGE_STDIN_MAX 65536 /* bytes of stdin in one message */
#define EXEC_MESSAGE_START_MAX (1u << 20)
#define EXEC_MESSAGE_TEXT_MAX 4096 /* bytes of other text messages */

enum exec_message_kind { EXEC_MESSAGE_START, EXEC_MESSAGE_RESIZE, EXEC_MESSAGE_SIGNAL };
struct exec_message {
	enum exec_message_kind kind;
	struct exec_spec spec;	/* EXEC_MESSAGE_START: as the body of POST .../exec has it */
	uint64_t rows, columns; /* EXEC_MESSAGE_RESIZE */
	int signal;		/* EXEC_MESSAGE_SIGNAL */
};
/* Reads one text message; its texts are in the arena. `cols` may stand for `columns`. ERR_INVALID
 * says what is wrong with it. */
int exec_message_read(
	struct str text, struct arena *arena, struct exec_message *message, struct error *err);

/* {"type":"exit", …}: the members of a result but its streams, and `error`: why it could not start,
 * or how its end was lost. */
void exec_print_exit(struct json *j, const struct exec_record *e, const char *limiter);
