/* transfers.h -- a job on trees and an operation on the blob store that run at once, joined by a
 * pipe: what the one writes the other reads. */
#pragma once
#include "core/blobs.h"
#include "core/tree_jobs.h"

/* Both answers are valid during the call, and NULL after a failure. When both have failed, *err is
 * the failure that caused the other one. */
typedef void transfer_fn(void *ctx, const struct json_value *tree, const struct json_value *blob,
	const struct error *err);
/* blob->verb: BLOB_PUT: the job's output is stored; BLOB_GET: the object is the job's input. done
 * is called once, later, when both have ended. */
void transfer_start(struct core *core, const struct tree_job_order *tree,
	const struct blob_order *blob, transfer_fn *done, void *ctx);

/* The most bytes on disk that something from outside may take: what is free, but for a reserve. */
uint64_t transfer_room(const struct core *core);
