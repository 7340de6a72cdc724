/* journal.h -- events: a ring of the latest ones, and live listeners.
 * 1. Ids count up without gaps while core runs, and begin above the last run's (milliseconds of the
 * start).
 * 2. A listener is told each event once, in the order of the ids, also when a listener emits one
 * while it is told of another. */
#pragma once
#include "base/str.h"

#define JOURNAL_KEPT 4096
struct event {
	uint64_t id;
	const char *type; /* "workspace.created", "workspace.ready", "workspace.warm" (a sandbox
			   * is held), "workspace.cold" (it is released),
			   * "workspace.suspended", "workspace.failed", "workspace.deleted",
			   * "workspace.installed", "workspace.uninstalled",
			   * "workspace.applied" (changes of another one),
			   * "exec.started", "exec.ended" … */
	const char *workspace; /* id */
	struct str json;       /* {"id","type","time","workspace","name",…} */
};
typedef void journal_fn(void *ctx, const struct event *event);
struct journal_listener {
	journal_fn *fn;
	void *ctx;
	struct journal_listener *next; /* private */
	uint64_t next_id;	       /* private: of the event that it is told next */
};
struct journal {
	struct event *ring;   /* JOURNAL_KEPT */
	uint64_t first, next; /* ids: first kept, next to be given */
	struct journal_listener *listeners;
	struct journal_listener *cursor; /* private: the listener to be called next */
	bool is_telling;		 /* private: a listener is being called */
	/* NULL, or called with each event before the listeners, also when there are none. */
	void (*tap)(void *ctx, const char *type, const char *workspace, const char *name,
		struct str json);
	void *tap_ctx;
};
void journal_init(struct journal *journal, uint64_t first_id);
void journal_done(struct journal *journal);
/* Further members: alternating key and text, NULL at the end. Behind a key with a '#' before it the
 * text is a number. */
void journal_emit(struct journal *journal, const char *type, const char *workspace_id,
	const char *name, ...) __attribute__((sentinel));
/* Calls fn for the kept ones after `id` (0: none of them), then for each new one until unlisten. fn
 * may emit events, listen, and unlisten any listener. */
void journal_listen(struct journal *journal, struct journal_listener *listener, uint64_t after_id);
void journal_unlisten(struct journal *journal, struct journal_listener *listener);
