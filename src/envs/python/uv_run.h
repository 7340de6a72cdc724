/* uv_run.h -- jobs of a build that run uv. */
#pragma once
#include "envs/python/internal.h"

#define UV_OUTPUT_MAX ((size_t)16 << 20)

struct uv_job {
	struct job job;
	text_list argv; /* of job, without its NULL until making_run_uv */
};
/* Begins a job of uv: argv[0], cache, interpreter, indexes, then `arguments` up to NULL. More
 * arguments may follow. */
void making_uv(struct making *making, struct uv_job *uv, const char *const *arguments);
/* Adds an argument, and its value unless that is NULL. */
void uv_add(struct making *making, struct uv_job *uv, const char *option, const char *value);
/* For a job that chooses versions: none is younger than the configured date. What is locked by hash
 * was chosen already. */
void making_cut_off(struct making *making, struct uv_job *uv);
/* Runs it, again after failures of the network, and notes all in the log. An error says what uv
 * said. *needs_build: the package that has no wheel, when that is what failed; else NULL. */
int making_run_uv(struct making *making, struct uv_job *uv, struct buf *out,
	const char **needs_build, struct error *err);
/* Something is installed in the root. uv must not run there again: it takes a package that is half
 * installed for a whole one, without its true RECORD, and the Python that it may start would run
 * .pth files of that package. */
bool making_is_begun(const struct making *making);
