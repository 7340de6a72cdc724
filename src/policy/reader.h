/* reader.h -- reads the JSON files of a policy: errors name the file and the line. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/text/json_read.h"

struct reader {
	const char *name; /* of the file, or NULL */
	struct str text;
	struct arena *arena;
	struct error *err;
	const char *at; /* how far lines have been counted */
	int line;	/* there, from 1 */
};
/* Reads the text to an object. ERR_LIMIT: more than max bytes. */
int reader_open(struct reader *r, size_t max, struct json_value **object);
/* The line on which the value begins. Cheap when values are asked for in their order. */
int reader_line(struct reader *r, const struct json_value *value);
/* ERR_INVALID "NAME:LINE: …", or "line LINE: …" without a name. */
int reader_fail(struct reader *r, const struct json_value *value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(3)));
/* The value has to be of that kind. `path` is how messages call it: "git.enabled". */
int reader_expect(
	struct reader *r, const struct json_value *value, enum json_kind kind, const char *path);
/* Whether a member is a comment: its key begins with '_', or is "$schema". */
bool reader_is_comment(const struct json_value *member);
/* A list of texts without NUL and not empty, appended to `list`. */
int reader_texts(
	struct reader *r, const struct json_value *value, const char *path, text_list *list);

struct reader_member { /* of an object; the last row has no key */
	const char *key;
	int (*read)(struct reader *r, const struct json_value *value, const char *path, void *ctx);
	size_t offset; /* of the member of ctx that `read` gets instead */
	/* The value is an object of these members, which are read after `read` (or NULL). */
	const struct reader_member *rows;
};
/* Reads each member by its row. A member without a row, which is no comment, is an error that names
 * it. `path` is that of the object, "" at the top. */
int reader_members(struct reader *r, const struct json_value *object, const char *path,
	const struct reader_member *rows, void *ctx);
