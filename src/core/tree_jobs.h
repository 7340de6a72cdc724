/* tree_jobs.h -- work on whole trees (copy, merge, diff, hash …: launch/trees/tree_job.h), done by
 * processes that the launcher starts. A job that is killed leaves nothing that has a name. */
#pragma once
#include "base/str.h"
#include "core/jobs.h"

/* layers/.tree-<name>: where a job makes a layer (TREE_STAGE_PREFIX of launch/trees/tree_job.h). */
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
	const struct cancelable *owner; /* as of struct core_job; or NULL */
};
extern const struct job_kind tree_job_kind;
struct core_job *tree_job_start(
	struct core *core, const struct tree_job_order *order, job_fn *done, void *ctx);
/* Each name that a job was given which has not ended yet. */
void tree_jobs_each_name(
	const struct core *core, void (*fn)(void *ctx, const char *name), void *ctx);
/* Whether `snap-<id>`, the name of a frozen layer, is valid. */
bool tree_layer_is_frozen(const char *name);
