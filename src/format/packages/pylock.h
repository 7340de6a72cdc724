/* pylock.h -- pylock.toml (PEP 751) as far as uv writes it for one interpreter: each package with
 * the wheels that fit, by address and hash. What is installed from it isn't looked up in an index
 * again. Pure. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/packages/lock.h"
#include "format/packages/requirements.h"

struct pylock_file {
	const char *url;    /* http or https, no blank, quote or backslash in it */
	const char *sha256; /* 64 hex, lower case */
};
struct pylock_package {
	const char *name, *version;    /* normalised name */
	const char *marker;	       /* or NULL */
	VEC(struct pylock_file) files; /* at least one */
	int line;
};
typedef VEC(struct pylock_package) pylock_list;
/* ERR_CORRUPT names the package or the line: also for what comes from elsewhere than an index (a
 * directory, an address, a repository). Sources (sdist) are passed over. Sorted by name. */
int pylock_parse(struct str text, struct arena *arena, pylock_list *list, struct error *err);
void pylock_print(const pylock_list *list, struct buf *out);
/* The same as a lock: the hashes alone. */
void pylock_to_lock(const pylock_list *list, struct arena *arena, lock_list *packages);
/* A pylock.toml of any tool as lines "name==version ; marker --hash=…": its versions and hashes,
 * not its addresses. ERR_INVALID names the line or the package: also for one that is not from an
 * index, or that has no hash. */
int pylock_requirements(
	struct str text, struct arena *arena, requirement_lines *lines, struct error *err);
/* NULL: not in it. */
const struct pylock_package *pylock_find(const pylock_list *list, const char *name);
