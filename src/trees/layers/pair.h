/* pair.h -- a list of jobs done by two processes: this one and a child, each taking the next one
 * when it has finished one.
 * 1. An error in either stops both and is the error of the whole; so is the child's death.
 * 2. The child dies with its parent. */
#pragma once
#include "base/error.h"

struct pair {
	size_t count, result_size;
	/* Does job `index`; *result is zeroed and shared. Nothing else that it writes comes back
	 * from the child. */
	int (*work)(void *ctx, size_t index, void *result, struct error *err);
	void *ctx;
	/* out: count results */
	void *results;
	size_t mapped;
};
/* Runs all jobs, in this process alone when `is_small`. pair_done follows, also after a failure. */
int pair_run(struct pair *pair, bool is_small, struct error *err);
void pair_done(struct pair *pair);
