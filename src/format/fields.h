/* fields.h -- rows that say what a JSON object may hold. The same rows read one into a C struct,
 * with errors that name the member, and print its JSON Schema. Pure.
 * 1. An unknown member is an error that names the nearest known one. A member that is null counts
 * as not given, unless its row is required or strict.
 * 2. Errors are ERR_INVALID; texts begin with the member's path ("limits.memory: '12X' is not a
 * size; try 512M or 1G").
 * 3. What isn't given stays as it is in the struct: the caller zeroes it, or sets the defaults.
 * 4. Texts have no NUL and live in the arena; lengths are counted in characters. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/json.h"
#include "format/json_read.h"

enum field_kind {
	FIELD_TEXT,	/* const char * */
	FIELD_BYTES,	/* struct str: text, or {"base64": text}; may hold NUL */
	FIELD_INTEGER,	/* uint64_t, from least to most */
	FIELD_BOOLEAN,	/* bool */
	FIELD_SIZE,	/* uint64_t bytes: an integer, or text as quantity.h has it; or an integer
			   in the member of the same name with _bytes behind it */
	FIELD_DURATION, /* uint64_t ms: text as quantity.h has it; or an integer in the member of
			   the same name with _ms behind it */
	FIELD_CPUS,	/* uint64_t thousandths: a number, or text */
	FIELD_CHOICE,	/* int: the value of a name in `choices` */
	FIELD_NUMBERED, /* int: the same, or a whole number from least to most */
	FIELD_TEXTS,	/* text_list: from least to most of them, each checked */
	FIELD_PAIRS,	/* pair_list: an object of texts, at most `most`; a value that was null
			   (FIELD_NULLABLE) is NULL */
	FIELD_OBJECT,	/* rows of `object`, at offset */
	FIELD_SHORT,	/* the same, or a text that stands for its first row */
	FIELD_SHOWN,	/* a text of what is printed: may be sent back, and says nothing */
	FIELD_ABSENT,	/* known, but not available in this version: an error that says so */
	/* for what is printed only */
	FIELD_TIME, /* RFC 3339 */
	FIELD_NUMBER,
	FIELD_OBJECTS, /* a list of `object` */
	FIELD_ANYTHING,
};
struct field_choice {
	const char *name; /* NULL ends the list */
	int value;
};

enum {
	FIELD_REQUIRED = 1,
	FIELD_NULLABLE = 2, /* FIELD_PAIRS: values may be null. Of what is printed: may be null */
	FIELD_OPTIONAL = 4, /* of what is printed: may be left out */
	FIELD_STRICT = 8,   /* null is an error */
};
struct fields;
struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	const char *help;
	unsigned flags;
	uint64_t least,
		most; /* of a number; characters of a text; members of a list. most 0: none */
	size_t has; /* FIELD_HAS(struct, member): a bool that is set when it was given, also as null
		     */
	const struct field_choice *choices;
	const struct fields *object;
	const char *pattern; /* for the schema: ECMA regular expression of a text, or of a key */
	/* A text (or one of FIELD_TEXTS) as the pattern wants it: 0, or -1 with a text that names
	 * no member. */
	int (*check)(const char *text, struct error *err);
	int (*check_pair)(const char *key, const char *value, struct error *err);
};
#define FIELD_HAS(type, member) (offsetof(type, member) + 1)

struct fields {
	const char *name;  /* of the schema: "Limits" */
	const char *about; /* or NULL */
	const struct field *rows;
	size_t count;
	/* What the rows can't say, or NULL; value is the struct. */
	int (*check)(const void *value, struct error *err);
	/* Exactly one of these must be there: a NULL-terminated list of (strict) rows, or NULL. */
	const char *const *one_of;
};
#define FIELDS(array) array, sizeof(array) / sizeof *(array)

/* What stands behind the name of its other member, a whole number: "_ms", "_bytes"; NULL: it has
 * none. */
const char *field_unit(const struct field *row);

/* An object into the struct that the rows are about. */
int fields_read(const struct fields *fields, const struct json_value *value, struct arena *arena,
	void *out, struct error *err);

struct fields_parameter {
	struct str name, value; /* decoded */
};
/* The same from a query: all values are text; a boolean's may be empty (true), "true", "1",
 * "false", "0"; a list's parameter may be there several times, others once. */
int fields_read_query(const struct fields *fields, const struct fields_parameter *parameters,
	size_t count, struct arena *arena, void *out, struct error *err);

enum fields_use { FIELDS_IN, FIELDS_OUT };
/* The JSON Schema (2020-12) of it, as a value under `key`. Objects within are references to
 * #/components/schemas/<name>. */
void fields_print_schema(
	struct json *j, const char *key, const struct fields *fields, enum fields_use use);
/* The row of a query parameter, as its schema: without null. */
void fields_print_parameter(struct json *j, const char *key, const struct field *row);
