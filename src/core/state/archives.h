/* archives.h -- workspaces as archives in the blob store: made before a workspace is removed,
 * listed, removed, and restored.
 * 1. A workspace is removed when its archive is stored, and was read back with the same hash. When
 * that fails it stays as it was; what ran in it has ended.
 * 2. An archive is the merged tree below "workspace/", what was changed of the environments below
 * "env/" and "node/", and the record of the workspace in "carrel.json" (trees/stacks/pack.h).
 * 3. An object beside it, its name with ARCHIVE_SUM behind, holds its SHA-256. An archive that has
 * one is restored only if it has that hash. */
#pragma once
#include "core/core.h"
#include "core/uploads.h"
#include "model/nouns/archive.h"

/* archive: what was made, valid during the call; NULL: none was asked for. */
typedef void archive_removed_fn(
	void *ctx, const struct archive_row *archive, const struct error *err);
core_verb void core_remove_as(const struct request *request, struct core_workspace *w,
	enum archive_wish wish, archive_removed_fn *done, void *ctx);

typedef VEC(struct archive_row) archive_rows;
/* rows: newest first, valid during the call; NULL when *err says why. */
typedef void archives_fn(void *ctx, const archive_rows *rows, const struct error *err);
core_verb void core_list_archives(
	const struct request *request, struct core *core, archives_fn *done, void *ctx);
/* rows is NULL. ERR_NOT_FOUND: there is no such archive. */
core_verb void core_remove_archive(const struct request *request, struct core *core,
	const char *name, archives_fn *done, void *ctx);

/* Stores an archive under `name`, which must be new, from outside: core/uploads.h. sha256: that it
 * must have, or NULL. Nothing of it is looked at before it is restored. -1: refused. */
typedef job_fn archive_stored_fn;
core_verb int core_upload_archive(const struct request *request, struct core *core,
	const char *name, const char *sha256, archive_stored_fn *done, void *ctx,
	struct upload **upload, struct error *err);

/* ---- restore.c ---- */
/* Makes a workspace of an archive, with the limits, labels, variables and environments that it had;
 * warnings of its model name what it had of the host, and hasn't any more. wanted: its name; NULL:
 * the one that it had. ERR_CONFLICT: the name is taken. */
core_verb struct cancelable *core_restore_archive(const struct request *request, struct core *core,
	const char *name, const char *wanted, core_workspace_fn *done, void *ctx);
