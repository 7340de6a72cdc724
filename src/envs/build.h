/* build.h -- building environments: a request is answered by an existing environment, or by
 * building one. env_request_prepare and env_compose are the quick half: they read and hash, run
 * nothing, and are all that happens when the layers are present. env_build is the slow half, of
 * carrel-build. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "envs/python/index.h"
#include "envs/python/inputs.h"
#include "envs/python/interpreter.h"
#include "envs/runner.h"
#include "envs/store.h"
#include "format/packages/lock.h"
#include "format/packages/requirements.h"
#include "format/packages/uv_error.h"

struct env_kind;    /* kind.h */
struct node_wanted; /* node/internal.h */

/* ---- what was asked for ---- */
struct node_request {		  /* all empty: an environment of Python is asked for */
	text_list packages;	  /* --npm */
	const char *package_json; /* --package-json: a file, or a directory that has one and maybe a
				     lock beside it; or NULL */
	const char *lock;	  /* --npm-lock: a bun.lock or package-lock.json, or NULL */
	struct str json_text, lock_text; /* in place of these files */
	const char *version;		 /* --node, or NULL */
	const char *runtime;		 /* --node-runtime: "bun", "npm", or NULL */
	const char *registry;		 /* --registry, or NULL */
	bool allow_scripts;		 /* --allow-scripts */
};
struct env_request;
/* The texts of its package.json and its lock; empty: it has none. ERR_NOT_FOUND, ERR_INVALID. */
int node_request_read(const struct env_request *request, struct arena *arena, struct str *json,
	struct str *lock, struct error *err);
struct env_request {
	const char *package_id;
	text_list requirement_files; /* -r: see inputs.h */
	text_list constraint_files;  /* -c */
	text_list constraint_lines;  /* --constraint-line */
	text_list extras, groups;    /* of a pyproject.toml or uv.lock among the files */
	text_list pip;		     /* --pip */
	text_list locals;	     /* --pip, when it is a path: see locals.h */
	const char *torch_backend;   /* --torch-backend, or NULL */
	text_list find_links;	     /* --find-links: absolute directories, URLs */
	const char *wheels;	     /* --wheels, absolute: see wheelhouse.h; or NULL */
	const char *python;	     /* --python, or NULL */
	struct index_asked index;
	text_list allowed_indexes; /* --allow-index: others, of Python or npm, are refused */
	bool require_hashes, allow_build, rebuild, no_cache, system_site_packages;
	bool is_pre;		/* --pre */
	bool is_self_contained; /* files include no others and have no variables */
	text_list editables;	/* --editable, absolute */
	struct node_request node;
};
/* Whether it says anything that is for this kind alone; and whether it asks for packages of an
 * index. */
bool env_request_asks(const struct env_request *request, enum env_kind_id id);
bool env_request_has_packages(const struct env_request *request, enum env_kind_id id);
/* The same without what is for other kinds. */
struct env_request env_request_part(const struct env_request *request, enum env_kind_id id);
struct env_project { /* of --editable */
	const char *path;
	const char *digest; /* hex, of what says how it is built; NULL: nothing does */
};
/* ---- the same, understood ---- */
struct env_wanted {
	const struct env_kind *kind;
	const struct env_request *request;
	/* What inputs_read gathered: */
	struct str text;  /* stands for all of it: see inputs.h */
	struct str lines; /* the requirements alone, for a builder elsewhere */
	/* Lines of `text` stand for options. A requirements file can have the same lines as
	 * comments: the text alone doesn't tell the two apart. */
	bool has_notes;
	const char *requirements_sha256; /* of text in hex, or "no-deps": nothing was asked for */
	requirement_list requirements, constraints;
	bool is_pre; /* pre-releases are taken, too */
	/* -r uv.lock: the requirements are known when uv has read these. */
	struct str uv_lock, uv_project;
	struct str wheels_lock;	   /* lock.txt of --wheels */
	const char *wheels_sha256; /* of it, or NULL */
	text_list secrets;	   /* never in a log */
	env_locals locals;

	const char *name;
	VEC(struct env_project) projects;
	bool allow_build; /* asked for, or configured */
	bool needs_lock;  /* something has to be resolved */
	bool is_locked;	  /* a lock was given, whether or not the requirements are known */
	bool is_strict;	  /* every package needs a hash from the requirements */
	struct index_set indexes;
	struct interpreter python;
	bool python_is_known;	/* false: interpreter_look first */
	bool python_is_missing; /* it isn't on this host, but may be downloaded */
	bool python_is_default;
	const char *fingerprint; /* as in env_meta */
	const char *lock_key;	 /* hash of text, interpreter tag, indexes, cut-off date; NULL while
				  * that isn't known */
	struct node_wanted *node; /* of an environment of Node: envs/node/internal.h */
};
struct build_problem { /* beside struct error, for events, JSON and the exit code */
	enum build_failure failure;
	const char *package; /* or NULL */
};
#define BUILD_NO_PROBLEM ((struct build_problem){ .failure = BUILD_FAILURE_COUNT })
/* Reads and judges the requirements (syntax, policy: URLs, paths, options, blocked and allowed
 * names, hashes), chooses the interpreter, makes the name. Errors have *problem set. */
int env_request_prepare(const struct env_store *store, const struct env_request *request,
	struct arena *arena, struct env_wanted *wanted, struct build_problem *problem,
	struct error *err);
/* The fast path: reuses the environment when it is valid and unchanged, or composes it from a
 * cached lock and present layers. 1: *meta is it, durable. 0: something has to be built. -1: error.
 * Emits the events. *was_there: it was reused as it was. */
int env_compose(const struct env_store *store, const struct env_wanted *wanted, struct arena *arena,
	struct env_meta *meta, bool *was_there, struct build_problem *problem, struct error *err);

/* ---- carrel-build's half ---- */
struct env_progress {
	void *ctx;
	/* phase: as in events.h. Called at each change and tick. */
	void (*show)(void *ctx, const char *phase, uint64_t done, uint64_t total, uint64_t bytes);
	/* The index didn't answer, and is asked for the attempt-th time of so many. May be NULL. */
	void (*retrying)(void *ctx, int attempt, int attempts);
	/* Set by the build while a job changes what is done: how much that is now. */
	uint64_t (*count)(void *count_ctx);
	/* Set with count: how many bytes are unpacked, of how many that may be. */
	uint64_t (*unpacked)(void *count_ctx, uint64_t *limit);
	void *count_ctx;
	/* A line for people: a warning of uv's, what was evicted. May be NULL. */
	void (*say)(void *ctx, const char *text);
};
#define BUILD_NETWORK_FAILURE_SIZE 480
struct build_network { /* how a job with `forward` reaches the indexes; made by
			  envs/builder/job_runner.c */
	void *ctx;
	int (*open)(void *ctx, const struct index_set *indexes, struct error *err);
	/* is_named: the operator configured the host, so it may resolve to any address. */
	int (*allow)(void *ctx, const char *host, uint16_t port, bool is_named, struct error *err);
	int (*settle)(void *ctx, struct error *err);
	void (*close)(void *ctx); /* nothing is reached from here on, until the next open */
	uint64_t (*bytes)(void *ctx);
	/* The last host:port that was refused, or "". */
	void (*refused)(void *ctx, char out[320]);
	/* The last host that could not be reached and why ("host:port: reason"), or "". NULL: it
	 * isn't known. */
	void (*failed)(void *ctx, char out[BUILD_NETWORK_FAILURE_SIZE]);
	/* Asks the host's keyring: see index_log_in. NULL: there is none. */
	index_password_fn *password;
};
struct builder {
	const struct env_store *store;
	const struct runner *runner;
	const struct build_network *network;
	struct env_progress *progress;
};
/* *was_there: another process had built it by the time its lock was acquired. 1: that, or it was
 * composed of layers that another process had made; 0: it was built. */
int env_build(const struct builder *builder, struct env_wanted *wanted, struct arena *arena,
	struct env_meta *meta, bool *was_there, struct build_problem *problem, struct error *err);

/* `env wheels`: the wheels of an environment of Python, fetched by its lock from where it came
 * from, in a directory that `--wheels` takes (python/wheelhouse.h), which is made, or has no
 * `wheels`. *count: of wheels. */
int env_fetch_wheels(const struct builder *builder, const char *name, const char *directory,
	struct arena *arena, struct build_problem *problem, size_t *count, struct error *err);

/* `env verify`: layers against their manifests, the interpreter, then Python in a sandbox. Damages
 * are reported one by one; repair: damaged layers are set aside and the environment is built again
 * from its own lock. */
struct env_finding {
	const char *layer;   /* id, or NULL */
	const char *package; /* name, or NULL */
	const char *path, *what;
};
typedef VEC(struct env_finding) env_findings;
int env_verify(const struct builder *builder, const char *name, struct arena *arena,
	env_findings *findings, struct error *err);
int env_repair(const struct builder *builder, const char *name, const env_findings *findings,
	struct arena *arena, struct env_meta *meta, struct build_problem *problem,
	struct error *err);
