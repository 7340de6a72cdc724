/* What is shown of a struct, what is sent of it, and what the store keeps of it. */
#include "base/clock.h"
#include "model/records/record.h"

bool field_is(const struct record *record, const struct field *row, unsigned use)
{
	unsigned uses = row->flags & FIELD_USES;
	return ((uses ? uses : record->uses) & use) != 0;
}

const char *field_unit(const struct field *row)
{
	return row->kind == FIELD_DURATION ? "_ms" : row->kind == FIELD_SIZE ? "_bytes" : NULL;
}

struct field_name field_name(const struct field *row, unsigned use)
{
	struct field_name name;
	const char *unit = use == FIELD_IN ? NULL : field_unit(row);
	if (use == FIELD_KEPT && row->kept)
		str_copy(name.text, sizeof name.text, row->kept);
	else
		str_format(name.text, sizeof name.text, "%s%s%s",
			use == FIELD_KEPT && row->kind == FIELD_CPUS ? "milli" : "", row->name,
			unit ? unit : "");
	return name;
}

/* -- values -- */

static const char *choice_name(const struct field *row, int value)
{
	for (const struct field_choice *c = row->choices; c && c->name; c++)
		if (c->value == value)
			return c->name;
	return row->names ? row->names[value] : NULL;
}

static bool is_empty(const struct field *row, const void *at)
{
	switch (row->kind) {
	case FIELD_TEXT:
	case FIELD_JSON:
		return !*(const char *const *)at;
	case FIELD_BOOLEAN:
		return !*(const bool *)at;
	case FIELD_INT:
	case FIELD_CHOICE:
		return !*(const int *)at;
	case FIELD_TEXTS:
		return !((const text_list *)at)->count;
	case FIELD_PAIRS:
		return !((const pair_list *)at)->count;
	case FIELD_INTEGER:
	case FIELD_SIZE:
	case FIELD_DURATION:
	case FIELD_CPUS:
	case FIELD_TIME:
		return !*(const uint64_t *)at;
	case FIELD_REAL:
		return !(*(const double *)at > 0);
	default:
		return false;
	}
}

/* Pairs, not an object, since duplicate keys must survive. */
static void print_kept_pairs(struct json *j, const char *key, const pair_list *pairs)
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

static void print_pairs(struct json *j, const char *key, const pair_list *pairs)
{
	json_object(j, key);
	for (size_t i = 0; i < pairs->count; i++)
		json_text(j, pairs->items[i].key, pairs->items[i].value);
	json_end(j);
}

static void print_time(struct json *j, const char *key, int64_t unix_ms)
{
	char text[32];
	clock_format(text, unix_ms);
	json_text(j, key, unix_ms ? text : NULL);
}

static void print_stream(struct json *j, const char *key, const struct field_stream *stream)
{
	if (stream->is_base64)
		json_base64(j, key, stream->bytes.data, stream->bytes.len);
	else
		json_str(j, key, stream->bytes);
	if (stream->place)
		*stream->place = j->out->len - 1;
}

static void print_object(struct json *j, const char *key, const struct record *record,
	const void *object, unsigned use);

static void print_value(
	struct json *j, const char *key, const struct field *row, const void *at, unsigned use)
{
	uint64_t count;
	switch (row->kind) {
	case FIELD_TEXT:
		json_text(j, key, *(const char *const *)at);
		break;
	case FIELD_JSON:
		if (use == FIELD_KEPT || !*(const char *const *)at)
			json_text(j, key, *(const char *const *)at);
		else
			json_raw(j, key, *(const char *const *)at);
		break;
	case FIELD_ID:
		json_text(j, key, at);
		break;
	case FIELD_INT:
		json_i64(j, key, *(const int *)at < 0 ? 0 : *(const int *)at);
		break;
	case FIELD_BOOLEAN:
		json_bool(j, key, *(const bool *)at);
		break;
	case FIELD_REAL:
		json_real(j, key, *(const double *)at);
		break;
	case FIELD_INTEGER:
	case FIELD_SIZE:
	case FIELD_DURATION:
	case FIELD_CPUS:
		count = *(const uint64_t *)at;
		if (row->kind == FIELD_CPUS && use != FIELD_KEPT)
			json_real(j, key, (double)count / 1000);
		else
			json_u64(j, key, count > INT64_MAX ? INT64_MAX : count);
		break;
	case FIELD_CHOICE:
		json_text(j, key, choice_name(row, *(const int *)at));
		break;
	case FIELD_TEXTS:
		json_texts(j, key, at);
		break;
	case FIELD_PAIRS:
		(use == FIELD_KEPT ? print_kept_pairs : print_pairs)(j, key, at);
		break;
	case FIELD_OBJECT:
		print_object(j, key, row->object, at, use);
		break;
	case FIELD_TIME:
		print_time(j, key, *(const int64_t *)at);
		break;
	case FIELD_STREAM:
		print_stream(j, key, at);
		break;
	case FIELD_OBJECTS:
	case FIELD_VALUE:
		json_raw(j, key, *(const char *const *)at);
		break;
	default: /* kinds that are sent alone */
		json_null(j, key);
		break;
	}
}

static bool is_null(const struct field *row, const char *object)
{
	if (!(row->flags & FIELD_NULLABLE) || row->kind == FIELD_PAIRS)
		return false;
	return row->has ? !*(const bool *)(object + row->has - 1)
			: is_empty(row, object + row->offset);
}

/* Of what is kept: an object is empty when nothing in it isn't. */
static bool is_all_empty(const struct record *record, const char *object)
{
	for (size_t i = 0; i < record->count; i++) {
		const struct field *row = &record->rows[i];
		const char *at = object + row->offset;
		if (field_is(record, row, FIELD_KEPT) &&
			!(row->kind == FIELD_OBJECT ? is_all_empty(row->object, at)
						    : is_empty(row, at)))
			return false;
	}
	return true;
}

static bool is_left_out(const struct field *row, const char *at)
{
	return (row->flags & FIELD_LATER) && !row->fallback &&
	       (row->kind == FIELD_OBJECT ? is_all_empty(row->object, at) : is_empty(row, at));
}

static void print_members(
	struct json *j, const struct record *record, const char *object, unsigned use)
{
	for (size_t i = 0; i < record->count; i++) {
		const struct field *row = &record->rows[i];
		const void *at = object + row->offset;
		if (!field_is(record, row, use) || (use == FIELD_KEPT && is_left_out(row, at)) ||
			(use == FIELD_OUT && (row->flags & FIELD_OPTIONAL) && is_empty(row, at)))
			continue;
		const struct field_name name = field_name(row, use);
		if (use == FIELD_OUT && is_null(row, object))
			json_null(j, name.text);
		else
			print_value(j, name.text, row, at, use);
	}
}

static void print_object(struct json *j, const char *key, const struct record *record,
	const void *object, unsigned use)
{
	json_object(j, key);
	print_members(j, record, object, use);
	json_end(j);
}

void record_print(struct json *j, const char *key, const struct record *record, const void *object)
{
	print_object(j, key, record, object, FIELD_OUT);
}

void record_print_members(struct json *j, const struct record *record, const void *object)
{
	print_members(j, record, object, FIELD_OUT);
}

void record_print_given(
	struct json *j, const char *key, const struct record *record, const void *object)
{
	json_object(j, key);
	for (size_t i = 0; i < record->count; i++) {
		const struct field *row = &record->rows[i];
		const void *at = (const char *)object + row->offset;
		/* By the names with a unit, which take the bare number. */
		if (field_is(record, row, FIELD_IN) && row->kind != FIELD_SHOWN &&
			!is_empty(row, at))
			print_value(j, field_name(row, FIELD_OUT).text, row, at, FIELD_OUT);
	}
	json_end(j);
}

void record_print_kept(const struct record *record, const void *object, struct buf *out)
{
	struct json j = json_to(out, false);
	print_object(&j, NULL, record, object, FIELD_KEPT);
	json_finish(&j);
}

/* -- what is kept, or was shown, read back -- */

/* A string without NUL, as the row wants it; or NULL. */
static const char *text_of(const struct field *row, const struct json_value *v)
{
	bool is_text = v->kind == JSON_STRING && !memchr(v->string.data, '\0', v->string.len);
	return is_text && (!row->is_valid || row->is_valid(v->string.data)) ? v->string.data : NULL;
}

static bool read_pairs(const struct field *row, const struct json_value *v, struct arena *arena,
	unsigned use, pair_list *pairs)
{
	*pairs = (pair_list){ 0 };
	if (v->kind != (use == FIELD_KEPT ? JSON_ARRAY : JSON_OBJECT))
		return false;
	for (const struct json_value *item = v->first; item; item = item->next) {
		struct text_pair pair = { item->key.data, text_of(row, item) };
		if (use == FIELD_KEPT && (item->kind != JSON_ARRAY || item->count != 2))
			return false;
		if (use == FIELD_KEPT)
			pair = (struct text_pair){ text_of(row, item->first),
				text_of(row, item->first->next) };
		else if (!item->key.len || strlen(item->key.data) != item->key.len)
			return false;
		if (!pair.key || (!pair.value && !(row->flags & FIELD_NULLABLE)))
			return false;
		vec_push(arena, pairs, pair);
	}
	return true;
}

static bool read_texts(
	const struct field *row, const struct json_value *v, struct arena *arena, text_list *texts)
{
	*texts = (text_list){ 0 };
	if (v->kind != JSON_ARRAY)
		return false;
	for (const struct json_value *item = v->first; item; item = item->next) {
		const char *text = text_of(row, item);
		if (!text)
			return false;
		vec_push(arena, texts, text);
	}
	vec_push(arena, texts, NULL);
	texts->count--;
	return true;
}

static bool is_integer(const struct json_value *v, int64_t most)
{
	return v->kind == JSON_NUMBER && v->is_integer && v->integer >= 0 && v->integer <= most;
}

static bool read_name(const struct json_value *v, const char *const *names, int *value)
{
	for (int i = 0; v->kind == JSON_STRING && names[i]; i++)
		if (str_is(v->string, names[i])) {
			*value = i;
			return true;
		}
	return false;
}

static bool read_value(const struct json_value *v, const struct field *row, struct arena *arena,
	unsigned use, void *at)
{
	switch (row->kind) {
	case FIELD_JSON:
		if (use != FIELD_KEPT && v->kind == JSON_OBJECT) {
			auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
			struct json j = json_to(&text, false);
			json_copy(&j, NULL, v);
			*(const char **)at = arena_bytes(arena, text.data, text.len);
			return !text.overflow;
		}
		__attribute__((fallthrough));
	case FIELD_TEXT:
		*(const char **)at = text_of(row, v);
		return *(const char **)at ||
		       (v->kind == JSON_NULL &&
			       (use == FIELD_KEPT || (row->flags & FIELD_NULLABLE)));
	case FIELD_INTEGER:
	case FIELD_SIZE:
	case FIELD_DURATION:
	case FIELD_CPUS:
		*(uint64_t *)at = (uint64_t)v->integer;
		return is_integer(
			v, use == FIELD_OUT && row->most ? (int64_t)row->most : INT64_MAX);
	case FIELD_REAL:
		*(double *)at = v->number;
		return v->kind == JSON_NUMBER && v->number >= 0;
	case FIELD_INT:
		*(int *)at = (int)v->integer;
		return is_integer(v, INT32_MAX);
	case FIELD_BOOLEAN:
		*(bool *)at = v->boolean;
		return v->kind == JSON_BOOL;
	case FIELD_CHOICE:
		return read_name(v, row->names, at);
	case FIELD_PAIRS:
		return read_pairs(row, v, arena, use, at);
	case FIELD_TEXTS:
		return read_texts(row, v, arena, at);
	default:
		return false;
	}
}

static int read_back(const struct json_value *object, const struct record *record, unsigned use,
	struct arena *arena, char *out, struct error *err)
{
	size_t count = 0;
	if (object->kind != JSON_OBJECT)
		return fail(err, ERR_CORRUPT, "it is not an object");
	for (size_t i = 0; i < record->count; i++) {
		const struct field *row = &record->rows[i];
		const struct field_name name = field_name(row, use);
		if (!field_is(record, row, use))
			continue;
		const struct json_value *v = json_member(object, name.text);
		if (!v && (row->flags & (use == FIELD_KEPT ? FIELD_LATER : FIELD_OPTIONAL))) {
			if (row->fallback)
				*(uint64_t *)(void *)(out + row->offset) = row->fallback;
			continue;
		}
		count++;
		if (v && row->kind == FIELD_OBJECT) {
			if (read_back(v, row->object, use, arena, out + row->offset, err))
				return error_context(err, "field '%s'", name.text);
		} else if (!v || !read_value(v, row, arena, use, out + row->offset)) {
			return fail(err, ERR_CORRUPT, "field '%s' is missing or wrong", name.text);
		}
	}
	if (use == FIELD_KEPT && object->count != count)
		return fail(err, ERR_CORRUPT, "it has unknown fields");
	return 0;
}

static int parse_back(const struct record *record, unsigned use, struct str text,
	struct arena *arena, void *object, struct error *err)
{
	struct json_value *value;
	struct error why;
	if (json_read(text, arena, &value, &why))
		return fail(err, ERR_CORRUPT, "%s", why.text);
	return read_back(value, record, use, arena, object, err);
}

int record_read_kept(const struct record *record, struct str text, struct arena *arena,
	void *object, struct error *err)
{
	return parse_back(record, FIELD_KEPT, text, arena, object, err);
}

int record_read_shown(const struct record *record, struct str text, struct arena *arena,
	void *object, struct error *err)
{
	return parse_back(record, FIELD_OUT, text, arena, object, err);
}
