/* store.h -- environments on disk: envs/<name>/{meta.json, .pixell_venv_metadata.json -> meta.json,
 * requirements.txt, lock.txt, build.log, bin/python}; envs/.current/<package_id> -> name;
 * envs/.failed/<name>.log; envs/.shared/<sha256>: texts that several have, under one more name
 * each; envs/.metrics; envs/.old-<id>: replaced while in use.
 * 1. An environment is there when its directory has its name: it is made as envs/.new-<id>, synced,
 * and renamed (or exchanged with the one it replaces). Its maker holds a lock on that directory
 * (flock): one that nobody holds is what a crash left, and goes with the next build (env_sweep).
 * 2. Who uses one holds a shared lock on its meta.json for as long; what is locked is never
 * removed, nor are its layers. A replaced one that is still in use lives on as .old-<id>.
 * 3. The order of locks: builder of a name (env_lock), then layers (layer_store_lock), then
 * meta.json. */
#pragma once
#include <stdbool.h>
#include "base/vec.h"
#include "envs/events.h"
#include "layers/store.h"
#include "linux/home.h"
#include "model/config.h"
#include "model/environment.h"

struct env_store {
	const struct home *home;
	int dir; /* <home>/envs */
	struct layer_store layers;
	struct events events;
	struct config config;
	/* env_use doesn't wait for locks of others: for a process that serves others, too. */
	bool never_waits;
	/* Told of each that env_evict removes; limit: of eviction.h. Or NULL. */
	void (*evicted)(const char *name, const char *limit);
	/* Told afterwards, when any went: how many, what that freed on disk, how long it took. Or
	 * NULL. */
	void (*freed)(size_t count, uint64_t bytes, double seconds);
};
/* Opens envs/ and layers/ below home, reads config.yaml (ERR_INVALID names line and key). */
int env_store_open(
	const struct home *home, struct arena *arena, struct env_store *store, struct error *err);
void env_store_done(struct env_store *store);

/* Reads the meta.json of `name`. ERR_NOT_FOUND, ERR_CORRUPT. */
int env_read(const struct env_store *store, const char *name, struct arena *arena,
	struct env_meta *meta, struct error *err);
/* `text` is the name of an environment, or a package_id: the one last built for it. ERR_NOT_FOUND
 * with a hint that lists what is there. */
int env_resolve(const struct env_store *store, const char *text, struct arena *arena,
	const char **name, struct error *err);
/* Validation at use: each layer is there, the interpreter is there. ERR_CORRUPT (layer; to be
 * rebuilt), ERR_NOT_FOUND (interpreter; named). */
int env_check(const struct env_store *store, const struct env_meta *meta, struct error *err);
/* Reads, checks, locks shared (*pin: hold it while the environment is used; inherited descriptors
 * hold it too) and counts the use. With never_waits: ERR_CONFLICT while another process removes it,
 * and a use isn't counted while another one counts. */
int env_use(const struct env_store *store, const char *name, struct arena *arena,
	struct env_meta *meta, int *pin, struct error *err);
/* Whether `pin` is still that of the environment called `name`: it may have been replaced. */
bool env_is_current(const struct env_store *store, const char *name, int pin);

/* Serialises builders of one name; *fd is the lock. Waits at most timeout_ms (ERR_CONFLICT). */
int env_lock(const struct env_store *store, const char *name, uint64_t timeout_ms, int *fd,
	struct error *err);
struct env_files { /* what else lies in its directory; texts may be empty, log may be NULL */
	struct str requirements, lock, log;
	const char *lock_kept; /* the name in <home>/locks that has `lock`, or NULL: one file for
				* all environments of that lock */
};
/* Makes (or replaces) an environment, durably: on disk when it returns. The caller holds env_lock
 * and layer_store_lock(shared). Writes .current too. */
int env_write(const struct env_store *store, const struct env_meta *meta,
	const struct env_files *files, struct error *err);
/* Notes that `name` is what is now meant by its package_id; nothing when it is so already. */
int env_select(const struct env_store *store, const struct env_meta *meta, struct error *err);
/* Reads one of its files ("requirements.txt", "lock.txt", "build.log"; of a failed build too) into
 * out. */
int env_read_file(const struct env_store *store, const char *name, const char *file,
	struct buf *out, struct error *err);
/* The name of the build of package_id that failed last, and when. -1: none. */
int env_find_failed(const struct env_store *store, const char *package_id, struct arena *arena,
	const char **name, int64_t *failed_ms);
/* Keeps the log of a build that failed: envs/.failed/<name>.log. */
int env_keep_log(
	const struct env_store *store, const char *name, struct str log, struct error *err);

/* How far from now a time of meta.json is, in ms; 0 for a time to come or no time. Pure. */
int64_t env_age_ms(const char *time, int64_t now_ms);

struct env_row {
	struct env_meta meta;
	bool is_in_use;
	const char *problem; /* NULL, or why it can't be used */
};
typedef VEC(struct env_row) env_rows;
/* Sorted by name. One that can't be read is a row with a name and a problem. */
int env_list(const struct env_store *store, struct arena *arena, env_rows *rows, struct error *err);
/* ERR_NOT_FOUND; ERR_CONFLICT: in use. Collects layers afterwards unless keep_layers, or somebody
 * is building just now: then they go with the next collection. */
int env_remove(
	const struct env_store *store, const char *name, bool keep_layers, struct error *err);
/* Removes .new- ones that nobody is making, and the stages of builders who are gone. What can't be
 * removed stays for the next time. */
void env_sweep(const struct env_store *store);
/* Removes layers that no environment (nor a replaced one in use) lists, .old- ones nobody uses, and
 * whatever else crashes left; of <home>/locks those that no environment has and that are older than
 * 30 days or not among the newest 1000, with the lists of layers kept for them. Waits until nobody
 * builds: the caller holds no layer_store_lock. */
int env_collect(const struct env_store *store, uint64_t *count, uint64_t *bytes, struct error *err);
/* Evicts by the configured limits, never `keep` (or NULL) and never what is in use; with free_bytes
 * > 0 as much as is needed to free that on top, or nothing when that can't be reached. Emits
 * events; collects layers, as env_remove does (with free_bytes also before, and that counts):
 * nothing is freed while the caller, or another, holds layer_store_lock. *count: how many went. */
int env_evict(const struct env_store *store, const char *keep, uint64_t free_bytes, uint64_t *count,
	struct error *err);
struct env_gone {
	const char *name, *reason; /* of eviction.h, or "pruned" */
};
struct env_pruned {
	VEC(struct env_gone) removed;
	uint64_t layers, bytes; /* on disk */
};
/* env_evict with an account of it; all: everything that isn't in use goes. Collects always.
 * is_dry: nothing goes, the account is what would. */
int env_prune(const struct env_store *store, bool all, bool is_dry, struct arena *arena,
	struct env_pruned *pruned, struct error *err);

/* Adds one build to the histogram, in envs/.metrics under its lock. */
int env_metrics_add(const struct env_store *store, double seconds, struct error *err);
/* Prometheus text: par_venv_cache_size_bytes, par_venv_count, par_venv_build_duration_seconds. */
int env_metrics_print(const struct env_store *store, struct buf *out, struct error *err);
