/* Frames of a server: whole or byte by byte they are the same messages, and none is longer than the
 * maximum. What a client sends has the length that it says. */
#include <string.h>
#include "format/http/websocket.h"
#include "fuzz.h"

#define MAX 1000

static int collect(struct str in, size_t step, struct buf *out)
{
	struct websocket_reader reader;
	struct websocket_message message;
	size_t start = 0, end = 0, used;
	int status = 0;

	websocket_reader_init(&reader, MAX);
	while (status >= 0 && end < in.len) {
		end = in.len - end < step ? in.len : end + step;
		do {
			struct str rest = { in.data + start, end - start };
			status = websocket_read(&reader, rest, &used, &message, NULL);
			check(used <= rest.len);
			start += used;
			if (status != 1)
				break;
			check(message.data.len <= MAX);
			buf_printf(
				out, "%d|%u|%zu|", message.opcode, message.code, message.data.len);
			buf_append(out, message.data.data, message.data.len);
		} while (start < end);
	}
	websocket_reader_done(&reader);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = { (const char *)data, size };
	const unsigned char mask[4] = { 1, 2, 3, 4 };

	if (size > 65536)
		return 0;
	auto_buf struct buf whole = buf_empty(BUF_MAX_DEFAULT);
	auto_buf struct buf single = buf_empty(BUF_MAX_DEFAULT);
	auto_buf struct buf sent = buf_empty(BUF_MAX_DEFAULT);
	int status = collect(in, size + 1, &whole);
	check(collect(in, 1, &single) == status || size == 0);
	check(whole.len == single.len && !memcmp(whole.data, single.data, whole.len));
	check(websocket_print(&sent, WEBSOCKET_BINARY, mask, &in, 1));
	check(sent.len > size && sent.len <= size + 14);
	return 0;
}
