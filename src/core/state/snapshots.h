/* snapshots.h -- verbs over snapshots: frozen states of workspaces. */
#pragma once
#include "core/core.h"
#include "model/nouns/snapshot.h"

struct core_snapshot;
typedef void core_snapshot_fn(void *ctx, const struct snapshot *snapshot, const struct error *err);

/* Freezes the present state of w. ERR_CONFLICT: the tag is taken, or w is in use and when_busy is
 * `fail`, or `wait` and too late. */
core_verb struct cancelable *core_snapshot_create(const struct request *request,
	struct core_workspace *w, const struct snapshot_wanted *wanted, core_snapshot_fn *done,
	void *ctx);
/* By id. */
core_verb int core_snapshot_find(const struct request *request, struct core *core, const char *id,
	struct core_snapshot **snapshot, struct error *err);
/* Of w: by id, tag or version. ERR_CONFLICT: of another workspace; fork it instead. A principal
 * that is bound to w finds no such snapshot. */
int snapshot_of(const struct request *request, struct core_workspace *w, const char *text,
	struct core_snapshot **snapshot, struct error *err);
/* What is shown of it, valid until the next turn of the loop. */
const struct snapshot *core_snapshot_model(const struct core_snapshot *snapshot);
/* Newest first: of w, or (NULL) of all workspaces. `cursor` and `next` as in core_list. */
core_verb int core_snapshot_list(const struct request *request, struct core *core,
	const struct core_workspace *w, const char *cursor, size_t limit,
	void (*fn)(void *ctx, const struct snapshot *snapshot), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err);
/* Its layers go when nothing else names them. */
core_verb void core_snapshot_remove(const struct request *request, struct core_snapshot *snapshot,
	core_snapshot_fn *done, void *ctx);
/* ---- snapshot_content.c ---- */
struct core_layer_verdict {
	const char *name, *content_id;
	const char
		*problem; /* "missing", "changed", or why it can't be read; NULL: it is as it was */
};
struct core_snapshot_verdict {
	const char *snapshot;
	bool ok;
	VEC(struct core_layer_verdict) layers; /* topmost first */
};
/* The verdict is valid during the call; NULL with an error. */
typedef void core_snapshot_verdict_fn(
	void *ctx, const struct core_snapshot_verdict *verdict, const struct error *err);
/* Computes the content ids of all its layers anew, and compares them with those that were computed
 * when they were made. -1: refused, and done is not called. */
core_verb int core_snapshot_verify(const struct request *request, struct core_snapshot *snapshot,
	core_snapshot_verdict_fn *done, void *ctx, struct error *err);

/* Puts w back into the state of one of its snapshots. The state that it leaves is kept as an
 * automatic snapshot, unless it is that of a snapshot. */
core_verb struct cancelable *core_rollback(const struct request *request, struct core_workspace *w,
	const struct rollback_wanted *wanted, core_workspace_fn *done, void *ctx);

/* ---- fork.c ---- */
/* forks: `count` new workspaces; NULL with an error. */
typedef void core_fork_fn(
	void *ctx, struct core_workspace *const *forks, size_t count, const struct error *err);
/* New workspaces with the state of w, or of one of its snapshots, its limits, labels, variables and
 * environment. All or none. */
core_verb struct cancelable *core_fork(const struct request *request, struct core_workspace *w,
	const struct fork_wanted *wanted, core_fork_fn *done, void *ctx);
