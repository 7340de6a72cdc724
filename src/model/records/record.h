/* record.h -- the fields of a noun, described once. The same rows read what a client sends into a C
 * struct, print what is shown, print and read the document that the store keeps, and print the JSON
 * Schema; the command line takes options and columns from them. Pure.
 * 1. A row says who uses it: FIELD_IN (a client may send it), FIELD_OUT (it is shown), FIELD_KEPT
 * (it is stored, in a document; FIELD_COLUMN: beside it). A row without any of the three has the
 * uses of its record. One name may have a row for each use, where they differ.
 * 2. Reading what a client sent: an unknown member is an error that names the nearest known one. A
 * member that is null counts as not given, unless its row is required or strict. Errors are
 * ERR_INVALID; texts begin with the member's path ("limits.memory: '12X' is not a size; try 512M or
 * 1G"). What isn't given stays as it is in the struct: the caller zeroes it, or sets the defaults.
 * 3. Texts have no NUL and live in the arena; lengths are counted in characters. Of a list of texts
 * items[count] is NULL.
 * 4. What is kept is read strictly: every member is there, of its kind, and no other. So a new one
 * is FIELD_LATER, or a new version of the store, whose migration gives it a value. What is printed
 * to be kept can be read, whatever the texts hold (bytes that aren't UTF-8 come back as U+FFFD; a
 * number out of its range is cut to it). */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/text/json.h"
#include "format/text/json_read.h"

enum field_kind {
	FIELD_TEXT,	/* const char *; NULL is null */
	FIELD_ID,	/* char[ID_LEN + 1]; out only */
	FIELD_BYTES,	/* struct str: text, or {"base64": text}; may hold NUL; in only */
	FIELD_INTEGER,	/* uint64_t, from least to most */
	FIELD_INT,	/* int, not negative; not in */
	FIELD_BOOLEAN,	/* bool */
	FIELD_REAL,	/* double, not negative; not in */
	FIELD_SIZE,	/* uint64_t bytes: an integer, or text as quantity.h has it; or an integer
			   in the member of the same name with _bytes behind it, as it is shown */
	FIELD_DURATION, /* uint64_t ms: text as quantity.h has it, or a number of seconds; or an
			   integer in the member of the same name with _ms behind it, as it is
			   shown */
	FIELD_CPUS,	/* uint64_t thousandths: a number, or text; kept as milli<name> */
	FIELD_CHOICE,	/* int: the value of a name in `choices`, or its index in `names` */
	FIELD_NUMBERED, /* int: the same, or a whole number from least to most; in only */
	FIELD_TEXTS,	/* text_list: from least to most of them, each checked */
	FIELD_PAIRS,	/* pair_list: an object of texts, at most `most`; a value that was null
			   (FIELD_NULLABLE) is NULL. Kept as a list: a key may be there twice */
	FIELD_OBJECT,	/* rows of `object`, at offset */
	FIELD_JSON,	/* const char *: any object, as its JSON text without blanks, of at most
			   `most` bytes; kept as a text */
	FIELD_SHORT,	/* the same, or a text that stands for its first row; in only */
	FIELD_SHOWN,   /* in: a text of what is printed, which may be sent back, and says nothing */
	FIELD_ABSENT,  /* in: known, but not available in this version: an error that says so.
			  out: null, where a text will be */
	FIELD_TIME,    /* int64_t Unix ms: RFC 3339; 0 is null; out only */
	FIELD_STREAM,  /* struct field_stream; out only */
	FIELD_OBJECTS, /* const char *: JSON, a list of `object`; out only */
	FIELD_VALUE,   /* const char *: JSON, any value; out only */
};
struct field_choice {
	const char *name; /* NULL ends the list */
	int value;
};
struct field_stream {
	struct str bytes;
	bool is_base64;
	size_t *place; /* set to where it ends in the buffer, before the closing quote; or NULL */
};

enum {
	FIELD_COLUMN = 256, /* stored in a column of its own, under the name of what is kept */
	FIELD_IN = 1,
	FIELD_OUT = 2,
	FIELD_KEPT = 4,
	FIELD_USES = FIELD_IN | FIELD_OUT | FIELD_KEPT,
	FIELD_REQUIRED = 8,
	FIELD_NULLABLE = 16, /* out: null when it is 0, or `has` isn't set. FIELD_PAIRS: values may
				be null */
	FIELD_OPTIONAL = 32, /* out: left out when it is empty */
	FIELD_STRICT = 64,   /* in: null is an error */
	FIELD_LATER = 128,   /* kept since a later version: where it is missing it is its fallback.
				Left out when empty, unless it has one, so that documents of before
				and after can be read by both */
	FIELD_EXACT = 512,   /* FIELD_JSON, in: the text as it was sent: no number is rounded */
};
struct record;
struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	const char *help;
	unsigned flags;
	uint64_t least,
		most;	   /* of a number; characters of a text; members of a list. most 0: none */
	uint64_t fallback; /* of a number that isn't given; 0: none */
	size_t has;	   /* FIELD_HAS(struct, member): a bool: in: set when it was given, also as
			      null; out, nullable: whether it is there */
	const struct field_choice *choices;
	const char *const *names; /* ended by NULL */
	const struct record *object;
	const char *pattern; /* for the schema: ECMA regular expression of a text, or of a key */
	/* A text (or one of FIELD_TEXTS) as the pattern wants it: 0, or -1 with a text that names
	 * no member. */
	int (*check)(const char *text, struct error *err);
	bool (*is_valid)(const char *text); /* the same of what was shown, and is read back */
	int (*check_pair)(const char *key, const char *value, struct error *err);
	const char *kept; /* its name there, when it is another */
	const char *word; /* in: offset is a text_list, which gets this word when a boolean is true,
			     and of a text, or of each of several, this word with the text behind */
	const char *head; /* of its column on the command line, or NULL */
	unsigned column;  /* its place there, from 1 */
};
#define FIELD_HAS(type, member) (offsetof(type, member) + 1)

struct record {
	const char *name;  /* of the schema of what is shown: "Limits"; or of what is sent, */
	const char *about; /* or NULL */
	const struct field *rows;
	size_t count;
	unsigned uses;		  /* of rows that say none */
	const char *wanted;	  /* the name of the schema of what is sent, when both are */
	const char *wanted_about; /* or NULL */
	/* What the rows can't say of a struct that was read, or NULL. */
	int (*check)(const void *value, struct error *err);
	/* Exactly one of these must be sent: a NULL-terminated list of (strict) rows, or NULL. */
	const char *const *one_of;
	/* For the schema alone. The rows of `base` stand before those of this one. Or it has no
	 * rows, and is one of several records, a NULL-terminated list; `tag` (or NULL) is the
	 * FIELD_CHOICE that each of them has, and that says which one it is. */
	const struct record *base;
	const struct record *const *variants;
	const char *tag;
};
#define RECORD_ROWS(array) array, sizeof(array) / sizeof *(array)

bool field_is(const struct record *record, const struct field *row, unsigned use);
/* The name of the member: in: as the row has it; out and kept: with its unit ("memory_bytes",
 * "ttl_ms"); kept: or its own. */
struct field_name {
	char text[64];
};
struct field_name field_name(const struct field *row, unsigned use);
/* What stands behind the name of its other member, a whole number: "_ms", "_bytes"; NULL: it has
 * none. */
const char *field_unit(const struct field *row);

/* An object that a client sent into the struct that the rows are about. Errors about values that
 * have a line begin with it ("line 3: limits.memory: …"). */
int record_read(const struct record *record, const struct json_value *value, struct arena *arena,
	void *out, struct error *err);

struct record_parameter {
	struct str name, value; /* decoded */
};
/* The same from a query: all values are text; a boolean's may be empty (true), "true", "1",
 * "false", "0"; a list's parameter may be there several times, others once. */
int record_read_query(const struct record *record, const struct record_parameter *parameters,
	size_t count, struct arena *arena, void *out, struct error *err);

/* What is shown of a struct, as an object under `key`; and only its members. */
void record_print(struct json *j, const char *key, const struct record *record, const void *object);
void record_print_members(struct json *j, const struct record *record, const void *object);
/* What of a struct isn't 0, as a client sends it. */
void record_print_given(
	struct json *j, const char *key, const struct record *record, const void *object);
/* For the store, and back. Texts are in the arena. *object is changed in any case: pass a copy.
 * ERR_CORRUPT names the field. */
void record_print_kept(const struct record *record, const void *object, struct buf *out);
int record_read_kept(const struct record *record, struct str text, struct arena *arena,
	void *object, struct error *err);
/* The same of what record_print has printed: with checks, and unknown members are passed over. */
int record_read_shown(const struct record *record, struct str text, struct arena *arena,
	void *object, struct error *err);
/* Replaces the texts and lists of *object that are kept by copies in the arena. What isn't kept
 * still points where it did. */
void record_copy_texts(const struct record *record, struct arena *arena, void *object);

/* Its name in the schema of that use, FIELD_IN or FIELD_OUT. */
const char *record_schema_name(const struct record *record, unsigned use);
/* The JSON Schema (2020-12) of it, as a value under `key`. Objects within are references to
 * #/components/schemas/<name>. */
void record_print_schema(
	struct json *j, const char *key, const struct record *record, unsigned use);
/* The row of a query parameter, as its schema: without null. */
void record_print_parameter(struct json *j, const char *key, const struct field *row);
