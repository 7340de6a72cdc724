#include "format/text/answer.h"

static bool key_is_valid(struct str key)
{
	if (key.len == 0 || key.len > ANSWER_KEY_MAX)
		return false;
	for (size_t i = 0; i < key.len; i++)
		if (!((key.data[i] >= 'a' && key.data[i] <= 'z') ||
			    (key.data[i] >= '0' && key.data[i] <= '9') || key.data[i] == '_'))
			return false;
	return true;
}

static bool value_is_valid(struct str value)
{
	if (value.len > ANSWER_VALUE_MAX || str_utf8_prefix(value.data, value.len) != value.len)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];
		/* C1 controls are 0xc2 0x80 to 0x9f in UTF-8. */
		if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)value.data[i + 1] < 0xa0))
			return false;
	}
	return true;
}

int answer_parse(struct str text, struct arena *arena, struct answer *out, struct error *err)
{
	struct answer answer = { 0 };
	struct str rest = text, line, key, value;
	if (text.len > ANSWER_MAX)
		return fail(err, ERR_CORRUPT, "an answer of %zu bytes", text.len);
	if (text.len > 0 && text.data[text.len - 1] != '\n')
		return fail(err, ERR_CORRUPT, "the last line isn't whole");
	for (int number = 1; str_next(&rest, '\n', &line); number++) {
		if (!str_cut(line, ' ', &key, &value) || !key_is_valid(key) ||
			!value_is_valid(value))
			return fail(err, ERR_CORRUPT, "line %d isn't a key and a value", number);
		vec_push(arena, &answer.lines,
			(struct answer_line){ arena_bytes(arena, key.data, key.len),
				arena_bytes(arena, value.data, value.len) });
	}
	*out = answer;
	return 0;
}

const char *answer_get(const struct answer *answer, const char *key)
{
	for (size_t i = 0; i < answer->lines.count; i++)
		if (strcmp(answer->lines.items[i].key, key) == 0)
			return answer->lines.items[i].value;
	return NULL;
}
