#include <string.h>
#include "base/str.h"
#include "format/json_read.h"
#include "model/document.h"
#include "model/workspace.h"

/* -- out -- */

static void print_count(struct json *j, const char *key, uint64_t value)
{
	json_u64(j, key, value > INT64_MAX ? INT64_MAX : value);
}

/* Pairs, not an object: a key that is there twice must be readable too. */
static void print_pairs(struct json *j, const char *key, const pair_list *pairs)
{
	json_array(j, key);
	for (size_t i = 0; i < pairs->count; i++) {
		json_array(j, NULL);
		json_text(j, NULL, pairs->items[i].key);
		json_text(j, NULL, pairs->items[i].value);
		json_end(j);
	}
	json_end(j);
}

static void print_texts(struct json *j, const char *key, const text_list *texts)
{
	json_array(j, key);
	for (size_t i = 0; i < texts->count; i++)
		json_text(j, NULL, texts->items[i]);
	json_end(j);
}

static void print_object(
	struct json *j, const char *key, const struct document_field *fields, const char *object)
{
	json_object(j, key);
	for (const struct document_field *f = fields; f->key; f++) {
		const void *at = object + f->offset;
		switch (f->kind) {
		case DOCUMENT_TEXT:
			json_text(j, f->key, *(const char *const *)at);
			break;
		case DOCUMENT_COUNT:
			print_count(j, f->key, *(const uint64_t *)at);
			break;
		case DOCUMENT_INT:
			json_i64(j, f->key, *(const int *)at < 0 ? 0 : *(const int *)at);
			break;
		case DOCUMENT_BOOL:
			json_bool(j, f->key, *(const bool *)at);
			break;
		case DOCUMENT_NAME:
			json_text(j, f->key, f->name_of(*(const int *)at));
			break;
		case DOCUMENT_PAIRS:
			print_pairs(j, f->key, at);
			break;
		case DOCUMENT_LATER_BOOL:
			if (*(const bool *)at)
				json_bool(j, f->key, true);
			break;
		case DOCUMENT_LATER_TEXTS:
			if (((const text_list *)at)->count == 0)
				break;
			print_texts(j, f->key, at);
			break;
		case DOCUMENT_TEXTS:
			print_texts(j, f->key, at);
			break;
		case DOCUMENT_OBJECT:
			print_object(j, f->key, f->fields, at);
			break;
		}
	}
	json_end(j);
}

void document_print(const struct document_field *fields, const void *object, struct buf *out)
{
	struct json j;
	json_init(&j, out, false);
	print_object(&j, NULL, fields, object);
	json_finish(&j);
}

/* -- in -- */

/* A string without NUL, or NULL. */
static const char *text_of(const struct json_value *v)
{
	bool is_text = v->kind == JSON_STRING && !memchr(v->string.data, '\0', v->string.len);
	return is_text ? v->string.data : NULL;
}

static bool read_pairs(const struct json_value *v, struct arena *arena, pair_list *pairs)
{
	*pairs = (pair_list){ 0 };
	if (v->kind != JSON_ARRAY)
		return false;
	for (const struct json_value *item = v->first; item; item = item->next) {
		if (item->kind != JSON_ARRAY || item->count != 2)
			return false;
		struct text_pair pair = { text_of(item->first), text_of(item->first->next) };
		if (!pair.key || !pair.value)
			return false;
		vec_push(arena, pairs, pair);
	}
	return true;
}

static bool read_texts(const struct json_value *v, struct arena *arena, text_list *texts)
{
	*texts = (text_list){ 0 };
	if (v->kind != JSON_ARRAY)
		return false;
	for (const struct json_value *item = v->first; item; item = item->next) {
		const char *text = text_of(item);
		if (!text)
			return false;
		vec_push(arena, texts, text);
	}
	vec_push(arena, texts, NULL);
	texts->count--;
	return true;
}

static bool read_integer(const struct json_value *v, int64_t most, int64_t *value)
{
	if (v->kind != JSON_NUMBER || !v->is_integer || v->integer < 0 || v->integer > most)
		return false;
	*value = v->integer;
	return true;
}

static bool read_name(const struct json_value *v, const char *(*name_of)(int value), int *value)
{
	for (int i = 0; v->kind == JSON_STRING && name_of(i); i++)
		if (str_is(v->string, name_of(i))) {
			*value = i;
			return true;
		}
	return false;
}

static bool read_plain(
	const struct json_value *v, const struct document_field *f, struct arena *arena, void *at)
{
	int64_t integer;
	switch (f->kind) {
	case DOCUMENT_TEXT:
		*(const char **)at = text_of(v);
		return v->kind == JSON_NULL || *(const char **)at;
	case DOCUMENT_COUNT:
		if (!read_integer(v, INT64_MAX, &integer))
			return false;
		*(uint64_t *)at = (uint64_t)integer;
		return true;
	case DOCUMENT_INT:
		if (!read_integer(v, INT32_MAX, &integer))
			return false;
		*(int *)at = (int)integer;
		return true;
	case DOCUMENT_LATER_BOOL:
	case DOCUMENT_BOOL:
		*(bool *)at = v->boolean;
		return v->kind == JSON_BOOL;
	case DOCUMENT_NAME:
		return read_name(v, f->name_of, at);
	case DOCUMENT_PAIRS:
		return read_pairs(v, arena, at);
	case DOCUMENT_TEXTS:
	case DOCUMENT_LATER_TEXTS:
		return read_texts(v, arena, at);
	case DOCUMENT_OBJECT:
		break;
	}
	return false;
}

static int read_object(const struct json_value *object, const struct document_field *fields,
	struct arena *arena, char *out, struct error *err)
{
	size_t count = 0;
	if (object->kind != JSON_OBJECT)
		return fail(err, ERR_CORRUPT, "it is not an object");
	for (const struct document_field *f = fields; f->key; f++) {
		const struct json_value *v = json_member(object, f->key);
		if (!v && (f->kind == DOCUMENT_LATER_TEXTS || f->kind == DOCUMENT_LATER_BOOL))
			continue;
		count++;
		if (v && f->kind == DOCUMENT_OBJECT) {
			if (read_object(v, f->fields, arena, out + f->offset, err))
				return error_context(err, "field '%s'", f->key);
		} else if (!v || !read_plain(v, f, arena, out + f->offset)) {
			return fail(err, ERR_CORRUPT, "field '%s' is missing or wrong", f->key);
		}
	}
	if (object->count != count)
		return fail(err, ERR_CORRUPT, "it has fields that nobody knows");
	return 0;
}

int document_parse(const struct document_field *fields, struct str text, struct arena *arena,
	void *object, struct error *err)
{
	struct json_value *value;
	struct error why;
	if (json_read(text, arena, &value, &why))
		return fail(err, ERR_CORRUPT, "%s", why.text);
	return read_object(value, fields, arena, object, err);
}
