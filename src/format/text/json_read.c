#include "base/map.h"
#include "format/text/json_read.h"
#include "format/text/utf8.h"

#define NUMBER_MAX 1000 /* characters; a double has 17 digits that count */
#define FEW_MEMBERS 16	/* objects with at most this many members are searched linearly */
#define SURROGATES 0xd800u
#define LOW_SURROGATES 0xdc00u
#define AFTER_SURROGATES 0xe000u

struct reader {
	const char *start, *at, *end;
	struct arena *arena;
	struct error *err;
	size_t value_count;
};

static int read_value(struct reader *r, int depth, struct json_value *v);

/* Line and column are counted only for an error. */
static int fail_code_at(struct reader *r, const char *place, enum error_code code, const char *what,
	struct str name)
{
	unsigned line = 1, column = 1;
	char shown[64];
	for (const char *p = r->start; p < place; p++) {
		if (*p == '\n') {
			line++;
			column = 1;
		} else if ((*p & 0xc0) != 0x80) {
			column++;
		}
	}
	if (!name.data)
		return fail(r->err, code, "line %u, column %u: %s", line, column, what);
	str_printable(shown, sizeof shown, name);
	return fail(r->err, code, "line %u, column %u: %s '%s'", line, column, what, shown);
}

static int fail_at(struct reader *r, const char *place, const char *what)
{
	return fail_code_at(r, place, ERR_INVALID, what, (struct str){ 0 });
}

static void skip_space(struct reader *r)
{
	while (r->at < r->end &&
		(*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static bool json_take(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool take_word(struct reader *r, const char *word)
{
	size_t len = strlen(word);
	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
		return false;
	r->at += len;
	return true;
}

static size_t take_digits(struct reader *r)
{
	const char *first = r->at;
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return (size_t)(r->at - first);
}

/* -- strings -- */

static int read_hex4(struct reader *r, unsigned *value)
{
	unsigned result = 0;
	for (int i = 0; i < 4; i++, r->at++) {
		int digit = r->at < r->end ? str_hex_digit(*r->at) : -1;
		if (digit < 0)
			return fail_at(r, r->at, "four hexadecimal digits expected after \\u");
		result = result << 4 | (unsigned)digit;
	}
	*value = result;
	return 0;
}

/* After the backslash. */
static int read_escape(struct reader *r, char **out)
{
	static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *place = r->at - 1, *found = NULL;
	unsigned c = 0, low = 0;
	if (r->at < r->end && *r->at != '\0')
		found = strchr(names, *r->at);
	if (found) {
		r->at++;
		*(*out)++ = meanings[found - names];
		return 0;
	}
	if (!json_take(r, 'u'))
		return fail_at(r, place, "unknown escape in a string");
	if (read_hex4(r, &c) < 0)
		return -1;
	if (c >= SURROGATES && c < AFTER_SURROGATES) {
		if (c >= LOW_SURROGATES || !take_word(r, "\\u"))
			return fail_at(r, place, "a surrogate without its other half");
		if (read_hex4(r, &low) < 0)
			return -1;
		if (low < LOW_SURROGATES || low >= AFTER_SURROGATES)
			return fail_at(r, place, "a surrogate without its other half");
		c = 0x10000 + ((c - SURROGATES) << 10) + (low - LOW_SURROGATES);
	}
	*out += utf8_write(*out, c);
	return 0;
}

/* How many bytes from p on are plain: ASCII that stands for itself in a string. Eight at once: most
 * of what is large is plain. */
static size_t plain_length(const char *p, const char *end)
{
	const uint64_t ones = 0x0101010101010101ull, high = 0x8080808080808080ull;
	const char *first = p;
	uint64_t eight;
	for (; end - p >= (ptrdiff_t)sizeof eight; p += sizeof eight) {
		memcpy(&eight, p, sizeof eight);
		uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\';
		/* Subtracting sets the high bit of each byte that is less: 0, or below a blank. */
		if ((eight | (eight - ones * 0x20) | (quote - ones) | (backslash - ones)) & high)
			break;
	}
	while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' &&
		*p != '\\')
		p++;
	return (size_t)(p - first);
}

/* Where the string that begins at r->at ends (its quote), so that its memory is asked for once: it
 * only gets shorter by its escapes. */
static const char *find_quote(const struct reader *r)
{
	const char *p = r->at;
	for (;;) {
		p += plain_length(p, r->end);
		if (p == r->end || *p == '"')
			return p;
		p += *p == '\\' && p + 1 < r->end ? 2 : 1;
	}
}

static int read_string(struct reader *r, struct str *string)
{
	const char *opening = r->at;
	if (!json_take(r, '"'))
		return fail_at(r, r->at, "a string expected");
	char *data = arena_alloc(r->arena, (size_t)(find_quote(r) - r->at) + 1), *out = data;
	while (!json_take(r, '"')) {
		if (r->at == r->end)
			return fail_at(r, opening, "a string without an end");
		if ((unsigned char)*r->at < 0x20)
			return fail_at(r, r->at, "a control character in a string");
		if (json_take(r, '\\')) {
			if (read_escape(r, &out) < 0)
				return -1;
			continue;
		}
		size_t len = plain_length(r->at, r->end);
		if (len == 0)
			len = str_utf8_char(r->at, (size_t)(r->end - r->at));
		if (len == 0)
			return fail_at(r, r->at, "bytes that are not UTF-8");
		memcpy(out, r->at, len);
		out += len;
		r->at += len;
	}
	*out = '\0';
	*string = (struct str){ data, (size_t)(out - data) };
	return 0;
}

/* -- numbers -- */

/* false when it isn't in the range of int64. */
static bool to_integer(struct str digits, bool is_negative, int64_t *integer)
{
	uint64_t value;
	if (!str_to_u64(digits, &value) || value > (uint64_t)INT64_MAX + is_negative)
		return false;
	*integer = is_negative ? (int64_t)-value : (int64_t)value;
	return true;
}

static int read_number(struct reader *r, struct json_value *v)
{
	const char *first = r->at;
	bool is_negative = json_take(r, '-'), is_whole = true;
	char copy[NUMBER_MAX + 1];
	const char *digits = r->at;
	size_t count = take_digits(r);
	if (count == 0)
		return fail_at(r, first, is_negative ? "a number expected" : "a value expected");
	if (*digits == '0' && count > 1)
		return fail_at(r, first, "a number with a leading zero");
	if (json_take(r, '.')) {
		is_whole = false;
		if (take_digits(r) == 0)
			return fail_at(r, first, "a number without digits after its point");
	}
	if (json_take(r, 'e') || json_take(r, 'E')) {
		is_whole = false;
		if (!json_take(r, '+'))
			json_take(r, '-');
		if (take_digits(r) == 0)
			return fail_at(r, first, "a number without digits in its exponent");
	}
	size_t len = (size_t)(r->at - first);
	if (len > NUMBER_MAX)
		return fail_at(r, first, "a number of more than 1000 characters");
	memcpy(copy, first, len);
	copy[len] = '\0';
	v->kind = JSON_NUMBER;
	v->number = strtod(copy, NULL);
	if (__builtin_isinf(v->number))
		return fail_at(r, first, "a number that is too large");
	v->is_integer =
		is_whole && to_integer((struct str){ digits, count }, is_negative, &v->integer);
	return 0;
}

/* -- arrays and objects -- */

static int new_value(struct reader *r, struct json_value **v)
{
	if (++r->value_count > JSON_READ_VALUES_MAX)
		return fail_code_at(
			r, r->at, ERR_LIMIT, "more than 1048576 values", (struct str){ 0 });
	*v = arena_alloc(r->arena, sizeof **v);
	return 0;
}

static int read_array(struct reader *r, int depth, struct json_value *v)
{
	struct json_value **link = &v->first;
	v->kind = JSON_ARRAY;
	skip_space(r);
	if (json_take(r, ']'))
		return 0;
	for (;;) {
		if (new_value(r, link) < 0 || read_value(r, depth, *link) < 0)
			return -1;
		v->count++;
		link = &(*link)->next;
		if (json_take(r, ']'))
			return 0;
		if (!json_take(r, ','))
			return fail_at(r, r->at, "',' or ']' expected");
	}
}

/* Whether the object has a member of that key already. A map is made for the many only: a thousand
 * small objects need none. */
static bool is_known(
	const struct json_value *object, struct map *keys, struct arena *scratch, struct str key)
{
	static char present;
	if (object->count < FEW_MEMBERS) {
		for (const struct json_value *m = object->first; m; m = m->next) {
			if (str_equal(m->key, key))
				return true;
		}
		return false;
	}
	if (!keys->arena) {
		map_init(keys, scratch);
		for (const struct json_value *m = object->first; m; m = m->next)
			map_set(keys, m->key, &present);
	}
	return map_set(keys, key, &present) != NULL;
}

static int read_object(struct reader *r, int depth, struct json_value *v)
{
	struct json_value **link = &v->first, *member = NULL;
	auto_arena struct arena scratch = { 0 };
	struct map keys = { 0 };
	v->kind = JSON_OBJECT;
	skip_space(r);
	if (json_take(r, '}'))
		return 0;
	for (;;) {
		skip_space(r);
		const char *place = r->at;
		if (new_value(r, &member) < 0 || read_string(r, &member->key) < 0)
			return -1;
		if (is_known(v, &keys, &scratch, member->key))
			return fail_code_at(r, place, ERR_INVALID, "duplicate key", member->key);
		skip_space(r);
		if (!json_take(r, ':'))
			return fail_at(r, r->at, "':' expected");
		if (read_value(r, depth, member) < 0)
			return -1;
		*link = member;
		link = &member->next;
		v->count++;
		if (json_take(r, '}'))
			return 0;
		if (!json_take(r, ','))
			return fail_at(r, r->at, "',' or '}' expected");
	}
}

/* A value with the space around it. */
static int read_value(struct reader *r, int depth, struct json_value *v)
{
	int result = 0;
	skip_space(r);
	if (r->at == r->end)
		return fail_at(r, r->at, "a value expected, found the end");
	if ((*r->at == '[' || *r->at == '{') && depth == JSON_READ_DEPTH_MAX)
		return fail_code_at(r, r->at, ERR_LIMIT, "arrays and objects nested deeper than 32",
			(struct str){ 0 });
	const char *first = r->at;
	if (json_take(r, '{')) {
		result = read_object(r, depth + 1, v);
	} else if (json_take(r, '[')) {
		result = read_array(r, depth + 1, v);
	} else if (*r->at == '"') {
		v->kind = JSON_STRING;
		result = read_string(r, &v->string);
	} else if (take_word(r, "true")) {
		v->kind = JSON_BOOL;
		v->boolean = true;
	} else if (take_word(r, "false")) {
		v->kind = JSON_BOOL;
	} else if (take_word(r, "null")) {
		v->kind = JSON_NULL;
	} else {
		result = read_number(r, v);
	}
	v->source = (struct str){ first, (size_t)(r->at - first) };
	skip_space(r);
	return result;
}

int json_read(struct str text, struct arena *arena, struct json_value **value, struct error *err)
{
	struct reader r = { text.data, text.data, text.data + text.len, arena, err, 0 };
	struct json_value *v = NULL;
	if (text.len > JSON_READ_MAX)
		return fail(err, ERR_LIMIT, "JSON of more than 32 MiB");
	if (new_value(&r, &v) < 0 || read_value(&r, 0, v) < 0)
		return -1;
	if (r.at != r.end)
		return fail_at(&r, r.at, "something follows the value");
	*value = v;
	return 0;
}

const struct json_value *json_member(const struct json_value *v, const char *key)
{
	if (!v || v->kind != JSON_OBJECT)
		return NULL;
	for (const struct json_value *m = v->first; m; m = m->next) {
		if (str_is(m->key, key))
			return m;
	}
	return NULL;
}

const char *json_member_text(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);
	if (!m || m->kind != JSON_STRING || memchr(m->string.data, '\0', m->string.len))
		return NULL;
	return m->string.data;
}

bool json_member_u64(const struct json_value *v, const char *key, uint64_t *value)
{
	const struct json_value *m = json_member(v, key);
	if (!m || m->kind != JSON_NUMBER || !m->is_integer || m->integer < 0)
		return false;
	*value = (uint64_t)m->integer;
	return true;
}

bool json_member_true(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);
	return m && m->kind == JSON_BOOL && m->boolean;
}

const struct json_value *json_member_first(const struct json_value *v, const char *key)
{
	const struct json_value *m = json_member(v, key);
	return m ? m->first : NULL;
}

void json_copy(struct json *j, const char *key, const struct json_value *value)
{
	switch (value->kind) {
	case JSON_NULL:
		json_null(j, key);
		break;
	case JSON_BOOL:
		json_bool(j, key, value->boolean);
		break;
	case JSON_NUMBER:
		if (value->is_integer)
			json_i64(j, key, value->integer);
		else
			json_real(j, key, value->number);
		break;
	case JSON_STRING:
		json_str(j, key, value->string);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		if (value->kind == JSON_ARRAY)
			json_array(j, key);
		else
			json_object(j, key);
		/* json_read allows no deeper nesting than the writer. */
		for (const struct json_value *item = value->first; item; item = item->next)
			json_copy(j, value->kind == JSON_OBJECT ? item->key.data : NULL, item);
		json_end(j);
		break;
	}
}
