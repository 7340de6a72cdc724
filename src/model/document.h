/* document.h -- a struct as one JSON text for the store, and back, by a table of its fields. Pure.
 * 1. What is printed can be parsed: whatever the texts hold (bytes that aren't UTF-8 come back as
 * U+FFFD; a number out of its range is cut to it).
 * 2. Parsing is strict: every field is there, of its kind, and no other. So a new field is a new
 * version of the store, whose migration gives it a value, or a DOCUMENT_LATER_… one. */
#pragma once
#include <stddef.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "format/json.h"

enum document_kind {
	DOCUMENT_TEXT,	/* const char *; NULL is null */
	DOCUMENT_COUNT, /* uint64_t */
	DOCUMENT_INT,	/* int, not negative */
	DOCUMENT_BOOL,
	DOCUMENT_NAME,	      /* an enum, by name_of */
	DOCUMENT_PAIRS,	      /* pair_list */
	DOCUMENT_TEXTS,	      /* workspace_texts; parsed, items[count] is NULL */
	DOCUMENT_LATER_TEXTS, /* the same, added after version 2: left out when empty, so that rows
				 of before and after can be read by both */
	DOCUMENT_LATER_BOOL,  /* a bool in the same way: left out when false */
	DOCUMENT_OBJECT	      /* of `fields`, at the same offset base + offset */
};
struct document_field {
	const char *key;
	enum document_kind kind;
	size_t offset;
	const struct document_field *fields; /* ends with key NULL */
	const char *(*name_of)(int value);   /* NULL past the last */
};

void document_print(const struct document_field *fields, const void *object, struct buf *out);
/* Texts are in the arena. *object is changed in any case: pass a copy. ERR_CORRUPT names the field.
 */
int document_parse(const struct document_field *fields, struct str text, struct arena *arena,
	void *object, struct error *err);
