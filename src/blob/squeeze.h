/* squeeze.h -- tar archives that are compressed on their way into the blob store and back. Only in
 * carrel-blob, which links the libraries for it.
 * 1. Each works in a child, between two descriptors; its end is asked for by squeeze_end.
 * 2. What is compressed must be a whole tar archive: one that is cut is ERR_CORRUPT.
 * 3. What is decompressed (zstd or gzip; other bytes pass) may be a stranger's: more than
 * SQUEEZE_RATIO_MAX bytes for each one that came in, beyond SQUEEZE_RATIO_FREE, is ERR_LIMIT. */
#pragma once
#include "base/error.h"
#include "format/http/blob_words.h"
#include "linux/child.h"

#define SQUEEZE_RATIO_MAX 200
/* What a workspace may hold: its files may be the same byte all over. */
#define SQUEEZE_RATIO_FREE ((uint64_t)4 << 30)

struct squeeze {
	struct child child;
	int fd; /* what comes out of it, or goes into it; yours to close before squeeze_end */
};
/* fd: the compressed bytes of the archive that is read from `from`. */
int squeeze_pack(int from, enum blob_pack pack, struct squeeze *squeeze, struct error *err);
/* fd: what is written there goes to `to`, decompressed. */
int squeeze_unpack(int to, struct squeeze *squeeze, struct error *err);
/* Waits for its end. -1: it has failed, *err says why. */
int squeeze_end(struct squeeze *squeeze, struct error *err);
