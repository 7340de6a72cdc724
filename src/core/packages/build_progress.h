/* build_progress.h -- how far builds of environments are: what `carrel env build --events` writes
 * to a pipe becomes events `environment.progress` of the journal.
 * 1. A line is believed in its numbers, and in a stage of [a-z_]; nothing else of it is passed on.
 * 2. A build makes one event a second, and one for each new stage, up to 64 of them. Nothing is
 * emitted while nobody listens. */
#pragma once
#include "base/error.h"
#include "base/str.h"

struct core_workspace;
struct build_progress;

#define BUILD_STAGE_SIZE 32
struct build_stage {
	char name[BUILD_STAGE_SIZE];
	uint64_t done, total; /* packages; total 0: not known */
	uint64_t bytes;	      /* downloaded */
};
/* False: the line says nothing of progress. Pure. */
bool build_stage_read(struct str line, struct build_stage *stage);

/* *writer is for the build, and yours to close. request_id: the request that waits, or "". w stays
 * until build_progress_close. */
int build_progress_open(struct core_workspace *w, const char *request_id,
	struct build_progress **progress, int *writer, struct error *err);
/* Also reads what is still in the pipe. NULL: nothing. */
void build_progress_close(struct build_progress *progress);
