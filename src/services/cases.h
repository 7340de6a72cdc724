/* cases.h -- eval cases and their cells (docs/design/0060).
 * 1. A case has one workspace, which is prepared once and frozen; each cell is a fork of it.
 * 2. Whatever happens in a cell ends that cell alone, in one of its three last states, with what
 * its commands wrote. Its workspace is removed then, unless the case keeps workspaces.
 * 3. A case and its cells stay until the case is removed: by a client, or when it isn't used for
 * its ttl, an hour by default, unless it keeps workspaces.
 * 4. Callbacks are called once, from the loop. */
#pragma once
#include "model/agents/case.h"
#include "services/services.h"

extern const struct service cases_service;
struct cases;

#define CASES_MAX 1000
#define CELLS_MAX 10000 /* of all cases */
/* Maximum of cells that have not ended; one principal may have a quarter: as many as `case run -j`
 * accepts. */
#define CELLS_OPEN_MAX 1024

/* Valid during the call; NULL when *err says why there is none. */
typedef void case_fn(void *ctx, const struct eval_case *shown, const struct error *err);
typedef void cell_fn(void *ctx, const struct cell *shown, const struct error *err);

/* ERR_INVALID names file, line and key. With `check` nothing is made, and the id is "". */
core_verb void case_create(const struct request *request, struct cases *cases,
	const struct case_wanted *wanted, case_fn *done, void *ctx);
/* Cancels its cells; done gets no case, when its workspaces are gone. */
core_verb void case_remove(const struct request *request, struct cases *cases, const char *id,
	case_fn *done, void *ctx);
core_verb int case_get(const struct request *request, struct cases *cases, const char *id,
	struct arena *arena, struct eval_case *shown, struct error *err);
/* Newest first; `cursor` and `next` as in core_list. */
core_verb int case_list(const struct request *request, struct cases *cases, const char *cursor,
	size_t limit, void (*fn)(void *ctx, const struct eval_case *shown), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err);

/* A new cell, which runs as soon as its case is prepared; done: it is in the store. */
core_verb void cell_start(const struct request *request, struct cases *cases, const char *case_id,
	const struct cell_wanted *wanted, cell_fn *done, void *ctx);
core_verb int cell_get(const struct request *request, struct cases *cases, const char *id,
	struct arena *arena, struct cell *shown, struct error *err);
/* Of a case, newest first, without their steps and diffs. */
core_verb int cell_list(const struct request *request, struct cases *cases, const char *case_id,
	const char *cursor, size_t limit, void (*fn)(void *ctx, const struct cell *shown),
	void *ctx, char next[CORE_CURSOR_SIZE], struct error *err);
