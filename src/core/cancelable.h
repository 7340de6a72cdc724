/* cancelable.h -- an operation that its client can take back: the first member of what keeps it.
 * 1. Valid until the operation's `done` is called, which is still called once.
 * 2. A canceled operation ends with ERR_CANCELED and has changed nothing, unless its last step had
 * begun: then it ends as it would have. */
#pragma once
#include "base/error.h"

struct core;
struct core_workspace;
struct cancelable {
	struct core *core;
	bool is_canceled;
	/* Private: of a workspace that it uses. */
	struct core_workspace *w;
	const char *what;
	struct cancelable *next;
	/* Ends the step under way, unless that is a job of which this is the owner; or NULL. */
	void (*cut)(struct cancelable *c);
};
/* From here on it uses w, which may go before it: what is shown of w, and what refuses because w is
 * in use, says so. what: "a fork of it is being made"; static. */
void cancelable_use(struct cancelable *c, struct core_workspace *w, const char *what);
/* It has ended; for each that was initialized. */
void cancelable_done(struct cancelable *c);
/* Once or several times. Ends also the jobs (core/jobs.h) that it owns. */
void cancelable_cancel(struct cancelable *c);
/* ERR_CANCELED. To be asked before each step that is no such job: those fail by themselves. */
int cancelable_check(const struct cancelable *c, struct error *err);
