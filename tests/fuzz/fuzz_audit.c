/* What is recorded: redaction makes JSON of JSON, whatever a command's arguments are; lines and
 * heads of a file that somebody has written are read or refused. */
#include "audit/head.h"
#include "audit/line.h"
#include "audit/redact.h"
#include "format/text/json_read.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	auto_buf struct buf json = buf_empty(1 << 22), clean = buf_empty(1 << 22);
	auto_arena struct arena arena;
	const struct audit_key key = { .is_there = true };
	struct json_value *value;
	struct audit_line line;
	struct audit_head head;
	struct error err;
	arena_init(&arena);
	if (size > 65536)
		return 0;
	/* As two arguments: options may be in one, and their value in the next. */
	buf_char(&json, '[');
	buf_quoted(&json, (struct str){ text.data, size / 2 });
	buf_char(&json, ',');
	buf_quoted(&json, (struct str){ text.data + size / 2, size - size / 2 });
	buf_char(&json, ']');
	redact_json((struct str){ json.data, json.len }, &clean);
	check(!clean.overflow);
	check(!json_read((struct str){ clean.data, clean.len }, &arena, &value, &err));
	check(value->count == 2);
	buf_clear(&clean);
	redact_json(text, &clean);
	if (audit_line_read(text, &line))
		check(line.link.seq > 0 && audit_line_time(text).len < size);
	check(audit_head_read(text, &key, &head) != HEAD_UNCHECKED);
	return 0;
}
