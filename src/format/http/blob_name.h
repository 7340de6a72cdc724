/* blob_name.h -- names of the blob store: keys of objects, and the URL of a store. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

#define BLOB_KEY_MAX 512
#define BLOB_KEY_DEPTH 8

/* One to BLOB_KEY_DEPTH components of at most 200 bytes of [A-Za-z0-9._@+=-], joined by '/'; no
 * component begins with '.'. Such a key is the same file name, URL path and S3 key everywhere. */
bool blob_key_is_valid(const char *key);
/* A key, or the beginning of one; "" is the beginning of all. */
bool blob_prefix_is_valid(const char *prefix);

enum blob_scheme { BLOB_DIR, BLOB_S3 };
struct blob_url {
	enum blob_scheme scheme;
	const char *path;   /* BLOB_DIR: absolute and normal; NULL: `blobs` in the home */
	const char *bucket; /* BLOB_S3 */
	const char *prefix; /* BLOB_S3: "" or a key */
};
/* "dir", "dir:/path" or "s3://bucket[/prefix]". ERR_INVALID says what is expected. */
int blob_url_parse(const char *text, struct arena *arena, struct blob_url *url, struct error *err);
