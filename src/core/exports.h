/* exports.h -- exported environments in the blob store: environments/NAME.tar, as `carrel env
 * export` writes them. Core doesn't look into them: whoever imports one checks its layers. */
#pragma once
#include "core/core.h"
#include "core/uploads.h"
#include "model/archive.h"

/* Stores what is uploaded (core/uploads.h) under `name`; replaces what has that name. sha256: that
 * it must have, or NULL. -1: refused. */
core_verb int core_put_export(const struct request *request, struct core *core, const char *name,
	const char *sha256, job_fn *done, void *ctx, struct upload **upload, struct error *err);

/* fd: a file with all of it, yours to close; -1 when *err says why there is none. */
typedef void export_fn(void *ctx, int fd, uint64_t size, const struct error *err);
/* ERR_NOT_FOUND: no exported environment has that name; ERR_DISK_FULL: it is larger than the room.
 */
core_verb void core_get_export(const struct request *request, struct core *core, const char *name,
	export_fn *done, void *ctx);

typedef VEC(struct export_row) export_rows;
/* rows: by name, valid during the call; NULL when *err says why, and of a removal. */
typedef void exports_fn(void *ctx, const export_rows *rows, const struct error *err);
core_verb void core_list_exports(
	const struct request *request, struct core *core, exports_fn *done, void *ctx);
core_verb void core_remove_export(const struct request *request, struct core *core,
	const char *name, exports_fn *done, void *ctx);
