/* manifest.h -- what a layer holds, entry by entry, as text. Pure.
 * 1. The id of a layer is the SHA-256 of its manifest, in hex: who knows the id can check it all.
 * 2. One text for one tree: entries are sorted by path (bytes), fields have one spelling; whatever
 * parses prints again to the same bytes.
 *
 *	carrel-layer 1
 *	kind python-wheel
 *	name requests
 *	version 2.31.0
 *	d 755 lib
 *	f 644 5123 <sha256> lib/python3.11/site-packages/requests/api.py
 *	l 12 lib64 lib			(length of the target in bytes, target, path)
 *
 * Bytes of a path or target below 0x21, 0x7f and '%' are written as %XX. */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"

#define MANIFEST_MAX ((size_t)256 << 20)
#define MANIFEST_ENTRIES_MAX 2000000

enum manifest_kind { MANIFEST_DIRECTORY = 'd', MANIFEST_FILE = 'f', MANIFEST_LINK = 'l' };
struct manifest_entry {
	enum manifest_kind kind;
	unsigned mode;	    /* directories 0755, files 0644 or 0755; links: 0 */
	uint64_t size;	    /* files */
	unsigned char sha256[SHA256_LEN]; /* files */
	const char *path;   /* relative, no empty, "." or ".." part */
	const char *target; /* links */
};
struct manifest {
	const char *kind, *name, *version; /* of [a-z0-9-], [A-Za-z0-9._-], [A-Za-z0-9.!+_-]; version may be "" */
	VEC(struct manifest_entry) entries;
};

/* Sorts the entries, then appends the text. */
void manifest_print(struct manifest *manifest, struct buf *out);
/* ERR_CORRUPT names the line. */
int manifest_parse(struct str text, struct arena *arena, struct manifest *out, struct error *err);
