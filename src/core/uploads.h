/* uploads.h -- bytes that come in pieces, stored as one object of the blob store. */
#pragma once
#include "core/jobs.h"

struct upload;
/* Begins to store what is written to upload_fd under `key`; is_new: which must be new. sha256: that
 * it must have, or NULL. done is called once, later, unless the upload is canceled. */
int upload_start(struct core *core, const char *key, bool is_new, const char *sha256,
	const char *request_id, job_fn *done, void *ctx, struct upload **out, struct error *err);
int upload_fd(const struct upload *upload); /* doesn't block; not to be closed */
void upload_end(struct upload *upload);	    /* all was written */
/* Nothing is stored. The upload is gone for the caller. */
void upload_cancel(struct upload *upload);
