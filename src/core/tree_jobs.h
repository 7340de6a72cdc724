/* tree_jobs.h -- work on whole trees (copy, merge, diff, hash …: build/tree_job.h), done by
 * processes that the launcher starts.
 * 1. A few run at once; others wait, first come, first served.
 * 2. A job that is killed leaves nothing that has a name. */
#pragma once
#include <stdbool.h>
#include "base/error.h"
#include "base/str.h"
#include "format/json_read.h"

struct core;
/* layers/.tree-<name>: where a job makes a layer (TREE_STAGE_PREFIX of build/tree_job.h). */
#define TREE_JOB_STAGE_PREFIX ".tree-"
struct tree_job_order {
	const char *verb;
	/* Names of workspaces and layers, "" between lists of them; copied. */
	const char *const *names;
	size_t name_count;
	struct str options;	/* JSON for a verb that takes some; copied. Or empty, and: */
	int input;		/* what it reads; -1: nothing. Duplicated */
	int output;		/* what it writes besides the answer; -1: nothing. Duplicated */
	const char *request_id; /* for the log; or NULL */
};
/* answer: what the job said, valid during the call; NULL when *err says why there is none.
 * ERR_CANCELED: it was canceled, or killed. */
typedef void tree_job_fn(void *ctx, const struct json_value *answer, const struct error *err);
/* Starts it, now or when others have ended. done is called once, later. The handle is valid until
 * then. */
struct tree_job_handle *tree_job_start(
	struct core *core, const struct tree_job_order *order, tree_job_fn *done, void *ctx);
/* done is called with ERR_CANCELED. */
void tree_job_cancel(struct tree_job_handle *job);
/* Each name that a job was given which has not ended yet. */
void tree_jobs_each_name(
	const struct core *core, void (*fn)(void *ctx, const char *name), void *ctx);
void tree_jobs_done(struct core *core); /* forgets all of them */
/* Whether `snap-<id>`, the name of a frozen layer, is valid. */
bool tree_layer_is_frozen(const char *name);
