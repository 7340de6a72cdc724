/* jobs.h -- jobs of a build, whatever program they run.
 * 1. No job runs past the build's deadline, and none starts once the build was interrupted.
 * 2. The log has every command and what it printed to stderr, without credentials and without
 *    control characters. */
#pragma once
#include "envs/python/internal.h"

/* Writes a text to .in/<name> in the root, where jobs read it as ENV_INPUT(name). */
int making_put(struct making *making, const char *name, struct str text, struct error *err);
/* Runs a job in the stage and notes it in the log. 0: it ran; *result says how it ended. */
int making_run(struct making *making, struct job *job, struct buf *out, struct buf *errors,
	struct job_result *result, struct error *err);
