/* scripts.h -- the Python that this room runs, in sandboxes only: src/envs/python/py as text for
 * `python -c`, and how it is run. Scripts print "key value" lines (format/text/answer.h), and one
 * line on stderr when they fail. */
#pragma once
#include "envs/python/interpreter.h"
#include "envs/runner.h"
#include "format/text/answer.h"

extern const char script_look[];	  /* what an interpreter is */
extern const char script_index[];	  /* reads an index: hosts, fetch */
extern const char script_default_index[]; /* what pip takes when nothing is configured */
extern const char script_pep517[];	  /* sources to a wheel */

/* A job that runs `script` with `args` (NULL at their end): isolated (-I), and without
 * site-packages unless with_site. The interpreter's prefix is bound. */
void script_job(struct job *job, struct arena *arena, const struct interpreter *python,
	const char *script, bool with_site, const char *const *args);
/* Adds "key=value". */
void job_set_env(struct job *job, struct arena *arena, const char *key, const char *value);
void job_bind(struct job *job, struct arena *arena, const char *source, const char *target);
/* Runs it. -1: the sandbox itself failed, or the job had no time: that says nothing of the program,
 * and must not be kept. Else *ended_well says whether it exited with 0; *err says why it didn't:
 * ERR_FAILED with the last line it wrote to stderr or how it ended, ERR_DISK_FULL, ERR_LIMIT. */
int job_try(const struct runner *runner, const struct job *job, struct buf *out, bool *ended_well,
	struct error *err);
/* Why a job that ran didn't end well, as job_try says it; returns -1. */
int job_explain(const struct job *job, const struct job_result *result, struct str errors,
	struct error *err);
/* As job_try, where both are an error. */
int job_run(const struct runner *runner, const struct job *job, struct buf *out, struct error *err);
/* The same, and reads its answer (ERR_CORRUPT). */
int script_run(const struct runner *runner, const struct job *job, struct arena *arena,
	struct answer *answer, struct error *err);
