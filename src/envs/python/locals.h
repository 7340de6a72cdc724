/* locals.h -- wheels and projects of this host that a command line names (--pip ./pkg.whl,
 * --pip ./project). A wheel is installed as it is; a project is built to a wheel, in a sandbox
 * without network. Both are in the lock as name==version with the hash of the wheel, like all
 * others. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"

struct env_local {
	const char *path;   /* absolute, without links */
	const char *extras; /* "[a,b]", or "" */
	bool is_directory;
	const char
		*digest; /* hex: of the wheel's bytes; of a project's tree: names, sizes, times */
	const char *name, *version, *file; /* of a wheel, from the name of its file */
};
typedef VEC(struct env_local) env_locals;

/* Whether a word of --pip is a path by its form: "./x", "../x", "/x", "." or a file x.whl that is
 * there. */
bool local_is_path(const char *word);
/* "./pkg.whl[a,b]" to path and extras. ERR_NOT_FOUND; ERR_INVALID: neither a wheel nor a project.
 */
int local_look(const char *word, struct arena *arena, struct env_local *local, struct error *err);
/* A line of the text that stands for the requirements: see inputs.h. */
void local_print(const struct env_local *local, struct buf *out);
/* The directory's tree, for a build and for a list of links: names, sizes and times of its files,
 * as hex. */
int local_digest_tree(const char *path, bool is_deep, struct arena *arena, const char **digest,
	struct error *err);
