/* json_read.h -- JSON to a tree of values, strictly (RFC 8259): depth, UTF-8, duplicate keys,
 * numbers and trailing bytes are checked. Pure; everything lives in the arena.
 * 1. Strings are valid UTF-8: a surrogate without its other half is an error.
 * 2. A number that double can't hold (1e400) is an error, never infinite; one too small is 0. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "format/text/json.h"

#define JSON_READ_MAX ((size_t)32 << 20)       /* bytes of text */
#define JSON_READ_VALUES_MAX ((size_t)1 << 20) /* and values in it */
#define JSON_READ_DEPTH_MAX 32

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
struct json_value {
	enum json_kind kind;
	bool boolean;
	bool is_integer; /* no fraction, no exponent, and int64 holds it: `integer` */
	int64_t integer;
	double number;
	struct str string;	  /* NUL-terminated too; may hold NUL */
	struct str key;		  /* of a member; the same */
	struct json_value *next;  /* in its array or object */
	struct json_value *first; /* of an array or object */
	size_t count;
	int line;	   /* of YAML (format/text/yaml_json.h): where it, or its key, is; else 0 */
	struct str source; /* of JSON: as it is written in the text, which has to live as long */
};
/* ERR_INVALID says what and at which line and column ("line 2, column 7: …"; columns count
 * characters). ERR_LIMIT: more than one of the maxima above. */
int json_read(struct str text, struct arena *arena, struct json_value **value, struct error *err);
/* The member of an object, or NULL (also when v is NULL or no object). */
const struct json_value *json_member(const struct json_value *v, const char *key);
/* The member's text, NUL-terminated and without NUL in it, else NULL. */
const char *json_member_text(const struct json_value *v, const char *key);
/* false: missing, or not an integer >= 0. */
bool json_member_u64(const struct json_value *v, const char *key, uint64_t *value);
/* Whether the member is true. */
bool json_member_true(const struct json_value *v, const char *key);
/* The first item of the list, or member of the object, that a member is; NULL: it has none. */
const struct json_value *json_member_first(const struct json_value *v, const char *key);
/* Writes a value that was read. Numbers that aren't integers have three decimals, as json_real
 * writes them. */
void json_copy(struct json *j, const char *key, const struct json_value *value);
