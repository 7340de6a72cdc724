/* review.h -- `carrel run --dir PATH --review`: the command works on an overlay over the directory;
 * afterwards its changes are shown, and those that are accepted are applied.
 * 1. What the command wrote lies in a private directory (cli/area.h), and is removed in the end.
 * 2. Protected names (plan_protected_names), special files and names of our own are shown and not
 * applied. */
#pragma once
#include <time.h>
#include "cli/area.h"
#include "cli/cli.h"
#include "sandbox/plan/plan.h"

struct review {
	const char *path; /* the reviewed directory, absolute and without links; NULL: no review */
	uint32_t owner_uid, owner_gid;
	int dir;
	struct area area;
	struct plan_tree tree;
	struct timespec since; /* what changes in the directory after this is a conflict */
};
#define REVIEW_NONE ((struct review){ .dir = -1, .area = AREA_NONE })
/* Makes the overlay `options->workspace` out of `options->dir`. */
int review_begin(struct review *review, struct command *command, struct plan_options *options,
	struct error *err);
/* Shows the changes, asks, applies. With -o json `changes` is a member of the open object of
 * command->value. */
int review_finish(struct review *review, struct command *command, struct error *err);
void review_done(struct review *review);
/* ERR_INVALID: options that don't go with it. */
int review_check(const struct options *run, struct error *err);
