/* store.h -- environments on disk: envs/<name>/{meta.json, .pixell_venv_metadata.json -> meta.json,
 * requirements.txt, lock.txt, build.log, bin/python}; envs/.current/<package_id> -> name;
 * envs/.failed/<name>.log; envs/.shared/<sha256>: files that several environments share by hard
 * links; envs/.metrics; envs/.old-<id>: replaced while in use.
 * 1. An environment exists once its directory has its final name: it is made as envs/.new-<id>,
 * synced, and renamed (or exchanged with the one it replaces). The process that makes it holds a
 * lock (flock) on that directory: an unlocked .new- directory was left by a crash, and the next
 * build removes it (env_sweep).
 * 2. A user of an environment holds a shared lock on its meta.json meanwhile; a locked environment
 * is never removed, nor are its layers. A replaced environment that is still in use is kept as
 * .old-<id>.
 * 3. The order of locks: builder of a name (env_lock), then layers (layer_store_lock), then
 * meta.json. */
#pragma once
#include "base/vec.h"
#include "envs/events.h"
#include "linux/home.h"
#include "model/nouns/environment.h"
#include "model/settings/config.h"
#include "trees/layers/store.h"

struct env_store {
	const struct home *home;
	int dir; /* <home>/envs */
	struct layer_store layers;
	struct events events;
	struct config config;
	/* env_use never blocks on a lock: set by processes with an event loop. */
	bool never_waits;
	/* Called for each environment that env_evict removes; limit: of eviction.h. Or NULL. */
	void (*evicted)(const char *name, const char *limit);
	/* Called after an eviction that removed any: how many, bytes freed on disk, duration. Or
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
/* `text` is the name of an environment, or a package_id, which means the environment last built for
 * it. *name lives in the arena. ERR_NOT_FOUND with a hint that lists the environments. */
int env_resolve(const struct env_store *store, const char *text, struct arena *arena,
	const char **name, struct error *err);
/* Checks before use that each layer and the interpreter exist. ERR_CORRUPT: a layer is missing,
 * rebuild the environment; ERR_NOT_FOUND: the interpreter, named in the text, is missing. */
int env_check(const struct env_store *store, const struct env_meta *meta, struct error *err);
/* Reads the environment, checks it, takes a shared lock (*pin: yours to close, after the use;
 * inherited descriptors hold the lock too) and counts the use. With never_waits: ERR_CONFLICT while
 * another process removes the environment, and the use isn't counted while another process counts
 * one. */
int env_use(const struct env_store *store, const char *name, struct arena *arena,
	struct env_meta *meta, int *pin, struct error *err);
/* Whether `pin` (of env_use) still is the environment called `name`, which may have been replaced.
 */
bool env_is_current(const struct env_store *store, const char *name, int pin);

/* Serialises builders of one name; *fd holds the lock and is yours to close. Waits at most
 * timeout_ms (ERR_CONFLICT). */
int env_lock(const struct env_store *store, const char *name, uint64_t timeout_ms, int *fd,
	struct error *err);
struct env_files { /* the other files of its directory; texts may be empty, log may be NULL */
	struct str requirements, lock, log;
	const char *lock_kept; /* the name in <home>/locks that has `lock`, or NULL: one file for
				* all environments of that lock */
};
/* Makes (or replaces) an environment, durably: on disk when it returns. The caller holds env_lock
 * and layer_store_lock(shared). Writes .current too. */
int env_write(const struct env_store *store, const struct env_meta *meta,
	const struct env_files *files, struct error *err);
/* Makes meta's environment the one that its package_id resolves to; a no-op if it is already. */
int env_select(const struct env_store *store, const struct env_meta *meta, struct error *err);
/* Appends a file of environment `name` to out: "requirements.txt", "lock.txt" or "build.log" (also
 * of a failed build). */
int env_read_file(const struct env_store *store, const char *name, const char *file,
	struct buf *out, struct error *err);
/* The name of the build of package_id that failed last, and when. -1: none. */
int env_find_failed(const struct env_store *store, const char *package_id, struct arena *arena,
	const char **name, int64_t *failed_ms);
/* Keeps the log of a build that failed: envs/.failed/<name>.log. */
int env_keep_log(
	const struct env_store *store, const char *name, struct str log, struct error *err);

/* The age of a timestamp of meta.json in ms; 0 for an invalid or future one. Pure. */
int64_t env_age_ms(const char *time, int64_t now_ms);

struct env_row {
	struct env_meta meta;
	bool is_in_use;
	const char *problem; /* NULL, or why it can't be used */
};
typedef VEC(struct env_row) env_rows;
/* Sorted by name, in the arena. An unreadable environment is a row with a name and a problem. */
int env_list(const struct env_store *store, struct arena *arena, env_rows *rows, struct error *err);
/* ERR_NOT_FOUND; ERR_CONFLICT: in use. Collects layers afterwards unless keep_layers is set or a
 * build is running: then the next collection removes them. */
int env_remove(
	const struct env_store *store, const char *name, bool keep_layers, struct error *err);
/* Removes unlocked .new- directories and the stages of builders that have exited. Failures are
 * ignored: the next sweep tries again. */
void env_sweep(const struct env_store *store);
/* Removes layers that no environment (nor a replaced one in use) lists, unused .old- directories,
 * and other leftovers of crashes; of <home>/locks those that no environment has and that are older
 * than 30 days or not among the newest 1000, with the lists of layers kept for them. Waits for
 * running builds to end: the caller must not hold layer_store_lock. */
int env_collect(const struct env_store *store, uint64_t *count, uint64_t *bytes, struct error *err);
/* Evicts by the configured limits, never `keep` (or NULL) and never an environment in use; with
 * free_bytes > 0 also as many as it takes to free that much, or none if that can't be reached.
 * Emits events; collects layers as env_remove does (with free_bytes also before, which counts as
 * freed): nothing is freed while any process holds layer_store_lock. *count: environments removed.
 */
int env_evict(const struct env_store *store, const char *keep, uint64_t free_bytes, uint64_t *count,
	struct error *err);
struct env_gone {
	const char *name, *reason; /* of eviction.h, or "pruned" */
};
struct env_pruned {
	VEC(struct env_gone) removed;
	uint64_t layers, bytes; /* on disk */
};
/* As env_evict, and reports in *pruned (in the arena) what was removed. all: removes every
 * environment that isn't in use. Always collects layers. is_dry: removes nothing, reports what
 * would be removed. */
int env_prune(const struct env_store *store, bool all, bool is_dry, struct arena *arena,
	struct env_pruned *pruned, struct error *err);

/* Adds one build to the histogram, in envs/.metrics under its lock. */
int env_metrics_add(const struct env_store *store, double seconds, struct error *err);
/* Prometheus text: par_venv_cache_size_bytes, par_venv_count, par_venv_build_duration_seconds. */
int env_metrics_print(const struct env_store *store, struct buf *out, struct error *err);
