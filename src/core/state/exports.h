/* exports.h -- files that clients keep in the blob store, by kind and name: exported environments
 * (environments/NAME.tar, as `carrel env export` writes them) and agent packages
 * (packages/ID@VERSION.apkg). Core doesn't look into them: whoever uses one checks it. */
#pragma once
#include "core/core.h"
#include "core/uploads.h"
#include "model/nouns/archive.h"

struct stored_kind {
	const char *prefix, *suffix; /* of the key */
	const char *noun, *hint;     /* for errors */
	enum verb put, get, list, remove;
};
extern const struct stored_kind stored_environments, stored_packages;

/* Stores what is uploaded (core/uploads.h) under `name`; replaces what has that name. sha256: that
 * it must have, or NULL. -1: refused. */
core_verb int core_put_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, const char *name, const char *sha256, job_fn *done,
	void *ctx, struct upload **upload, struct error *err);

/* fd: a file with all of it, yours to close; -1 when *err says why there is none. sha256: of its
 * bytes. */
typedef void export_fn(
	void *ctx, int fd, uint64_t size, const char *sha256, const struct error *err);
/* ERR_NOT_FOUND: nothing has that name; ERR_DISK_FULL: it is larger than the room. */
core_verb void core_get_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, const char *name, export_fn *done, void *ctx);
/* Stores the file `fd`, which stays the caller's, and gives it back as core_get_stored does.
 * sha256: that it must have, or NULL; else ERR_INVALID, and nothing is stored. */
core_verb void core_keep_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, const char *name, int fd, const char *sha256,
	export_fn *done, void *ctx);

typedef VEC(struct export_row) export_rows;
/* rows: by name, valid during the call; NULL when *err says why, and of a removal. */
typedef void exports_fn(void *ctx, const export_rows *rows, const struct error *err);
core_verb void core_list_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, exports_fn *done, void *ctx);
core_verb void core_remove_stored(const struct request *request, struct core *core,
	const struct stored_kind *kind, const char *name, exports_fn *done, void *ctx);
