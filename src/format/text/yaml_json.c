#include "format/text/yaml_json.h"

#include <yaml.h>

struct anchor {
	const char *name;
	const struct json_value *value; /* NULL: it is being read */
};
struct reader {
	yaml_parser_t parser;
	struct arena *arena;
	struct error *err;
	size_t values;
	struct anchor anchors[YAML_JSON_ANCHORS_MAX];
	size_t anchor_count;
};

static int line_of(yaml_mark_t mark)
{
	return mark.line < 1 << 30 ? (int)mark.line + 1 : 1 << 30;
}

/* ---- scalars ---- */

static bool is_one_of(struct str text, const char *const *words)
{
	for (; *words; words++)
		if (str_is(text, *words))
			return true;
	return false;
}

static size_t count_digits(struct str s)
{
	size_t count = 0;
	while (count < s.len && s.data[count] >= '0' && s.data[count] <= '9')
		count++;
	return count;
}

/* A number as JSON writes it, but with a sign and leading zeros where they may stand. */
static bool looks_like_number(struct str s)
{
	if (s.len && (s.data[0] == '-' || s.data[0] == '+'))
		s = (struct str){ s.data + 1, s.len - 1 };
	return s.len &&
	       ((s.data[0] >= '0' && s.data[0] <= '9') ||
		       (s.data[0] == '.' && s.len > 1 && s.data[1] >= '0' && s.data[1] <= '9'));
}

static bool is_json_number(struct str s)
{
	if (s.len && s.data[0] == '-')
		s = (struct str){ s.data + 1, s.len - 1 };
	size_t digits = count_digits(s);
	if (!digits || (digits > 1 && s.data[0] == '0'))
		return false;
	s = (struct str){ s.data + digits, s.len - digits };
	if (s.len && s.data[0] == '.') {
		digits = count_digits((struct str){ s.data + 1, s.len - 1 });
		if (!digits)
			return false;
		s = (struct str){ s.data + 1 + digits, s.len - 1 - digits };
	}
	if (s.len && (s.data[0] == 'e' || s.data[0] == 'E')) {
		size_t sign = s.len > 1 && (s.data[1] == '-' || s.data[1] == '+');
		digits = count_digits((struct str){ s.data + 1 + sign, s.len - 1 - sign });
		if (!digits)
			return false;
		s = (struct str){ s.data + 1 + sign + digits, s.len - 1 - sign - digits };
	}
	return !s.len;
}

/* Characters that only numbers of other readers have: 0x1F, 0o17, 1_000, 12:30. */
static bool is_other_number(struct str s)
{
	static const char allowed[] = "0123456789abcdefABCDEFxo_:.+-";
	if (!looks_like_number(s) || strspn(s.data, allowed) != s.len)
		return false;
	if (s.data[0] == '-' || s.data[0] == '+')
		s = (struct str){ s.data + 1, s.len - 1 };
	size_t digits = count_digits(s);
	bool has_base = s.len > 2 && s.data[0] == '0' &&
			(s.data[1] == 'x' || s.data[1] == 'o' || s.data[1] == 'b');
	return has_base || digits == s.len || strspn(s.data, "0123456789_") == s.len ||
	       strspn(s.data, "0123456789:") == s.len ||
	       /* With two dots it is a version, and text to every reader. */
	       (strspn(s.data, "0123456789_.") == s.len &&
		       strchr(s.data, '.') == strrchr(s.data, '.'));
}

static int read_number(struct reader *r, struct json_value *v)
{
	struct str text = v->string;
	char *end;
	v->kind = JSON_NUMBER;
	v->number = strtod(text.data, &end);
	if (v->number > 1.7976931348623157e308 || v->number < -1.7976931348623157e308)
		return fail(r->err, ERR_INVALID, "line %d: the number '%.64s' is too large",
			v->line, text.data);
	if (strcspn(text.data, ".eE") == text.len && text.len <= 18) {
		v->is_integer = true;
		v->integer = strtoll(text.data, &end, 10);
	}
	return 0;
}

static int read_plain(struct reader *r, struct json_value *v)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const truths[] = { "true", "True", "TRUE", NULL };
	static const char *const untruths[] = { "false", "False", "FALSE", NULL };
	static const char *const unclear[] = { "yes", "Yes", "YES", "no", "No", "NO", "on", "On",
		"ON", "off", "Off", "OFF", "y", "Y", "n", "N", ".inf", ".Inf", ".INF", "-.inf",
		"-.Inf", "-.INF", "+.inf", ".nan", ".NaN", ".NAN", NULL };
	struct str text = v->string;
	if (is_one_of(text, nulls)) {
		v->kind = JSON_NULL;
		return 0;
	}
	if (is_one_of(text, truths) || is_one_of(text, untruths)) {
		v->kind = JSON_BOOL;
		v->boolean = is_one_of(text, truths);
		return 0;
	}
	if (is_json_number(text))
		return read_number(r, v);
	if (!is_one_of(text, unclear) && !is_other_number(text))
		return 0;
	fail(r->err, ERR_INVALID, "line %d: readers of YAML disagree on what '%.64s' means",
		v->line, text.data);
	return error_hint(
		r->err, "write \"%.64s\" for text, or true, false or a decimal number", text.data);
}

/* ---- nodes ---- */

static struct json_value *new_value(struct reader *r, enum json_kind kind, int line)
{
	if (++r->values > YAML_JSON_VALUES_MAX) {
		fail(r->err, ERR_LIMIT, "line %d: more than %zu values", line,
			YAML_JSON_VALUES_MAX);
		return NULL;
	}
	struct json_value *v = arena_alloc(r->arena, sizeof *v);
	v->kind = kind;
	v->line = line;
	return v;
}

static struct json_value *yaml_json_copy(struct reader *r, const struct json_value *from, int line)
{
	struct json_value *v = new_value(r, from->kind, line), **end;
	if (!v)
		return NULL;
	*v = *from;
	v->line = line;
	v->next = v->first = NULL;
	end = &v->first;
	for (const struct json_value *one = from->first; one; one = one->next) {
		if (!(*end = yaml_json_copy(r, one, line)))
			return NULL;
		end = &(*end)->next;
	}
	return v;
}

static int add_anchor(struct reader *r, const yaml_char_t *name, int line, struct anchor **anchor)
{
	*anchor = NULL;
	if (!name)
		return 0;
	if (r->anchor_count == YAML_JSON_ANCHORS_MAX)
		return fail(r->err, ERR_LIMIT, "line %d: more than %d anchors", line,
			YAML_JSON_ANCHORS_MAX);
	*anchor = &r->anchors[r->anchor_count++];
	**anchor = (struct anchor){ arena_text(r->arena, (const char *)name), NULL };
	return 0;
}

static int read_alias(
	struct reader *r, const yaml_event_t *event, int line, struct json_value **out)
{
	const char *name = (const char *)event->data.alias.anchor;
	for (size_t i = r->anchor_count; i-- > 0;) {
		if (strcmp(r->anchors[i].name, name))
			continue;
		if (!r->anchors[i].value)
			return fail(r->err, ERR_INVALID,
				"line %d: the value of anchor '%.64s' contains itself", line, name);
		*out = yaml_json_copy(r, r->anchors[i].value, line);
		return *out ? 0 : -1;
	}
	return fail(r->err, ERR_INVALID, "line %d: there is no anchor '%.64s'", line, name);
}

static int next_event(struct reader *r, yaml_event_t *event)
{
	if (yaml_parser_parse(&r->parser, event))
		return 0;
	const char *context = r->parser.context, *problem = r->parser.problem;
	int line =
		line_of(problem && !r->parser.problem_mark.line && !r->parser.problem_mark.index &&
					r->parser.context_mark.line
				? r->parser.context_mark
				: r->parser.problem_mark);
	return fail(r->err, ERR_INVALID, "line %d: %s%s%s", line, context ? context : "",
		context ? ", " : "", problem ? problem : "not YAML");
}

static int check_tag(struct reader *r, const yaml_char_t *tag, int line)
{
	return tag ? fail_hint(r->err, ERR_INVALID, "leave the tag out",
			     "line %d: unexpected tag '%.64s'", line, (const char *)tag)
		   : 0;
}

static int read_scalar(
	struct reader *r, const yaml_event_t *event, int line, struct json_value **out)
{
	struct json_value *v = new_value(r, JSON_STRING, line);
	struct anchor *anchor;
	if (!v || check_tag(r, event->data.scalar.tag, line) ||
		add_anchor(r, event->data.scalar.anchor, line, &anchor))
		return -1;
	v->string.len = event->data.scalar.length;
	v->string.data = arena_bytes(
		r->arena, (const char *)event->data.scalar.value, event->data.scalar.length);
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && read_plain(r, v))
		return -1;
	if (anchor)
		anchor->value = v;
	*out = v;
	return 0;
}

static int read_node(
	struct reader *r, const yaml_event_t *event, int depth, struct json_value **out);

static int read_sequence(
	struct reader *r, const yaml_event_t *event, int depth, struct json_value **out)
{
	int line = line_of(event->start_mark);
	struct json_value *v = new_value(r, JSON_ARRAY, line), **end = v ? &v->first : NULL;
	struct anchor *anchor;
	if (!v || check_tag(r, event->data.sequence_start.tag, line) ||
		add_anchor(r, event->data.sequence_start.anchor, line, &anchor))
		return -1;
	for (;;) {
		yaml_event_t item;
		if (next_event(r, &item))
			return -1;
		bool is_end = item.type == YAML_SEQUENCE_END_EVENT;
		int failed = is_end ? 0 : read_node(r, &item, depth + 1, end);
		yaml_event_delete(&item);
		if (failed)
			return -1;
		if (is_end)
			break;
		end = &(*end)->next;
		v->count++;
	}
	if (anchor)
		anchor->value = v;
	*out = v;
	return 0;
}

static int read_key(
	struct reader *r, const yaml_event_t *event, const struct json_value *map, struct str *key)
{
	int line = line_of(event->start_mark);
	char shown[96];
	if (event->type != YAML_SCALAR_EVENT)
		return fail(r->err, ERR_INVALID, "line %d: a key must be text", line);
	const char *data = (const char *)event->data.scalar.value;
	*key = (struct str){ data, event->data.scalar.length };
	str_printable(shown, sizeof shown, *key);
	if (check_tag(r, event->data.scalar.tag, line))
		return -1;
	if (event->data.scalar.anchor)
		return fail(
			r->err, ERR_INVALID, "line %d: the key '%s' has an anchor", line, shown);
	if (key->len > YAML_JSON_KEY_MAX)
		return fail(r->err, ERR_LIMIT, "line %d: the key '%s' is too long", line, shown);
	if (!key->len || strlen(data) != key->len)
		return fail(
			r->err, ERR_INVALID, "line %d: a key may not be empty or hold NUL", line);
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && str_is(*key, "<<"))
		return fail(
			r->err, ERR_INVALID, "line %d: merge keys (<<) are not supported", line);
	for (const struct json_value *one = map->first; one; one = one->next)
		if (str_equal(one->key, *key))
			return fail(r->err, ERR_INVALID,
				"line %d: the key '%s' is given twice, first in line %d", line,
				shown, one->line);
	key->data = arena_bytes(r->arena, data, key->len);
	return 0;
}

static int read_member(struct reader *r, const yaml_event_t *event, int depth,
	const struct json_value *map, struct json_value **out)
{
	struct str key;
	yaml_event_t value;
	if (read_key(r, event, map, &key) || next_event(r, &value))
		return -1;
	int failed = read_node(r, &value, depth + 1, out);
	yaml_event_delete(&value);
	if (failed)
		return -1;
	(*out)->key = key;
	(*out)->line = line_of(event->start_mark);
	return 0;
}

static int read_mapping(
	struct reader *r, const yaml_event_t *event, int depth, struct json_value **out)
{
	int line = line_of(event->start_mark);
	struct json_value *v = new_value(r, JSON_OBJECT, line), **end = v ? &v->first : NULL;
	struct anchor *anchor;
	if (!v || check_tag(r, event->data.mapping_start.tag, line) ||
		add_anchor(r, event->data.mapping_start.anchor, line, &anchor))
		return -1;
	for (;;) {
		yaml_event_t key;
		struct json_value *one = NULL;
		if (next_event(r, &key))
			return -1;
		bool is_end = key.type == YAML_MAPPING_END_EVENT;
		int failed = is_end ? 0 : read_member(r, &key, depth, v, &one);
		yaml_event_delete(&key);
		if (failed)
			return -1;
		if (is_end)
			break;
		*end = one;
		end = &one->next;
		v->count++;
	}
	if (anchor)
		anchor->value = v;
	*out = v;
	return 0;
}

/* Nothing is written to *out on failure that the caller may use. */
static int read_node(
	struct reader *r, const yaml_event_t *event, int depth, struct json_value **out)
{
	int line = line_of(event->start_mark);
	if (depth > YAML_JSON_DEPTH_MAX)
		return fail(r->err, ERR_LIMIT, "line %d: nested more than %d deep", line,
			YAML_JSON_DEPTH_MAX);
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return read_alias(r, event, line, out);
	case YAML_SCALAR_EVENT:
		return read_scalar(r, event, line, out);
	case YAML_SEQUENCE_START_EVENT:
		return read_sequence(r, event, depth, out);
	case YAML_MAPPING_START_EVENT:
		return read_mapping(r, event, depth, out);
	default:
		return fail(r->err, ERR_INVALID, "line %d: a value is missing", line);
	}
}

/* ---- the document ---- */

static int read_document(struct reader *r, struct json_value **out)
{
	struct json_value *root = NULL;
	for (;;) {
		yaml_event_t event;
		int failed = 0;
		if (next_event(r, &event))
			return -1;
		int line = line_of(event.start_mark);
		yaml_event_type_t type = event.type;
		if (type == YAML_DOCUMENT_START_EVENT && root)
			failed = fail(
				r->err, ERR_INVALID, "line %d: unexpected second document", line);
		else if (type == YAML_DOCUMENT_START_EVENT &&
			 (event.data.document_start.version_directive ||
				 event.data.document_start.tag_directives.start !=
					 event.data.document_start.tag_directives.end))
			failed = fail(r->err, ERR_INVALID,
				"line %d: directives (%%YAML, %%TAG) are not supported", line);
		else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
			 type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT)
			failed = read_node(r, &event, 1, &root);
		yaml_event_delete(&event);
		if (failed)
			return -1;
		if (type == YAML_STREAM_END_EVENT)
			break;
	}
	if (!root && !(root = new_value(r, JSON_NULL, 1)))
		return -1;
	*out = root;
	return 0;
}

int yaml_json_read(
	struct str text, struct arena *arena, struct json_value **value, struct error *err)
{
	if (text.len > YAML_JSON_MAX)
		return fail(err, ERR_LIMIT, "line 1: more than %zu bytes", YAML_JSON_MAX);
	size_t valid = text.len ? str_utf8_prefix(text.data, text.len) : 0;
	if (valid < text.len) {
		int line = 1;
		for (size_t i = 0; i < valid; i++)
			line += text.data[i] == '\n';
		return fail(err, ERR_INVALID, "line %d: not valid UTF-8", line);
	}
	struct reader *r = arena_alloc(arena, sizeof *r);
	r->arena = arena;
	r->err = err;
	if (!yaml_parser_initialize(&r->parser))
		abort(); /* out of memory */
	yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(
		&r->parser, (const unsigned char *)(text.data ? text.data : ""), text.len);
	int failed = read_document(r, value);
	yaml_parser_delete(&r->parser);
	return failed;
}
