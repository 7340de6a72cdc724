/* tree_archive_internal.h -- zstd, in a child that is locked before it begins: it has two pipes and
 * memory, and nothing else. Private to archive*.c. */
#pragma once
#include "core/files/files_ask.h"
#include "core/files/tree_archive.h"

#define ARCHIVE_RATIO_MAX 200
#define ARCHIVE_RATIO_FREE ((uint64_t)64 << 20) /* any archive may unpack to this many bytes */
#define ARCHIVE_BUFFER ((size_t)128 << 10)

struct zstd {
	bool compresses; /* else zstd and gzip are undone, a zip becomes a tar, the rest passes */
	int from, to;	 /* stay the caller's */
	/* From the loop, when it has ended. */
	void (*done)(void *ctx, const struct error *err);
	void *ctx;
	struct measure child; /* private, as what follows; is_running */
	struct loop_timer *timer;
	bool is_started, is_late;
	struct error err; /* as the child says */
};
/* The fields above `child` are set. */
int zstd_start(struct zstd *zstd, struct loop *loop, struct error *err);
void zstd_stop(struct zstd *zstd); /* ends it, if it runs; done isn't called */
