#include "policy/reader.h"

static int fail_on(struct reader *r, int line, enum error_code code, const char *text)
{
	if (r->name)
		return fail(r->err, code, "%s:%d: %s", r->name, line, text);
	return fail(r->err, code, "line %d: %s", line, text);
}

int reader_open(struct reader *r, size_t max, struct json_value **object)
{
	const char *named = r->name ? r->name : "the file";
	if (r->text.len > max)
		return fail(r->err, ERR_LIMIT, "%s: more than %zu bytes", named, max);
	if (json_read(r->text, r->arena, object, r->err) < 0)
		return r->name ? error_context(r->err, "%s", r->name) : -1;
	if ((*object)->kind != JSON_OBJECT)
		return fail_on(r, 1, ERR_INVALID, "an object expected");
	r->at = r->text.data;
	r->line = 1;
	return 0;
}

int reader_line(struct reader *r, const struct json_value *value)
{
	const char *end = value->source.data;
	if (!end || end < r->text.data || end > r->text.data + r->text.len)
		return 1;
	if (!r->at || end < r->at) {
		r->at = r->text.data;
		r->line = 1;
	}
	for (; r->at < end; r->at++)
		r->line += *r->at == '\n';
	return r->line;
}

int reader_fail(struct reader *r, const struct json_value *value, const char *fmt, ...)
{
	char text[ERROR_TEXT_SIZE];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return fail_on(r, reader_line(r, value), ERR_INVALID, text);
}

int reader_expect(
	struct reader *r, const struct json_value *value, enum json_kind kind, const char *path)
{
	static const char *const names[] = { "null", "true or false", "a number", "a text",
		"a list", "an object" };
	if (value->kind == kind)
		return 0;
	return reader_fail(r, value, "%s: %s expected", path, names[kind]);
}

bool reader_is_comment(const struct json_value *member)
{
	return (member->key.len && member->key.data[0] == '_') || str_is(member->key, "$schema");
}

int reader_texts(
	struct reader *r, const struct json_value *value, const char *path, text_list *list)
{
	size_t i = 0;
	if (reader_expect(r, value, JSON_ARRAY, path) < 0)
		return -1;
	for (const struct json_value *item = value->first; item; item = item->next, i++) {
		if (item->kind != JSON_STRING || !item->string.len ||
			memchr(item->string.data, '\0', item->string.len))
			return reader_fail(r, item, "%s[%zu]: a text expected", path, i);
		vec_push(r->arena, list, item->string.data);
	}
	return 0;
}

int reader_members(struct reader *r, const struct json_value *object, const char *path,
	const struct reader_member *rows, void *ctx)
{
	if (reader_expect(r, object, JSON_OBJECT, path[0] ? path : "the file") < 0)
		return -1;
	for (const struct json_value *m = object->first; m; m = m->next) {
		const struct reader_member *row = rows;
		char key[64];
		if (reader_is_comment(m))
			continue;
		while (row->key && !str_is(m->key, row->key))
			row++;
		str_printable(key, sizeof key, m->key);
		const char *whole = arena_printf(r->arena, "%s%s%s", path, path[0] ? "." : "", key);
		if (!row->key)
			return reader_fail(r, m, "unknown key '%s'", whole);
		if (row->read && row->read(r, m, whole, (char *)ctx + row->offset) < 0)
			return -1;
		if (row->rows && reader_members(r, m, whole, row->rows, ctx) < 0)
			return -1;
	}
	return 0;
}
