/* deployments.h -- agent packages that are served (docs/design/0059): verbs over deployments.
 * 1. A package is unpacked once, into a workspace that is frozen; each surface is a workspace of
 * its own on that layer, in which one background exec serves.
 * 2. A rollout changes nothing of the live revision before all surfaces of the next are healthy.
 * A rollout that fails removes all that it made, but for the end of its output.
 * 3. A request that was forwarded to a revision ends there: a revision that was replaced is removed
 * when no request is under way, or after 30 seconds. */
#pragma once
#include "base/buf.h"
#include "core/core.h"
#include "model/agents/deployment.h"
#include "services/services.h"

#define DEPLOYMENTS_MAX 200

extern const struct service deployments_service;
struct deployments;
struct surface;

/* shown: valid during the call; NULL with an error, and of a removal. is_new: it wasn't there. */
typedef void deployment_fn(
	void *ctx, const struct deployment *shown, bool is_new, const struct error *err);
/* Answers when the rollout is stored, and begins it. ERR_CONFLICT: one is under way. */
core_verb void deployment_create(const struct request *request, struct deployments *all,
	const struct deployment_wanted *wanted, deployment_fn *done, void *ctx);
/* By id or name. */
core_verb int deployment_get(const struct request *request, struct deployments *all, const char *id,
	struct arena *arena, struct deployment *shown, struct error *err);
/* Newest first. `cursor` and `next` as in core_list. */
core_verb int deployment_list(const struct request *request, struct deployments *all,
	const char *cursor, size_t limit, struct arena *arena,
	void (*fn)(void *ctx, const struct deployment *shown), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err);
/* Rolls the live revision out again, or the one before it. ERR_CONFLICT: there is none. */
core_verb void deployment_restart(const struct request *request, struct deployments *all,
	const char *id, deployment_fn *done, void *ctx);
core_verb void deployment_rollback(const struct request *request, struct deployments *all,
	const char *id, deployment_fn *done, void *ctx);
/* Answers when its row is dropped: its name is free from the call on. Its surfaces, its layer and a
 * rollout under way are being ended then, without anybody being told; what core's death leaves of
 * them, the next start removes. Requests under way fail. Its package and environment stay. With an
 * error but ERR_NOT_FOUND and ERR_DENIED it is ended all the same, but its row may stay: the next
 * start reads it again. */
core_verb void deployment_remove(const struct request *request, struct deployments *all,
	const char *id, deployment_fn *done, void *ctx);
/* Appends the end of what a surface (NULL: all) has written: of the live revision, of the next one,
 * and of the latest rollout if it has failed; before each part a line that says whose it is. */
core_verb int deployment_logs(const struct request *request, struct deployments *all,
	const char *id, const char *surface, struct buf *out, struct error *err);

/* Where a request for a surface goes: *use counts until deployment_leave. ERR_NOT_FOUND: it has no
 * such surface; ERR_UNAVAILABLE: nothing is live, or the surface doesn't run. */
core_verb int deployment_enter(const struct request *request, struct deployments *all,
	const char *id, enum surface_kind kind, struct core_workspace **w, uint16_t *port,
	struct surface **use, struct error *err);
/* The error of a request that could not be sent there: core's conflict, of a workspace without a
 * sandbox, becomes ERR_UNAVAILABLE. */
void deployment_explain(const struct surface *use, struct error *err);
void deployment_leave(struct surface *use);
