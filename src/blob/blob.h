/* blob.h -- bytes by key, in a directory or an S3 bucket: templates, snapshots, archives, exported
 * environments.
 *	workspace-templates/NAME.yaml	workspace-snapshots/...
 *	archives/NAME-TIMESTAMP.tar.zst	environments/...
 * 1. An object is visible when it is whole, and never before. A put that fails or is killed leaves
 * the object that was there before, or none.
 * 2. Keys are those of format/http/blob_name.h; each call checks its key.
 * 3. Calls block until they are done, have failed, or their time is over. Transfers of the S3
 * backend are retried; what a retry can't mend is an error that names the key.
 * 4. Length and SHA-256 are counted here, whatever the other side says about them. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"
#include "format/http/blob_name.h"

#define BLOB_DIRECTORY "blobs" /* of the home: store `dir` */
#define BLOB_SIZE_UNKNOWN UINT64_MAX

struct blob_credentials { /* never printed or logged */
	const char *key_id, *secret;
	const char *token; /* of a session, or NULL */
};
struct blob_settings {
	struct blob_url url;
	const char *endpoint; /* S3: "http(s)://host[:port]"; NULL: the region's own */
	const char *region;   /* S3 */
	bool path_style;      /* S3: the bucket in the path, not in the name of the host */
	uint64_t stall_ms;    /* S3: a transfer without a byte for this time fails; 0: a minute */
	struct blob_credentials credentials;
};

struct blob_info {
	uint64_t size;
	int64_t modified_s;		 /* Unix time; of a put: 0 */
	char sha256[2 * SHA256_LEN + 1]; /* of the bytes that were transferred; "": none */
};
struct blob_row {
	const char *key;
	uint64_t size;
	int64_t modified_s;
};
typedef VEC(struct blob_row) blob_rows;

struct blob_put {
	int from;	    /* read to its end */
	uint64_t size;	    /* that is expected, or BLOB_SIZE_UNKNOWN */
	const char *sha256; /* that is expected, or NULL */
	bool only_new;	    /* ERR_CONFLICT: there is an object of that key */
	/* Called when all was read, before the object becomes visible; -1: it doesn't. Or NULL. */
	int (*end)(void *ctx, struct error *err);
	void *ctx;
};
struct blob_get {
	int to;
	uint64_t offset, len; /* len UINT64_MAX: to the end */
	const char *sha256;   /* of what is read, or NULL */
};

struct blob_backend;				  /* blob/internal.h */
extern const struct blob_backend blob_s3_backend; /* in programs that link blob/s3 */
struct blob_store {
	const struct blob_backend *backend;
	void *state;
};
/* `home`: descriptor of the home; used when the URL is "dir". s3: &blob_s3_backend, or NULL in
 * programs that don't link it (ERR_UNAVAILABLE). Settings stay the caller's. */
int blob_open(const struct blob_settings *settings, int home, const struct blob_backend *s3,
	struct blob_store *store, struct error *err);
void blob_close(struct blob_store *store);
#define auto_blob __attribute__((cleanup(blob_close)))

/* ERR_CORRUPT: the bytes aren't those that are expected; ERR_CONFLICT: only_new. info: or NULL. */
int blob_put(const struct blob_store *store, const char *key, const struct blob_put *put,
	struct blob_info *info, struct error *err);
/* ERR_NOT_FOUND: no such object. ERR_CORRUPT: not the bytes that were expected, or fewer: what was
 * written to get->to means nothing then. A range beyond the object ends with it. */
int blob_get(const struct blob_store *store, const char *key, const struct blob_get *get,
	struct blob_info *info, struct error *err);
/* Small objects, in memory. ERR_LIMIT: more than `max` bytes. */
int blob_put_text(const struct blob_store *store, const char *key, struct str text, bool only_new,
	struct error *err);
int blob_get_text(const struct blob_store *store, const char *key, size_t max, struct arena *arena,
	struct str *text, struct error *err);
int blob_head(
	const struct blob_store *store, const char *key, struct blob_info *info, struct error *err);
/* Objects whose keys begin with `prefix`, by key. ERR_LIMIT: more than BLOB_ROWS_MAX. */
#define BLOB_ROWS_MAX 100000
int blob_list(const struct blob_store *store, const char *prefix, struct arena *arena,
	blob_rows *rows, struct error *err);
/* One that isn't there is success. */
int blob_delete(const struct blob_store *store, const char *key, struct error *err);
