/* lock.h -- what uv resolved: `uv pip compile --generate-hashes --no-header --no-annotate` read
 * back, and as we keep it. Pure. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

struct lock_package {
	const char *name, *version;
	const char *marker; /* or NULL */
	text_list hashes;   /* "sha256:<64 hex>", sorted; at least one */
	bool is_built;	    /* by us, from sources that have one of these hashes */
	bool is_first;	    /* listed before those that aren't: its files win over theirs */
};
typedef VEC(struct lock_package) lock_list;
/* "# built NAME" lines mark those that were. "# first NAME" lines mark packages that come first, in
 * the order of these lines; the others follow, sorted by name. ERR_CORRUPT names the line. A
 * package twice is an error. */
int lock_parse(struct str text, struct arena *arena, lock_list *packages, struct error *err);
/* The same text that uv accepts with --require-hashes; prints what it parses to the same bytes. */
void lock_print(const lock_list *packages, struct buf *out);
/* By name. */
void lock_sort(lock_list *packages);
/* NULL: not in it. */
struct lock_package *lock_find(const lock_list *packages, const char *name);
/* Sorts the hashes of one, each once. */
void lock_sort_hashes(struct lock_package *package);
