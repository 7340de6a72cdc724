/* kind.h -- kinds of environments: everything that depends on what an environment holds goes
 * through one of these. Stores, locks, layers, lists and eviction know no kind. A kind is a folder
 * and a line of ENV_KIND_LIST (model/nouns/environment.h), of which the tables of kind.c (an
 * environment that is there: for every program), quick.c (one that is asked for: for carrel) and
 * build.c (one that is built: for carrel-build, which alone links what runs jobs) are made. */
#pragma once
#include "envs/build.h"
#include "envs/upper.h"
#include "model/nouns/environment.h"
#include "model/nouns/part.h"
#include "trees/layers/stage.h"

/* ---- existing environments ---- */

struct env_path { /* of the host, shown inside, read-only */
	const char *path, *what;
	const char *target; /* NULL: at the same path */
};
typedef VEC(struct env_path) env_paths;

struct env_kind {
	const struct env_kind_row *row;
	const char *target; /* where its environments are mounted */
	const char *again;  /* and where else, in a workspace of our own; NULL: nowhere */
	const struct workspace_part *part; /* of a workspace, which it lies below */
	const char *root_layer; /* that has the mount point, of a sandbox whose / is a workspace */
	const char *programs;	/* the directory in them that holds programs */
	bool has_interpreter;	/* python* there lead to its interpreter */
	const char *const *variables; /* "K=V" that they set, NULL-terminated */
	const char *command;	      /* bin/<command> of an environment runs it in a sandbox */
	const char *command_alias;    /* another name of that, or NULL */
	/* Checks that the host still has what it needs (such as its interpreter). ERR_NOT_FOUND. */
	int (*check)(const struct env_meta *meta, struct error *err);
	/* What it needs of the host besides /usr. ERR_DENIED: that may not be shown. */
	int (*list_paths)(const struct home *home, const struct env_meta *meta, struct arena *arena,
		env_paths *paths, struct error *err);
	/* Brings an upper in line with an environment that took the place of another. */
	upper_settle_fn *settle;
	/* Shows in an upper what a layer has of one package. */
	upper_restore_fn *restore;
};
#define ENV_KIND_EXTERN(id, name) extern const struct env_kind env_##name;
ENV_KIND_LIST(ENV_KIND_EXTERN)
/* By enum env_kind_id. */
extern const struct env_kind *const env_kinds[ENV_KINDS];
/* The kind with that name, or NULL. */
const struct env_kind *env_kind_find(const char *name);
/* The kind of an existing environment. */
const struct env_kind *env_kind_of(const struct env_meta *meta);

/* ---- a requested environment: runs nothing ---- */

struct env_reader {
	/* What env_request_asks, _has_packages and _part of build.h are made of. */
	bool (*is_asked)(const struct env_request *request);
	bool (*has_packages)(const struct env_request *request);
	void (*narrow)(struct env_request *request);
	/* Reads and judges what is asked for, and keys it: wanted->name, fingerprint, lock_key. */
	int (*prepare)(const struct env_store *store, const struct env_request *request,
		struct arena *arena, struct env_wanted *wanted, struct build_problem *problem,
		struct error *err);
	/* Composes it from present layers. 1: *meta and *lock are all that is to be written. 0:
	 * something has to be built. The caller holds the layers' lock shared. */
	int (*compose)(const struct env_store *store, const struct env_wanted *wanted,
		struct arena *arena, struct env_meta *meta, struct str *lock,
		struct build_problem *problem, struct error *err);
};
#define ENV_READER_EXTERN(id, name) extern const struct env_reader env_##name##_reader;
ENV_KIND_LIST(ENV_READER_EXTERN)

/* ---- a build, in carrel-build ---- */

struct build_run { /* a build under way */
	const struct builder *builder;
	const struct env_store *store; /* the builder's */
	struct env_wanted *wanted;
	struct arena *arena;
	struct build_problem *problem;
	struct buf log;
	uint64_t started_ms, deadline_ms; /* monotonic */
	/* Of env_maker.make: what is to be written, and the layers' lock, held until it is. */
	struct env_meta meta;
	struct str lock;
	int layers; /* shared; -1: not held */
	/* Of a kind that works in one stage, and whether its registries can be reached. */
	struct layer_stage stage;
	bool is_reaching;
};
struct env_maker {
	/* Finds out what env_reader.prepare couldn't without running anything. */
	int (*complete)(struct build_run *run, struct error *err);
	/* Resolves what is asked for and makes the layers that are missing. */
	int (*make)(struct build_run *run, struct error *err);
	/* What its layer `index` holds, for people; the layer may be damaged. NULL: unknown. */
	const char *(*name_layer)(const struct env_store *store, const struct env_meta *meta,
		size_t index, struct arena *arena);
	/* Runs it in a sandbox, and adds what is wrong. */
	int (*verify)(const struct builder *builder, const struct env_meta *meta,
		struct arena *arena, env_findings *findings, struct error *err);
	/* What was asked for, from the environment's own files, to be built again. */
	int (*ask_again)(const struct builder *builder, const struct env_meta *meta,
		struct arena *arena, struct env_request *request, struct env_wanted *wanted,
		struct error *err);
};
#define ENV_MAKER_EXTERN(id, name) extern const struct env_maker env_##name##_maker;
ENV_KIND_LIST(ENV_MAKER_EXTERN)
