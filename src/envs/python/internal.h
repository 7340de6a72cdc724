/* internal.h -- what the files that make environments of Python share. */
#pragma once
#include "envs/internal.h"
#include "format/packages/pylock.h"
#include "envs/python/uv.h"
#include "trees/layers/stage.h"
#include "linux/child.h"

/* ---- Python, as a kind ---- */

int python_prepare(const struct env_store *store, const struct env_request *request,
	struct arena *arena, struct env_wanted *wanted, struct build_problem *problem,
	struct error *err);
int python_complete(struct build_run *run, struct error *err);
int python_make(struct build_run *run, struct error *err);

/* All of a lock: dependencies of dependencies, too. */
int policy_judge_lock(const struct config *config, const lock_list *packages,
	struct build_problem *problem, struct error *err);
/* Keeps only the hashes that the requirements give, for packages where they give any. When any
 * requirement has one, or strict, every package must: ERR_INVALID. ERR_DENIED: none of the index's
 * is among them. */
int policy_keep_hashes(const requirement_list *requirements, bool is_strict, lock_list *packages,
	struct arena *arena, struct build_problem *problem, struct error *err);

/* Judges wanted->requirements and says whether hashes are required. */
int wanted_judge(const struct env_store *store, struct env_wanted *wanted, struct arena *arena,
	struct build_problem *problem, struct error *err);
/* fingerprint and lock_key, once the interpreter is known. */
void wanted_complete(const struct env_store *store, struct env_wanted *wanted, struct arena *arena);

/* The pip that an environment gets, as a line of a lock. */
const struct lock_package *pip_for(const char *minor, struct arena *arena);
/* What names the layer of a wheel: see trees/layers/store.h, 3. built_from: it was built of
 * sources, with tools from these indexes, and is no other's who trusts others; NULL: it wasn't. */
const char *wheel_key(struct arena *arena, const struct lock_package *package, const char *tag,
	const struct index_set *built_from);

/* The same of a pip without bytecode: see prepare_start. */
const char *plain_key(struct arena *arena, const struct lock_package *pip, const char *tag);

/* Wheels by address (urls.c). The address, when the requirement is one of a wheel by http(s), else
 * NULL; the version that its file's name says, or NULL; "host:port". */
const char *wheel_url(const struct requirement *r, struct arena *arena);
const char *wheel_url_version(const char *url, struct arena *arena);
const char *wheel_url_host(const char *url, struct arena *arena);
/* The address that the requirements give for a package, or NULL. */
const char *wheel_url_of_package(
	const requirement_list *requirements, const char *name, struct arena *arena);
/* A lock of uv's with name==version in place of name @ address. */
void wheel_urls_to_versions(const requirement_list *requirements, struct str text,
	struct arena *arena, struct buf *out);

/* Finds out what the projects of --editable are: wanted->projects. */
int wanted_look_at_projects(struct env_wanted *wanted, struct arena *arena, struct error *err);
/* What names the layer of one that has a build backend. */
const char *project_key(
	const struct env_wanted *wanted, const struct env_project *project, struct arena *arena);
/* The others: a small layer of their own, on top, that leads to them. NULL: none. */
const char *editable_key(const struct env_wanted *wanted, struct arena *arena);
/* Its one file's text: where the modules are, src/ where there is one. */
const char *editable_text(const struct env_wanted *wanted, struct arena *arena);

/* Locks, kept under <home>/locks/<key>. lock_load: 1 with *packages and *text (as lock_print has
 * it), 0 when there is none (or none that can be read). */
int lock_load(const struct env_store *store, const char *key, struct arena *arena,
	lock_list *packages, struct str *text, struct error *err);

/* The layers of an environment, topmost first, found by their keys. 1: all are there, and *meta has
 * them with their bytes. 0: the packages in *missing are not; base and pip count as packages named
 * "base" and "pip". The caller holds the layer lock shared. */
struct composition {
	struct env_meta *meta;
	const struct env_wanted *wanted;
	const lock_list *packages;
	VEC(const struct lock_package *) missing;
	VEC(const struct env_project *) missing_projects; /* with a build backend */
	const struct lock_package *pip; /* that we add, the last of `missing`; NULL: it is there */
	bool is_base_missing, is_editable_missing, is_without_pip;
	bool is_pip_compiled; /* the pip that we add must have bytecode */
	bool is_pip_plain;    /* out: that pip has no bytecode */
	const char *index;    /* out: the default index that the packages are from, or NULL */
	text_list parts;      /* of the merged layer, when all but that is there */
	bool is_part;	      /* incomplete: the list of layers is neither used nor kept */
};
/* A list of more than ENV_LAYERS_MAX layers becomes one of ENV_LAYERS_MERGED: the smallest ones are
 * merged to a layer above the base. 1: *layers is short enough, or is so now. 0: the merged layer
 * has to be made of *parts. */
int merge_find(const struct env_store *store, text_list *layers, text_list *parts,
	struct arena *arena, struct error *err);
int compose_layers(const struct env_store *store, struct composition *composition,
	struct arena *arena, struct error *err);
/* What meta.json says, but for layers, size and time. */
void compose_meta(const struct env_wanted *wanted, const lock_list *packages, struct arena *arena,
	struct env_meta *meta);
/* Its indexes alone: the default one may be known later, to `known` or in wanted->indexes. */
void compose_indexes(const struct env_wanted *wanted, const char *known, struct arena *arena,
	struct env_meta *meta);

/* ---- carrel-build's half ---- */

#define ENV_INSIDE "/env"
/* What jobs see there, below the stage, and what we put there for uv. */
#define STAGE_ROOT "root"
#define STAGE_INPUT ".in" /* in the root: removed before it is taken apart */
#define STAGE_CACHE ".cache"
#define ENV_PYTHON (ENV_INSIDE "/bin/python3")
#define ENV_INPUT(name) (ENV_INSIDE "/" STAGE_INPUT "/" name)

struct built_wheel {		    /* made of sources: see sdist.h */
	const char *path;	    /* <to>/wheels/<file>, on the host */
	const char *file;	    /* its name */
	const char *name, *version; /* name normalised, version as the file has it */
	char sha256[2 * SHA256_LEN + 1];
	/* Of an index: as the index has it. Of a project: the wheel itself. */
	const struct lock_package *package;
	const struct env_project *project; /* or NULL */
	const struct env_local *local;	   /* or NULL */
	bool is_given;			   /* of --wheels */
};

struct making { /* one build under way */
	struct build_run *run;
	const struct builder *builder; /* of the run, and what follows */
	const struct env_store *store;
	struct env_wanted *wanted;
	struct arena *arena;
	struct build_problem *problem;
	struct runner runner; /* run_runner */
	struct layer_stage stage;
	bool is_reaching; /* the indexes can be reached, and uv is there */
	struct uv uv;
	lock_list packages;
	pylock_list addresses; /* of the packages' wheels, when they were resolved just now */
	bool is_by_address; /* uv installs from these: what it caches by address it finds by that */
	VEC(struct built_wheel) built; /* in the stage */
	text_list warnings;	       /* of uv's, that were shown */
	const char *said;	       /* by uv when it failed last */
	const char *needs_build;       /* what it wanted built then, or NULL */
	const char *torch_host; /* "host:port" that was refused once and is allowed now, or NULL */
	bool is_without_pip;	/* the index has no pip */
	uint64_t to_install;	/* packages that are missing, without the pip that is added */
	uint64_t unpacked_bytes, measured_ms, measure_ms; /* how much, when, and how long it took */
	bool is_resolving;
	struct child helper; /* see prepare_start; its pipe: what it adds to the log */
	bool is_preparing;   /* it makes base and pip */
	bool is_part;	     /* … or that process itself, which makes … */
	bool is_pip_plain;   /* … a pip without bytecode */
	struct composition composition;
};
struct making making_of(struct build_run *run);
/* A new stage whose root is an environment without packages. */
int making_stage(struct making *making, struct error *err);

/* What is done by processes of their own beside the build (prepare.c): the network is what it waits
 * for. prepare_index: uv is asked for the default index, while the interpreter is looked at. None:
 * there is nothing to ask, or no uv yet. */
struct child prepare_index(struct making *making);
/* While uv resolves: asks: making_allow_files; then base and pip, which every environment of the
 * interpreter has below its packages, are made when they are missing. The bytecode of pip takes
 * longer than a small set of packages: the first pip has none, and the next build that finds only
 * that one makes the other. The network is open, and uv is there. What isn't done is done
 * afterwards. false: nothing is done. prepare_wait follows always. */
bool prepare_start(struct making *making, bool asks);
void prepare_wait(struct making *making);
/* Asks the index for the hosts of its files, allows these, and settles the forwarder. */
int making_allow_files(struct making *making, struct error *err);

/* 1: all layers are there, and the composition has them. 0: some are missing. */
int making_find_layers(struct making *making, struct error *err);
/* The network closed, the stage gone. */
void making_clean(struct making *making);
/* packages and the lock: from uv, judged, and kept. */
int making_resolve(struct making *making, struct error *err);
/* The lock of packages. */
void making_print_lock(struct making *making);
/* Layers of all that is missing of the composition; from then on the layers' lock is held. */
int making_install(struct making *making, struct error *err);
/* The merged layer of the composition's parts. Parts that are damaged are set aside, to be made
 * again: also 0. */
int making_merge(struct making *making, struct error *err);
/* Before a job that reaches the indexes: opens the way, and finds uv. */
int making_reach(struct making *making, struct error *err);
/* --torch-backend: finds out where uv has the packages of that backend from, which only uv knows,
 * and allows these hosts. The network is open, and uv is there. */
int making_reach_torch(struct making *making, struct error *err);
/* The host that the forwarder refused last, unless it was allowed since; "" when none. */
void making_refused(const struct making *making, char out[320]);
/* Takes the layers' lock, when it isn't held. */
int making_lock_layers(struct making *making, struct error *err);
