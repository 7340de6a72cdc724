/* manifest.h -- what a layer holds, entry by entry, as text. Pure.
 * 1. The id of a layer is the SHA-256 of its manifest, in hex, so the id is enough to verify the
 *layer.
 * 2. One text for one tree: entries are sorted by path (bytes), fields have one spelling; whatever
 * parses prints again to the same bytes.
 * 3. Every entry but the top ones lies in a directory that is listed too.
 *
 *	carrel-layer 1
 *	kind python-wheel
 *	name requests
 *	version 2.31.0
 *	d 755 lib
 *	f 644 5123 <sha256> lib/python3.11/site-packages/requests/api.py
 *	l 3 lib lib64			(length of the target in bytes, target, path)
 *
 * Bytes of a path or target below 0x21, 0x7f and '%' are written as %XX, in upper case; the length
 *of a target is that of what is meant, not of what is written. An empty version leaves "version ".
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"

#define MANIFEST_MAX ((size_t)256 << 20)
#define MANIFEST_ENTRIES_MAX 500000
#define MANIFEST_NAME_MAX 255 /* bytes of kind, name, version */
#define MANIFEST_PATH_MAX                                                                          \
	3072 /* bytes of a path: with /env or a store before it, it still opens                    \
	      */
#define MANIFEST_TARGET_MAX 4095

enum manifest_kind { MANIFEST_DIRECTORY = 'd', MANIFEST_FILE = 'f', MANIFEST_LINK = 'l' };
struct manifest_entry {
	enum manifest_kind kind;
	unsigned mode;			  /* directories 0755, files 0644 or 0755; links: 0 */
	uint64_t size;			  /* files */
	unsigned char sha256[SHA256_LEN]; /* files */
	const char *path;		  /* relative, no empty, "." or ".." part */
	const char *target;		  /* links */
};
struct manifest {
	/* of [a-z0-9-], [A-Za-z0-9._-], [A-Za-z0-9.!+_-]; version may be "" */
	const char *kind, *name, *version;
	VEC(struct manifest_entry) entries;
};

/* Whether kind, name and version are made of what they may be. */
bool manifest_is_named(const char *kind, const char *name, const char *version);
/* Sorts the entries, then appends the text. */
void manifest_print(struct manifest *manifest, struct buf *out);
/* ERR_CORRUPT names the line. */
int manifest_parse(struct str text, struct arena *arena, struct manifest *out, struct error *err);
