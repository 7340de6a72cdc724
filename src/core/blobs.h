/* blobs.h -- operations on the blob store, done by processes that the launcher starts
 * (main/carrel_blob.c): core itself has no network, no credentials, and sees no other directory.
 * Every store is reached this way; the operations are those of format/blob_words.h. */
#pragma once
#include "base/error.h"
#include "format/blob_words.h"
#include "format/json_read.h"

struct core;
struct blob_order {
	enum blob_verb verb;
	const char *key;	 /* copied */
	struct blob_words words; /* blob_words_none() at first */
	int data;		 /* read by put, written by get; -1: none. Duplicated */
	const char *request_id;	 /* for the log; or NULL */
};
/* answer: {"size","modified_s","sha256"} or {"items":[{"key","size","modified_s"}]}, valid during
 * the call; NULL when *err says why there is none. ERR_CANCELED: it was canceled, or killed. */
typedef void blob_job_fn(void *ctx, const struct json_value *answer, const struct error *err);
struct blob_job;
/* done is called once, later; the handle is valid until then. */
struct blob_job *blob_job_start(
	struct core *core, const struct blob_order *order, blob_job_fn *done, void *ctx);
void blob_job_cancel(struct blob_job *job); /* done is called with ERR_CANCELED */
void blob_jobs_done(struct core *core);	    /* forgets all of them */
