/* blobs.h -- operations on the blob store, done by processes that the launcher starts
 * (main/carrel_blob.c): core itself has no network, no credentials, and sees no other directory.
 * Every store is reached this way; the operations are those of format/http/blob_words.h. */
#pragma once
#include "core/jobs.h"
#include "format/http/blob_words.h"

struct blob_order {
	enum blob_verb verb;
	const char *key;		/* copied */
	struct blob_words words;	/* blob_words_none() at first */
	int data;			/* read by put, written by get; -1: none. Duplicated */
	const char *request_id;		/* for the log; or NULL */
	const struct cancelable *owner; /* as of struct core_job; or NULL */
};
extern const struct job_kind blob_job_kind;
/* One that neither reads nor writes anything here. */
struct blob_order blob_order_make(enum blob_verb verb, const char *key, const char *request_id,
	const struct cancelable *owner);
/* The answer is {"size","modified_s","sha256"} or {"items":[{"key","size","modified_s"}]}. */
struct core_job *blob_job_start(
	struct core *core, const struct blob_order *order, job_fn *done, void *ctx);
