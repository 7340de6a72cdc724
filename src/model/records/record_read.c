#include "base/buf.h"
#include "format/text/base64.h"
#include "format/text/quantity.h"
#include "model/records/record.h"

struct reader {
	struct arena *arena;
	struct error *err;
	bool has_place; /* the error begins with one */
	int line;	/* of the value that it is about, or 0 */
};

/* Puts where in the value it happened before the error: each level of it adds its own name. */
static int at(struct reader *r, const char *name)
{
	char text[ERROR_TEXT_SIZE];
	if (!r->err)
		return -1;
	str_format(text, sizeof text, "%s%s%s", name,
		!r->has_place		 ? ": "
		: r->err->text[0] == '[' ? ""
					 : ".",
		r->err->text);
	str_copy(r->err->text, sizeof r->err->text, text);
	r->has_place = true;
	return -1;
}

/* The innermost value that an error is about says in which line it is. */
static void note_line(struct reader *r, const struct json_value *v)
{
	if (!r->line)
		r->line = v->line;
}

static int at_value(struct reader *r, const char *name, const struct json_value *v)
{
	note_line(r, v);
	return at(r, name);
}

static const char *kind_name(const struct json_value *v)
{
	static const char *const names[] = {
		[JSON_NULL] = "null",
		[JSON_BOOL] = "a boolean",
		[JSON_NUMBER] = "a number",
		[JSON_STRING] = "text",
		[JSON_ARRAY] = "a list",
		[JSON_OBJECT] = "an object",
	};
	return names[v->kind];
}

static int fail_kind(struct reader *r, const char *wanted, const struct json_value *v)
{
	return fail(r->err, ERR_INVALID, "must be %s, not %s", wanted, kind_name(v));
}

/* ---- one value ---- */

static size_t count_characters(struct str s)
{
	size_t count = 0;
	for (size_t i = 0; i < s.len; i++)
		count += (s.data[i] & 0xc0) != 0x80;
	return count;
}

static int read_text(const struct field *row, struct reader *r, const struct json_value *v,
	bool is_item, const char **out)
{
	if (v->kind != JSON_STRING) {
		fail_kind(r, "text", v);
		if (v->line && v->string.len) /* as it was written */
			error_hint(r->err, "put it in quotes: \"%.64s\"", v->string.data);
		return -1;
	}
	if (memchr(v->string.data, '\0', v->string.len))
		return fail(r->err, ERR_INVALID, "may not hold a NUL character");
	size_t count = count_characters(v->string);
	if (!is_item && count < row->least)
		return count ? fail(r->err, ERR_INVALID,
				       "must have at least %" PRIu64 " characters", row->least)
			     : fail(r->err, ERR_INVALID, "may not be empty");
	if (!is_item && row->most && count > row->most)
		return fail(r->err, ERR_INVALID, "has %zu characters, %" PRIu64 " is the maximum",
			count, row->most);
	if (row->check && row->check(v->string.data, r->err))
		return -1;
	*out = v->string.data;
	return 0;
}

static int read_bytes(struct reader *r, const struct json_value *v, struct str *out)
{
	if (v->kind == JSON_STRING) {
		*out = v->string;
		return 0;
	}
	const struct json_value *coded = json_member(v, "base64");
	if (v->kind != JSON_OBJECT || v->count != 1 || !coded || coded->kind != JSON_STRING)
		return fail(r->err, ERR_INVALID, "must be text, or {\"base64\": text}");
	if (!base64_decode(coded->string, r->arena, out)) {
		fail(r->err, ERR_INVALID, "is not base64");
		return at(r, "base64");
	}
	return 0;
}

/* Whole numbers, also such as 5.0 and 1e3: JSON Schema takes them for integers. */
static bool is_whole(const struct json_value *v, int64_t *value)
{
	if (v->kind != JSON_NUMBER)
		return false;
	if (v->is_integer) {
		*value = v->integer;
		return true;
	}
	if (!(v->number > -9007199254740992.0 && v->number < 9007199254740992.0) ||
		v->number != (double)(int64_t)v->number)
		return false;
	*value = (int64_t)v->number;
	return true;
}

static uint64_t most_of(const struct field *row)
{
	return row->most ? row->most : INT64_MAX;
}

static int check_range(const struct field *row, struct reader *r, uint64_t value)
{
	char least[16], most[16];
	if (value >= row->least && value <= most_of(row))
		return 0;
	if (row->kind != FIELD_SIZE)
		return fail(r->err, ERR_INVALID,
			"%" PRIu64 "%s is not from %" PRIu64 " to %" PRIu64, value,
			row->kind == FIELD_DURATION ? " ms" : "", row->least, most_of(row));
	quantity_format_size(least, row->least);
	quantity_format_size(most, most_of(row));
	return fail(
		r->err, ERR_INVALID, "%" PRIu64 " bytes are not from %s to %s", value, least, most);
}

static int read_integer(const struct field *row, struct reader *r, const struct json_value *v,
	const char *wanted, uint64_t *out)
{
	int64_t value;
	if (!is_whole(v, &value))
		return fail_kind(r, wanted, v);
	if (value < 0)
		return fail(r->err, ERR_INVALID, "%" PRId64 " is negative", value);
	if (check_range(row, r, (uint64_t)value))
		return -1;
	*out = (uint64_t)value;
	return 0;
}

/* A text without NUL of a quantity, which `parse` reads. */
static int read_quantity(const struct field *row, struct reader *r, const struct json_value *v,
	int (*parse)(const char *text, uint64_t *value, struct error *err), uint64_t *out)
{
	uint64_t value;
	if (strlen(v->string.data) != v->string.len)
		return fail(r->err, ERR_INVALID, "may not hold a NUL character");
	if (parse(v->string.data, &value, r->err) || check_range(row, r, value))
		return -1;
	*out = value;
	return 0;
}

static int read_size(
	const struct field *row, struct reader *r, const struct json_value *v, uint64_t *out)
{
	static const char wanted[] = "a size: bytes as a whole number, or text such as \"512M\"";
	return v->kind == JSON_STRING ? read_quantity(row, r, v, quantity_parse_size, out)
				      : read_integer(row, r, v, wanted, out);
}

static int read_duration(
	const struct field *row, struct reader *r, const struct json_value *v, uint64_t *out)
{
	static const char wanted[] = "a duration: seconds as a number, or text such as \"30s\"";
	if (v->kind == JSON_STRING)
		return read_quantity(row, r, v, quantity_parse_duration, out);
	if (v->kind != JSON_NUMBER)
		return fail_kind(r, wanted, v);
	/* Below the least millisecond that counts, 0 would mean "no limit". */
	double ms = v->number * 1000 + 1e-6;
	if (!(ms >= (double)row->least && ms >= 1 && ms < (double)most_of(row) + 1))
		return fail(r->err, ERR_INVALID, "%g seconds are not from %g to %g", v->number,
			(double)(row->least ? row->least : 1) / 1000, (double)most_of(row) / 1000);
	*out = (uint64_t)ms;
	return 0;
}

static int read_cpus(struct reader *r, const struct json_value *v, uint64_t *out)
{
	if (v->kind == JSON_NUMBER) {
		if (!(v->number >= 0.01 && v->number <= 4096))
			return fail(r->err, ERR_INVALID,
				"%g is not a number of CPUs from 0.01 to 4096", v->number);
		*out = (uint64_t)(v->number * 1000 + 1e-6);
		return 0;
	}
	if (v->kind != JSON_STRING || strlen(v->string.data) != v->string.len)
		return fail_kind(r, "a number of CPUs, such as 0.5", v);
	return quantity_parse_cpus(v->string.data, out, r->err);
}

static int fail_choice(const struct field *row, struct reader *r, const struct json_value *v)
{
	auto_buf struct buf list = buf_empty(400);
	for (const struct field_choice *c = row->choices; c && c->name; c++)
		buf_printf(&list, "%s%s", list.len ? ", " : "", c->name);
	for (const char *const *name = row->names; name && *name; name++)
		buf_printf(&list, "%s%s", list.len ? ", " : "", *name);
	if (v->kind == JSON_STRING)
		return fail(
			r->err, ERR_INVALID, "'%s' is not one of %s", v->string.data, list.data);
	if (v->kind == JSON_NUMBER && row->kind == FIELD_NUMBERED)
		return fail(r->err, ERR_INVALID,
			"%g is not a whole number from %" PRIu64 " to %" PRIu64, v->number,
			row->least, row->most);
	return fail(r->err, ERR_INVALID, "must be one of %s, not %s", list.data, kind_name(v));
}

static int read_choice(
	const struct field *row, struct reader *r, const struct json_value *v, int *out)
{
	int64_t number;
	for (const struct field_choice *c = row->choices; c && c->name; c++)
		if (v->kind == JSON_STRING && str_is(v->string, c->name)) {
			*out = c->value;
			return 0;
		}
	for (int i = 0; row->names && row->names[i]; i++)
		if (v->kind == JSON_STRING && str_is(v->string, row->names[i])) {
			*out = i;
			return 0;
		}
	if (row->kind == FIELD_NUMBERED && is_whole(v, &number) && number >= (int64_t)row->least &&
		number <= (int64_t)row->most) {
		*out = (int)number;
		return 0;
	}
	return fail_choice(row, r, v);
}

static int check_count(const struct field *row, struct reader *r, size_t count)
{
	if (count < row->least)
		return fail(r->err, ERR_INVALID, count ? "has too few items" : "may not be empty");
	if (row->most && count > row->most)
		return fail(r->err, ERR_INVALID, "has %zu items, %" PRIu64 " is the maximum", count,
			row->most);
	return 0;
}

static int read_texts(
	const struct field *row, struct reader *r, const struct json_value *v, text_list *out)
{
	text_list texts = { 0 };
	size_t index = 0;
	if (v->kind != JSON_ARRAY)
		return fail_kind(r, "a list of texts", v);
	if (check_count(row, r, v->count))
		return -1;
	for (const struct json_value *one = v->first; one; one = one->next, index++) {
		const char *text;
		char place[24];
		str_format(place, sizeof place, "[%zu]", index);
		if (read_text(row, r, one, true, &text))
			return at_value(r, place, one);
		vec_push(r->arena, &texts, text);
	}
	vec_push(r->arena, &texts, NULL);
	texts.count--;
	*out = texts;
	return 0;
}

static int read_pairs(
	const struct field *row, struct reader *r, const struct json_value *v, pair_list *out)
{
	pair_list pairs = { 0 };
	if (v->kind != JSON_OBJECT)
		return fail_kind(r, "an object of texts", v);
	if (check_count(row, r, v->count))
		return -1;
	for (const struct json_value *one = v->first; one; one = one->next) {
		struct text_pair pair = { .key = one->key.data };
		if (strlen(one->key.data) != one->key.len)
			return fail(r->err, ERR_INVALID, "a name may not hold a NUL character");
		if (one->kind != JSON_NULL || !(row->flags & FIELD_NULLABLE)) {
			static const struct field any = { 0 };
			if (read_text(&any, r, one, true, &pair.value))
				return at_value(r, pair.key, one);
		}
		if (row->check_pair &&
			row->check_pair(pair.key, pair.value ? pair.value : "", r->err)) {
			note_line(r, one);
			return -1;
		}
		vec_push(r->arena, &pairs, pair);
	}
	*out = pairs;
	return 0;
}

static int read_json(
	const struct field *row, struct reader *r, const struct json_value *v, const char **out)
{
	auto_buf struct buf text = buf_empty((size_t)row->most);
	struct json j = json_to(&text, false);
	if (v->kind != JSON_OBJECT)
		return fail_kind(r, "an object", v);
	if (row->flags & FIELD_EXACT)
		buf_append(&text, v->source.data, v->source.len);
	else
		json_copy(&j, NULL, v);
	if (text.overflow)
		return fail(r->err, ERR_INVALID, "has more than %" PRIu64 " bytes", row->most);
	const char *copy = arena_bytes(r->arena, text.data, text.len);
	if (row->check && row->check(copy, r->err))
		return -1;
	*out = copy;
	return 0;
}

/* ---- objects ---- */

static int read_object(
	const struct record *record, struct reader *r, const struct json_value *v, void *out);

static int read_short(
	const struct field *row, struct reader *r, const struct json_value *v, void *out)
{
	const struct field *first = row->object->rows;
	if (v->kind == JSON_STRING)
		return read_text(first, r, v, false, (const char **)((char *)out + first->offset));
	if (v->kind != JSON_OBJECT)
		return fail_kind(r, "text or an object", v);
	return read_object(row->object, r, v, out);
}

static int read_member(
	const struct field *row, struct reader *r, const struct json_value *v, void *out)
{
	switch (row->kind) {
	case FIELD_TEXT:
		return read_text(row, r, v, false, out);
	case FIELD_BYTES:
		return read_bytes(r, v, out);
	case FIELD_INTEGER:
		return read_integer(row, r, v, "a whole number", out);
	case FIELD_BOOLEAN:
		if (v->kind != JSON_BOOL)
			return fail_kind(r, "true or false", v);
		*(bool *)out = v->boolean;
		return 0;
	case FIELD_SIZE:
		return read_size(row, r, v, out);
	case FIELD_DURATION:
		return read_duration(row, r, v, out);
	case FIELD_CPUS:
		return read_cpus(r, v, out);
	case FIELD_CHOICE:
	case FIELD_NUMBERED:
		return read_choice(row, r, v, out);
	case FIELD_TEXTS:
		return read_texts(row, r, v, out);
	case FIELD_PAIRS:
		return read_pairs(row, r, v, out);
	case FIELD_OBJECT:
		if (v->kind != JSON_OBJECT)
			return fail_kind(r, "an object", v);
		return read_object(row->object, r, v, out);
	case FIELD_JSON:
		return read_json(row, r, v, out);
	case FIELD_SHORT:
		return read_short(row, r, v, out);
	case FIELD_SHOWN:
		return v->kind == JSON_STRING ? 0 : fail_kind(r, "text", v);
	default:
		return fail_hint(r->err, ERR_INVALID, "leave the field out",
			"not available in this version");
	}
}

/* The row of a member's name; *is_count: it is the one with the unit in it. */
static const struct field *find_row(const struct record *record, struct str name, bool *is_count)
{
	*is_count = false;
	for (size_t i = 0; i < record->count; i++) {
		const struct field *row = &record->rows[i];
		const char *unit = field_unit(row);
		size_t len = strlen(row->name);
		if (!field_is(record, row, FIELD_IN))
			continue;
		if (str_is(name, row->name))
			return row;
		if (unit && name.len > len && !memcmp(name.data, row->name, len) &&
			str_is((struct str){ name.data + len, name.len - len }, unit)) {
			*is_count = true;
			return row;
		}
	}
	return NULL;
}

static int fail_unknown(
	const struct record *record, struct reader *r, struct str name, const char *what)
{
	const char *nearest = NULL;
	size_t least = SIZE_MAX;
	char shown[128];
	auto_buf struct buf list = buf_empty(ERROR_HINT_SIZE - 16);
	str_printable(shown, sizeof shown, name);
	for (size_t i = 0; i < record->count; i++) {
		if (!field_is(record, &record->rows[i], FIELD_IN))
			continue;
		if (strlen(name.data) == name.len && name.len <= 64 &&
			str_is_nearer(name.data, record->rows[i].name, &least))
			nearest = record->rows[i].name;
		buf_printf(&list, "%s%s", list.len ? ", " : "", record->rows[i].name);
	}
	fail(r->err, ERR_INVALID, "unknown %s '%s'", what, shown);
	if (nearest)
		error_hint(r->err, "did you mean '%s'?", nearest);
	else if (record->count)
		error_hint(r->err, "known: %s", list.data);
	return -1;
}

/* A row whose value becomes words of a list. */
static int read_words(
	const struct field *row, struct reader *r, const struct json_value *v, text_list *out)
{
	const char *text = "";
	text_list texts = { 0 };
	bool is_true = false;
	if (read_member(row, r, v,
		    row->kind == FIELD_BOOLEAN ? (void *)&is_true
		    : row->kind == FIELD_TEXTS ? (void *)&texts
					       : (void *)&text))
		return -1;
	if (row->kind == FIELD_TEXT || is_true)
		vec_push(r->arena, &texts, text);
	for (size_t i = 0; i < texts.count; i++)
		vec_push(r->arena, out, arena_printf(r->arena, "%s%s", row->word, texts.items[i]));
	return 0;
}

static int read_given(const struct field *row, bool is_count, struct reader *r,
	const struct json_value *v, void *out)
{
	void *target = (char *)out + row->offset;
	if (row->has)
		*((bool *)((char *)out + row->has - 1)) = true;
	if (v->kind == JSON_NULL && !(row->flags & (FIELD_REQUIRED | FIELD_STRICT)))
		return 0;
	if (row->word)
		return read_words(row, r, v, target);
	if (!is_count)
		return read_member(row, r, v, target);
	return read_integer(row, r, v,
		row->kind == FIELD_SIZE ? "bytes as a whole number"
					: "milliseconds as a whole number",
		target);
}

/* A duration or a size is given once, by the one member or the other. */
static int check_once(const struct field *row, struct reader *r, const struct json_value *v)
{
	char name[80];
	str_format(name, sizeof name, "%s%s", row->name, field_unit(row));
	const struct json_value *one = json_member(v, row->name), *other = json_member(v, name);
	if (!one || !other)
		return 0;
	return fail(r->err, ERR_INVALID, "'%s' and '%s' are both given", row->name, name);
}

/* What must be there is. */
static int check_present(const struct record *record, struct reader *r, const struct json_value *v)
{
	const char *found = NULL;
	for (size_t i = 0; i < record->count; i++)
		if ((record->rows[i].flags & FIELD_REQUIRED) &&
			field_is(record, &record->rows[i], FIELD_IN) &&
			!json_member(v, record->rows[i].name))
			return fail(r->err, ERR_INVALID, "'%s' is missing", record->rows[i].name);
	for (const char *const *name = record->one_of; name && *name; name++) {
		if (!json_member(v, *name))
			continue;
		if (found)
			return fail(
				r->err, ERR_INVALID, "'%s' and '%s' are both given", found, *name);
		found = *name;
	}
	if (record->one_of && !found) {
		auto_buf struct buf list = buf_empty(400);
		for (const char *const *name = record->one_of; *name; name++)
			buf_printf(&list, "%s'%s'", list.len ? " or " : "", *name);
		return fail(r->err, ERR_INVALID, "%s is missing", list.data);
	}
	return 0;
}

static int read_object(
	const struct record *record, struct reader *r, const struct json_value *v, void *out)
{
	for (const struct json_value *one = v->first; one; one = one->next) {
		bool is_count;
		const struct field *row = find_row(record, one->key, &is_count);
		if (!row || (is_count && check_once(row, r, v))) {
			note_line(r, one);
			return row ? -1
				   : fail_unknown(
					     record, r, one->key, one->line ? "key" : "member");
		}
		if (read_given(row, is_count, r, one, out))
			return at_value(r, one->key.data, one);
	}
	if (check_present(record, r, v) || (record->check && record->check(out, r->err))) {
		note_line(r, v);
		return -1;
	}
	return 0;
}

int record_read(const struct record *record, const struct json_value *value, struct arena *arena,
	void *out, struct error *err)
{
	struct reader r = { arena, err, false, 0 };
	if (value->kind != JSON_OBJECT) {
		fail(err, ERR_INVALID, "must be an object, not %s", kind_name(value));
		note_line(&r, value);
	} else if (!read_object(record, &r, value, out))
		return 0;
	return r.line && err ? error_context(err, "line %d", r.line) : -1;
}

/* ---- a query ---- */

/* The value a parameter's text stands for, for a row of that kind. */
static struct json_value *value_of(
	const struct field *row, const struct record_parameter *p, struct arena *arena)
{
	struct json_value *v = arena_alloc(arena, sizeof *v);
	uint64_t number;
	v->kind = JSON_STRING;
	v->string = p->value;
	v->key = p->name;
	if (row->kind == FIELD_BOOLEAN) {
		bool is_true =
			p->value.len == 0 || str_is(p->value, "true") || str_is(p->value, "1");
		if (is_true || str_is(p->value, "false") || str_is(p->value, "0")) {
			v->kind = JSON_BOOL;
			v->boolean = is_true;
		}
	} else if (row->kind == FIELD_INTEGER && str_to_u64(p->value, &number) &&
		   number <= INT64_MAX) {
		v->kind = JSON_NUMBER;
		v->is_integer = true;
		v->integer = (int64_t)number;
		v->number = (double)number;
	}
	return v;
}

static struct json_value *add_member(
	struct json_value *object, struct json_value **last, struct json_value *v)
{
	*(*last ? &(*last)->next : &object->first) = v;
	*last = v;
	object->count++;
	return v;
}

int record_read_query(const struct record *record, const struct record_parameter *parameters,
	size_t count, struct arena *arena, void *out, struct error *err)
{
	struct json_value object = { .kind = JSON_OBJECT }, *last = NULL;
	struct reader r = { arena, err, false, 0 };
	for (size_t i = 0; i < count; i++) {
		const struct record_parameter *p = &parameters[i];
		bool is_count;
		const struct field *row = find_row(record, p->name, &is_count);
		struct json_value *old = NULL;
		if (!row || is_count)
			return fail_unknown(record, &r, p->name, "query parameter");
		for (struct json_value *v = object.first; v; v = v->next)
			if (str_equal(v->key, p->name))
				old = v;
		if (old && row->kind != FIELD_TEXTS)
			return fail(
				err, ERR_INVALID, "query parameter '%s' is given twice", row->name);
		struct json_value *v = value_of(row, p, arena);
		if (row->kind == FIELD_TEXTS) {
			if (!old) {
				old = arena_alloc(arena, sizeof *old);
				*old = (struct json_value){ .kind = JSON_ARRAY, .key = p->name };
				add_member(&object, &last, old);
			}
			struct json_value **end = &old->first;
			while (*end)
				end = &(*end)->next;
			*end = v;
			old->count++;
		} else {
			add_member(&object, &last, v);
		}
	}
	return read_object(record, &r, &object, out);
}
