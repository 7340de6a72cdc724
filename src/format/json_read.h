/* json_read.h -- JSON to a tree of values, strictly (RFC 8259): depth, UTF-8, duplicate keys, numbers
 * and trailing bytes are checked. Pure; everything lives in the arena. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
struct json_value {
	enum json_kind kind;
	bool boolean;
	bool is_integer; /* a number that int64 holds exactly: `integer` */
	int64_t integer;
	double number;
	struct str string;    /* NUL-terminated too; may hold NUL */
	struct str key;	      /* of a member */
	struct json_value *next; /* in its array or object */
	struct json_value *first; /* of an array or object */
	size_t count;
};
/* ERR_INVALID says what and at which line and column. Depth at most 32. */
int json_read(struct str text, struct arena *arena, struct json_value **value, struct error *err);
/* The member of an object, or NULL (also when v is NULL or no object). */
const struct json_value *json_member(const struct json_value *v, const char *key);
/* The member's text, NUL-terminated and without NUL in it, else NULL. */
const char *json_member_text(const struct json_value *v, const char *key);
/* false: it isn't there, or no integer >= 0. */
bool json_member_u64(const struct json_value *v, const char *key, uint64_t *value);
