/* ini.h -- pip.conf: sections, "key = value" or "key: value", indented lines that continue a value,
 * lines that are comments (# or ;). Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

struct ini_entry {
	const char *section;
	const char *key;   /* lower case, '_' as '-', as pip takes them */
	const char *value; /* trimmed; the lines of a long one joined by newlines */
	int line;
};
typedef VEC(struct ini_entry) ini_list;
#define INI_MAX ((size_t)1 << 20)
/* ERR_INVALID names the line; ERR_LIMIT: larger than INI_MAX. */
int ini_parse(struct str text, struct arena *arena, ini_list *entries, struct error *err);
/* The last of that name, or NULL. */
const char *ini_find(const ini_list *entries, const char *section, const char *key);
