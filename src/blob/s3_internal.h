/* s3_internal.h -- HTTP of the S3 backend. Private to blob/s3*.c.
 * 1. One call is one request, signed, repeated with growing pauses when its failure may pass:
 * connections that break, answers 408, 429 and 5xx, a body that was damaged on its way. At most
 * S3_ATTEMPTS times.
 * 2. A connection without any byte for the configured time is given up.
 * 3. Redirections are not followed; credentials go to the endpoint alone and into no message. */
#pragma once
#include <curl/curl.h>
#include "base/buf.h"
#include "blob/internal.h"

#define S3_ATTEMPTS 6
#define S3_BODY_MAX ((size_t)16 << 20) /* of an answer that is read as XML */

struct s3_store {
	CURL *curl;
	struct arena arena;
	const char *scheme; /* "https://" */
	const char *host;   /* with the port, as in the header Host */
	const char *root;   /* path of the bucket: "/" or "/bucket/" */
	const char *prefix; /* of every key: "" or "prefix/" */
	const char *region;
	struct blob_credentials credentials;
	uint64_t stall_ms;
};

struct s3_call {
	const char *method;
	const char *key;   /* NULL: the bucket itself */
	pair_list query;   /* decoded */
	pair_list headers; /* besides the usual ones; names in lower case */
	struct str body;
	/* Takes the body of an answer with status 200 or 206; NULL: it goes into answer->body. */
	int (*take)(void *ctx, struct str data, struct error *err);
	/* Before a repetition; false: the failure is final. NULL: always repeated. */
	bool (*again)(void *ctx, struct s3_call *call);
	void *ctx;
	struct arena *arena;
};
struct s3_answer {
	long status;
	unsigned attempts;
	struct buf body; /* XML, of an error too; s3_answer_done frees it */
	char etag[128];	 /* "": none */
	char id[64];	 /* x-amz-meta-carrel-id, or "" */
	char region[64]; /* x-amz-bucket-region, or "" */
	char range[96];	 /* Content-Range, or "" */
	int64_t length;	 /* Content-Length; -1: none */
	int64_t modified_s;
};
/* 0: the server has answered, with any status that isn't worth a repetition. -1: it hasn't. */
int s3_call(
	struct s3_store *store, struct s3_call *call, struct s3_answer *answer, struct error *err);
void s3_answer_done(struct s3_answer *answer);
#define auto_answer __attribute__((cleanup(s3_answer_done)))
/* The error of an answer that isn't a success; returns -1. */
int s3_fail(const struct s3_store *store, const struct s3_call *call,
	const struct s3_answer *answer, struct error *err);
/* s3_put.c */
int s3_put(void *state, const char *key, const struct blob_put *put, struct blob_info *info,
	struct error *err);
int s3_head(void *state, const char *key, struct blob_info *info, struct error *err);
