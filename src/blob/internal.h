/* internal.h -- what a backend of the blob store is. Private to this room. */
#pragma once
#include "blob/blob.h"

struct blob_backend {
	int (*open)(
		const struct blob_settings *settings, int home, void **state, struct error *err);
	void (*close)(void *state);
	/* Keys are valid here; info is never NULL. */
	int (*put)(void *state, const char *key, const struct blob_put *put, struct blob_info *info,
		struct error *err);
	int (*get)(void *state, const char *key, const struct blob_get *get, struct blob_info *info,
		struct error *err);
	int (*head)(void *state, const char *key, struct blob_info *info, struct error *err);
	int (*list)(void *state, const char *prefix, struct arena *arena, blob_rows *rows,
		struct error *err);
	int (*remove)(void *state, const char *key, struct error *err);
};
extern const struct blob_backend blob_dir_backend;

/* Compares what was moved with what is expected: ERR_CORRUPT. sha256 NULL, size
 * BLOB_SIZE_UNKNOWN: any. */
int blob_check(const char *key, const struct blob_info *moved, uint64_t size, const char *sha256,
	struct error *err);
/* Everything of a put was read: whether it may become visible. */
int blob_may_end(const char *key, const struct blob_put *put, const struct blob_info *moved,
	struct error *err);
int blob_not_found(const char *key, struct error *err);
int blob_exists(const char *key, struct error *err);
void blob_rows_sort(blob_rows *rows);
