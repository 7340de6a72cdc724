/* area.h -- a private directory for changes that come to a directory of the host: `run --review`
 * and `apply`.
 * 1. It lies in the home, for root in /var/tmp, since the home of root's daemon belongs to another
 * user. It has a lock, a file that names the target, and the journal of trees/stacks/apply.h.
 * 2. The next area that is made undoes what a process began that was killed, and removes what it
 * left. */
#pragma once
#include "cli/cli.h"

#define AREA_PREFIX "carrel-review-"
struct area {
	int fd;
	const char *place; /* the directory that holds it */
	char name[64];	   /* "": it isn't made yet */
};
#define AREA_NONE ((struct area){ .fd = -1 })
/* Where it will be; nothing is made but the home. */
int area_find_place(struct area *area, struct command *command, struct error *err);
/* target: absolute and real. */
int area_make(struct area *area, const char *target, struct error *err);
void area_done(struct area *area); /* removes it */

/* Why a change of a protected name (plan_protected_names) is not applied to a directory of the
 * host; NULL: it is another name. after: 0 when nothing is there any more; is_meta: only the mode
 * changed. */
const char *area_protection(const char *path, char change, mode_t after, bool is_meta);
