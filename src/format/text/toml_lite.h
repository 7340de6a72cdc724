/* toml_lite.h -- the part of TOML that uv.toml, pyproject.toml and pylock.toml use: tables, arrays
 * of tables, strings of all four kinds, arrays, inline tables. Other values are returned as
 * written. It doesn't check for duplicate keys or reopened tables. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

struct toml_entry {
	const char *table; /* "", "pip", "index"; names of nested ones joined by dots */
	int instance;	   /* which table: each [header], [[header]] and { } has its own number */
	const char *key;   /* of an inline table's member: the member's */
	const char *text;  /* of an array: an entry for each element; an empty one: "[]" */
	bool is_string;	   /* else a number, true, false, a date: as written */
	int line;
	size_t start, end; /* where it is written, quotes included; of "[]": 0 */
};
typedef VEC(struct toml_entry) toml_list;
/* A header, or a key with its value, outside of inline tables. */
struct toml_statement {
	const char *table, *key; /* key NULL: the header of the table */
	bool is_list;		 /* [[table]] */
	size_t start, end;	 /* of the value, or of the header */
	size_t first, behind;	 /* its entries */
};
typedef VEC(struct toml_statement) toml_statements;
#define TOML_MAX ((size_t)1 << 20)
/* ERR_INVALID names the line; ERR_LIMIT: larger than TOML_MAX. */
int toml_parse(struct str text, struct arena *arena, toml_list *entries, struct error *err);
/* The same, with how the text is laid out. */
int toml_parse_statements(struct str text, struct arena *arena, toml_list *entries,
	toml_statements *statements, struct error *err);
