/* uploads.h -- bytes that come in pieces, stored as one object of the blob store. */
#pragma once
#include "core/jobs.h"

#define UPLOADS_MAX 6 /* at once, of the 8 jobs on the blob store: each waits for its client */
#define UPLOADS_SHARE_MAX 3 /* of one principal */

struct request;
struct upload;
/* Begins to store what is written to upload_fd under `key`; is_new: which must be new. sha256: that
 * it must have, or NULL. done is called once, later, unless the upload is canceled. ERR_LIMIT: too
 * many are under way. */
int upload_start(struct core *core, const char *key, bool is_new, const char *sha256,
	const struct request *request, job_fn *done, void *ctx, struct upload **out,
	struct error *err);
int upload_fd(const struct upload *upload); /* doesn't block; not to be closed */
void upload_end(struct upload *upload);	    /* all was written */
/* Nothing is stored. The upload is gone for the caller. */
void upload_cancel(struct upload *upload);
