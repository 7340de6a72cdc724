/* internal.h -- what the generic half shares with itself and with the kinds. */
#pragma once
#include "envs/kind.h"

/* Sets *problem beside an error that is set already; returns -1. package may be NULL. */
int build_failed(struct build_problem *problem, enum build_failure failure, const char *package);
/* The same, for an error of which only its code is known (a disk that is full is disk_full). */
int build_failed_as(struct build_problem *problem, const struct error *err);
/* At the top: an error that came without a problem gets its own. Returns `failed`. */
int build_settle(int failed, struct build_problem *problem, const struct error *err);

/* ---- a build under way, of any kind (build_run.c) ---- */
bool builder_is_interrupted(const struct builder *builder);
int run_canceled(const struct build_run *run, struct error *err);
/* The builder's runner: no job of it runs past the build's deadline, and none starts once the build
 * was interrupted. */
struct runner run_runner(struct build_run *run);
/* A job in the log: its command; then what it wrote, without `secrets` and control characters, and
 * how long it took. */
void run_note_command(struct build_run *run, const char *const *argv);
void run_note_end(struct build_run *run, const text_list *secrets, struct buf *text,
	const struct job_result *result);

/* ---- files below <home>/locks: locks by their keys, and what was found by them ---- */
/* 1; 0: there is none that can be read. */
int lock_read(const struct env_store *store, const char *name, struct arena *arena,
	struct str *text, struct error *err);
int lock_keep(const struct env_store *store, const char *name, struct str text, struct error *err);
/* Adds the bytes of a layer's files, by its manifest. */
int layer_add_bytes(
	const struct env_store *store, const char *id, uint64_t *bytes, struct error *err);

/* Writes an environment whose layers exist; the caller holds the layers' lock. */
int env_publish(const struct env_store *store, const struct env_wanted *wanted, struct str lock,
	struct str log, const struct env_meta *meta, struct error *err);
/* Emits the events and metrics of a new environment. */
void env_tell_ready(const struct env_store *store, const struct env_meta *meta, double seconds);
/* Reads one of an environment's files; "" when it has none. */
int env_read_text(const struct env_store *store, const char *name, const char *file,
	struct arena *arena, struct str *text, struct error *err);
void finding_add(struct arena *arena, env_findings *findings, const char *layer,
	const char *package, const char *path, const char *what);

/* Blocked and allowed names; `where` ("line 3", "a dependency") goes into the message. */
int policy_judge_name(const struct config *config, const char *name, const char *where,
	struct build_problem *problem, struct error *err);

/* An index of Python or a registry of npm, by the allowed ones of the request; and those that an
 * environment's packages came from. ERR_DENIED names the index. */
int policy_judge_index(const struct env_request *request, const char *url, struct arena *arena,
	struct build_problem *problem, struct error *err);
int policy_judge_indexes(const struct env_request *request, const struct env_meta *meta,
	struct arena *arena, struct build_problem *problem, struct error *err);

/* When an environment is asked for anew (--rebuild, --no-cache), its layers are compared with their
 * hashes: a damaged one is not found any more, and is made again. 1: all are whole, or it isn't
 * asked for anew; 0: *damaged names one that is not; -1. */
int env_compare_layers(const struct env_store *store, const struct env_wanted *wanted,
	const struct env_meta *meta, const char **damaged, struct error *err);
/* As env_compose; the caller holds env_lock of the name. */
int compose_locked(const struct env_store *store, const struct env_wanted *wanted,
	struct arena *arena, struct env_meta *meta, bool *was_there, struct build_problem *problem,
	struct error *err);
/* Damaged layers out of the way, so that they are made again; waits for the layers' lock. */
int findings_set_aside(
	const struct env_store *store, const env_findings *findings, struct error *err);
