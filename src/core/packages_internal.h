/* packages_internal.h -- what packages*.c share. Private to them. */
#pragma once
#include "core/files_internal.h"
#include "core/packages.h"
#include "envs/kind.h"

struct dist { /* lib/python3.N/site-packages/<name>-<version>.dist-info */
	const char *directory, *name, *version;
};
typedef VEC(struct dist) dist_list;
typedef void dists_fn(void *ctx, const dist_list *dists, const struct error *err);
/* Those that are visible in the sandbox, of the Python of `meta`; they live in `arena`. */
void dists_list(struct core_workspace *w, const struct env_meta *meta, struct arena *arena,
	dists_fn *done, void *ctx);
/* "/env/lib/python3.11/site-packages" */
const char *dists_directory(const struct env_meta *meta, struct arena *arena);

struct live_change {
	struct core_workspace *w;	       /* held by the caller */
	struct arena *arena;		       /* the caller's */
	const struct env_meta *before, *after; /* before NULL: none */
	text_list names;		       /* normalised, of the packages that change */
};
/* Copies into the sandbox, which is up, what `after` adds, and removes what the packages had
 * before. On an error nothing was changed. */
void live_apply(const struct live_change *change, environment_fn *done, void *ctx);
