/* yaml.h -- the part of YAML that a configuration needs, strictly: maps nested by spaces, plain and
 * quoted scalars on one line, lists of scalars ("- x" on lines of their own, or [a, b] on one
 * line), comments, and "---" once at the top. Whatever else YAML has (anchors, aliases, tags,
 * multi-line text, maps in braces or in lists, merge keys, tabs, directives, more documents), and a
 * key given twice, is an error, so that no other reader sees something else in a file that is read
 * here. Pure; everything lives in the arena.
 * 1. Texts are UTF-8 without control characters but those that \n and \t in double quotes make.
 * 2. What a scalar means (number, boolean) is the caller's business; only null is told apart. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

#define YAML_MAX ((size_t)1 << 20)	  /* bytes of text */
#define YAML_VALUES_MAX ((size_t)1 << 16) /* and values in it */
#define YAML_DEPTH_MAX 8		  /* maps in maps */
#define YAML_KEY_MAX 128		  /* bytes of a key */

enum yaml_kind { YAML_NULL, YAML_SCALAR, YAML_LIST, YAML_MAP };
struct yaml_value {
	enum yaml_kind kind;
	int line;		  /* where it, or its key, is; from 1 */
	const char *key;	  /* of a member of a map, else NULL */
	const char *text;	  /* of a scalar, unquoted; of null as written, maybe "" */
	bool is_quoted;		  /* quoted: '1' is a text, not a number */
	struct yaml_value *next;  /* in its map or list */
	struct yaml_value *first; /* of a map or list */
	size_t count;
};
/* *root is a map, a list, or null when there is nothing but comments. ERR_INVALID: "line 3: a.b: …"
 * (line, keys on the way, what). ERR_LIMIT: more than one of the maxima above. */
int yaml_read(struct str text, struct arena *arena, struct yaml_value **root, struct error *err);
