/* The JSON reader: an error with a place, or a tree that, written again, reads as the same tree. */
#include <string.h>
#include "format/text/json.h"
#include "format/text/json_read.h"
#include "fuzz.h"

static void check_string(struct str s)
{
	check(s.data[s.len] == '\0' && str_utf8_prefix(s.data, s.len) == s.len);
}

static void check_value(const struct json_value *v, int depth)
{
	size_t count = 0;

	check(depth <= JSON_READ_DEPTH_MAX + 1 && v->kind <= JSON_OBJECT);
	if (v->kind == JSON_STRING)
		check_string(v->string);
	if (v->kind == JSON_NUMBER)
		check(v->number - v->number == 0); /* finite */
	check(v->kind == JSON_ARRAY || v->kind == JSON_OBJECT || !v->first);
	for (const struct json_value *m = v->first; m; m = m->next, count++) {
		check((m->key.data != NULL) == (v->kind == JSON_OBJECT));
		if (m->key.data)
			check_string(m->key);
		check_value(m, depth + 1);
	}
	check(count == v->count);
}

/* Compact, by no code of the reader's or writer's but the quoting of strings. */
static void print(const struct json_value *v, struct buf *out)
{
	char ends[3] = "[]";

	if (v->kind == JSON_OBJECT)
		memcpy(ends, "{}", 2);
	if (v->kind == JSON_NULL)
		buf_text(out, "null");
	else if (v->kind == JSON_BOOL)
		buf_text(out, v->boolean ? "true" : "false");
	else if (v->kind == JSON_NUMBER && v->is_integer)
		buf_printf(out, "%lld", (long long)v->integer);
	else if (v->kind == JSON_NUMBER)
		buf_printf(out, "%.17e", v->number);
	else if (v->kind == JSON_STRING)
		buf_quoted(out, v->string);
	if (v->kind < JSON_ARRAY)
		return;
	buf_char(out, ends[0]);
	for (const struct json_value *m = v->first; m; m = m->next) {
		if (m != v->first)
			buf_char(out, ',');
		if (v->kind == JSON_OBJECT) {
			buf_quoted(out, m->key);
			buf_char(out, ':');
		}
		print(m, out);
	}
	buf_char(out, ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf once = { 0 }, twice = { 0 };
	struct json_value *v = NULL, *again = NULL;
	struct error err = { 0 };

	if (json_read((struct str){ (const char *)data, size }, &arena, &v, &err) < 0) {
		check(!v && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
		check(strncmp(err.text, "line ", 5) == 0);
		return 0;
	}
	check_value(v, 0);
	buf_init(&once, BUF_MAX_DEFAULT);
	buf_init(&twice, BUF_MAX_DEFAULT);
	print(v, &once);
	check(json_read((struct str){ once.data, once.len }, &arena, &again, &err) == 0);
	print(again, &twice);
	check(strcmp(once.data, twice.data) == 0);
	return 0;
}
