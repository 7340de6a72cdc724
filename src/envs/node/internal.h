/* internal.h -- what the files that make environments of Node share.
 * 1. An environment of Node is one layer, which holds all packages of a lock, and tools (bun, node,
 * npm), each a layer of its own, from packages of the registry that hold programs.
 * 2. A tool's layer is named by package, version and SHA-512; what the registry said of a version
 * is kept in <home>/tools/.known, so that an environment whose layers are there needs no network.
 */
#pragma once
#include "envs/internal.h"
#include "envs/node/npm_registry.h"
#include "format/packages/node_package.h"
#include "trees/layers/stage.h"

#define NODE_TARGET "/node_modules"
#define NODE_AGAIN "/workspace/node_modules"
#define NODE_TOOLS_TARGET "/opt/carrel" /* /opt/carrel/<tool>/bin */
#define NODE_TOOLS_MAX 3
#define NODE_DEFAULT "22" /* where the host has none */
#define NODE_BUN_VERSION "1.4.4"

struct node_tool {
	const char *name;		 /* "bun", "node", "npm" */
	const char *package;		 /* of the registry */
	const char *asked;		 /* a version, or the beginning of one */
	const char *version, *integrity; /* NULL: not known yet */
	const char *id;			 /* of its layer; NULL: it isn't there */
};
struct node_wanted {
	const char *runtime;	 /* "bun", "npm" */
	struct str package_json; /* what decides what is installed */
	struct str lock;	 /* that was given; empty: none */
	node_specs specs;	 /* direct dependencies */
	struct npm_registry registry;
	const char *version;	  /* of Node, as it was asked for, or NULL */
	const char *host;	  /* the node of this host that serves; NULL: a tool does */
	const char *host_version; /* NULL: it has to be asked */
	bool is_default;	  /* --node wasn't given, or names what the host has */
	struct node_tool tools[NODE_TOOLS_MAX];
	size_t tool_count;
};

/* ---- tools.c ---- */
/* The node of the host, where every sandbox sees it: its path, or NULL; *version: NULL when it
 * hasn't been asked. */
const char *node_find_host(const struct home *home, struct arena *arena, const char **version);
/* Asks it in a sandbox, and keeps the answer. */
int node_ask_host(const struct home *home, const struct runner *runner, const char *path,
	struct arena *arena, const char **version, struct error *err);
/* Whether "22" or "22.3" is the beginning of "22.3.1", part by part. */
bool node_version_matches(const char *version, const char *asked);
uint64_t node_major(const char *version);
/* Chooses host and tools for what is asked; the host's version is known, or there is no host's.
 * ERR_UNAVAILABLE: nothing fits this machine. */
int node_choose_tools(struct node_wanted *node, struct arena *arena, struct error *err);
/* The version of Node, when it is known, else NULL. */
const char *node_version_of(const struct node_wanted *node);
const struct node_tool *node_tool_named(const struct node_wanted *node, const char *name);
/* Fills in what is known of the tools: version, integrity, id. true: all of it. */
bool node_recall_tools(
	const struct env_store *store, struct node_wanted *node, struct arena *arena);
void node_remember_tool(const struct env_store *store, const struct node_wanted *node,
	const struct node_tool *tool, struct arena *arena);
const char *node_tool_key(const struct node_tool *tool, struct arena *arena);
const char *node_platform(struct arena *arena); /* "x86_64-linux-glibc" */

/* ---- request.c, compose.c ---- */
int node_prepare(const struct env_store *store, const struct env_request *request,
	struct arena *arena, struct env_wanted *wanted, struct build_problem *problem,
	struct error *err);
/* name, fingerprint, lock_key, once registry and tools are known. */
void node_complete_wanted(struct env_wanted *wanted, struct arena *arena);
/* The lock of wanted->lock_key: 1 with *packages, 0 when there is none. */
int node_load_lock(const struct env_store *store, const struct env_wanted *wanted,
	struct arena *arena, struct str *text, node_lock *packages, struct build_problem *problem,
	struct error *err);
int node_judge_lock(const struct env_store *store, const node_lock *packages,
	struct build_problem *problem, struct error *err);
/* What names the layer of a lock. */
const char *node_layer_key(const struct env_wanted *wanted, struct str lock, struct arena *arena);
/* What meta.json says, but for size and layers. */
void node_compose_meta(const struct env_wanted *wanted, const node_lock *packages,
	struct arena *arena, struct env_meta *meta);
/* Adds the layer to *meta, with its bytes. */
int node_add_layer(const struct env_store *store, const struct env_wanted *wanted,
	struct env_meta *meta, const char *id, struct arena *arena, struct error *err);

/* ---- carrel-build's half ---- */
#define NODE_STAGE_ROOT "root"	   /* of the stage: /env of a job */
#define NODE_TOOLS_INSIDE "/tools" /* /tools/<tool>/bin of a job */

/* A new stage, in place of the one there was. */
int node_stage(struct build_run *run, struct error *err);
void node_clean(struct build_run *run);
int node_reach(struct build_run *run, struct error *err);
/* Nothing is reached from here on, until the next node_reach. */
void node_close(struct build_run *run);
int node_put(struct build_run *run, const char *name, struct str text, struct error *err);
/* Removes a file or tree that may be there. */
int node_drop(struct build_run *run, const char *name, struct error *err);
/* Runs a job within the time that is left, with the tools on its PATH. Failures are explained.
 * `what`: for the log and messages. `reaches`: the registry; code of packages must not. */
int node_run(struct build_run *run, const char *const *argv, const char *what, bool reaches,
	struct error *err);
void node_show(const struct build_run *run, const char *phase);
/* Says why a client failed, by what it printed. */
int node_explain(struct build_run *run, const char *what, struct str said, struct error *err);
int node_timeout(struct build_run *run, struct error *err);
/* Fetches the tools that aren't there. From then on the layers' lock is held. */
int node_fetch_tools(struct build_run *run, struct error *err);

/* ---- verify.c ---- */
const char *node_name_layer(const struct env_store *store, const struct env_meta *meta,
	size_t index, struct arena *arena);
int node_verify(const struct builder *builder, const struct env_meta *meta, struct arena *arena,
	env_findings *findings, struct error *err);
int node_ask_again(const struct builder *builder, const struct env_meta *old, struct arena *arena,
	struct env_request *request, struct env_wanted *wanted, struct error *err);
