/* A text message on the socket of an exec: what is read is within its bounds, anything else is an
 * error of one line. */
#include <string.h>
#include "model/nouns/exec_message.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct exec_message message = { .kind = -1 };
	struct error err = { 0 };

	if (exec_message_read((struct str){ (const char *)data, size }, &arena, &message, &err)) {
		check((err.code == ERR_INVALID || err.code == ERR_LIMIT) && err.text[0] &&
			!strchr(err.text, '\n'));
		check((int)message.kind == -1);
		return 0;
	}
	switch (message.kind) {
	case EXEC_MESSAGE_START:
		exec_spec_expand(&message.spec, &arena);
		check(message.spec.argv.count && !message.spec.argv.items[message.spec.argv.count]);
		check(message.spec.rows < 65536 && message.spec.columns < 65536);
		break;
	case EXEC_MESSAGE_RESIZE:
		check(message.rows && message.rows < 65536 && message.columns &&
			message.columns < 65536);
		break;
	case EXEC_MESSAGE_SIGNAL:
		check(message.signal > 0 && message.signal <= 64);
		break;
	default:
		check(false);
	}
	return 0;
}
