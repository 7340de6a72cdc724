/* The rows of a record as JSON Schema. */
#include "model/records/record.h"

#define NO_NUL "^[^\\x00]*$"
#define NUMBER "([0-9]{1,15}([.][0-9]{1,9})?|[.][0-9]{1,9})"
#define SIZE_PATTERN "^" NUMBER "([bB]|[kKmMgGtTpPeE]([iI]?[bB])?)?$"
#define DURATION_PATTERN "^" NUMBER "(ms|s|m|h|d)?$"
#define CPUS_PATTERN "^" NUMBER "$"

static void print_types(struct json *j, const char *one, const char *other, bool or_null)
{
	if (!other && !or_null) {
		json_text(j, "type", one);
		return;
	}
	json_array(j, "type");
	json_text(j, NULL, one);
	if (other)
		json_text(j, NULL, other);
	if (or_null)
		json_text(j, NULL, "null");
	json_end(j);
}

static void print_range(
	struct json *j, const char *least, const char *most, const struct field *row)
{
	if (row->least)
		json_u64(j, least, row->least);
	if (row->most)
		json_u64(j, most, row->most);
}

/* Bounds hold for what is sent. */
static void print_number_range(struct json *j, const struct field *row, unsigned use)
{
	bool is_in = use == FIELD_IN;
	json_u64(j, "minimum", is_in ? row->least : 0);
	json_u64(j, "maximum", is_in && row->most ? row->most : INT64_MAX);
}

static void print_text(struct json *j, const struct field *row, unsigned use, bool or_null)
{
	print_types(j, "string", NULL, or_null);
	if (use == FIELD_OUT)
		return;
	print_range(j, "minLength", "maxLength", row);
	json_text(j, "pattern", row->pattern ? row->pattern : NO_NUL);
}

static void print_texts(struct json *j, const struct field *row, unsigned use, bool or_null)
{
	print_types(j, "array", NULL, or_null);
	if (use == FIELD_IN)
		print_range(j, "minItems", "maxItems", row);
	json_object(j, "items");
	json_text(j, "type", "string");
	if (use == FIELD_IN)
		json_text(j, "pattern", row->pattern ? row->pattern : NO_NUL);
	json_end(j);
}

static void print_pairs(struct json *j, const struct field *row, unsigned use, bool or_null)
{
	print_types(j, "object", NULL, or_null);
	if (use == FIELD_IN && row->most)
		json_u64(j, "maxProperties", row->most);
	if (use == FIELD_IN && row->pattern) {
		json_object(j, "propertyNames");
		json_text(j, "pattern", row->pattern);
		json_end(j);
	}
	json_object(j, "additionalProperties");
	print_types(j, "string", NULL, (row->flags & FIELD_NULLABLE) != 0);
	if (use == FIELD_IN)
		json_text(j, "pattern", NO_NUL);
	json_end(j);
}

static void print_choices(struct json *j, const struct field *row, bool or_null)
{
	json_array(j, "enum");
	for (const struct field_choice *c = row->choices; c && c->name; c++)
		json_text(j, NULL, c->name);
	for (const char *const *name = row->names; name && *name; name++)
		json_text(j, NULL, *name);
	if (or_null)
		json_null(j, NULL);
	json_end(j);
}

/* Two alternatives with one type each: code generators don't support a list of types. */
static void print_numbered(struct json *j, const struct field *row, unsigned use, bool or_null)
{
	json_array(j, "anyOf");
	json_object(j, NULL);
	print_types(j, "string", NULL, or_null);
	print_choices(j, row, or_null);
	json_end(j);
	json_object(j, NULL);
	json_text(j, "type", "integer");
	print_number_range(j, row, use);
	json_end(j);
	json_end(j);
}

/* Text with a unit, or a number of seconds. */
static void print_duration(struct json *j, const struct field *row, bool or_null)
{
	json_array(j, "anyOf");
	json_object(j, NULL);
	print_types(j, "string", NULL, or_null);
	json_text(j, "pattern", DURATION_PATTERN);
	json_end(j);
	json_object(j, NULL);
	json_text(j, "type", "number");
	json_real(j, "minimum", (double)(row->least ? row->least : 1) / 1000);
	if (row->most)
		json_real(j, "maximum", (double)(row->most / 1000));
	json_end(j);
	json_end(j);
}

const char *record_schema_name(const struct record *record, unsigned use)
{
	return use == FIELD_IN && record->wanted ? record->wanted : record->name;
}

static void print_reference(struct json *j, const struct record *object, unsigned use)
{
	char reference[128];
	str_format(reference, sizeof reference, "#/components/schemas/%s",
		record_schema_name(object, use));
	json_text(j, "$ref", reference);
}

/* An object, or something else that may stand for it. */
static void print_object(struct json *j, const struct field *row, unsigned use, bool or_null)
{
	if (row->kind == FIELD_OBJECT && !or_null) {
		print_reference(j, row->object, use);
		return;
	}
	json_array(j, "anyOf");
	json_object(j, NULL);
	print_reference(j, row->object, use);
	json_end(j);
	if (row->kind == FIELD_SHORT) {
		json_object(j, NULL);
		print_text(j, row->object->rows, FIELD_IN, false);
		json_end(j);
	}
	if (or_null)
		json_raw(j, NULL, "{\"type\":\"null\"}");
	json_end(j);
}

#define BASE64_SCHEMA                                                                              \
	"{\"type\":\"object\",\"properties\":{\"base64\":{\"type\":\"string\","                    \
	"\"contentEncoding\":\"base64\",\"pattern\":\"^([A-Za-z0-9+/]{4})*$\"}},"                  \
	"\"required\":[\"base64\"],\"additionalProperties\":false}"

static void print_bytes(struct json *j, bool or_null)
{
	json_raw(j, "anyOf",
		or_null ? "[{\"type\":[\"string\",\"null\"]}," BASE64_SCHEMA "]"
			: "[{\"type\":\"string\"}," BASE64_SCHEMA "]");
}

static void print_list(struct json *j, const struct field *row, unsigned use, bool or_null)
{
	print_types(j, "array", NULL, or_null);
	json_object(j, "items");
	print_reference(j, row->object, use);
	json_end(j);
}

/* Kinds that are sent in more ways than they are shown. */
static enum field_kind shown_kind(enum field_kind kind)
{
	return kind == FIELD_SIZE || kind == FIELD_DURATION ? FIELD_INTEGER : kind;
}

static void print_kind(struct json *j, const struct field *row, unsigned use, bool or_null)
{
	switch (use == FIELD_OUT ? shown_kind(row->kind) : row->kind) {
	case FIELD_TEXT:
	case FIELD_ID:
	case FIELD_STREAM:
		print_text(j, row, use, or_null);
		break;
	case FIELD_BYTES:
		print_bytes(j, or_null);
		break;
	case FIELD_INTEGER:
	case FIELD_INT:
		print_types(j, "integer", NULL, or_null);
		print_number_range(j, row, use);
		break;
	case FIELD_BOOLEAN:
		print_types(j, "boolean", NULL, or_null);
		break;
	case FIELD_REAL:
		print_types(j, "number", NULL, or_null);
		break;
	case FIELD_SIZE:
		print_types(j, "integer", "string", or_null);
		print_number_range(j, row, use);
		json_text(j, "pattern", SIZE_PATTERN);
		break;
	case FIELD_DURATION:
		print_duration(j, row, or_null);
		break;
	case FIELD_CPUS:
		if (use == FIELD_OUT) {
			print_types(j, "number", NULL, or_null);
			break;
		}
		print_types(j, "number", "string", or_null);
		json_real(j, "minimum", 0.01);
		json_u64(j, "maximum", 4096);
		json_text(j, "pattern", CPUS_PATTERN);
		break;
	case FIELD_CHOICE:
		print_choices(j, row, or_null);
		break;
	case FIELD_NUMBERED:
		print_numbered(j, row, use, or_null);
		break;
	case FIELD_TEXTS:
		print_texts(j, row, use, or_null);
		break;
	case FIELD_PAIRS:
		print_pairs(j, row, use, or_null);
		break;
	case FIELD_OBJECT:
	case FIELD_SHORT:
		print_object(j, row, use, or_null);
		break;
	case FIELD_OBJECTS:
		print_list(j, row, use, or_null);
		break;
	case FIELD_VALUE:
		break;
	case FIELD_JSON:
		print_types(j, "object", NULL, or_null);
		break;
	case FIELD_TIME:
		print_types(j, "string", NULL, or_null);
		json_text(j, "format", "date-time");
		break;
	case FIELD_SHOWN:
		print_types(j, "string", NULL, or_null);
		break;
	case FIELD_ABSENT:
		if (use == FIELD_OUT)
			print_types(j, "string", NULL, true);
		else
			json_text(j, "type", "null");
		break;
	}
}

static void print_row(
	struct json *j, const char *key, const struct field *row, unsigned use, bool or_null)
{
	json_object(j, key);
	print_kind(j, row, use, or_null);
	/* The help of a row that is also sent is about that. */
	if (row->help && (use == FIELD_IN || !(row->flags & FIELD_IN)))
		json_text(j, "description", row->help);
	json_end(j);
}

static void print_field(struct json *j, const char *key, const struct field *row, unsigned use)
{
	bool or_null = use == FIELD_IN ? !(row->flags & (FIELD_REQUIRED | FIELD_STRICT))
				       : (row->flags & FIELD_NULLABLE) && row->kind != FIELD_PAIRS;
	print_row(j, key, row, use, or_null);
}

void record_print_parameter(struct json *j, const char *key, const struct field *row)
{
	print_row(j, key, row, FIELD_IN, false);
}

/* Its other member. */
static void print_count(struct json *j, const struct field *row)
{
	char name[80], help[160];
	struct field count = *row;
	str_format(name, sizeof name, "%s%s", row->name, field_unit(row));
	str_format(help, sizeof help, "%s in %s, instead of it", row->name,
		row->kind == FIELD_SIZE ? "bytes" : "milliseconds");
	count.kind = FIELD_INTEGER;
	count.help = help;
	print_field(j, name, &count, FIELD_IN);
}

static void print_properties(struct json *j, const struct record *record, unsigned use)
{
	if (record->base)
		print_properties(j, record->base, use);
	for (size_t i = 0; i < record->count; i++) {
		const struct field *row = &record->rows[i];
		if (!field_is(record, row, use))
			continue;
		print_field(j, field_name(row, use).text, row, use);
		if (use == FIELD_IN && field_unit(row))
			print_count(j, row);
	}
}

static void print_required(
	struct json *j, const struct record *record, unsigned use, bool *is_begun)
{
	if (record->base)
		print_required(j, record->base, use, is_begun);
	for (size_t i = 0; i < record->count; i++) {
		const struct field *row = &record->rows[i];
		if (!field_is(record, row, use) ||
			(use == FIELD_IN ? !(row->flags & FIELD_REQUIRED)
					 : (row->flags & FIELD_OPTIONAL)))
			continue;
		if (!*is_begun)
			json_array(j, "required");
		*is_begun = true;
		json_text(j, NULL, field_name(row, use).text);
	}
}

/* ---- one of several ---- */

static const struct field *tag_row(const struct record *record, const char *tag)
{
	for (size_t i = 0; i < record->count; i++)
		if (!strcmp(record->rows[i].name, tag))
			return &record->rows[i];
	return NULL;
}

static void print_mapping(struct json *j, const struct record *record)
{
	json_object(j, "discriminator");
	json_text(j, "propertyName", record->tag);
	json_object(j, "mapping");
	for (const struct record *const *one = record->variants; *one; one++) {
		const struct field *row = tag_row(*one, record->tag);
		char reference[128];
		str_format(reference, sizeof reference, "#/components/schemas/%s", (*one)->name);
		for (const struct field_choice *c = row ? row->choices : NULL; c && c->name; c++)
			json_text(j, c->name, reference);
		for (const char *const *name = row ? row->names : NULL; name && *name; name++)
			json_text(j, *name, reference);
	}
	json_end(j);
	json_end(j);
}

static void print_variants(struct json *j, const struct record *record, unsigned use)
{
	json_array(j, record->tag ? "oneOf" : "anyOf");
	for (const struct record *const *one = record->variants; *one; one++) {
		json_object(j, NULL);
		print_reference(j, *one, use);
		json_end(j);
	}
	json_end(j);
	if (record->tag)
		print_mapping(j, record);
}

/* For sizes the rule is only in the description: tools that generate requests from a schema combine
 * all such pairs, and fail when there are many. */
static void print_both_refused(struct json *j, const struct record *record)
{
	bool is_begun = false;
	for (size_t i = 0; i < record->count; i++) {
		char name[80];
		if (record->rows[i].kind != FIELD_DURATION ||
			!field_is(record, &record->rows[i], FIELD_IN))
			continue;
		if (!is_begun)
			json_array(j, "allOf");
		is_begun = true;
		str_format(name, sizeof name, "%s_ms", record->rows[i].name);
		json_object(j, NULL);
		json_object(j, "not");
		json_array(j, "required");
		json_text(j, NULL, record->rows[i].name);
		json_text(j, NULL, name);
		json_end(j);
		json_end(j);
		json_end(j);
	}
	if (is_begun)
		json_end(j);
}

static void print_one_of(struct json *j, const struct record *record)
{
	json_array(j, "oneOf");
	for (const char *const *name = record->one_of; *name; name++) {
		json_object(j, NULL);
		json_array(j, "required");
		json_text(j, NULL, *name);
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

void record_print_schema(struct json *j, const char *key, const struct record *record, unsigned use)
{
	const char *about =
		use == FIELD_IN && record->wanted ? record->wanted_about : record->about;
	bool has_required = false;
	json_object(j, key);
	if (about)
		json_text(j, "description", about);
	if (record->variants) {
		print_variants(j, record, use);
		json_end(j);
		return;
	}
	json_text(j, "type", "object");
	json_object(j, "properties");
	print_properties(j, record, use);
	json_end(j);
	print_required(j, record, use, &has_required);
	if (has_required)
		json_end(j);
	if (use == FIELD_IN) {
		print_both_refused(j, record);
		if (record->one_of)
			print_one_of(j, record);
		json_bool(j, "additionalProperties", false);
	}
	json_end(j);
}
