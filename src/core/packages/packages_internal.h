/* packages_internal.h -- what packages*.c share. Private to them. */
#pragma once
#include "core/files/files_ask.h"
#include "core/packages/internal.h"
#include "core/packages/packages.h"
#include "envs/kind.h"
#include "format/packages/node_package.h"

/* ---- a change of packages ---- */

#define PROJECT_FILES 2
#define PACKAGES_MAX 500
struct project_file {	  /* in /workspace */
	const char *path; /* NULL: none */
	size_t most;	  /* bytes; a longer one is ERR_LIMIT */
	bool is_there;
	struct str text;    /* as it was, */
	struct buf changed; /* and is to be; empty: as it was */
	bool is_written;
};
struct package_change {
	struct cancelable cancelable;
	struct core_workspace *w; /* held */
	const struct package_manager *manager;
	struct arena arena;
	struct packages_wanted wanted;
	text_list names;  /* of wanted.packages; of Python: normalised */
	node_specs specs; /* of Node: the same with ranges; a range of NULL: any */
	packages_fn *done;
	void *ctx;
	char request_id[ID_LEN + 1];
	struct fiber *fiber;
	struct project_file files[PROJECT_FILES];
	struct file_write *write; /* that was begun last */
	struct workspace next;	  /* its recipe */
	struct workspace old;	  /* what is put back after an error */
	struct env_pin *pin;	  /* of the new environment, until it is the workspace's */
	struct packages_result result;
	bool waits_for_trees;	      /* of the workspace, which an operation has taken */
	uint64_t build;		      /* that is under way, or 0 */
	struct package_change *later; /* that waits for this one */
};
struct live_change;
/* What depends on the kind of the packages. */
struct package_manager {
	const struct env_kind *kind;
	size_t slot; /* of the environment: enum env_kind_id */
	/* Fills in names, and what else is read of wanted.packages. */
	int (*read_names)(struct package_change *c, struct error *err);
	/* Fills in `next`, and the paths of files, when these are wanted. */
	int (*make_recipe)(struct package_change *c, struct error *err);
	/* Before anything is built: what can't be edited is an error. */
	int (*edit)(struct package_change *c, struct error *err);
	/* When c->pin is the new environment; may be NULL. */
	int (*complete)(struct package_change *c, struct error *err);
	int (*apply)(struct fiber *fiber, const struct live_change *change, struct error *err);
};
#define PACKAGE_MANAGER_EXTERN(id, name) extern const struct package_manager package_manager_##name;
ENV_KIND_LIST(PACKAGE_MANAGER_EXTERN)

bool packages_is_named(const text_list *names, const char *name); /* NULL: no */
void packages_push_unique(struct arena *arena, text_list *list, const char *text);
/* The package.json that an environment of Node was made of, with "latest" replaced by the range of
 * the version, as npm writes it. */
int node_recipe_read(const struct env_store *store, const struct env_meta *meta,
	struct arena *arena, struct str *text, struct error *err);
/* Fails: the workspace didn't request `name`, so it can't be removed. */
int packages_refuse_removal(
	struct package_change *c, const char *name, const char *hint, struct error *err);

/* ---- packages of Python in a sandbox ---- */

struct dist { /* lib/python3.N/site-packages/<name>-<version>.dist-info */
	const char *directory, *name, *version;
};
typedef VEC(struct dist) dist_list;
/* Those that are visible in the sandbox, of the Python of `meta`; they live in `arena`. */
int dists_list(struct fiber *fiber, struct core_workspace *w, const struct env_meta *meta,
	struct arena *arena, dist_list *dists, struct error *err);
/* "/env/lib/python3.11/site-packages" */
const char *dists_directory(const struct env_meta *meta, struct arena *arena);
/* The same of Node: `directory` is the path below node_modules. */
int modules_list(struct fiber *fiber, struct core_workspace *w, struct arena *arena,
	dist_list *modules, struct error *err);

/* ---- packages in a sandbox that runs ---- */

struct live_change {
	struct core_workspace *w; /* held by the caller */
	struct arena *arena;	  /* the caller's */
	/* Until the first wait: a rollback may release them, and a build renews them. before NULL:
	 * none. */
	const struct env_meta *before, *after;
	text_list names; /* of the packages that change */
};
/* Copies into the sandbox, which is up, what `after` adds, and removes what the packages had
 * before. On an error nothing was changed. */
int live_apply(struct fiber *fiber, const struct live_change *change, struct error *err);
int live_apply_node(struct fiber *fiber, const struct live_change *change, struct error *err);
/* The part that is the same for both. Removes `first`, copies the files of `layers` for which
 * `is_kept` says so (NULL: all) below `target`, then removes `last`; a path with a slash at its
 * end goes with all below it. */
struct live_files {
	struct core_workspace *w;
	const char *target;
	text_list first, layers, last;
	layer_path_fn *is_kept;
	void *keep_ctx;
};
int live_copy(struct fiber *fiber, const struct live_files *files, struct error *err);

/* ---- packages_copy.c: files of a sandbox that a fiber waits for ---- */

/* *answer: valid until the fiber waits again; NULL with an error. */
int files_wait(struct fiber *fiber, struct core_workspace *w, const struct files_request *what,
	const struct files_answer **answer, struct error *err);
/* For reading. */
int files_open(struct fiber *fiber, struct core_workspace *w, const char *path, int *fd,
	struct error *err);
/* Those in `path`, which may be missing. add: false: some more, and no further ones. */
int files_list_directories(struct fiber *fiber, struct core_workspace *w, const char *path,
	bool (*add)(void *ctx, const char *name), void *ctx, struct error *err);
