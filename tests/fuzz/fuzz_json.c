/* The JSON writer: whatever is written, in whatever order, what comes out is one valid JSON value
 * in UTF-8. */
#include <stdbool.h>
#include <string.h>
#include "base/arena.h"
#include "format/text/json.h"
#include "fuzz.h"

/* -- a validator, as strict as RFC 8259: each takes what it is named after off the front of *s --
 */

static bool take(struct str *s, const char *text)
{
	if (!str_starts_with(*s, text))
		return false;
	s->data += strlen(text);
	s->len -= strlen(text);
	return true;
}

static void take_space(struct str *s)
{
	while (take(s, " ") || take(s, "\n"))
		;
}

static void take_string(struct str *s)
{
	static const char hex[] = "0123456789abcdefABCDEF";

	check(take(s, "\""));
	while (!take(s, "\"")) {
		check(s->len > 0 && (unsigned char)s->data[0] >= 0x20);
		if (take(s, "\\")) {
			check(s->len > 0 && strchr("\"\\/bfnrtu", s->data[0]));
			if (s->data[0] == 'u') {
				check(s->len >= 5);
				for (int i = 1; i <= 4; i++)
					check(s->data[i] != '\0' && strchr(hex, s->data[i]));
			}
		}
		s->data++;
		s->len--;
	}
}

static void take_number(struct str *s)
{
	size_t digits = 0;

	take(s, "-");
	check(s->len > 0);
	bool leading_zero = s->data[0] == '0';
	while (s->len > 0 && s->data[0] >= '0' && s->data[0] <= '9') {
		s->data++;
		s->len--;
		digits++;
	}
	check(digits > 0 && (!leading_zero || digits == 1));
}

static void take_value(struct str *s, int depth)
{
	check(depth < JSON_DEPTH_MAX && s->len > 0);
	char kind = s->data[0], end = kind == '{' ? '}' : ']';

	if (kind == '{' || kind == '[') {
		char ends[2] = { end, '\0' };

		s->data++;
		s->len--;
		take_space(s);
		for (bool first = true; !take(s, ends); first = false) {
			check(first || take(s, ","));
			take_space(s);
			if (kind == '{') {
				take_string(s);
				check(take(s, ":"));
				take_space(s);
			}
			take_value(s, depth + 1);
			take_space(s);
		}
	} else if (kind == '"') {
		take_string(s);
	} else if (!take(s, "true") && !take(s, "false") && !take(s, "null")) {
		take_number(s);
	}
}

/* -- a writer that does what the input says -- */

struct input {
	struct arena arena;
	struct str rest;
};

static uint8_t next_byte(struct input *in)
{
	if (in->rest.len == 0)
		return 0;
	in->rest.len--;
	return (uint8_t)*in->rest.data++;
}

static struct str next_bytes(struct input *in)
{
	size_t len = next_byte(in);
	struct str s = { in->rest.data, len < in->rest.len ? len : in->rest.len };

	in->rest.data += s.len;
	in->rest.len -= s.len;
	return s;
}

static void write_item(struct json *j, struct input *in, uint8_t what)
{
	bool wants_key = j->depth > 0 && !j->is_array[j->depth];
	struct str bytes = next_bytes(in);
	const char *key = wants_key ? arena_bytes(&in->arena, bytes.data, bytes.len) : NULL;
	uint64_t number = 0;

	memcpy(&number, bytes.data, bytes.len < 8 ? bytes.len : 8);
	switch (what % 9) {
	case 0:
	case 1:
		if (j->depth + 1 < JSON_DEPTH_MAX)
			(what % 9 ? json_array : json_object)(j, key);
		break;
	case 2:
		json_str(j, key, next_bytes(in));
		break;
	case 3:
		json_text(j, key, arena_bytes(&in->arena, bytes.data, bytes.len));
		break;
	case 4:
		json_u64(j, key, number);
		break;
	case 5:
		json_i64(j, key, (int64_t)number);
		break;
	case 6:
		json_bool(j, key, number & 1);
		break;
	case 7:
		json_null(j, key);
		break;
	case 8:
		bytes = next_bytes(in);
		json_base64(j, key, bytes.data, bytes.len);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .rest = { size ? (const char *)data : "", size } };
	auto_buf struct buf out;
	struct json j;

	buf_init(&out, BUF_MAX_DEFAULT);
	j = json_to(&out, next_byte(&in) & 1);
	json_array(&j, NULL);
	while (in.rest.len > 0) {
		uint8_t what = next_byte(&in);

		if (what >= 0xf0 && j.depth > 1)
			json_end(&j);
		else
			write_item(&j, &in, what);
	}
	while (j.depth > 0)
		json_end(&j);
	json_finish(&j);
	check(!out.overflow && strlen(out.data) == out.len);
	check(str_utf8_prefix(out.data, out.len) == out.len);
	struct str left = { out.data, out.len };
	take_value(&left, 0);
	check(left.len == 0);
	arena_done(&in.arena);
	return 0;
}
